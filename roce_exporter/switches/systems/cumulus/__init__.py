"""NVIDIA Cumulus Linux over NVUE."""
