"""One host of the fleet with everything that the dashboards' queries name: raw series by the real exporter, and the results of the rules.

The history is that of `tests/dashboards`: a simulated host of eight ports that pauses its switch, the switch, the owners of
its RDMA objects and kube-state-metrics, on a simulated clock. One hour is simulated; it is repeated for the rest of the
range, and counters grow on.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests/dashboards"), str(ROOT / "tests"), str(ROOT / "dashboards")]

import dashboard_history  # noqa: E402 - the path is set above
import past  # noqa: E402
import servers  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUR = 3600
END = dashboard_history.END
"""The end of the range, at a boundary of Prometheus' blocks."""
SCRAPE = dashboard_history.SCRAPE
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
    """The last hour of the host, with what a new Prometheus below `folder` makes of it by the rules, unless it is there."""
    kept = folder / "host.json"
    if not kept.exists():
        folder.mkdir(parents=True)
        host = dashboard_history.Host(CLUSTER, INSTANCE, CLUSTER, ("mlx5",) * 8)
        samples = dashboard_history.history(host, HOUR, past.wanted())
        with servers.prometheus(folder / "prometheus", {}, *past.FLAGS) as running:
            past.write(running, samples)
            samples |= past.evaluate(running, END - HOUR)
        kept.write_text(json.dumps(list(samples.items())), encoding="utf-8")
    return [_past(dict(labels), samples) for labels, samples in json.loads(kept.read_text(encoding="utf-8"))]


def _past(labels: dict[str, str], samples: list[tuple[float, float]]) -> Past:
    pairs = ",".join(
        f"{key}={json.dumps(text, ensure_ascii=False)}" for key, text in labels.items() if key != "__name__"
    )
    times = ((round(at) - END + HOUR, value) for at, value in samples)
    # the last scrape of an hour is the first of the next one
    return Past(f"{labels['__name__']}{{{pairs}}}", tuple(one for one in times if one[0] < HOUR))


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
