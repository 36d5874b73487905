"""One collection: every source of every device at once, each on its own.

A read that fails costs what it would have given; a read that hangs costs its source of its device, from then on
without waiting, until it comes back. Nothing costs the scrape. Simultaneous scrapes share one collection.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from roce_exporter.collect.device_work import INVENTORY, DeviceWork
from roce_exporter.collect.lanes import Batch, Finished, InFlight, Key, Lanes
from roce_exporter.collect.reads import Account, Outcome, Task, attempt
from roce_exporter.inventory import Listed, list_devices
from roce_exporter.model import DeviceReadings, Snapshot

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping

    from roce_exporter.kernel import Kernel

LOG = logging.getLogger(__name__)

Outcomes = dict[str, dict[Key, Outcome]]
"""Per device and key, what came of a read."""

HOST = ("", INVENTORY, "")
"""The read of the list of devices."""

MOST_LANES = 16
"""As many devices as the largest hosts have: reads that sleep in firmware are then over when the slowest device's are."""

SECONDS_PER_LANE = 0.010
"""Quick reads are done by one thread: more would only fight for the interpreter."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the operator may choose about collecting. Times are in seconds."""

    include: re.Pattern[str] | None = None
    """Only devices whose whole name matches; None: all."""
    exclude: re.Pattern[str] | None = None
    disabled: frozenset[str] = frozenset()
    """Sources that are not read."""
    timeout: float = 5.0
    """The longest a collection waits, whatever the scraper would allow."""
    patience: float = 0.25
    """How long a device's other sources wait behind one that does not answer."""
    refresh: float = 60.0
    """How often a device is described anew although nothing hints at a change."""


class Collector:
    """Collects from one kernel. Used from one event loop."""

    def __init__(self, kernel: Kernel, settings: Settings, clock: Callable[[], float]) -> None:
        self._kernel = kernel
        self._settings = settings
        self._clock = clock
        self._in_flight = InFlight()
        self._lanes = Lanes()
        self._width = 1
        self._host = Account("")
        self._listed: tuple[Listed, ...] = ()
        self._works: dict[str, DeviceWork] = {}
        self._deadline = 0.0
        self._running: asyncio.Task[Snapshot] | None = None

    async def collect(self, timeout: float) -> Snapshot:  # noqa: ASYNC109 - a bound on the reads, not on the caller
        """One collection of the whole host, complete but for what `timeout` seconds did not suffice for.

        Simultaneous callers share one collection, which ends in time for the one in the greatest hurry.
        """
        deadline = self._clock() + min(timeout, self._settings.timeout)
        if self._running is None or self._running.done():
            self._deadline = deadline
            self._running = asyncio.ensure_future(self._collect())
        else:
            self._deadline = min(self._deadline, deadline)
        return await asyncio.shield(self._running)

    def close(self) -> None:
        """End the worker threads, but for those that sit in the kernel."""
        self._lanes.retire()
        for work in self._works.values():
            work.retire()

    async def _collect(self) -> Snapshot:
        begun = self._clock()
        self._kernel.begin()
        # What is known is read along with the list, so that an ordinary collection wakes the lanes once.
        found = await self._work_off([(Task(HOST, self._list),), *map(self._tasks, self._works.values())])
        self._host.settle(found.get("", {}))
        known = self._works
        excluded = self._adopt(self._listed_now(found))
        works = tuple(self._works.values())
        if fresh := [work for work in works if known.get(work.listed.name) is not work]:
            found |= await self._work_off([self._tasks(work) for work in fresh])
        for work in works:
            work.settle(found.get(work.listed.name, {}))
        return Snapshot(
            tuple(DeviceReadings(work.device, work.readings) for work in works if work.device is not None),
            (*self._host.states, *chain.from_iterable([work.account.states for work in works])),
            self._clock() - begun,
            excluded,
        )

    def _tasks(self, work: DeviceWork) -> tuple[Task, ...]:
        return work.tasks(self._settings.refresh)

    def _list(self) -> Finished[Task, Outcome]:
        return Finished(Outcome(up=True, found=list_devices(self._kernel)))

    def _listed_now(self, host: Outcomes) -> tuple[Listed, ...]:
        """The list of devices, the last known where it could not be had this time."""
        found = host.get("", {}).get(HOST, Outcome(up=False)).found
        if found is not None:
            self._listed = found  # type: ignore[assignment]  # `_list` puts it there
        return self._listed

    async def _work_off(self, chains: list[tuple[Task, ...]]) -> Outcomes:
        """Do these reads, one chain per device; returns their outcomes when all are done or the deadline has passed."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        free = [[task for task in chain if task.key not in self._in_flight] for chain in chains]
        batch = Batch(
            free, partial(attempt, self._clock), self._in_flight, self._clock, partial(_tell, loop, done)
        )
        if not batch.empty:
            self._lanes.start(batch.run, min(self._width, len(chains)))
            while not done.done() and (left := self._deadline - self._clock()) > 0:
                await asyncio.wait((done,), timeout=min(left, self._settings.patience))
                if not done.done() and (helpers := batch.overtake(self._settings.patience)):
                    self._lanes.start(batch.run, helpers)
        results, unreached = batch.close()
        self._lanes.settle(bool(self._in_flight))
        self._width = _width(sum(outcome.seconds for outcome in results.values()))
        results |= {key: Outcome(up=False, error="not reached in time") for key in unreached}
        now = self._clock()
        for key, since in self._in_flight.since().items():
            results[key] = Outcome(up=False, error="no answer", seconds=now - since)
        return _by_device(results)

    def _adopt(self, listed: tuple[Listed, ...]) -> int:
        """Begin work on new devices and end it on those that went; returns how many a filter leaves out."""
        wanted = {one.name: one for one in listed if self._is_wanted(one.name)}
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
        return len(listed) - len(wanted)

    def _is_wanted(self, name: str) -> bool:
        include, exclude = self._settings.include, self._settings.exclude
        return (include is None or include.fullmatch(name) is not None) and (
            exclude is None or exclude.fullmatch(name) is None
        )


def _width(seconds: float) -> int:
    """How many lanes reads that took this long together deserve: reads that wait for firmware gain from company."""
    return max(1, min(MOST_LANES, int(seconds / SECONDS_PER_LANE)))


def _by_device(results: Mapping[Key, Outcome]) -> Outcomes:
    found: Outcomes = {}
    for key, outcome in results.items():
        found.setdefault(key[0], {})[key] = outcome
    return found


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    # Called from a worker thread, which may outlive the loop.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
