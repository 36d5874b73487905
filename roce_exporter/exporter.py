"""One pass through the exporter: collect, normalise, render. One object per process."""

from __future__ import annotations

import asyncio
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

import prometheus_client
from prometheus_client import openmetrics
from prometheus_client.exposition import generate_latest

from roce_exporter import __version__
from roce_exporter.exposition import Format, Renderer
from roce_exporter.normalise.normaliser import Normaliser
from roce_exporter.self_metrics.collection import SelfSamples, gaps_of
from roce_exporter.self_metrics.process import ProcessFamilies

if TYPE_CHECKING:
    from roce_exporter.audit import Auditor
    from roce_exporter.collect import Collector
    from roce_exporter.model import Snapshot, SourceState
    from roce_exporter.normalise.series import Samples
    from roce_exporter.owners import Surveyor
    from roce_exporter.sampler import Sampler
    from roce_exporter.surroundings import Surroundings

FOLLOW_SECONDS = 5.0
"""Seconds between two checks for added and removed devices."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One collection and its samples."""

    snapshot: Snapshot
    samples: tuple[Samples, ...]


class Exporter:
    """Observes the host of one collector, and renders the samples together with those of fast loop and surveyor."""

    def __init__(
        self,
        collector: Collector,
        sampler: Sampler | None = None,
        auditor: Auditor | None = None,
        surveyor: Surveyor | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.normaliser = Normaliser()
        self.sampler = sampler
        self.surveyor = surveyor
        self._surroundings = surroundings
        self._auditor = auditor
        self._collector = collector
        self._self_samples = SelfSamples()
        self._renderer = Renderer()
        self._last: Observation | None = None
        self._audited: tuple[Samples, ...] = ()
        """Samples of the audit of the last complete collection."""
        self._rendered: dict[Format, bytes] = {}

    async def observe(self, wait: float | None = None) -> Observation:
        """Collect and normalise. Simultaneous callers get the same observation.

        A caller that cannot wait for the end of the collection gets what is ready after `wait` seconds.
        """
        snapshot = await self._collector.collect(wait)
        if snapshot.unfinished:
            return Observation(snapshot, self._normalise_part(snapshot))
        if self._last is None or self._last.snapshot is not snapshot:
            self._last = Observation(snapshot, self._normalise(snapshot))
            self._rendered.clear()
        return self._last

    async def observe_complete(self) -> Observation:
        """Collect, survey the owners of all devices and the surroundings, and normalise: for one exposition without a background."""
        snapshot = await self._collector.collect()
        if self.surveyor is not None:
            self.surveyor.follow(snapshot.devices)
            await self.surveyor.survey_once()
        if self._surroundings is not None:
            await self._surroundings.read_all()
        return Observation(snapshot, self._normalise(snapshot))

    async def follow(self) -> None:
        """Keep the list of devices up to date without scrapes, for the fast loop as well. Runs until cancelled."""
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            if await self._collector.is_outdated():
                await self.observe()

    def render(self, observation: Observation, form: Format) -> bytes:
        """The observation as text, without the closing `# EOF` of OpenMetrics; made once per observation."""
        if observation is not self._last:
            return self._renderer.render(observation.samples, form)
        if form not in self._rendered:
            self._rendered[form] = self._renderer.render(observation.samples, form)
        return self._rendered[form]

    def _normalise(self, snapshot: Snapshot) -> tuple[Samples, ...]:
        present = {found.device.name for found in snapshot.devices}
        self.normaliser.forget(self.normaliser.plans.keys() - present)
        if self._auditor is not None:
            self._audited = (self._auditor.samples(snapshot.devices),)
        if self.sampler is not None:
            self.sampler.follow(snapshot.devices)
        if self.surveyor is not None:
            self.surveyor.follow(snapshot.devices)
        return self._normalise_part(snapshot)

    def _normalise_part(self, snapshot: Snapshot) -> tuple[Samples, ...]:
        """The samples of a possibly partial snapshot. Forgets and audits no device: a missing one may not have been read."""
        samples = tuple(self.normaliser.normalise(found) for found in snapshot.devices)
        gaps = [
            gaps_of(self.normaliser.plans[found.device.name], one.values)
            for found, one in zip(snapshot.devices, samples, strict=True)
        ]
        sampled = (self.sampler.samples(),) if self.sampler is not None else ()
        surveyed = self.surveyor.samples() if self.surveyor is not None else ()
        around = self._surroundings.samples() if self._surroundings is not None else ()
        own = self._self_samples.samples(snapshot, sorted(gaps), self.survey_states())
        return (*samples, *self._audited, *sampled, *surveyed, *around, own)

    def survey_states(self) -> tuple[SourceState, ...]:
        """The states of sources read between collections: `owners` of each surveyed device, and the surroundings."""
        surveyed = self.surveyor.states() if self.surveyor is not None else ()
        return (*surveyed, *(self._surroundings.states() if self._surroundings is not None else ()))


def make_registry() -> prometheus_client.CollectorRegistry:
    """The registry of process metrics: build, CPU time, memory, descriptors, garbage collection."""
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = prometheus_client.CollectorRegistry()
    registry.register(ProcessFamilies())
    build = prometheus_client.Gauge(
        "roce_exporter_build_info",
        "The version of the exporter and of the Python that runs it; always 1.",
        ("version", "python"),
        registry=registry,
    )
    build.labels(__version__, platform.python_version()).set(1)
    kernel = prometheus_client.Gauge(
        "roce_exporter_kernel_info",
        "The release of the kernel that the exporter runs on, as `uname -r` prints it; always 1.",
        ("release",),
        registry=registry,
    )
    kernel.labels(platform.release()).set(1)
    return registry


def render_registry(registry: prometheus_client.CollectorRegistry, form: Format) -> bytes:
    """The registry as text; in OpenMetrics with the closing `# EOF`."""
    if form is Format.OPENMETRICS:
        return openmetrics.exposition.generate_latest(registry)  # type: ignore[no-untyped-call,no-any-return]
    return generate_latest(registry)
