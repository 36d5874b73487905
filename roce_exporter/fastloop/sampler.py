"""The fast loop: one thread polls every network device when it is due. See the package's docstring."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import Any

from roce_exporter.collect.rounds import ExporterPart
from roce_exporter.collect.workers import Call, InFlight, Worker, run_in_thread
from roce_exporter.fastloop.events import Events, SamplerSamples, StormPlace, guess
from roce_exporter.fastloop.pfc_storm import Begun, StormLimits, StormState
from roce_exporter.fastloop.target import FAULT, OFF, Hot, Pace, ReadResult, Target, TargetKey
from roce_exporter.fastloop.watch import Change, PauseKey
from roce_exporter.host.kernel import Kernel
from roce_exporter.host.sources.netdev import DCB, hardware_netdevs
from roce_exporter.model import Device, DeviceReadings
from roce_exporter.normalise.series import Samples

LOG = logging.getLogger(__name__)
TIMEOUT = 1.0  # seconds after which a read that has not returned is given up
MOST_STUCK = 32
"""Reads that may be stuck at once; each holds a thread. With more, no network device is polled until one of them returns."""
SUPERVISION = 0.5  # seconds between two checks for a read that has not returned
DEVICE_GONE = "device_gone"
ABSENT_EVERY = 60.0  # seconds between two reads of a driver without private counters
PFC_ENABLED = "pfc_enabled_"
"""Prefix of the names of the source `dcb` that show whether PFC is on for a priority."""
DUE = attrgetter("due")
SERIOUS = (StormState.SUSPECT, StormState.STORM, StormState.RECOVERING)
Name = tuple[str, str]
"""RDMA device and network device."""


class Sampler(ExporterPart):
    """Polls the network devices of a host."""

    name = "sampler"

    def __init__(
        self,
        kernel: Kernel,
        clock: Callable[[], float],
        wall: Callable[[], float],
        pace: Pace = Pace(),  # noqa: B008 - frozen
        limits: StormLimits = StormLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._kernel = kernel
        self._clock = clock
        self._pace = pace
        self._limits = limits
        self._targets: dict[Name, Target] = {}
        self._of_devices: dict[str, list[Target]] = {}
        self._wall: Callable[[], float] = lambda: wall() - clock()
        """The current offset from monotonic to Unix time."""
        self._events = Events(self._wall)
        self._samples = SamplerSamples()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._in_flight: InFlight[TargetKey] = InFlight(clock)
        self._worker: Worker | None = None
        """Runs the loop; None before the start and while the loop is ending."""
        self._halted = ""
        """Why the loop needs another thread; empty while it has one."""

    def follow(self, devices: Iterable[DeviceReadings]) -> None:
        """Watch the network devices of these RDMA devices and no others; takes PFC's scope from their DCB readings."""
        if self._pace.mode == OFF:
            return
        wanted: dict[Name, tuple[Device, int]] = {}
        scopes: dict[str, frozenset[str]] = {}
        for found in devices:
            wanted |= {
                (found.device.name, netdev): (found.device, port)
                for port, netdev in hardware_netdevs(found.device)
            }
            scopes |= _scopes(found)
        with self._lock:
            for name, target in list(self._targets.items()):
                if name not in wanted or wanted[name][0].incarnation != target.device.incarnation:
                    del self._targets[name]
                    self._report(target, target.watch.miss(self._clock(), DEVICE_GONE))
                    self._in_flight.when_idle(target.key, target.close)
            for position, (name, (device, port)) in enumerate(wanted.items()):
                if name not in self._targets:
                    target = self._targets[name] = Target(self._kernel, device, port, name[1], self._limits)
                    # The first reads are spread over an interval, so that not all devices are read at once.
                    target.interval = self._pace.seconds(self._clock(), target.paused_at, 0.0)
                    target.due = self._clock() + position / len(wanted) * self._pace.interval
                    self._wake.set()
                # While DCB cannot be read, the last PFC state is kept: otherwise every priority would be watched.
                self._targets[name].scope = scopes.get(name[1], self._targets[name].scope)
            self._of_devices = {}
            for (device_name, _), target in self._targets.items():
                self._of_devices.setdefault(device_name, []).append(target)

    def tick(self) -> float | None:
        """Read every network device that is due, on the calling thread.

        Returns:
            When the next one is due (monotonic seconds); None if the calling thread was given up meanwhile.
        """
        while (claimed := self._claim()) is not None:
            if not self._poll(*claimed):
                return None
        with self._lock:
            return min([target.due for target in self._free()], default=self._clock() + self._pace.idle)

    async def read_once(self) -> None:
        """Poll every network device that has not been polled yet. One that does not respond costs `TIMEOUT` seconds."""
        for _ in range(len(self._targets)):
            with self._lock:
                unread = [target for target in self._free() if not target.ticks]
                for target in unread:
                    target.due = self._clock()
            if not unread:
                return
            with contextlib.suppress(TimeoutError):
                await run_in_thread(self.tick, TIMEOUT)
            self._give_up()

    async def run(self) -> None:
        """Poll until cancelled. Where no thread can be started, it is tried again. RuntimeError: the loop has failed; it may be run again."""
        if self._pace.mode != OFF:
            self._halted = "it has not started"
        while True:
            self.supervise()
            await asyncio.sleep(SUPERVISION)

    def start(self) -> None:
        """Poll in a new thread, and end the one before. RuntimeError: no thread can be started."""
        if self._pace.mode == OFF:
            return
        if self._worker is not None:
            self._worker.retire()
        worker = self._worker = Worker("roce-sampler")
        worker.submit(partial(self._work, worker))

    def supervise(self) -> None:
        """Give up a read that has not returned, and continue without that network device. To be called periodically.

        RuntimeError: the loop has failed.
        """
        if self._worker is not None and self._worker.error is not None:
            failed, self._worker = self._worker, None
            failed.retire()
            raise RuntimeError("the fast loop has failed") from failed.error
        if self._worker is not None and self._worker.has_ended:
            LOG.warning("the thread of the fast loop has died, out of memory?; starting another")
            self._halted = self._halted or "its thread has died"
        if self._give_up():
            self._halted = self._halted or "a read does not return"
        if self._halted:
            self._continue()

    def _continue(self) -> None:
        """Poll in another thread; where that is not possible, no network device is watched, and the next supervision tries again."""
        with self._lock:
            stuck = self._in_flight.stuck(self._clock() - TIMEOUT).total()
        halted = f"{stuck} reads do not return" if stuck >= MOST_STUCK else ""
        try:
            if not halted:
                self.start()
        except RuntimeError as error:
            halted = str(error)
        with self._lock:
            if not halted:
                for target in self._targets.values():
                    target.stuck = target.stuck and target.key in self._in_flight
            for target in self._free() if halted else ():
                target.stuck = True
                self._report(target, target.watch.miss(self._clock(), "stuck"))
        if halted and halted != self._halted:
            LOG.error("PFC storms are detected nowhere: %s", halted)
        self._halted = halted

    def _give_up(self) -> bool:
        """Give up the reads that have not returned in time; returns whether there are any."""
        with self._lock:
            now = self._clock()
            overdue = self._in_flight.give_up(TIMEOUT)
            for call in overdue:
                LOG.warning(
                    "%s: no answer for %.1f s, PFC storms are not detected there",
                    call.key.netdev,
                    now - call.since,
                )
                target = self._targets.get((call.key.device, call.key.netdev))
                if target is not None and target.key == call.key:
                    target.stuck = True
                    self._report(target, target.watch.miss(now, "stuck"))
        return bool(overdue)

    def samples(self) -> tuple[Samples]:
        """The counters of the detectors and of the loop, as samples."""
        with self._lock:
            targets = tuple(target for target in self._targets.values() if not target.absent)
            return (self._samples.samples(targets, self._events, self._clock()),)

    def events(self) -> list[dict[str, Any]]:
        """The last storms, newest first, for JSON."""
        with self._lock:
            return self._events.documents()

    def close(self) -> None:
        """End the loop, except a thread that is stuck in the kernel, and close the descriptors."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.retire()
        self._wake.set()
        with self._lock:
            for target in self._targets.values():
                self._in_flight.when_idle(target.key, target.close)
            self._targets.clear()

    def _work(self, worker: Worker) -> None:
        try:
            while worker is self._worker and (due := self.tick()) is not None:
                self._wake.wait(max(0.0, due - self._clock()))
                self._wake.clear()
        except Exception as error:  # noqa: BLE001 - the supervisor raises it
            worker.error = error

    def _free(self) -> list[Target]:
        return [target for target in self._targets.values() if not target.stuck]

    def _claim(self) -> tuple[Target, Call[TargetKey]] | None:
        """The network device to be read next, if it is due. From here on it is not closed before the read returns."""
        with self._lock:
            now = self._clock()
            while (target := min(self._free(), key=DUE, default=None)) is not None and target.due <= now:
                if call := self._in_flight.begin(target.key):
                    target.note_lateness(now)
                    return target, call
                # It was removed and added again, and an earlier read is still under way.
                target.due = now + self._pace.idle
            return None

    def _poll(self, target: Target, call: Call[TargetKey]) -> bool:
        """Read one network device and judge the result; returns whether this thread should continue."""
        seen = target.read(self._clock)
        with self._lock:
            wanted = self._in_flight.end(call)
            followed = self._targets.get((target.device.name, target.netdev))
            if followed is not None and followed.key == target.key:
                followed.stuck = False
            if followed is not target:
                return wanted
            try:
                if wanted:
                    self._judge(target, seen)
            except Exception:
                # A fault of the exporter at one network device must not stop the polling of all.
                LOG.exception("%s: the read counters could not be judged", target.netdev)
                target.errors += 1
                self._report(target, target.watch.miss(self._clock(), FAULT))
            finally:
                cost = [other.cost.seconds for other in self._of_devices.get(target.device.name, ())]
                target.plan(self._clock(), self._pace, sum(cost))
                if target.absent:
                    target.due = self._clock() + ABSENT_EVERY
        return wanted

    def _judge(self, target: Target, seen: ReadResult) -> None:
        before, target.last = target.last, seen.hot
        self._report(target, target.judge(seen), before)
        if seen.hot is not None:
            for key, track in target.watch.tracks.items():
                if track.state is StormState.STORM:
                    self._events.follow(_storm_place(target, key), seen.hot)

    def _report(self, target: Target, changes: list[Change], before: Hot | None = None) -> None:
        for key, what in changes:
            place, hot = _storm_place(target, key), target.last
            if not isinstance(what, Begun):
                self._events.end(place, what)
                continue
            start = target.starts[key] = what.begin + self._wall()
            if hot is not None:
                paused = {
                    one.netdev
                    for one in self._targets.values()
                    for other, track in one.watch.tracks.items()
                    if other.direction == "receive" and track.state in SERIOUS
                }
                hint = guess(key, before, hot, paused, {name[1] for name in self._targets})
                self._events.begin(place, start, target.watch.tracks[key].method.value, hint, hot)


def _storm_place(target: Target, key: PauseKey) -> StormPlace:
    return StormPlace(target.device.name, target.port, target.netdev, *key)


def _scopes(found: DeviceReadings) -> dict[str, frozenset[str]]:
    """Per network device the priorities with PFC enabled, if DCB reports them."""
    scopes = {}
    for reading in found.readings:
        if reading.source == DCB:
            values = dict(zip(reading.names, reading.values, strict=True))
            enabled = {name: value for name, value in values.items() if name.startswith(PFC_ENABLED)}
            if enabled:
                scopes[reading.netdev] = frozenset(
                    name.removeprefix(PFC_ENABLED) for name, value in enabled.items() if value
                )
    return scopes
