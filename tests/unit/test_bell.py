"""One event for several coroutines, with and without a limit of time."""

from __future__ import annotations

import asyncio

import pytest

from roce_exporter.collect.collector import Bell

SOON = 0.001
ENDLESS = 3600.0


@pytest.mark.parametrize("seconds", [None, ENDLESS])
async def test_everyone_who_waits_is_woken(seconds: float | None) -> None:
    bell = Bell()
    waiting = [asyncio.create_task(bell.wait(seconds)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    bell.ring()
    await asyncio.gather(*waiting)
    assert bell.has_rung
    bell.ring()
    await bell.wait(None)  # after it has rung no one waits


async def test_a_wait_ends_without_it() -> None:
    bell = Bell()
    await bell.wait(SOON)
    assert not bell.has_rung
    assert not bell._waiting, "what has given up is not kept"


async def test_one_that_is_cancelled_does_not_keep_the_others_from_waking() -> None:
    bell = Bell()
    first, second = (asyncio.create_task(bell.wait(ENDLESS)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    bell.ring()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    bell = Bell()
    task = asyncio.create_task(bell.wait(ENDLESS))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not bell._waiting, "what is cancelled before it rings is not kept"
