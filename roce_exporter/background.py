"""Tasks that must run for as long as the exporter does: one that fails ends it, so that none can die unseen."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from roce_exporter.sampler import Sampler

LOG = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def background(*work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Run these next to the block; at its end they are cancelled.

    Raises:
        Exception: one of them failed. The block has been cancelled then, and the others, too.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
            yield
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as faults:
        # Nearly always there is one, whose traceback says more than the group's.
        raise faults.exceptions[0] if len(faults.exceptions) == 1 else faults  # noqa: B904 - it is the same fault


async def supervise(sampler: Sampler, interval: float) -> None:
    """Check the fast loop every `interval` seconds.

    Raises:
        RuntimeError: it has failed, or cannot go on because the system gives no further thread.
    """
    while True:
        await asyncio.sleep(interval)
        try:
            sampler.supervise()
        except Exception:
            LOG.critical("the fast loop cannot go on")
            raise
