"""One simulated host with everything that `serve` runs, scraped on a simulated clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Sampler
from roce_exporter.host_sources import HostSources
from roce_exporter.host_sources.kernel_log import KernelLogFollower
from roce_exporter.self_metrics.own_registry import OwnRegistry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roce_exporter.fastloop import Pace
    from roce_exporter.host.simulated.kernel import SimulatedKernel

SETS = tuple(one.value for one in MetricSet)
BEGIN = 1_767_225_600
"""2026-01-01T00:00:00Z, the wall clock at the first scrape."""


class SimulatedHost:
    """A host without owners, which has its own clock."""

    def __init__(
        self, make_kernel: Callable[[Callable[[], float]], SimulatedKernel], pace: Pace, sets: Sequence[str]
    ) -> None:
        self._now = 0.0
        kernel = make_kernel(self._clock)
        self._collector = Collector(kernel, Settings(), self._clock)
        self._sampler = Sampler(kernel, self._clock, self._wall, pace)
        self._around = HostSources([KernelLogFollower(kernel)], self._clock)
        auditor = Auditor(load_profile("auto"))
        self._exporter = Exporter(self._collector, [auditor, self._sampler, self._around])
        self._health = HealthWatch(self._exporter.observe, self._clock, self._wall)
        self._exporter.parts.append(self._health)
        self._rendered = {name: (ServedSeries(MetricSet(name)), Renderer()) for name in sets}
        self._process = OwnRegistry().render(openmetrics=False)

    def _clock(self) -> float:
        return self._now

    def _wall(self) -> float:
        return BEGIN + self._now

    async def scrape(self, every: int) -> dict[str, bytes]:
        """The expositions of now, by metric set; then `every` seconds pass."""
        await self._around.read_once()
        observation = await self._exporter.observe(5.0)
        bodies = {
            name: renderer.render(served.select(observation.samples), Format.TEXT) + self._process
            for name, (served, renderer) in self._rendered.items()
        }
        await self._health.read_once()
        until = self._now + every
        while (due := self._sampler.tick()) < until:
            self._now = max(due, self._now)
        self._now = until
        return bodies

    def close(self) -> None:
        """Release what the host has opened."""
        self._collector.close()
        self._sampler.close()
        self._around.close()
