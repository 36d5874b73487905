"""Wait for an event of the same event loop, at most some seconds: `asyncio.wait` for one event, at a third of its cost."""

from __future__ import annotations

import asyncio


class Bell:
    """Rings once. Used from one event loop."""

    def __init__(self) -> None:
        self.has_rung = False
        self._waiting: list[asyncio.Future[None]] = []

    def ring(self, _: object = None) -> None:
        """Wake everyone who waits. May be called again."""
        self.has_rung = True
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _resolve(future)

    async def wait(self, seconds: float | None) -> None:
        """Return when it rings, at once if it has rung, and after `seconds` at the latest; None: without a limit."""
        if self.has_rung:
            return
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append(future)
        timer = loop.call_later(seconds, _resolve, future) if seconds is not None else None
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            if not self.has_rung:
                self._waiting.remove(future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
