"""What a series, a sample and a port cost a Prometheus: every factor of the table in docs/operating.md.

To update one: run its command, change `value` and `measured` here, then `make generate`. Series and bytes of a scrape are not here:
`introspection/fleet_plan.py` counts those of a simulated host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from roce_exporter.catalog.row import MetricSet


class Factor(NamedTuple):
    """One measured number, per metric set."""

    lean: float
    standard: float
    full: float
    unit: str
    measured: str
    """With what, and what was added to the result."""
    command: str
    """Prints it."""

    def of(self, metric_set: MetricSet) -> float:
        """The number for this set."""
        return {"lean": self.lean, "standard": self.standard, "full": self.full}[metric_set.value]


DISK = Factor(
    2.9,
    2.4,
    1.6,
    "bytes on disk per sample",
    "1.94, 1.63 and 1.07 by set, index included, in a block of two hours of a simulated host; half as much again, because "
    "counters of real hosts are less regular",
    "python deploy/prometheus/measure.py",
)
MEMORY = Factor(
    3461.0,
    3111.0,
    2800.0,
    "bytes of memory per series",
    "most memory by most series, 1,000 hosts of eight ports, all rules and the queries of two dashboards, Prometheus 3, 30 minutes; "
    "full: 2,399 with GOGC=50, scaled to Prometheus' 75",
    "python bench/fleet_live.py --set=SET",
)
QUERIES = Factor(
    2.0,
    2.0,
    2.0,
    "times the memory of the series",
    "not measured: as much again for queries, and for the replay of the log at a start",
    "none",
)
RULES = Factor(
    0.42,
    0.41,
    0.95,
    "ms of one core per port and evaluation of all rules",
    "320 ports under an incast (full: 160), a scrape every 15 s, Prometheus 3; texts of alerts that fire on every port come on top",
    "python bench rules",
)
LONGEST_GROUP = Factor(
    0.39,
    0.39,
    0.39,
    "of the time of all rules is that of the longest group, whose rules follow each other",
    "15.75 s of 40 s per minute, 5,000 hosts of one port, standard, Prometheus 3, on two busy cores",
    "python bench fleet",
)
INGESTION = Factor(
    0.17,
    0.17,
    0.19,
    "cores per 100,000 samples/s",
    "the difference of lean and standard, 1,000 hosts of eight ports, which have the same rules: 0.076 cores for 45,500 samples/s, Prometheus 3; "
    "full: eight minutes",
    "python bench/fleet_live.py --set=SET",
)
FACTORS = (DISK, MEMORY, QUERIES, RULES, LONGEST_GROUP, INGESTION)
"""In the order in which they are shown."""


class RivalSize(NamedTuple):
    """What another exporter has of one mlx5 port."""

    name: str
    series: int
    """Per port. Each is one sample per scrape."""
    contents: str


RIVALS = (
    RivalSize("node_exporter 1.5.0, infiniband", 25, "counters only"),
    RivalSize("node_exporter 1.12.1, infiniband", 52, "counters and hw_counters"),
    RivalSize(
        "node_exporter 1.12.1, infiniband and ethtool",
        876,
        "and all names of ethtool -S: 120, and 88 for each of 8 channels",
    ),
    RivalSize("rdma_exporter 0.7.1", 113, "counters, hw_counters and 61 names of ethtool -S"),
)
"""Printed by `python bench series`; mlx5 has by default as many channels as the host has cores, so 8 are few."""
