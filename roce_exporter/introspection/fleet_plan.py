"""What a fleet of hosts costs a Prometheus, and how to arrange it: pure arithmetic over `fleet_factors.py`.

Series and bytes of a scrape are those of a simulated host under an incast. Without owners, virtual functions and switches.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.introspection.fleet_factors import DISK, INGESTION, LONGEST_GROUP, MEMORY, QUERIES, RULES

if TYPE_CHECKING:
    from roce_exporter.catalog.row import MetricSet

SERVER_MEMORY = 64e9
"""Bytes of memory that one Prometheus may take. A choice, not a measurement, as are the next three."""
SERVER_CORES = 8.0
"""Cores that one Prometheus may take, queries of people not counted."""
SERVER_BUSY = 0.5
"""Share of the interval that the longest group of rules may take: above 1, evaluations are missed."""
FEW_SERVERS = 8
"""Most Prometheus servers with a share of the clusters each; more are one distributed store."""
HOSTS_PER_AGENT = 500
"""As in deploy/prometheus/agent.yml."""


class Fleet(NamedTuple):
    """Equal hosts. Times are in seconds."""

    hosts: int
    ports: int
    driver: str
    metric_set: MetricSet
    interval: float
    """Between two scrapes, and between two evaluations of the rules."""
    retention: float


class HostSize(NamedTuple):
    """One scrape of one host."""

    series: int
    gzipped: int
    """Bytes on the wire, as Prometheus requests them."""


class Topology(NamedTuple):
    """How many servers of which kind."""

    name: str
    """`one`, `per_cluster` or `store`."""
    servers: int
    """Prometheus servers; of a store, machines of the size of one."""
    agents: int
    text: str


class FleetPlan(NamedTuple):
    """What the fleet needs, in base units."""

    fleet: Fleet
    size: HostSize
    series: int
    samples_per_second: float
    memory_bytes: float
    disk_bytes: float
    network_bytes_per_second: float
    rules_seconds: float
    """One evaluation of all rules, one group after the other."""
    rules_cores: float
    ingestion_cores: float
    topology: Topology

    @property
    def cores(self) -> float:
        """Of rules and ingestion; queries of dashboards come on top."""
        return self.rules_cores + self.ingestion_cores


def plan(fleet: Fleet, size: HostSize) -> FleetPlan:
    """What this fleet needs if each host is of this size."""
    chosen, series = fleet.metric_set, fleet.hosts * size.series
    samples = series / fleet.interval
    memory = series * MEMORY.of(chosen) * QUERIES.of(chosen)
    rules = fleet.hosts * fleet.ports * RULES.of(chosen) / 1000
    ingestion = samples / 100_000 * INGESTION.of(chosen)
    cores = rules / fleet.interval + ingestion
    return FleetPlan(
        fleet,
        size,
        series,
        samples,
        memory,
        samples * fleet.retention * DISK.of(chosen),
        fleet.hosts * size.gzipped / fleet.interval,
        rules,
        rules / fleet.interval,
        ingestion,
        topology(fleet.hosts, memory, cores, rules * LONGEST_GROUP.of(chosen) / fleet.interval),
    )


def topology(hosts: int, memory: float, cores: float, busy: float) -> Topology:
    """The smallest arrangement that holds this memory in bytes and computes on these cores.

    `busy` is the share of an interval that one server would need for the longest group of rules.
    """
    needed = (memory / SERVER_MEMORY, cores / SERVER_CORES, busy / SERVER_BUSY)
    servers = max(1, *map(math.ceil, needed))
    if servers == 1:
        text = "one Prometheus with all rules, and a second one like it for when it fails"
        return Topology("one", 1, 0, text)
    if servers <= FEW_SERVERS:
        text = (
            f"{servers} Prometheus servers, whole clusters to each because the rules compare the hosts of a cluster, each "
            "with all rules and a second one like it; federate the recorded series for the fleet dashboard"
        )
        return Topology("per_cluster", servers, 0, text)
    agents = math.ceil(hosts / HOSTS_PER_AGENT)
    text = (
        f"{agents} agents of {HOSTS_PER_AGENT} hosts that only forward samples to VictoriaMetrics, Thanos or Mimir, spread "
        f"over at least {servers} machines; its ruler or vmalert evaluates the rules per cluster"
    )
    return Topology("store", servers, agents, text)
