"""The dashboards as data: one module per dashboard, and what they are made of.

`roce_exporter.catalog` gives units and meanings, `alerts/thresholds.yml` the limits, so that neither is said twice.
"""
