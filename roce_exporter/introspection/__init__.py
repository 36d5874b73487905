"""What the exporter knows, for people: `explain`, the debug pages, and the reference of all metrics."""
