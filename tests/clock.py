"""Clocks that a test moves."""

import asyncio

EPOCH = 1_700_000_000.0


class Clock:
    """Monotonic seconds. They stand still until the test sets `now`; `sleep` advances them without waiting."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.slept = 0.0

    def __call__(self) -> float:
        return self.now

    def wall(self) -> float:
        """Unix time."""
        return EPOCH + self.now

    async def sleep(self, seconds: float) -> None:
        """Advance without waiting."""
        self.slept += seconds
        self.now += seconds


def pass_time(seconds: float) -> None:
    """Put the clock of the running event loop forward: the deadlines of what hangs pass, and nobody waits for them."""
    loop = asyncio.get_running_loop()
    time = loop.time
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]
