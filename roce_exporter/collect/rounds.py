"""Parts of an exporter that read or judge between two scrapes: when, with which deadline, and what the last read found."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from typing import TypeVar

from roce_exporter.collect.reads import log_change, source_text
from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.host.kernel import Absent
from roce_exporter.model import DeviceReadings, SourceState
from roce_exporter.model.values import reason_of
from roce_exporter.normalise.series import NO_SAMPLES, Samples

LOG = logging.getLogger(__name__)

T = TypeVar("T")
AGAIN_SECONDS = 1.0  # until a task that has not ended is cancelled again
SECONDS_DOWN = 60.0  # that a part counts as down after a fault of the exporter in it


@contextlib.asynccontextmanager
async def background(*work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run these coroutines alongside the block, and cancel them when it ends: if one fails, the program ends, so no failure goes unnoticed.

    Raises:
        Exception: one of them failed. The block and the other coroutines have then been cancelled.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
            try:
                yield
            finally:
                await _end_tasks(tasks)
    except BaseExceptionGroup as faults:
        # There is nearly always only one, and its own traceback is clearer than the group's.
        raise faults.exceptions[0] if len(faults.exceptions) == 1 else faults  # noqa: B904 - it is the same fault


async def _end_tasks(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel until all have ended: `asyncio.wait_for` of Python 3.11, which redis uses, can lose a cancellation."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    while (await asyncio.wait(tasks, timeout=AGAIN_SECONDS))[1]:
        for task in tasks:
            task.cancel()


async def every(
    seconds: float,
    work: Callable[[], Awaitable[object]],
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Do `work` until cancelled, every `seconds`: at once where it took longer."""
    while True:
        begun = clock()
        await work()
        await sleep(max(0.0, seconds - (clock() - begun)))


class Calls:
    """Calls of one source in worker threads, one at a time, each with a deadline of `timeout` seconds."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._in_flight: InFlight[str] = InFlight(time.monotonic)

    async def __call__(self, work: Callable[[], T]) -> T:
        """The result of `work`; see `call_in_worker`.

        Raises:
            TimeoutError: it takes longer, or an earlier call has not returned yet.
            Exception: whatever `work` raises.
        """
        return await call_in_worker(self._in_flight, "", work, self.timeout)

    def when_idle(self, action: Callable[[], None]) -> None:
        """Run `action` once no call is under way."""
        self._in_flight.when_idle("", action)


class Rounds:
    """The samples of the last read of one source, and its state."""

    def __init__(self, source: str, clock: Callable[[], float], device: str = "") -> None:
        """`clock` returns monotonic seconds."""
        self.state = SourceState(source, device, "", None, 0.0)
        self.samples = NO_SAMPLES
        self._clock = clock

    async def read(self, work: Awaitable[T], seconds: float) -> T | None:
        """The result of one read of at most `seconds`, None if it failed. A failure is logged, counted, and part of the state."""
        begun, found, up, error = self._clock(), None, True, ""
        try:
            async with asyncio.timeout(seconds):
                found = await work
        except Absent:
            self.settle(None, self._clock() - begun)
            return None
        except TimeoutError:
            up, error = False, f"no answer in {seconds:g} s"
        except Exception as failure:  # noqa: BLE001 - what fails at one source must not cost the others
            up, error = False, self.failure(failure)
        self.settle(up, self._clock() - begun, error)
        return found

    def failure(self, error: Exception) -> str:
        """Why a read failed. A fault of the exporter is logged with its traceback."""
        if isinstance(error, OSError):
            text = error.strerror if error.strerror and error.filename is None else error
            return f"{reason_of(error)}: {text}"
        LOG.error("fault in source %s", source_text(self.state), exc_info=error)
        return f"fault in the exporter: {error!r}"

    def settle(self, up: bool | None, seconds: float, error: str = "", errors: int | None = None) -> None:
        """Enter the outcome of a read, by default with one error if it has a text; a change is logged."""
        before = self.state
        total = before.errors_total + (bool(error) if errors is None else errors)
        self.state = before._replace(up=up, seconds=seconds, error=error, errors_total=total)
        if error != before.error:
            log_change(self.state)


class ExporterPart:
    """One part of an exporter, used from one event loop. By default it does nothing and shows nothing."""

    name: str
    """The source that is down after a fault of the exporter in this part."""

    def follow(self, devices: Sequence[DeviceReadings]) -> None:
        """The devices of a complete collection."""

    def samples(self) -> tuple[Samples, ...]:
        """The current samples. Called by every scrape, so nothing is read here."""
        return ()

    def states(self) -> tuple[SourceState, ...]:
        """The state of each source that this part reads."""
        return ()

    def note(self, samples: tuple[Samples, ...]) -> None:
        """The samples of a complete collection, of all parts. Called by every scrape: they are judged later."""

    async def read_once(self) -> None:
        """Read everything once, for an exposition without `run`."""

    async def run(self) -> None:
        """Read again and again until cancelled."""

    def close(self) -> None:
        """Release threads and descriptors."""


class PartRounds(Rounds):
    """Calls of one part of an exporter: a fault of it costs what the part shows, and neither a scrape nor the other parts."""

    _failed = 0.0

    def call(self, work: Callable[[], T]) -> T | None:
        """The result of `work`; None after a fault."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - it is logged, counted and shown
            self._note(error)
            return None

    async def run(self, work: Callable[[], Awaitable[object]], pause: float | None = None) -> None:
        """Do `work`; with a pause, in seconds, again after each fault."""
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - as above
                self._note(error)
                if pause is not None:
                    await asyncio.sleep(pause)
                    continue
            return

    def are_down(self) -> bool:
        """Whether there was a fault in the last `SECONDS_DOWN`: what the part shows may be from before it."""
        if self.state.error and self._clock() - self._failed > SECONDS_DOWN:
            self.settle(True, 0.0)
        return bool(self.state.error)

    def states(self) -> tuple[SourceState, ...]:
        """Nothing before the first fault."""
        self.are_down()
        return (self.state,) if self.state.errors_total else ()

    def _note(self, error: Exception) -> None:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        self._failed = self._clock()
        self.settle(False, 0.0, self.failure(error))
