"""The dashboards as data: one module per dashboard, and their building blocks.

Units and meanings come from `roce_exporter.catalog`, limits from `alerts/thresholds.yml`, so that they are defined once.
"""
