"""Switches: the probe itself."""

from __future__ import annotations

from roce_exporter.catalog.row import GAUGE, LEAN, Row

PROBE_SUCCESS = Row(
    "roce_switch_probe_success",
    GAUGE,
    "bool",
    "Whether the switch answered and at least one source of it could be used.",
    labels=("device",),
    metric_set=LEAN,
)
PROBE_SECONDS = Row(
    "roce_switch_probe_duration_seconds",
    GAUGE,
    "seconds",
    "Time that the queries to the switch took. Answers that were kept for a few seconds show the time of their query.",
    labels=("device",),
    metric_set=LEAN,
)
SOURCE_UP = Row(
    "roce_switch_source_up",
    GAUGE,
    "bool",
    "Whether a source of the switch (a database, a command, a path) answered and could be used.",
    labels=("device", "source"),
    metric_set=LEAN,
)
SOURCE_UNREADABLE = Row(
    "roce_switch_source_unreadable_values",
    GAUGE,
    "values",
    "Values of the source that are not valid numbers and are left out.",
    labels=("device", "source"),
    metric_set=LEAN,
)
SOURCE_RENEWAL = Row(
    "roce_switch_source_renewal_seconds",
    GAUGE,
    "seconds",
    "Interval at which the switch itself refreshes the counters of a source, where it reports it. Use rates over at least "
    "four times this.",
    labels=("device", "source"),
    metric_set=LEAN,
)

ROWS = (PROBE_SUCCESS, PROBE_SECONDS, SOURCE_UP, SOURCE_UNREADABLE, SOURCE_RENEWAL)
