"""One pass through the exporter: collect, normalise, render. One object per process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.exposition import Format, Renderer
from roce_exporter.normalise.normaliser import Normaliser
from roce_exporter.self_metrics.collection import SelfSamples, gaps_of

if TYPE_CHECKING:
    from roce_exporter.checks.health.health_watch import HealthWatch
    from roce_exporter.checks.settings import Auditor
    from roce_exporter.collect import Collector
    from roce_exporter.exposition.served_series import ServedSeries
    from roce_exporter.fastloop import Sampler
    from roce_exporter.model import DeviceReadings, Snapshot, SourceState
    from roce_exporter.normalise.series import Samples
    from roce_exporter.owners import Surveyor
    from roce_exporter.self_metrics.collection import Gaps
    from roce_exporter.surroundings import Surroundings

FOLLOW_SECONDS = 5.0
"""Seconds between two checks for added and removed devices."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One collection and its samples."""

    snapshot: Snapshot
    samples: tuple[Samples, ...]


class _Normalised(NamedTuple):
    """The last readings of one device, and what they led to."""

    found: DeviceReadings
    samples: Samples
    gaps: Gaps


class Exporter:
    """Observes the host of one collector, and renders the samples together with those of fast loop and surveyor."""

    def __init__(
        self,
        collector: Collector,
        sampler: Sampler | None = None,
        auditor: Auditor | None = None,
        surveyor: Surveyor | None = None,
        surroundings: Surroundings | None = None,
        *,
        health: HealthWatch | None = None,
        served: ServedSeries | None = None,
    ) -> None:
        """`served` selects what is rendered; None: everything."""
        self.normaliser = Normaliser()
        self.sampler = sampler
        self.surveyor = surveyor
        self.health = health
        self._surroundings = surroundings
        self._auditor = auditor
        self._collector = collector
        self._self_samples = SelfSamples()
        self._renderer = Renderer()
        self._served = served
        self._last: Observation | None = None
        self._devices: dict[str, _Normalised] = {}
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
            if self.health is not None:
                self.health.follow(self._last.samples)
        return self._last

    async def observe_complete(self) -> Observation:
        """Collect, survey the owners of all devices and the surroundings, and normalise: for one exposition without a background."""
        snapshot = await self._collector.collect()
        if self.surveyor is not None:
            self.surveyor.follow(snapshot.devices)
            await self.surveyor.survey_once()
        if self._surroundings is not None:
            self._surroundings.follow(snapshot.devices)
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
            return self._render(observation.samples, form)
        if form not in self._rendered:
            self._rendered[form] = self._render(observation.samples, form)
        return self._rendered[form]

    def _render(self, samples: tuple[Samples, ...], form: Format) -> bytes:
        return self._renderer.render(self._served.select(samples) if self._served else samples, form)

    def _normalise(self, snapshot: Snapshot) -> tuple[Samples, ...]:
        present = {found.device.name for found in snapshot.devices}
        for name in self.normaliser.plans.keys() - present:
            self._devices.pop(name, None)
            self.normaliser.forget((name,))
        if self._auditor is not None:
            self._audited = (self._auditor.samples(snapshot.devices),)
        if self.sampler is not None:
            self.sampler.follow(snapshot.devices)
        if self.surveyor is not None:
            self.surveyor.follow(snapshot.devices)
        if self._surroundings is not None:
            self._surroundings.follow(snapshot.devices)
        return self._normalise_part(snapshot)

    def _normalise_part(self, snapshot: Snapshot) -> tuple[Samples, ...]:
        """The samples of a possibly partial snapshot. Forgets and audits no device: a missing one may not have been read."""
        devices = [self._normalise_device(found) for found in snapshot.devices]
        sampled = (self.sampler.samples(),) if self.sampler is not None else ()
        surveyed = self.surveyor.samples() if self.surveyor is not None else ()
        around = self._surroundings.samples() if self._surroundings is not None else ()
        judged = (self.health.samples(),) if self.health is not None else ()
        gaps = sorted([one.gaps for one in devices])
        own = self._self_samples.samples(snapshot, gaps, self.survey_states())
        samples = [one.samples for one in devices]
        return (*samples, *self._audited, *sampled, *surveyed, *around, *judged, own)

    def _normalise_device(self, found: DeviceReadings) -> _Normalised:
        known = self._devices.get(found.device.name)
        if known is None or known.found is not found:
            samples = self.normaliser.normalise(found)
            gaps = gaps_of(self.normaliser.plans[found.device.name], samples.values)
            known = self._devices[found.device.name] = _Normalised(found, samples, gaps)
        return known

    def survey_states(self) -> tuple[SourceState, ...]:
        """The states of sources read between collections: `owners` of each surveyed device, the surroundings, and the verdict."""
        surveyed = self.surveyor.states() if self.surveyor is not None else ()
        around = self._surroundings.states() if self._surroundings is not None else ()
        return (*surveyed, *around, *((self.health.state(),) if self.health is not None else ()))
