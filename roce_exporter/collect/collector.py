"""The passes over the host: who shares them, what they wait for, and what is entered when they end. See the package.

The slow chain has what is due once a minute and waited for by no client. Reading a transceiver takes tens of milliseconds over
a slow bus, and the kernel holds the lock of all network configuration for that time. A driver's settings cost a firmware command
each and hardly ever change. Virtual functions cost firmware commands each, too.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain

from roce_exporter.collect.batch import Batch
from roce_exporter.collect.device_work import INVENTORY, DeviceWork
from roce_exporter.collect.reads import (
    NO_ANSWER,
    NOT_REACHED,
    TOO_MANY_STUCK,
    Account,
    Finished,
    Outcome,
    ReadKey,
    Task,
    attempt,
    thing_of,
)
from roce_exporter.collect.workers import Crew, InFlight, call_in_loop, call_in_worker, has_room
from roce_exporter.host.inventory import Listed, list_devices
from roce_exporter.host.kernel import Kernel
from roce_exporter.model import Snapshot


class TimedEvent:
    """An event of one event loop that can be waited for at most some seconds, at a third of the cost of `asyncio.wait`."""

    def __init__(self) -> None:
        self.is_set = False
        self._waiting: list[asyncio.Future[None]] = []

    def set(self, _: object = None) -> None:
        """Wake everyone who waits. May be called again."""
        self.is_set = True
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _resolve(future)

    async def wait(self, seconds: float | None) -> None:
        """Return when it is set, at once if it is already, and after `seconds` at the latest; None: without a limit."""
        if self.is_set:
            return
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append(future)
        timer = loop.call_later(seconds, _resolve, future) if seconds is not None else None
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            if not self.is_set:
                self._waiting.remove(future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class SlowChain:
    """One chain per device, one batch at a time. Used by the event loop."""

    def __init__(
        self,
        attempt: Callable[[Task], Finished],
        in_flight: InFlight[ReadKey],
        clock: Callable[[], float],
        timeout: float,
    ) -> None:
        """`timeout` is the time in seconds after which a read is given up."""
        self._attempt = attempt
        self._in_flight = in_flight
        self._clock = clock
        self._timeout = timeout
        self._crew = Crew("roce-slow")
        self._batch: Batch | None = None

    def take(self) -> dict[ReadKey, Outcome]:
        """The outcomes since the last call of this method."""
        return self._batch.take() if self._batch else {}

    def start(self, chains: Iterable[tuple[Task, ...]]) -> None:
        """Begin these reads; if earlier ones are unfinished, continue with those that wait behind a stuck read instead."""
        if self._batch is not None and not self._batch.is_over:
            self._crew.replace_dead(self._batch.run)
            if helpers := self._batch.overtake(self._clock() - self._timeout):
                self._crew.start(self._batch.run, helpers)
            return
        self._crew.settle(stuck=bool(self._in_flight))
        self._batch = Batch(chains, self._attempt, self._in_flight)
        if not self._batch.is_over:
            self._crew.start(self._batch.run, 1)

    def retire(self) -> None:
        """Begin no further reads."""
        if self._batch is not None:
            self._batch.close()
        self._crew.retire()


LOG = logging.getLogger(__name__)

Outcomes = dict[ReadKey, Outcome]

HOST = ReadKey("", 0, INVENTORY)
"""The read of the list of devices."""

NOWHERE = Listed(HOST.device, HOST.incarnation)
"""The host itself, in outcomes grouped by device."""

# One per device of the largest hosts, so that reads waiting for firmware all run in parallel.
MOST_WORKERS = 16

# Seconds of reading that justify one more worker. One thread does all quick reads: more would compete for the
# GIL. Reads that sleep in firmware take long in every pass, those of a busy machine in some.
SECONDS_PER_WORKER = 0.010
PASSES = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's settings for collections. Times are in seconds."""

    include: re.Pattern[str] | None = None
    """Only devices whose full name matches; None: all."""
    exclude: re.Pattern[str] | None = None
    disabled: frozenset[str] = frozenset()
    """Sources that are not read."""
    timeout: float = 5.0
    """Seconds after which a collection ends; reads not finished by then are left out."""
    least: float = 0.0
    """Seconds between the beginnings of two collections."""
    overtake: float = 0.25
    """How long a device's other sources wait behind one that does not respond."""
    refresh: float = 60.0
    """Seconds between two reads of the slow chain: descriptions of devices, settings, transceivers, MAC addresses."""


