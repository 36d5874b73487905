"""Wait for other programs, for threads and for tasks. Every limit is of what hangs: no time decides a test."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

HUNG_SECONDS = 300.0


def wait_until(ready: Callable[[], Any], seconds: float = HUNG_SECONDS) -> Any:
    """The result of `ready` as soon as it is true; connections that fail in the meantime count as not ready."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := ready():
                return found
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"timed out waiting: {ready()}")


async def until(ready: Callable[[], object], seconds: float = HUNG_SECONDS) -> None:
    """Let other tasks and threads run until `ready` is true: for states that have no event."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"timed out waiting for {ready}"
        await asyncio.sleep(0.001)


class Gate:
    """A call that blocks its thread until the test releases it, and that reports its start."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self._open = threading.Event()

    def __call__(self, *_: object) -> None:
        self.begun.set()
        assert self._open.wait(HUNG_SECONDS), "nothing released the gate"

    def wait(self) -> None:
        """Wait until a thread is in the call."""
        assert self.begun.wait(HUNG_SECONDS), "the call did not begin"

    async def entered(self) -> None:
        """Let other tasks run until a thread is in the call."""
        await asyncio.to_thread(self.wait)

    def release(self) -> None:
        """Let this call and all later ones return."""
        self._open.set()
