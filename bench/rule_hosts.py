"""Histories of simulated hosts for the table `rules`: the real exporter with its fast loop, on a simulated clock.

Few hosts are simulated, and each is scraped under several names, because a simulation takes longer than what is measured.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Sampler
from roce_exporter.fastloop.target import Pace
from roce_exporter.host.simulated.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

PORTS = 8
SCRAPE = 15
POLL = 1.0
"""Seconds between two polls of the fast loop, long so that a simulation takes less time. The series are the same."""
NAME = "@host@"
"""Stands for the host's name in a page."""
SAMPLE = re.compile(rb"(\w+)(?:\{(.*)\})? (\S+)")
SCENARIOS = ("incast", "incast", "incast", "incast", "pfc-storm")
"""Of five hosts one has a fault for which an alert fires: with `slow-receiver` none does."""


class SimulatedClock:
    """Monotonic seconds that the simulation sets."""

    now = 0.0

    def __call__(self) -> float:
        """The seconds."""
        return self.now


class Page(NamedTuple):
    """One exposition of a host: the series with a placeholder for the host's name, and their values."""

    series: tuple[str, ...]
    values: tuple[str, ...]

    def text(self, host: str) -> str:
        """As the exporter would serve it, without comments."""
        return "".join(
            f"{one} {value}\n" for one, value in zip(self.series, self.values, strict=True)
        ).replace(NAME, host)

    def stamped(self, at: int, metrics: Collection[str]) -> str:
        """The samples of these metrics with a timestamp, for OpenMetrics."""
        return "".join(
            f"{one} {value} {at}\n"
            for one, value in zip(self.series, self.values, strict=True)
            if one.partition("{")[0] in metrics
        )


async def pages(scenario: str, seed: int, moments: int, metric_set: str) -> list[Page]:
    """The expositions of one host, one per scrape."""
    clock = SimulatedClock()
    kernel = simulate(scenario, clock=clock, vendors=("mlx5",) * PORTS, seed=seed)
    collector = Collector(kernel, Settings(), clock)
    sampler = Sampler(kernel, clock, clock, Pace(mode="fixed", interval=POLL))
    served = ServedSeries(MetricSet(metric_set))
    exporter = Exporter(collector, [Auditor(load_profile("auto")), sampler], served)
    found = []
    for number in range(moments):
        found.append(_page(exporter.render(await exporter.observe(5.0), Format.TEXT)))
        until = (number + 1) * float(SCRAPE)
        while (due := sampler.tick()) is not None and due < until:
            clock.now = max(due, clock.now)
        clock.now = until
    collector.close()
    return found


def _page(text: bytes) -> Page:
    found = [SAMPLE.fullmatch(line) for line in text.splitlines() if not line.startswith(b"#")]
    parts = [match.groups() for match in found if match]
    series = (f"{name.decode()}{{{_labels(labels)}}}" for name, labels, _ in parts)
    return Page(tuple(series), tuple(value.decode() for *_, value in parts))


def _labels(labels: bytes | None) -> str:
    """The labels with the target's; the host's own name is part of some."""
    own = re.sub(r'hostname="[^"]*"', f'hostname="{NAME}"', (labels or b"").decode())
    return ",".join(filter(None, (own, f'cluster="measured",job="roce",instance="{NAME}"')))


def simulated(moments: int, metric_set: str) -> list[list[Page]]:
    """The pages of each simulated host."""
    return [
        asyncio.run(pages(scenario, seed, moments, metric_set))
        for seed, scenario in enumerate(SCENARIOS, start=1)
    ]


def open_metrics(
    hosts: int, histories: Sequence[Sequence[Page]], times: Sequence[int], metrics: Collection[str]
) -> Iterator[str]:
    """The histories of all hosts for promtool, in pieces."""
    names = {
        number: [f"gpu-{host}" for host in range(number, hosts, len(histories))]
        for number in range(len(histories))
    }
    for moment, at in enumerate(times):
        for number, history in enumerate(histories):
            text = history[moment].stamped(at, metrics)
            yield from (text.replace(NAME, name) for name in names[number])
            yield from (
                f'up{{cluster="measured",job="roce",instance="{name}"}} 1 {at}\n' for name in names[number]
            )
    yield "# EOF\n"
