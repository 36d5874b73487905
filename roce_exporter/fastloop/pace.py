"""How often a network device is polled, and how much of its time that may take."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

ADAPTIVE, FIXED, OFF = "adaptive", "fixed", "off"
MODES = (ADAPTIVE, FIXED, OFF)


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds."""

    mode: str = ADAPTIVE
    interval: float = 0.1
    """Fast polling interval; at most half of the shortest storm."""
    idle: float = 1.0
    """Polling interval of a device without pause, in adaptive mode."""
    linger: float = 60.0
    """How long after any pause the fast interval is used, in adaptive mode."""
    cost_ratio: float = 50.0
    """Minimum ratio of interval to read time: no NIC spends more than 2 % of its time on our reads."""

    def seconds(self, now: float, paused_at: float, cost: float) -> float:
        """Seconds until the next poll of a device that last paused at `paused_at` and whose reads take `cost` seconds."""
        fast = self.mode == FIXED or now - paused_at < self.linger
        return max(self.interval if fast else self.idle, self.cost_ratio * cost)


REMEMBERED = 9
NEEDED = 3


class Cost:
    """The read time of a driver: the median of the last few, so that one slow read does not slow the loop down.

    0 until there are a few: the very first read is slower, with cold caches.
    """

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=REMEMBERED)
        self.seconds = 0.0

    def note(self, seconds: float) -> None:
        """Enter the seconds that a read took."""
        self._last.append(seconds)
        self.seconds = sorted(self._last)[(len(self._last) - 1) // 2] if len(self._last) >= NEEDED else 0.0
