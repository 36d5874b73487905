"""Counts per pair of addresses, PSN sequences per flow, and round trips: state without I/O or clocks."""
