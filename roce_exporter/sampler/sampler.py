"""The loop itself: one thread looks at every network device when it is due; a device that does not answer loses only itself.

The thread that a read holds up is given up, as the lanes of a collection are, and another one goes on with the rest.
"""

from __future__ import annotations

import logging
import threading
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from roce_exporter.detectors.pfc_storm import Begun, Limits, State
from roce_exporter.sampler.events import Events, Place, guess
from roce_exporter.sampler.pace import OFF, Pace
from roce_exporter.sampler.samples import SamplerSamples
from roce_exporter.sampler.target import Target
from roce_exporter.sources.dcb import DCB
from roce_exporter.sources.netdev import legs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from roce_exporter.detectors.watch import Change, Key
    from roce_exporter.kernel import Kernel
    from roce_exporter.model import Device, DeviceReadings
    from roce_exporter.normalise import Samples
    from roce_exporter.sampler.hot import Hot
    from roce_exporter.sampler.target import Seen

LOG = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds after which a look that has not come back is given up."""

ABSENT_EVERY = 60.0
"""Seconds between two questions to a driver without private counters."""

PFC_ENABLED = "pfc_enabled_"
"""What the source `dcb` calls the switch of each priority."""

DUE = attrgetter("due")

SERIOUS = (State.SUSPECT, State.STORM, State.RECOVERING)

Name = tuple[str, str]
"""RDMA device and network device."""


class Sampler:
    """Follows the network devices of a host. `follow`, `samples` and `supervise` are for one thread, that of the event loop."""

    def __init__(
        self,
        kernel: Kernel,
        clock: Callable[[], float],
        wall: Callable[[], float],
        pace: Pace = Pace(),  # noqa: B008 - frozen
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self._kernel = kernel
        self._clock = clock
        self._pace = pace
        self._limits = limits
        self._targets: dict[Name, Target] = {}
        self._events = Events(lambda: wall() - clock())
        self._samples = SamplerSamples(lambda: wall() - clock())
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._worker: object = None
        """Stands for the thread that works now; another one finds out by it that it was given up."""
        self._reading: tuple[Target, float] | None = None

    def follow(self, devices: Iterable[DeviceReadings]) -> None:
        """Watch the network devices of these RDMA devices and no others; takes PFC's scope from their DCB readings."""
        if self._pace.mode == OFF:
            return
        wanted: dict[Name, tuple[Device, int]] = {}
        scopes: dict[str, frozenset[str]] = {}
        for found in devices:
            wanted |= {
                (found.device.name, netdev): (found.device, port) for port, netdev in legs(found.device)
            }
            scopes |= _scopes(found)
        with self._lock:
            for name, target in list(self._targets.items()):
                if name not in wanted or wanted[name][0].incarnation != target.device.incarnation:
                    self._targets.pop(name).close()
            for position, (name, (device, port)) in enumerate(wanted.items()):
                if name not in self._targets:
                    self._targets[name] = self._new_target(device, port, name[1], position / len(wanted))
                    self._wake.set()
                self._targets[name].scope = scopes.get(name[1])

    def tick(self) -> float:
        """Look at every network device that is due, on the calling thread; returns when the next one is (monotonic)."""
        while (target := self._next()) is not None and target.due <= self._clock():
            self._look(target, self._worker)
        return target.due if target is not None else self._clock() + self._pace.idle

    def start(self) -> None:
        """Begin to look, in a thread of its own."""
        if self._pace.mode != OFF:
            self._hire()

    def supervise(self) -> None:
        """Give up a look that has not come back, and go on without that network device. To be called now and then."""
        with self._lock:
            if self._reading is None or self._clock() - self._reading[1] < PATIENCE:
                return
            target, since = self._reading
            target.stuck, self._reading = True, None
            LOG.warning(
                "%s: no answer for %.1f s, so nobody watches it for storms",
                target.netdev,
                self._clock() - since,
            )
            self._tell(target, target.watch.miss(self._clock(), "stuck"))
        self._hire()

    def samples(self) -> Samples:
        """What the detectors and the loop have counted, as samples."""
        with self._lock:
            targets = tuple(target for target in self._targets.values() if not target.absent)
            return self._samples.samples(targets, self._events, self._clock())

    def events(self) -> list[dict[str, Any]]:
        """The last storms, newest first, for JSON."""
        with self._lock:
            return self._events.documents()

    def close(self) -> None:
        """End the loop, but for a thread that sits in the kernel."""
        self._worker = None
        self._wake.set()

    def _hire(self) -> None:
        token = self._worker = object()
        threading.Thread(target=self._work, args=(token,), name="roce-sampler", daemon=True).start()

    def _work(self, token: object) -> None:
        while token is self._worker:
            target = self._next()
            wait = self._pace.idle if target is None else target.due - self._clock()
            if target is None or wait > 0:
                self._wake.wait(wait)
                self._wake.clear()
            else:
                try:
                    self._look(target, token)
                except Exception:
                    # A fault of ours at one network device must not end the watch over all.
                    LOG.exception("%s: the look failed", target.netdev)
                    self._give_up(target)

    def _give_up(self, target: Target) -> None:
        with self._lock:
            self._reading = None
            target.errors += 1
            self._tell(target, target.watch.miss(self._clock(), "fault"))
            self._plan(target)

    def _next(self) -> Target | None:
        with self._lock:
            free = [target for target in self._targets.values() if not target.stuck]
            return min(free, key=DUE, default=None)

    def _look(self, target: Target, token: object) -> None:
        begin = self._clock()
        with self._lock:
            target.note_lateness(begin)
            self._reading = (target, begin)
        seen = target.read(self._clock)
        with self._lock:
            if token is self._worker:
                self._reading = None
                self._take(target, seen)
            else:
                target.stuck = False
                self._plan(target)

    def _take(self, target: Target, seen: Seen) -> None:
        before, target.last = target.last, seen.hot
        self._tell(target, target.judge(seen), before)
        if seen.hot is not None:
            for key, track in target.watch.tracks.items():
                if track.state is State.STORM:
                    self._events.follow(_place(target, key), seen.hot)
        self._plan(target)

    def _plan(self, target: Target) -> None:
        name = target.device.name
        cost = [other.cost.seconds for other in self._targets.values() if other.device.name == name]
        target.plan(self._clock(), self._pace, sum(cost))
        if target.absent:
            target.due = self._clock() + ABSENT_EVERY

    def _tell(self, target: Target, changes: list[Change], before: Hot | None = None) -> None:
        for key, what in changes:
            place, hot = _place(target, key), target.last
            if not isinstance(what, Begun):
                self._events.end(place, what)
            elif hot is not None:
                hint = guess(key, before, hot, self._held(), {name[1] for name in self._targets})
                self._events.begin(place, what, target.watch.tracks[key].method.value, hint, hot)

    def _held(self) -> set[str]:
        """The network devices that received pause holds up for so long that it is, or may become, a storm."""
        return {
            target.netdev
            for target in self._targets.values()
            for key, track in target.watch.tracks.items()
            if key.direction == "receive" and track.state in SERIOUS
        }

    def _new_target(self, device: Device, port: int, netdev: str, phase: float) -> Target:
        target = Target(self._kernel, device, port, netdev, self._limits)
        # The first looks are spread over an interval, so that the devices are not all asked at once for ever.
        target.interval = self._pace.seconds(self._clock(), target.paused_at, 0.0)
        target.due = self._clock() + phase * self._pace.interval
        return target


def _place(target: Target, key: Key) -> Place:
    return Place(target.device.name, target.port, target.netdev, *key)


def _scopes(found: DeviceReadings) -> dict[str, frozenset[str]]:
    """Per network device the priorities for which PFC is on, where DCB tells."""
    scopes = {}
    for reading in found.readings:
        if reading.source == DCB:
            told = dict(zip(reading.names, reading.values, strict=True))
            enabled = {name: value for name, value in told.items() if name.startswith(PFC_ENABLED)}
            if enabled:
                scopes[reading.netdev] = frozenset(
                    name.removeprefix(PFC_ENABLED) for name, value in enabled.items() if value
                )
    return scopes
