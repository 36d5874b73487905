"""One pass through the exporter: collect, normalise, render. One object per process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from roce_exporter.collect.rounds import PartRounds
from roce_exporter.exposition import Format, Renderer
from roce_exporter.normalise.normaliser import Normaliser
from roce_exporter.self_metrics.collection import Gaps, SelfSamples, gaps_of

if TYPE_CHECKING:
    from roce_exporter.collect.collector import Collector
    from roce_exporter.collect.rounds import ExporterPart
    from roce_exporter.exposition.served_series import ServedSeries
    from roce_exporter.model import DeviceReadings, Snapshot, SourceState
    from roce_exporter.normalise.series import Samples

P = TypeVar("P")

FOLLOW_SECONDS = 5.0  # between two checks for added and removed devices, and after a fault of a part


@dataclass(frozen=True, slots=True)
class Observation:
    """One collection and its samples."""

    snapshot: Snapshot
    samples: tuple[Samples, ...]


class Exporter:
    """Observes the host of one collector, and renders the samples together with those of its parts."""

    name = "exporter"

    def __init__(
        self, collector: Collector, parts: Iterable[ExporterPart] = (), served: ServedSeries | None = None
    ) -> None:
        """`served` selects what is rendered; None: everything. A part that judges the others is the last one."""
        self.normaliser = Normaliser()
        self.parts = list(parts)
        self._collector = collector
        self._self_samples = SelfSamples()
        self._renderer = Renderer()
        self._served = served
        self._last: Observation | None = None
        self._devices: dict[str, tuple[DeviceReadings, Samples, Gaps]] = {}
        """The last readings of each device, and what they led to."""
        self._rendered: dict[Format, bytes] = {}
        self._rounds: dict[object, PartRounds] = {}

    def part(self, kind: type[P]) -> P | None:
        """The part of this type; None if it was left out."""
        return next((part for part in self.parts if isinstance(part, kind)), None)

    async def observe(self, wait: float | None = None) -> Observation:
        """Collect and normalise. Simultaneous callers get the same observation.

        A caller that cannot wait for the end of the collection gets what is ready after `wait` seconds.
        """
        snapshot = await self._collector.collect(wait)
        if snapshot.unfinished:
            # No device is forgotten and no part follows: a device that is missing may not have been read.
            return Observation(snapshot, self._normalise(snapshot))
        if self._last is None or self._last.snapshot is not snapshot:
            self._follow(snapshot)
            self._last = Observation(snapshot, self._normalise(snapshot))
            self._rendered.clear()
            for part in self.parts:
                self._rounds_of(part).call(partial(part.note, self._last.samples))
        return self._last

    async def observe_complete(self) -> Observation:
        """Collect, read every part once, and normalise: for one exposition of an exporter that does not run."""
        snapshot = await self._collector.collect()
        self._follow(snapshot)
        for part in self.parts:
            self._rounds_of(part).call(partial(part.note, self._normalise(snapshot)))
            await self._rounds_of(part).run(part.read_once)
        return Observation(snapshot, self._normalise(snapshot))

    def work(self) -> tuple[Coroutine[object, object, None], ...]:
        """What runs for as long as the exporter serves."""
        follow = self._rounds_of(self).run(self._follow_devices, FOLLOW_SECONDS)
        return follow, *[self._rounds_of(part).run(part.run, FOLLOW_SECONDS) for part in self.parts]

    def close(self) -> None:
        """Release threads and descriptors, except those that are stuck in the kernel."""
        for part in self.parts:
            part.close()
        self._collector.close()

    def render(self, observation: Observation, form: Format) -> bytes:
        """The observation as text, without the closing `# EOF` of OpenMetrics; made once per observation."""
        if observation is not self._last:
            return self._render(observation.samples, form)
        if form not in self._rendered:
            self._rendered[form] = self._render(observation.samples, form)
        return self._rendered[form]

    def states(self) -> tuple[SourceState, ...]:
        """The states of the sources that are read between collections."""
        of_parts = [state for part in self.parts for state in self._rounds_of(part).call(part.states) or ()]
        return (*of_parts, *[state for rounds in self._rounds.values() for state in rounds.states()])

    async def _follow_devices(self) -> None:
        """Keep the list of devices up to date without scrapes, for the fast loop as well."""
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            if await self._collector.is_outdated():
                await self.observe()

    def _follow(self, snapshot: Snapshot) -> None:
        present = {found.device.name for found in snapshot.devices}
        for name in self.normaliser.plans.keys() - present:
            self._devices.pop(name, None)
            self.normaliser.forget((name,))
        for part in self.parts:
            self._rounds_of(part).call(partial(part.follow, snapshot.devices))

    def _rounds_of(self, part: ExporterPart | Exporter) -> PartRounds:
        """That of this part, or of following the devices."""
        if part not in self._rounds:
            self._rounds[part] = PartRounds(part.name, time.monotonic)
        return self._rounds[part]

    def _samples_of(self, part: ExporterPart) -> tuple[Samples, ...]:
        rounds = self._rounds_of(part)
        found = rounds.call(part.samples)
        return () if found is None or rounds.are_down() else found

    def _render(self, samples: tuple[Samples, ...], form: Format) -> bytes:
        return self._renderer.render(self._served.select(samples) if self._served else samples, form)

    def _normalise(self, snapshot: Snapshot) -> tuple[Samples, ...]:
        devices = [self._normalise_device(found) for found in snapshot.devices]
        of_parts = [samples for part in self.parts for samples in self._samples_of(part)]
        own = self._self_samples.samples(snapshot, sorted([gaps for _, gaps in devices]), self.states())
        return (*[samples for samples, _ in devices], *of_parts, own)

    def _normalise_device(self, found: DeviceReadings) -> tuple[Samples, Gaps]:
        known = self._devices.get(found.device.name)
        if known is None or known[0] is not found:
            samples = self.normaliser.normalise(found)
            gaps = gaps_of(self.normaliser.plans[found.device.name], samples.values)
            known = self._devices[found.device.name] = (found, samples, gaps)
        return known[1:]
