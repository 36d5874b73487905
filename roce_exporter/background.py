"""Tasks that run for as long as the exporter does. If one fails, the exporter ends, so no failure goes unnoticed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Coroutine

AGAIN_SECONDS = 1.0  # until a task that has not ended is cancelled again


@contextlib.asynccontextmanager
async def background(*work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run these coroutines alongside the block, and cancel them when it ends.

    Raises:
        Exception: one of them failed. The block and the other coroutines have then been cancelled.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
            try:
                yield
            finally:
                await _end(tasks)
    except BaseExceptionGroup as faults:
        # There is nearly always only one, and its own traceback is clearer than the group's.
        raise faults.exceptions[0] if len(faults.exceptions) == 1 else faults  # noqa: B904 - it is the same fault


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel until all have ended: `asyncio.wait_for` of Python 3.11, which redis uses, can lose a cancellation."""
    for task in tasks:
        if not task.cancelling():
            task.cancel()
    while (await asyncio.wait(tasks, timeout=AGAIN_SECONDS))[1]:
        for task in tasks:
            task.cancel()
