"""How the alerts are tested: series of a few hosts that are healthy, faulty for a while and healthy again, for promtool.

Hosts h1 to h4 are in cluster east, another h1 is in cluster west and stays healthy: events in east must not show there,
and shared labels (host, device, port) must not confuse the expressions. `<host>` in the labels of a case is the name of the
host; a switch of a case is scraped under the name of its host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

State = Literal["healthy", "below", "sick"]

PORT = 'device="mlx5_0",port="1"'
NETDEV = f'{PORT},netdev="ens1f0np0"'
LANE = f'{NETDEV},lane="2"'
PRIORITY = f'{NETDEV},priority="3"'
RECEIVE = f'{PRIORITY},direction="receive"'
TRANSMIT = f'{PRIORITY},direction="transmit"'

EAST = ("h1", "h2", "h3", "h4")
HOSTS = (*(("east", host) for host in EAST), ("west", "h1"))

LARGE = 1_000_000
"""The initial value of a counter: that of a host that has been up for a long time."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A counter's growth per second."""

    sick: float
    below: float | None = None
    healthy: float = 0.0


@dataclass(frozen=True, slots=True)
class Jump:
    """A counter that is constant except for one jump, when the fault begins."""

    sick: float
    below: float | None = None
    healthy: float = 0.0


@dataclass(frozen=True, slots=True)
class Level:
    """A gauge; None means no sample."""

    sick: float | None
    below: float | None = None
    healthy: float | None = 0.0


Shape = Rate | Jump | Level


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which an alert fires: minutes of health, fault and health again, and the series meanwhile."""

    alert: str
    series: Mapping[str, Shape]
    labels: str = PORT
    """The labels of the alert besides cluster, job, instance, severity and scope."""
    name: str = ""
    """What is special about the case; empty for the ordinary one."""
    sick_hosts: tuple[str, ...] = ("h1",)
    fabric: bool = False
    """The alert is about a cluster, so it has no job and no instance."""
    spare: frozenset[str] = frozenset()
    """Metrics without which the alert still fires."""
    lead: int = 12
    sick: int = 46
    tail: int = 45
    step: int = 30
    """Seconds between scrapes."""
    background: Mapping[str, Shape] = field(default_factory=dict)
    """Additional series of the faulty hosts; they change at most the text."""
    look: int = 0
    """Minutes after the start of the fault when the alert is checked; 0: when the fault ends."""

    @property
    def title(self) -> str:
        """The name of the case in tests and in annotations.yml."""
        return f"{self.alert}, {self.name}" if self.name else self.alert


def metric(series: str) -> str:
    """The metric of a series."""
    return series.split("{", maxsplit=1)[0]


def labels_of(text: str) -> dict[str, str]:
    """Labels parsed from text."""
    return dict(re.findall(r'(\w+)="([^"]*)"', text))


@dataclass(frozen=True, slots=True)
class Turn:
    """How one run of a case differs from the faulty one."""

    states: Mapping[str, State] = field(default_factory=dict)
    """States of single series of the faulty hosts; all others are faulty."""
    without: str = ""
    """A metric that no host has."""
    restart: int = 0
    """Minute at which every exporter restarts: a minute without scrapes, and counters from zero. 0: no restart."""
    both_clusters: bool = False
    """Host h1 of west has the same fault as the hosts of east."""
    unnamed: bool = False
    """There is one cluster, and no series has the label `cluster`."""


SICK = Turn()


def input_series(case: Case, turn: Turn = SICK) -> Iterator[dict[str, str]]:
    """The series of all hosts, in promtool's notation."""
    sick = {("east", host) for host in case.sick_hosts} | ({("west", "h1")} if turn.both_clusters else set())
    for cluster, host in HOSTS[: len(EAST)] if turn.unnamed else HOSTS:
        target = (
            f'job="roce",instance="{host}"'
            if turn.unnamed
            else f'cluster="{cluster}",job="roce",instance="{host}"'
        )
        for series, shape in {**case.series, **case.background}.items():
            if metric(series) == turn.without:
                continue
            state = turn.states.get(series, "sick") if (cluster, host) in sick else "healthy"
            inside = series.removeprefix(metric(series)).strip("{}")
            name = f"{metric(series)}{{{target}{',' if inside else ''}{inside}}}"
            yield {
                "series": name.replace("<host>", host),
                "values": " ".join(_values(case, shape, state, turn.restart)),
            }


def _values(case: Case, shape: Shape, state: State, restart: int) -> Iterator[str]:
    total: float = LARGE
    scrapes = (case.lead + case.sick + case.tail) * 60 // case.step
    onset = case.lead * 60 // case.step
    end = (case.lead + case.sick) * 60 // case.step
    gap = (
        range(restart * 60 // case.step, restart * 60 // case.step + 60 // case.step) if restart else range(0)
    )
    for scrape in range(scrapes):
        now = state if onset <= scrape < end else "healthy"
        level = getattr(shape, now)
        if isinstance(shape, Rate):
            total += level * case.step
        elif isinstance(shape, Jump) and scrape == onset:
            total += level
        if scrape in gap:
            total = 0
            yield "stale" if scrape == gap.start else "_"
        elif isinstance(shape, Level):
            yield "_" if level is None else _text(level)
        else:
            yield _text(total)


def _text(number: float) -> str:
    return f"{number:.12f}".rstrip("0").rstrip(".")
