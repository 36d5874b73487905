"""Metrics about the exporter itself: how collections went, and its process."""
