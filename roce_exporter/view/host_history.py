"""The history of one host, sample by sample: of this host, of a recording or of a simulation.

A recorded or simulated host has a clock of its own, so nothing waits.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from roce_exporter.view.history import timed_samples

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from roce_exporter.fastloop import Sampler
    from roce_exporter.normalise.series import Samples
    from roce_exporter.view.history import TimedSamples

    Reach = Callable[[float], Awaitable[None]]
    """Waits until a time of the clock, or makes it pass."""

SUPERVISED = 0.5
"""Seconds between two checks of the fast loop."""


class HostClock:
    """The clock of a host that is not this one, in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Seconds on this clock."""
        return self.now


def jump(clock: HostClock) -> Reach:
    """For a recorded host: sets the clock."""

    async def reach(time: float) -> None:
        clock.now = time

    return reach


def play(clock: HostClock, sampler: Sampler | None) -> Reach:
    """For a simulated host: the fast loop polls as often as it would while the time passes."""

    async def reach(time: float) -> None:
        while sampler is not None and (due := sampler.tick()) is not None and due < time:
            clock.now = due
        clock.now = time

    return reach


def wait(clock: Callable[[], float], sampler: Sampler | None) -> Reach:
    """For this host: waits, and supervises the fast loop meanwhile."""

    async def reach(time: float) -> None:
        while (left := time - clock()) > 0:
            await asyncio.sleep(min(left, SUPERVISED))
            if sampler is not None:
                sampler.supervise()

    return reach


async def host_history(
    collect: Callable[[], Awaitable[Iterable[Samples]]],
    times: Iterable[float],
    reach: Reach,
    stamp: Callable[[float], float],
) -> AsyncIterator[TimedSamples]:
    """The samples at each of these times; `collect` makes a complete collection, `stamp` returns the Unix time of one."""
    for time in times:
        await reach(time)
        yield timed_samples(await collect(), stamp(time))
