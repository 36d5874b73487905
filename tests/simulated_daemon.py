"""What `serve` serves for a simulated host after a minute, in each metric set, without a server and without waiting.

All parts work as in `serve`, on a clock of the simulation.
"""

import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from waiting import HUNG_SECONDS

from roce_exporter.assemble import Clock, Parts, assemble
from roce_exporter.catalog.row import MetricSet
from roce_exporter.collect.collector import Settings
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Sampler
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.normalise.series import Samples
from roce_exporter.owners import SurveyLimits
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.view.host_view import HostClock

START = 1_767_225_600.0
"""Unix time at which simulated hosts begin."""
EVERY = 15.0
"""Seconds between two scrapes."""
MINUTE = 60.0
VIRTUAL_FUNCTIONS = "virtual_functions"


class ServedScrape(NamedTuple):
    """One scrape of a simulated daemon."""

    time: float
    """Unix time."""
    texts: dict[MetricSet, str]
    """The exposition in text format 0.0.4, per set."""


@dataclass(frozen=True, slots=True)
class SimulatedDaemon:
    """A daemon on a simulated host: the driver of each port, what happens, and what is switched on."""

    vendors: tuple[str, ...]
    scenario: str = "incast"
    seed: int = 1
    owners: bool = False
    disabled: frozenset[str] = frozenset({VIRTUAL_FUNCTIONS})
    """Sources that are not read."""

    async def scrapes(self, seconds: float = MINUTE) -> AsyncIterator[ServedScrape]:
        """The scrapes of the first `seconds`, one per 15 s, after a round of the verdict each.

        Raises:
            ScenarioError: unknown scenario or driver, or an invalid number of ports.
        """
        clock = HostClock()
        sets = {one: (ServedSeries(one), Renderer()) for one in MetricSet}
        registry = OwnRegistry().render(openmetrics=False)
        parts = Parts(
            Settings(disabled=self.disabled, timeout=HUNG_SECONDS),
            owners=SurveyLimits() if self.owners else None,
        )
        kernel = simulate(self.scenario, clock=clock, vendors=self.vendors, seed=self.seed)
        with contextlib.closing(assemble(kernel, parts, Clock(clock, lambda: START + clock.now))) as exporter:
            sampler = exporter.part(Sampler)
            for number in range(int(seconds / EVERY) + 1):
                await clock.play(sampler, number * EVERY)
                await exporter.observe_complete()
                # This collection has what the slow chain of the one before has read.
                samples = (await exporter.observe()).samples
                yield ServedScrape(
                    START + clock.now,
                    {
                        one: (_text(renderer, served.select(samples)) + registry).decode()
                        for one, (served, renderer) in sets.items()
                    },
                )

    async def last(self, seconds: float = MINUTE) -> ServedScrape:
        """The last of these scrapes."""
        return [one async for one in self.scrapes(seconds)][-1]


def _text(renderer: Renderer, samples: Iterable[Samples]) -> bytes:
    return renderer.render(tuple(samples), Format.TEXT)


def sample_lines(text: str) -> list[str]:
    """The samples of an exposition in text format."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]
