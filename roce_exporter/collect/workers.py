"""Calls that may never return: the threads that make them, and the list of calls under way.

Only this module starts threads: a pass, the slow chain, the fast loop and `capture` all use it. A `Worker` runs one
function at a time. `InFlight` rejects a second call of a key, marks the result of a late call as unwanted, and runs
deferred actions (closing descriptors, say) in the thread of that call when it returns. Lock order: any other lock is taken
before that of `InFlight`. Threads are daemons, so the process can end while one is stuck.

The event loop never waits for a thread without a limit, not even for its start: without memory a thread can die before its
first line, and `threading.Thread.start` then waits forever. So threads are started with `_thread`, whoever gives one work
checks later whether it has died, and neither `asyncio.to_thread` nor an executor is used.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import errno
import logging
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Generic, TypeVar

LOG = logging.getLogger(__name__)

MOST_STUCK = 96
"""Calls of one account that may be stuck at once: each holds a thread, and the unit's TasksMax is 256."""

MOST_OF_ONE = 3
"""Calls of one thing that may be stuck; 1 where half of `MOST_STUCK` is used, so that few things do not use it all."""

LIFE_CHECK = 1.0
"""Seconds between two checks whether the thread of a call that has not returned still runs."""

K = TypeVar("K")
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Call(Generic[K]):
    """One call under way. Only `InFlight` changes it."""

    key: K
    since: float
    """Start time, in monotonic seconds."""
    given_up: bool = False
    """Whether its result is no longer wanted."""
    when_back: tuple[Callable[[], None], ...] = ()
    """Actions to run in its thread as soon as it has returned."""
    worker: Worker | None = None
    """The worker that makes this call alone. Where that has died, the call is lost and does not return."""


class InFlight(Generic[K]):
    """The calls that have not returned yet, at most one per key."""

    def __init__(
        self, clock: Callable[[], float], thing_of: Callable[[K], Hashable] = lambda key: key
    ) -> None:
        """`clock` returns monotonic seconds; `thing_of` the thing that a call reads, which can hang as a whole."""
        self._clock = clock
        self.thing_of = thing_of
        self._lock = threading.Lock()
        self._calls: dict[K, Call[K]] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __contains__(self, key: K) -> bool:
        return key in self._calls

    def begin(self, key: K) -> Call[K] | None:
        """Register a call; returns None if a call of this key is under way, and then it must not be made."""
        self.drop_lost(key)
        with self._lock:
            call = Call(key, self._clock())
            return call if self._calls.setdefault(key, call) is call else None

    def end(self, call: Call[K]) -> bool:
        """Unregister a call that has returned, and run its actions; returns whether its result is still wanted."""
        with self._lock:
            del self._calls[call.key]
        for action in call.when_back:
            _run(action)
        return not call.given_up

    def drop_lost(self, key: K) -> bool:
        """End the call of this key if its worker has died; returns whether it has."""
        if key not in self._calls:
            return False  # of almost every read, and without the lock
        with self._lock:
            call = self._calls.get(key)
            if call is None or call.worker is None or not call.worker.has_ended:
                return False
            del self._calls[key]
        for action in call.when_back:
            _run(action)
        return True

    def give_up(self, timeout: float) -> tuple[Call[K], ...]:
        """Give up the calls that have taken more than `timeout` seconds; returns those not given up before."""
        with self._lock:
            now = self._clock()
            overdue = [call for call in self._calls.values() if now - call.since > timeout]
            found = tuple(call for call in overdue if not call.given_up)
            for call in found:
                call.given_up = True
            return found

    def stuck(self, before: float) -> Counter[Hashable]:
        """The number of calls of each thing that were begun before this time (monotonic seconds)."""
        with self._lock:
            return Counter(self.thing_of(call.key) for call in self._calls.values() if call.since < before)

    def when_idle(self, key: K, action: Callable[[], None]) -> None:
        """Run `action` once no call of the key is under way: now, or in the thread of that call as it returns."""
        self.drop_lost(key)
        with self._lock:
            if call := self._calls.get(key):
                call.when_back = (*call.when_back, action)
                return
        _run(action)

    def since(self) -> dict[K, float]:
        """The start time of each call under way, in monotonic seconds."""
        with self._lock:
            return {key: call.since for key, call in self._calls.items()}


