"""One host of the fleet with everything that the dashboards' queries name: raw series by the real exporter, and the results of the rules.

The history is that of `tests/dashboards`: a simulated host of eight ports that pauses its switch, the switch, the owners of
its RDMA objects and kube-state-metrics, on a simulated clock. One hour is simulated; it is repeated for the rest of the
range, and counters grow on.
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests/dashboards"), str(ROOT / "dashboards")]

import dashboard_contents  # noqa: E402 - the path is set above
import dashboard_history  # noqa: E402
import dashboard_past  # noqa: E402
import past  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HOUR = 3600
END = dashboard_history.END
"""The end of the range, at a boundary of Prometheus' blocks."""
SCRAPE = int(dashboard_history.SCRAPE)
CLUSTER = "pfc-storm"
INSTANCE = "node21:10099"
SHIFTED = re.compile(r"ALERTS_FOR_STATE|\w+timestamp_seconds|\w+:timestamp")
"""Series whose value is a time, which moves with the repetitions."""
COUNTER = re.compile(r"\w+_(?:total|bucket|count|sum)")


class Past(NamedTuple):
    """A series of one hour: its name with labels, and times relative to the first scrape, with values."""

    series: str
    samples: tuple[tuple[int, float], ...]

    @property
    def name(self) -> str:
        """The metric's name."""
        return self.series.partition("{")[0]


def one_host(folder: Path) -> list[Past]:
    """The last hour of the host, in a new Prometheus below `folder`, which evaluates the rules, unless it is there."""
    if (folder / "complete").exists():
        return list(_read(sorted(folder.glob("*.om"))))
    prometheus = dashboard_past.Prometheus(folder / "data")
    prometheus.data.mkdir(parents=True)
    host = dashboard_history.Host(CLUSTER, INSTANCE, CLUSTER, ("mlx5",) * 8)
    dashboard_history.write_history(host, HOUR, past.wanted(), folder / "host.om")
    prometheus.backfill(folder / "host.om")
    rules = list(dashboard_past.read_rules(dashboard_contents.RULES))
    dashboard_past.evaluate(prometheus, rules, END - HOUR, END, SCRAPE)
    (folder / "complete").touch()
    return list(_read(sorted(folder.glob("*.om"))))


def _read(places: Iterable[Path]) -> Iterator[Past]:
    found: dict[str, list[tuple[int, float]]] = {}
    for place in places:
        for line in place.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                series, value, at = line.rsplit(" ", 2)
                found.setdefault(series, []).append((round(float(at)) - END + HOUR, float(value)))
    # the last scrape of an hour is the first of the next one
    yield from (Past(name, tuple(one for one in had if one[0] < HOUR)) for name, had in found.items())


def repeated(had: Past, start: int, end: int) -> Iterator[tuple[int, float]]:
    """Times and values from `start` to before `end`, which is an hour of the clock."""
    grows = COUNTER.fullmatch(had.name) and had.samples
    growth = had.samples[-1][1] - had.samples[0][1] if grows else 0.0
    for number in itertools.count():
        begin = start + number * HOUR
        if begin >= end:
            return
        more = growth * (begin // HOUR % 24) + (begin - END + HOUR if SHIFTED.fullmatch(had.name) else 0)
        yield from ((begin + at, value + more) for at, value in had.samples)
