"""Reads in chains, one chain per device, processed by a few workers.

The jobs of a chain are done in order. When one does not return, the jobs behind it are moved to a chain of their own
for another worker (`overtake`). So few threads serve many quick devices, and a stuck read delays nothing else.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from roce_exporter.collect.workers import MOST_STUCK, Call, InFlight, has_room

if TYPE_CHECKING:
    from roce_exporter.collect.reads import Finished, Outcome, ReadKey, Task


class Batch:
    """Some chains of reads, done once."""

    def __init__(
        self,
        chains: Iterable[Iterable[Task]],
        attempt: Callable[[Task], Finished],
        in_flight: InFlight[ReadKey],
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """`attempt` does a job and never raises. `done` is called when no job is left, possibly more than once.

        A job whose key is already in flight is skipped and has no result.
        """
        self._lock = threading.Lock()
        self._chains = deque(chain for chain in map(deque, chains) if chain)
        self._attempt = attempt
        self._in_flight = in_flight
        self._done = done
        self._running: dict[Call[ReadKey], deque[Task]] = {}
        """The calls under way and the jobs that wait behind each. A call is compared by identity, which is cheaper than its key."""
        self._results: dict[ReadKey, Outcome] = {}
        self._failed: list[deque[Task]] = []
        """Jobs that are not done because a worker failed: out of memory, say."""
        self._closed = False

    def run(self) -> None:
        """Process chains until no job is left. Called by several workers at once."""
        finished: tuple[Task, Call[ReadKey], Finished, bool] | None = None
        claimed: tuple[Task, Call[ReadKey]] | None = None
        attempt, end = self._attempt, self._in_flight.end
        try:
            while (claimed := self._claim(finished)) is not None:
                finished = None
                job, call = claimed
                result = attempt(job)
                finished = (job, call, result, end(call))
        except BaseException:
            if claimed:
                self._fail(*claimed, ended=finished is not None)
            raise

    def overtake(self, before: float) -> int:
        """Release the jobs that wait behind a call begun before this time (monotonic seconds).

        Those of a thing with too many such calls stay, and are done if one of the calls returns.

        Returns:
            How many additional workers now have something to do.
        """
        stuck = self._in_flight.stuck(before)
        if stuck.total() >= MOST_STUCK:
            return 0
        with self._lock:
            freed = 0
            for call, chain in self._running.items():
                if call.since < before and (chain or self._chains):
                    if free := [job for job in chain if has_room(stuck, self._in_flight.thing_of(job.key))]:
                        self._chains.appendleft(deque(free))
                        for job in free:
                            chain.remove(job)
                    freed += 1
            return min(freed, len(self._chains))

    @property
    def is_over(self) -> bool:
        """Whether every job has been done, except calls that were given up."""
        with self._lock:
            return self._is_over()

    def pending(self) -> frozenset[ReadKey]:
        """The keys of the calls under way that have not been given up."""
        with self._lock:
            return frozenset(call.key for call in self._running if not call.given_up)

    @property
    def unfinished(self) -> int:
        """Number of jobs without a result yet."""
        with self._lock:
            return len(self._running) + sum(len(chain) for chain in self._all_chains())

    def results(self) -> dict[ReadKey, Outcome]:
        """The results so far, by key."""
        with self._lock:
            return dict(self._results)

    def take(self) -> dict[ReadKey, Outcome]:
        """The results since the last call of this method, by key."""
        with self._lock:
            taken, self._results = self._results, {}
            return taken

    def close(self) -> tuple[dict[ReadKey, Outcome], tuple[ReadKey, ...]]:
        """End the batch; returns results by key, and the keys of jobs that were not done. Later results are dropped."""
        with self._lock:
            self._closed = True
            unreached = tuple(job.key for chain in self._all_chains() for job in chain)
            for chain in self._all_chains():
                chain.clear()
            self._chains.clear()
            self._failed.clear()
            return self._results, unreached

    def _all_chains(self) -> tuple[deque[Task], ...]:
        return (*self._chains, *self._running.values(), *self._failed)

    def _is_over(self) -> bool:
        # Stops at the first call that is still wanted: with many workers this is evaluated often.
        return not self._chains and all(call.given_up and not chain for call, chain in self._running.items())

    def _claim(
        self, finished: tuple[Task, Call[ReadKey], Finished, bool] | None
    ) -> tuple[Task, Call[ReadKey]] | None:
        """Enter a finished job, and begin the next one: of its chain, if that has not been overtaken."""
        with self._lock:
            chain = self._enter(*finished) if finished else None
            while chain or self._chains:
                chain = chain or self._chains.popleft()
                job = chain.popleft()
                if call := self._in_flight.begin(job.key):
                    self._running[call] = chain
                    return job, call
            over = self._is_over() and not self._closed
        if over:
            self._done()
        return None

    def _enter(self, job: Task, call: Call[ReadKey], finished: Finished, wanted: bool) -> deque[Task]:
        chain = self._running[call]
        if wanted and not self._closed:
            result, more = finished
            self._results[job.key] = result
            if more:
                chain.extendleft(reversed(more))
        del self._running[call]
        return chain

    def _fail(self, job: Task, call: Call[ReadKey], *, ended: bool) -> None:
        """Leave a job, and those behind it, to the next batch: the worker could not do it, or not enter its result."""
        if not ended:
            self._in_flight.end(call)
        with self._lock:
            chain = self._running.pop(call, None)
            if chain is not None and not self._closed:
                chain.appendleft(job)
                self._failed.append(chain)
            over = self._is_over() and not self._closed
        if over:
            self._done()