def has_room(stuck: Counter[Hashable], thing: Hashable) -> bool:
    """Whether another call may be begun for this thing, where these are stuck already."""
    total = stuck.total()
    return total < MOST_STUCK and stuck[thing] < (MOST_OF_ONE if total < MOST_STUCK // 2 else 1)


def _run(action: Callable[[], None]) -> None:
    try:
        action()
    except Exception:
        LOG.exception("cleaning up after a read failed")


class Worker:
    """One daemon thread that runs what is submitted, in order."""

    def __init__(self, name: str) -> None:
        """Start the thread, without waiting for it. `name` is for log lines.

        Raises:
            RuntimeError: the system limits the number of threads (TasksMax, ulimit -u), or memory is short.
        """
        self.name = name
        self.error: BaseException | None = None
        """The exception of the last work that failed."""
        self.busy = False
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        try:
            run = self._run
            # Only the thread keeps this bound method, so it goes away with the thread, however that ends.
            self._thread = weakref.ref(run)
            _thread.start_new_thread(run, ())
        except MemoryError:
            raise RuntimeError("can't start new thread: out of memory") from None

    @property
    def has_ended(self) -> bool:
        """Whether the thread has ended, retired or dead: nothing more is done here."""
        return self._thread() is None

    def submit(self, work: Callable[[], None]) -> None:
        """Run `work` after everything submitted before."""
        self._inbox.put(work)

    def retire(self) -> None:
        """End the thread after everything submitted before."""
        self._inbox.put(None)

    def _run(self) -> None:
        while (work := self._inbox.get()) is not None:
            self.busy = True
            try:
                work()
            except BaseException as error:  # out of memory, say
                # The thread continues; the owner of this work checks `error`.
                self.error = error
                with contextlib.suppress(MemoryError):
                    LOG.exception("the thread %s failed", self.name)
            self.busy = False
            del work  # a finished batch must not live on until the next


class CallThread:
    """One thread for a sequence of calls of `call_in_worker`. It starts with the first call, or raises RuntimeError."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def submit(self, work: Callable[[], None]) -> Worker:
        """Run `work` after everything submitted before; returns the worker that does it."""
        if self._worker is None or self._worker.has_ended:
            self._worker = Worker("roce-call")
        self._worker.submit(work)
        return self._worker

    def retire(self) -> None:
        """End the thread after everything submitted before, also if that returns late. May be called again."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.retire()


class Crew:
    """The workers of one batch, without those that are stuck. RuntimeError: no worker at all could be started."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._workers: list[Worker] = []
        self._used = 0

    def start(self, work: Callable[[], None], count: int) -> None:
        """Run `work` on up to `count` workers that are not used by this batch yet."""
        self._forget_dead()
        self._grow(self._used + count)
        free = self._workers[self._used : self._used + count]
        for worker in free:
            worker.submit(work)
        self._used += len(free)

    def replace_dead(self, work: Callable[[], None]) -> None:
        """Run `work` on as many other workers as have died since they were started for this batch."""
        if dead := self._forget_dead():
            LOG.warning("%d threads %s have died, out of memory?; starting others", dead, self._name)
            self.start(work, dead)

    def settle(self, *, stuck: bool) -> None:
        """End the workers that the batch, which is over, did not need.

        With `stuck` (a call is still under way) the busy workers are given up, too.
        """
        kept = [worker for worker in self._workers[: self._used] if not (stuck and worker.busy)]
        for worker in self._workers:
            if worker not in kept:
                worker.retire()
        self._workers, self._used = kept, 0

    def retire(self) -> None:
        """End all workers, each after its current work."""
        for worker in self._workers:
            worker.retire()
        self._workers.clear()

    def _forget_dead(self) -> int:
        """Drop the workers that have died; returns how many of them were used."""
        used = [worker for worker in self._workers[: self._used] if not worker.has_ended]
        free = [worker for worker in self._workers[self._used :] if not worker.has_ended]
        dead = self._used - len(used)
        self._workers, self._used = used + free, len(used)
        return dead

    def _grow(self, size: int) -> None:
        while len(self._workers) < size:
            try:
                self._workers.append(Worker(self._name))
            except RuntimeError:
                if not self._workers:
                    raise
                # A slower collection is better than a failed one.
                LOG.warning("cannot start a thread: continuing with %d", len(self._workers))
                return


async def call_in_worker(
    in_flight: InFlight[K], key: K, work: Callable[[], T], seconds: float, thread: CallThread | None = None
) -> T:
    """Call `work` in a thread and return its result: in `thread`, whose calls all have this key, or in a new one.

    Raises:
        TimeoutError: `work` has not returned after `seconds`, and its result will be dropped; or an earlier
            call of this key has not returned yet.
        RuntimeError: no thread can be started, or the thread has died.
        Exception: whatever `work` raises.
    """
    call = in_flight.begin(key)
    if call is None:
        raise TimeoutError(errno.ETIMEDOUT, "an earlier call has not returned")
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    own = thread or CallThread()
    try:
        call.worker = own.submit(partial(_attempt, in_flight, call, work, future))
    except RuntimeError:
        in_flight.end(call)
        raise
    if thread is None:
        own.retire()
    try:
        # Not `wait_for`, which in Python 3.11 loses a cancellation that arrives together with the result.
        async with asyncio.timeout(seconds):
            while not (await asyncio.wait((future,), timeout=LIFE_CHECK))[0]:
                if in_flight.drop_lost(key):
                    raise RuntimeError(f"the thread {call.worker.name} has died, out of memory?")
            return future.result()
    except TimeoutError:
        raise TimeoutError(errno.ETIMEDOUT, f"no answer in {seconds:g} s") from None
    finally:
        future.cancel()
        # An error has the frames that it has left, and they what they have read, until a collection if it is in a circle with its future.
        del future


def _attempt(in_flight: InFlight[K], call: Call[K], work: Callable[[], T], future: asyncio.Future[T]) -> None:
    try:
        settle = partial(future.set_result, work())
    except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
        settle = partial(future.set_exception, error)
    in_flight.end(call)
    call_in_loop(future.get_loop(), partial(_settle, future, settle))
    del future, settle  # as there


def _settle(future: asyncio.Future[T], settle: Callable[[], None]) -> None:
    if not future.done():
        settle()


async def run_in_thread(work: Callable[[], T], seconds: float, thread: CallThread | None = None) -> T:
    """Call `work` in a thread, whatever calls are under way. As `call_in_worker`, with the same errors."""
    return await call_in_worker(InFlight(time.monotonic), "", work, seconds, thread)


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Schedule `callback` on the event loop from a worker thread, which may outlive the loop."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)
