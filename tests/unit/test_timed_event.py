"""One event for several coroutines, with and without a limit of time."""

import asyncio

import pytest

from roce_exporter.collect.collector import TimedEvent

SOON = 0.001
ENDLESS = 3600.0


@pytest.mark.parametrize("seconds", [None, ENDLESS])
async def test_everyone_who_waits_is_woken(seconds) -> None:
    event = TimedEvent()
    waiting = [asyncio.create_task(event.wait(seconds)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    event.set()
    await asyncio.gather(*waiting)
    assert event.is_set
    event.set()
    await event.wait(None)  # once it is set there is nothing to wait for


async def test_a_wait_ends_without_it() -> None:
    event = TimedEvent()
    await event.wait(SOON)
    assert not event.is_set
    assert not event._waiting, "what has given up is not kept"


async def test_one_that_is_cancelled_does_not_keep_the_others_from_waking() -> None:
    event = TimedEvent()
    first, second = (asyncio.create_task(event.wait(ENDLESS)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    event.set()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    event = TimedEvent()
    task = asyncio.create_task(event.wait(ENDLESS))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not event._waiting, "what is cancelled before it is set is not kept"
