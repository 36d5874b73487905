"""Calls that may never return: the threads that make them, and the account of those under way.

The only place that starts threads for such calls: a pass, the slow chain, the fast loop and `capture` all use it. A
`Worker` runs one function at a time. `InFlight` refuses a second call of a key, tells the thread of a late call that its
result is not wanted any more, and runs what waited for the call (closing descriptors, say) in that thread. Whoever holds
another lock takes it before that of `InFlight`. Threads are daemons: the process ends although one is stuck.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import threading
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger(__name__)

K = TypeVar("K")
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Call(Generic[K]):
    """One call under way. Only `InFlight` changes it."""

    key: K
    since: float
    """When it began, in monotonic seconds."""
    given_up: bool = False
    """Whether its result is not wanted any more."""
    when_back: tuple[Callable[[], None], ...] = ()
    """What to do in its thread as soon as it has returned."""


class InFlight(Generic[K]):
    """The calls that have not returned yet, at most one per key."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._calls: dict[K, Call[K]] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __contains__(self, key: K) -> bool:
        return key in self._calls

    def begin(self, key: K) -> Call[K] | None:
        """Note that a call begins; None if one of this key is under way, and then it must not be made."""
        with self._lock:
            if key in self._calls:
                return None
            call = self._calls[key] = Call(key, self._clock())
            return call

    def end(self, call: Call[K]) -> bool:
        """Note that a call has returned, and do what waited for that; returns whether its result is still wanted."""
        with self._lock:
            del self._calls[call.key]
        for action in call.when_back:
            _run(action)
        return not call.given_up

    def give_up(self, patience: float) -> tuple[Call[K], ...]:
        """Give up the calls that have been under way for more than `patience` seconds; returns those not given up before."""
        with self._lock:
            now = self._clock()
            overdue = [call for call in self._calls.values() if now - call.since > patience]
            found = tuple(call for call in overdue if not call.given_up)
            for call in found:
                call.given_up = True
            return found

    def when_idle(self, key: K, action: Callable[[], None]) -> None:
        """Do this once no call of the key is under way: now, or in the thread of that call as it returns."""
        with self._lock:
            if call := self._calls.get(key):
                call.when_back = (*call.when_back, action)
                return
        _run(action)

    def since(self) -> dict[K, float]:
        """When each call under way began, in monotonic seconds."""
        with self._lock:
            return {key: call.since for key, call in self._calls.items()}


def _run(action: Callable[[], None]) -> None:
    try:
        action()
    except Exception:
        LOG.exception("cleaning up after a read failed")


class Worker:
    """One daemon thread that does what it is given, in order."""

    def __init__(self, name: str) -> None:
        """Start the thread.

        Raises:
            RuntimeError: the system gives this process no further thread (TasksMax, ulimit -u).
        """
        self.error: BaseException | None = None
        """What the last failed work raised."""
        self.busy = False
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, work: Callable[[], None]) -> None:
        """Do this after everything submitted before."""
        self._inbox.put(work)

    def retire(self) -> None:
        """End the thread after everything submitted before."""
        self._inbox.put(None)

    def _run(self) -> None:
        while (work := self._inbox.get()) is not None:
            self.busy = True
            try:
                work()
            except BaseException as error:
                # Out of memory, say. The thread goes on; whoever depends on this work looks at `error`.
                self.error = error
                LOG.exception("a worker thread failed")
            self.busy = False
            del work  # a finished batch must not live on until the next


class Crew:
    """Workers that share the work of one batch, without those that are stuck."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._workers: list[Worker] = []
        self._used = 0

    def start(self, work: Callable[[], None], count: int) -> None:
        """Have this done by up to `count` workers that have nothing else to do in this batch.

        Raises:
            RuntimeError: no worker at all could be had.
        """
        self._grow(self._used + count)
        free = self._workers[self._used : self._used + count]
        for worker in free:
            worker.submit(work)
        self._used += len(free)

    def settle(self, *, stuck: bool) -> None:
        """The batch is over: end the workers that it did not need.

        `stuck` says that a call is still under way: then the busy workers are given up, too.
        """
        kept = [worker for worker in self._workers[: self._used] if not (stuck and worker.busy)]
        for worker in self._workers:
            if worker not in kept:
                worker.retire()
        self._workers, self._used = kept, 0

    def retire(self) -> None:
        """End all workers, each when it comes back."""
        for worker in self._workers:
            worker.retire()
        self._workers.clear()

    def _grow(self, size: int) -> None:
        while len(self._workers) < size:
            try:
                self._workers.append(Worker(self._name))
            except RuntimeError:
                if not self._workers:
                    raise
                # Fewer workers take longer, which costs less than the collection.
                LOG.warning("no thread to be had: going on with %d", len(self._workers))
                return


async def call_in_worker(in_flight: InFlight[K], key: K, work: Callable[[], T], patience: float) -> T:
    """What `work` returns, called in a thread of its own.

    Raises:
        TimeoutError: it has not returned after `patience` seconds, and its result is dropped; or an earlier call of
            this key has not returned yet.
        Exception: whatever `work` raises.
    """
    call = in_flight.begin(key)
    if call is None:
        raise TimeoutError(errno.ETIMEDOUT, "an earlier call has not returned")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def attempt() -> None:
        try:
            settle = partial(_settle, future, work())
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            settle = partial(_fail, future, error)
        in_flight.end(call)
        call_in_loop(loop, settle)

    try:
        worker = Worker("roce-call")
    except RuntimeError:
        in_flight.end(call)
        raise
    worker.submit(attempt)
    worker.retire()
    try:
        return await asyncio.wait_for(future, patience)
    except TimeoutError:
        raise TimeoutError(errno.ETIMEDOUT, f"no answer in {patience:g} s") from None


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Have the event loop call this. Called from a worker thread, which may outlive the loop."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


def _settle(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
