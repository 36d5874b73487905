"""Whether the exporter can read what it needs on this host, and whether Prometheus receives it."""
