"""The histories over which two designs of the rules are compared: each scenario of the simulation, and the cases of all alerts."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

from alert_cases import CASES
from alert_scenario import Case, input_series

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.sampler import Sampler
from roce_exporter.sampler.pace import Pace
from roce_exporter.simulation import SCENARIOS
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Collection

    from alert_starts import Series

SCRAPE = 15
SECONDS = 40 * 60
"""Longer than the `for` of nearly all alerts."""
VENDORS = ("mlx5", "mlx5", "bnxt", "ionic")
LONGEST = 180
"""Minutes of the longest case."""
POLL = 1.0
"""Seconds between two polls of the fast loop, long so that the tests take less time."""
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


class SimulatedClock:
    """Monotonic seconds that the simulation sets."""

    now = 0.0

    def __call__(self) -> float:
        """The seconds."""
        return self.now


def scenario_histories(metrics: Collection[str]) -> Series:
    """One simulated host per scenario, each in a cluster with the name of the scenario."""
    logging.disable(logging.WARNING)
    try:
        return {
            series: values
            for scenario in SCENARIOS
            for series, values in _history(scenario, asyncio.run(_pages(scenario)), metrics).items()
        }
    finally:
        logging.disable(logging.NOTSET)


def _history(scenario: str, pages: list[str], metrics: Collection[str]) -> Series:
    target = f'cluster="{scenario}",job="roce",instance="gpu-1"'
    series: dict[str, list[str]] = {f"up{{{target}}}": ["1"] * len(pages)}
    for number, page in enumerate(pages):
        for name, labels, value in SAMPLE.findall(re.sub(r"^#.*\n", "", page, flags=re.MULTILINE)):
            if name in metrics:
                key = f"{name}{{{labels + ',' if labels else ''}{target}}}"
                series.setdefault(key, ["_"] * len(pages))[number] = value
    return series


async def _pages(scenario: str) -> list[str]:
    """The expositions, one per scrape."""
    clock = SimulatedClock()
    kernel = simulate(scenario, clock=clock, vendors=VENDORS, seed=1)
    collector = Collector(kernel, Settings(), clock)
    sampler = Sampler(kernel, clock, clock, Pace(mode="fixed", interval=POLL))
    exporter = Exporter(collector, sampler, Auditor(load_profile("auto")))
    pages = []
    for number in range(SECONDS // SCRAPE):
        pages.append(exporter.render(await exporter.observe(5.0), Format.TEXT).decode())
        until = (number + 1) * float(SCRAPE)
        while (due := sampler.tick()) is not None and due < until:
            clock.now = max(due, clock.now)
        clock.now = until
    collector.close()
    return pages


def case_histories() -> Series:
    """The hosts of all cases of one length and step."""
    return {
        name: values
        for case in SIMILAR_CASES
        for name, values in in_clusters_of(
            case, {one["series"]: one["values"].split() for one in input_series(case)}
        ).items()
    }


def in_clusters_of(case: Case, series: Series) -> Series:
    """The series of a case in two clusters with its title, so that many cases share a history."""
    return {
        re.sub('cluster="(east|west)"', rf'cluster="{case.title} (\1)"', name): values
        for name, values in series.items()
    }


USUAL = Case("", {})
SIMILAR_CASES = tuple(
    # the others have scrapes or a length of their own; each is tested by test_alerts.py
    case
    for case in CASES
    if case.step == USUAL.step and case.lead + case.sick + case.tail <= LONGEST
)
"""The cases that fit into one history."""
