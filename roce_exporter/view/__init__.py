"""Samples by name and labels, now and over time: of an exporter, a recording or Prometheus."""
