"""Arista EOS over gNMI and eAPI."""
