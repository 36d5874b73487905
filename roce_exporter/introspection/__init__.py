"""The exporter's own knowledge, for people: `explain`, the debug pages, and the reference of all metrics."""
