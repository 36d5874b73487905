"""What hosts cost a Prometheus, and how to arrange a fleet: `python bench/fleet_plan.py docs/operating.md` writes the tables there.

Every factor was measured. To update one: run its command, change `value` and `measured` here, then `make generate`. Series and bytes of a
scrape are those of a simulated host under an incast; the arrangement is arithmetic, without owners, virtual functions and switches.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from simulated_daemon import VIRTUAL_FUNCTIONS, SimulatedDaemon, sample_lines

from roce_exporter.catalog.row import MetricSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


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


class FleetPlan(NamedTuple):
    """What the fleet needs, in base units."""

    fleet: Fleet
    size: HostSize
    series: int
    samples_per_second: float
    memory_bytes: float
    disk_bytes: float
    network_bytes_per_second: float
    rules_cores: float
    """Of all rules, one group after the other; queries of dashboards come on top."""
    ingestion_cores: float
    topology: Topology


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
        return Topology("one", 1, 0)
    if servers <= FEW_SERVERS:
        return Topology("per_cluster", servers, 0)
    return Topology("store", servers, math.ceil(hosts / HOSTS_PER_AGENT))


PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
LOWEST = 0.01
"""Smaller numbers of cores are shown as less than this."""


def plan_table(plans: Iterable[FleetPlan]) -> str:
    """The plans in Markdown, one per line."""
    head = "| hosts | set | series | samples/s | memory | disk | network | cores: ingestion + rules | arrangement |"
    lines = [head, "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    return "\n".join([*lines, *map(_row, plans)]) + "\n"


def _row(plan: FleetPlan) -> str:
    cells = (
        f"{plan.fleet.hosts:,}",
        plan.fleet.metric_set.value,
        amount(plan.series),
        amount(plan.samples_per_second),
        amount(plan.memory_bytes, "B"),
        amount(plan.disk_bytes, "B"),
        amount(plan.network_bytes_per_second, "B/s"),
        f"{cores(plan.ingestion_cores)} + {cores(plan.rules_cores)}",
        SHORT[plan.topology.name](plan),
    )
    return f"| {' | '.join(cells)} |"


SHORT: dict[str, Callable[[FleetPlan], str]] = {
    "one": lambda _: "one Prometheus",
    "per_cluster": lambda plan: f"{plan.topology.servers} by cluster",
    "store": lambda plan: f"{plan.topology.agents:,} agents, store of {plan.topology.servers:,} machines",
}
"""The arrangements in a cell of the table."""


def amount(number: float, unit: str = "") -> str:
    """A number with two significant digits, or three from 100 on, and a decimal prefix: `4.8 M`, `180 kB/s`."""
    for size, prefix in PREFIXES:
        if round(number / size, 2) >= 1:
            return f"{_short(number / size)} {prefix}{unit}"
    return f"{_short(number)} {unit}".rstrip()


def cores(number: float) -> str:
    """A number of cores."""
    return f"{number:.2f}" if number >= LOWEST else f"<{LOWEST}"


def _short(number: float) -> str:
    rounded = float(f"{number:.3g}" if number >= 100 else f"{number:.2g}")  # noqa: PLR2004 - as the docstring of `amount` says
    return f"{rounded:g}" if rounded < 1000 else f"{rounded:,.0f}"  # noqa: PLR2004 - thousands


HOSTS = (10, 1_000, 10_000, 100_000)
PORTS = 8
DRIVERS = ("mlx5", "mlx5-lag", "bnxt", "ionic", "ice")
"""A port of `mlx5-lag` is one RDMA device with two network devices."""
LEVEL = 1
"""Of gzip: that of the exporter's web server."""
DEVLINK = frozenset({"devlink", "devlink_info", "devlink_vnic"})
AWAY = frozenset({VIRTUAL_FUNCTIONS})


def host_sizes(daemon: SimulatedDaemon) -> dict[MetricSet, HostSize]:
    """The last scrape of the first minute, per set."""
    texts = asyncio.run(daemon.last()).texts
    return {
        one: HostSize(len(sample_lines(text)), len(gzip.compress(text.encode(), LEVEL)))
        for one, text in texts.items()
    }


def fleets() -> str:
    """Fleets of hosts with mlx5 ports, small to large, every set."""
    sizes = host_sizes(SimulatedDaemon(("mlx5",) * PORTS))
    like = [Fleet(hosts, PORTS, "mlx5", one, 15.0, 15 * 86400.0) for hosts in HOSTS for one in MetricSet]
    return plan_table(plan(fleet, sizes[fleet.metric_set]) for fleet in like)


def drivers() -> str:
    """The series per port of each driver."""
    rows = {
        name: {one: size.series / PORTS for one, size in host_sizes(SimulatedDaemon((name,) * PORTS)).items()}
        for name in DRIVERS
    }
    return _by_set("series per port", rows)


def additions() -> str:
    """The series that parts of the exporter add."""
    mlx5 = ("mlx5",)
    plain = SimulatedDaemon(mlx5)
    pairs = {
        "owners: the four owners of a simulated device, with counter sets": (
            SimulatedDaemon(mlx5, owners=True),
            plain,
        ),
        "virtual functions: a device with two": (SimulatedDaemon(mlx5, disabled=frozenset()), plain),
        "devlink, included above: a device": (plain, SimulatedDaemon(mlx5, disabled=AWAY | DEVLINK)),
    }
    sizes = {name: (host_sizes(more), host_sizes(fewer)) for name, (more, fewer) in pairs.items()}
    rows = {
        name: {one: more[one].series - fewer[one].series for one in MetricSet}
        for name, (more, fewer) in sizes.items()
    }
    return _by_set("series added", rows)


def _by_set(title: str, rows: Mapping[str, Mapping[MetricSet, float]]) -> str:
    lines = [f"| {title} | {' | '.join(MetricSet)} |", f"| --- |{' ---: |' * len(MetricSet)}"]
    lines += [
        f"| {name} | {' | '.join(f'{row[one]:.0f}' for one in MetricSet)} |" for name, row in rows.items()
    ]
    return "".join(f"{line}\n" for line in lines)


TABLES = {"fleets": fleets, "drivers": drivers, "additions": additions}
"""The tables of docs/operating.md, each between a comment with its name and the comment `end`."""


def main(place: Path) -> None:
    """Write the tables into the document."""
    logging.disable(logging.WARNING)  # faults of simulated hosts
    text = place.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\g<1>{table()}\g<2>", text, flags=re.DOTALL
        )
    place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