class Collector:
    """Collects from one kernel. Used from one event loop."""

    def __init__(self, kernel: Kernel, settings: Settings, clock: Callable[[], float]) -> None:
        self._kernel = kernel
        self._settings = settings
        self._clock = clock
        self._attempt = partial(attempt, clock)
        self._in_flight: InFlight[ReadKey] = InFlight(clock, thing_of)
        self._crew = Crew("roce-read")
        self._slow = SlowChain(self._attempt, self._in_flight, clock, settings.timeout)
        self._seconds: deque[float] = deque(maxlen=PASSES)
        """What the reads of the last passes took together."""
        self._host = Account()
        self._listed: tuple[Listed, ...] = ()
        self._excluded = 0
        self._works: dict[str, DeviceWork] = {}
        self._begun = -float("inf")
        self._found: Outcomes = {}
        """Results of the finished batches of the current pass."""
        self._late: set[ReadKey] = set()
        """Reads that the current pass began and no longer waits for."""
        self._batch: Batch | None = None
        self._stuck: Counter[Hashable] = Counter()
        """By thing, the reads that the current pass found without an answer."""
        self._running: asyncio.Task[Snapshot] | None = None
        self._ended = TimedEvent()
        """Set at the end of the current pass."""

    async def collect(self, wait: float | None = None) -> Snapshot:
        """One collection of the whole host.

        Simultaneous callers share one collection, and so do callers within `Settings.least`. After `wait` seconds a caller gets what is ready, with
        `Snapshot.unfinished` above 0, and the collection continues. None waits for its end, at most `Settings.timeout`.
        """
        # The last one counts for `least` seconds also for a client whose wait was too short for its end: it began as often as any other.
        if self._running is None or (
            self._running.done() and self._clock() - self._begun >= self._settings.least
        ):
            self._ended = TimedEvent()
            self._running = asyncio.ensure_future(self._pass(self._ended))
            self._running.add_done_callback(self._ended.set)
        running = self._running
        if wait is not None and wait >= self._settings.timeout:
            wait = None
        try:
            await self._ended.wait(wait)
        finally:
            if not running.done():
                running.add_done_callback(_log_fault)
        return running.result() if running.done() else self._so_far()

    async def is_outdated(self) -> bool:
        """Whether devices were added or removed since the last collection, or the slow chain is due.

        Lists the devices and reads nothing else.
        """
        if self._clock() - self._begun >= self._settings.refresh:
            return True
        try:
            listed = await call_in_worker(self._in_flight, HOST, self._list_devices, self._settings.timeout)
        except (OSError, RuntimeError):
            return False  # the next collection reports the timeout or the missing thread
        return listed != self._listed

    def close(self) -> None:
        """End the worker threads, except those that are stuck in the kernel."""
        self._crew.retire()
        self._slow.retire()
        for work in self._works.values():
            work.retire()

    async def _pass(self, ended: TimedEvent) -> Snapshot:
        try:
            return await self._collect()
        finally:
            ended.set()  # one turn of the event loop earlier than the task's own callbacks

    async def _collect(self) -> Snapshot:
        self._begun = self._clock()
        self._found, self._late = {}, set()
        self._kernel.begin()
        self._settle(self._slow.take())
        self._stuck = self._in_flight.stuck(self._begun - self._settings.timeout)
        # Known devices are read together with the list, so that an ordinary collection wakes the workers once.
        listing = Task(HOST, lambda: Finished(Outcome(up=True, found=self._list_devices())))
        await self._work_off([(listing,), *map(self._tasks, self._works.values())])
        known = self._works
        # The last known list, if it could not be read this time.
        if (listed := self._found.get(HOST, Outcome(up=False)).found) is not None:
            self._listed = listed  # type: ignore[assignment]  # `listing` puts it there
        self._adopt(self._listed)
        works = tuple(self._works.values())
        if fresh := [work for work in works if known.get(work.listed.name) is not work]:
            await self._work_off([self._tasks(work) for work in fresh])
        self._seconds.append(sum([outcome.seconds for outcome in self._found.values()]))
        self._settle(self._found | self._unanswered())
        slow = [work.slow_tasks(self._settings.refresh) for work in works]
        self._slow.start([self._allowed(tasks)[0] for tasks in slow] if self._stuck else slow)
        return Snapshot(
            tuple([found for work in works if (found := work.found()) is not None]),
            (*self._host.states, *chain.from_iterable([work.account.states for work in works])),
            self._clock() - self._begun,
            self._excluded,
        )

    def _settle(self, outcomes: Outcomes) -> None:
        by_device = _by_device(outcomes)
        if of_host := by_device.get(NOWHERE):
            self._host.settle(of_host)
        for work in self._works.values():
            if of_device := by_device.get(work.listed):
                work.settle(of_device)

    def _so_far(self) -> Snapshot:
        """The results so far of the pass under way."""
        found = self._found | (self._batch.results() if self._batch else {})
        by_device = _by_device(found)
        parts = [work.so_far(by_device.get(work.listed, {})) for work in self._works.values()]
        return Snapshot(
            tuple(readings for readings, _ in parts if readings is not None),
            (*self._host.states, *chain.from_iterable(states for _, states in parts)),
            self._clock() - self._begun,
            self._excluded,
            max(1, self._batch.unfinished if self._batch else 0),
        )

    def _tasks(self, work: DeviceWork) -> tuple[Task, ...]:
        """What a pass reads of a device: nothing more of a thing that has reads stuck already, so that few threads are."""
        tasks = work.tasks(self._settings.refresh)
        if not self._stuck:
            return tasks
        tasks, refused = self._allowed(tasks)
        outcome = Outcome(up=False, error=TOO_MANY_STUCK, begun=self._clock() - self._settings.refresh)
        self._found |= dict.fromkeys((task.key for task in refused), outcome)
        return tasks

    def _allowed(self, tasks: tuple[Task, ...]) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
        """The reads for which another thread may be used, and the others."""
        allowed = [task for task in tasks if has_room(self._stuck, thing_of(task.key))]
        return tuple(allowed), tuple(task for task in tasks if task not in allowed)

    def _list_devices(self) -> tuple[Listed, ...]:
        """The devices; one whose network devices have other names now is another incarnation, and read again at once."""
        works = self._works
        return tuple(
            [
                works[one.name].listed_now(one) if one.name in works else one
                for one in list_devices(self._kernel)
            ]
        )

    async def _work_off(self, chains: list[tuple[Task, ...]]) -> None:
        """Do these reads, one chain per device, and add their outcomes to `_found`; ends by the deadline at the latest."""
        loop, done = asyncio.get_running_loop(), TimedEvent()
        batch = self._batch = Batch(
            chains, self._attempt, self._in_flight, partial(call_in_loop, loop, done.set)
        )
        try:
            if not batch.is_over:
                # Slow reads wait for firmware in parallel.
                width = max(1, min(MOST_WORKERS, int(min(self._seconds, default=0.0) / SECONDS_PER_WORKER)))
                self._crew.start(batch.run, min(width, len(chains)))
                await self._wait(batch, done)
        finally:
            self._late |= batch.pending()
            results, unreached = batch.close()
            self._crew.settle(stuck=bool(self._in_flight))
        # So long ago that the slow chain reads it right after this pass, and not a minute later.
        late = Outcome(up=False, error=NOT_REACHED, begun=self._clock() - self._settings.refresh)
        self._found |= results | dict.fromkeys(unreached, late)

    async def _wait(self, batch: Batch, done: TimedEvent) -> None:
        deadline, overtake = self._begun + self._settings.timeout, self._settings.overtake
        while not done.is_set and (left := deadline - self._clock()) > 0:
            await done.wait(min(left, overtake))
            if not done.is_set:
                self._crew.replace_dead(batch.run)
                if helpers := batch.overtake(self._clock() - overtake):
                    self._crew.start(batch.run, helpers)

    def _unanswered(self) -> Outcomes:
        """One outcome per overdue read: late reads of this pass, and reads in flight for longer than the timeout."""
        self._in_flight.give_up(self._settings.timeout)
        now, timeout = self._clock(), self._settings.timeout
        return {
            key: Outcome(up=False, error=NO_ANSWER, seconds=now - since, begun=since)
            for key, since in self._in_flight.since().items()
            if key in self._late or now - since > timeout
        }

    def _adopt(self, listed: tuple[Listed, ...]) -> None:
        """Start work on new devices and end it on removed ones."""
        include, exclude = self._settings.include, self._settings.exclude
        wanted = {
            one.name: one
            for one in listed
            if (include is None or include.fullmatch(one.name))
            and not (exclude is not None and exclude.fullmatch(one.name))
        }
        works = dict(self._works)
        for name, work in self._works.items():
            if wanted.get(name) != work.listed:
                LOG.info("device %s went away", name)
                works.pop(name).retire()
        for name, one in wanted.items():
            if name not in works:
                LOG.info("device %s found", name)
                works[name] = DeviceWork(
                    self._kernel, one, self._settings.disabled, self._in_flight, self._clock
                )
        self._works = dict(sorted(works.items()))
        self._excluded = len(listed) - len(wanted)


def _by_device(results: Mapping[ReadKey, Outcome]) -> dict[tuple[str, int], Outcomes]:
    """Outcomes by device and incarnation, a tuple that is equal to a `Listed`."""
    found: dict[tuple[str, int], Outcomes] = {}
    for key, outcome in results.items():
        device = key[:2]
        of_device = found.get(device)
        if of_device is None:
            of_device = found[device] = {}
        of_device[key] = outcome
    return found


def _log_fault(ended: asyncio.Future[Snapshot]) -> None:
    # Needed when all callers have gone; a waiting caller raises the fault itself.
    if not ended.cancelled() and (error := ended.exception()):
        LOG.error("a collection failed", exc_info=error)
