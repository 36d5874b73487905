"""Worker threads for reads that may never return.

The jobs of a collection stand in chains, one per device, worked off in order. A few lanes share all chains; when a
job does not answer, what waits behind it is given to a fresh lane. So few threads serve many quick devices, and a
stuck read takes nobody's thread away. Threads are daemons: the process ends although one of them sits in the kernel.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOG = logging.getLogger(__name__)

Key = tuple[str, str, str]
"""Device, source and, of a source that asks network devices one by one, the network device."""


class Job(Protocol):
    """One read. Of one key at most one read is in flight."""

    @property
    def key(self) -> Key:
        """What is read."""


J = TypeVar("J", bound=Job)
R = TypeVar("R")


class Finished(NamedTuple, Generic[J, R]):
    """What came of a job, and jobs that follow from it, to be done next in its chain."""

    result: R
    more: tuple[J, ...] = ()


class InFlight:
    """Keys whose read has not come back yet, from whichever collection, and since when (monotonic seconds)."""

    def __init__(self) -> None:
        self._since: dict[Key, float] = {}

    def __bool__(self) -> bool:
        return bool(self._since)

    def __contains__(self, key: Key) -> bool:
        return key in self._since

    def add(self, key: Key, now: float) -> None:
        """A read begins."""
        self._since[key] = now

    def remove(self, key: Key) -> None:
        """It came back."""
        del self._since[key]

    def since(self) -> dict[Key, float]:
        """A copy, for another thread may change it at any time."""
        return dict(self._since)


class Batch(Generic[J, R]):
    """The chains of one collection.

    `attempt` does a job and never raises. `done` is called once, from the thread that finishes the last job, or from
    the constructor's caller when there is none.
    """

    def __init__(
        self,
        chains: Iterable[Iterable[J]],
        attempt: Callable[[J], Finished[J, R]],
        in_flight: InFlight,
        clock: Callable[[], float],
        done: Callable[[], None],
    ) -> None:
        self._lock = threading.Lock()
        self._chains = deque(chain for chain in map(deque, chains) if chain)
        self._attempt = attempt
        self._in_flight = in_flight
        self._clock = clock
        self._done = done
        self._running: dict[Key, tuple[float, deque[J]]] = {}
        self._results: dict[Key, R] = {}
        self._closed = False
        self.empty = not self._chains

    def run(self) -> None:
        """Work chains off until none is left. Called in a lane, in several at once."""
        chain: deque[J] = deque()
        while (claimed := self._claim(chain)) is not None:
            job, chain = claimed
            self._finish(job, chain, self._attempt(job))

    def overtake(self, patience: float) -> int:
        """Free the chains that wait behind a job that has run for longer than `patience` seconds.

        Returns:
            How many were freed: as many fresh lanes should come to help.
        """
        with self._lock:
            now, freed = self._clock(), 0
            for since, chain in self._running.values():
                if now - since > patience and (chain or self._chains):
                    rest = deque(chain)
                    chain.clear()
                    if rest:
                        self._chains.appendleft(rest)
                    freed += 1
            return min(freed, len(self._chains))

    def close(self) -> tuple[dict[Key, R], tuple[Key, ...]]:
        """Take what there is: results by key, and keys never begun. What comes later is dropped."""
        with self._lock:
            self._closed = True
            chains = (*self._chains, *(chain for _, chain in self._running.values()))
            unreached = tuple(job.key for chain in chains for job in chain)
            for chain in chains:
                chain.clear()
            self._chains.clear()
            return self._results, unreached

    def _claim(self, chain: deque[J]) -> tuple[J, deque[J]] | None:
        with self._lock:
            if not chain:
                if not self._chains:
                    return None
                chain = self._chains.popleft()
            job = chain.popleft()
            now = self._clock()
            self._running[job.key] = (now, chain)
            self._in_flight.add(job.key, now)
            return job, chain

    def _finish(self, job: J, chain: deque[J], finished: Finished[J, R]) -> None:
        with self._lock:
            self._in_flight.remove(job.key)
            del self._running[job.key]
            if self._closed:
                return
            self._results[job.key] = finished.result
            chain.extendleft(reversed(finished.more))
            over = not chain and not self._chains and not self._running
        if over:
            self._done()


class Lane:
    """One daemon thread that does what it is given, in order."""

    def __init__(self, name: str) -> None:
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.busy = False
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, work: Callable[[], None]) -> None:
        """Do this when all that was given before is done."""
        self._inbox.put(work)

    def retire(self) -> None:
        """End the thread when all that was given before is done."""
        self._inbox.put(None)

    def _run(self) -> None:
        while (work := self._inbox.get()) is not None:
            self.busy = True
            try:
                work()
            except Exception:
                # Out of memory, say: this collection is short of a lane, the next one must not be.
                LOG.exception("a lane failed")
            self.busy = False
            del work  # a finished batch must not live on until the next


class Lanes:
    """The lanes that are not stuck."""

    def __init__(self) -> None:
        self._lanes: list[Lane] = []
        self._used = 0

    def start(self, work: Callable[[], None], count: int) -> None:
        """Have this done by `count` lanes that do nothing else yet in this collection."""
        while len(self._lanes) < self._used + count:
            self._lanes.append(Lane("roce-lane"))
        for lane in self._lanes[self._used : self._used + count]:
            lane.submit(work)
        self._used += count

    def settle(self, stuck: bool) -> None:
        """The collection is over. `stuck` says that a read is still in flight: busy lanes are given up."""
        for lane in [lane for lane in self._lanes if stuck and lane.busy]:
            lane.retire()
            self._lanes.remove(lane)
        self._used = 0

    def retire(self) -> None:
        """End all lanes, each when it comes back."""
        for lane in self._lanes:
            lane.retire()
        self._lanes.clear()
