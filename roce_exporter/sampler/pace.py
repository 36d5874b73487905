"""How often a network device is looked at, and what that may cost it."""

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
    """Between two looks, where it matters; half of the shortest storm at the most."""
    idle: float = 1.0
    """Between two looks at a device without pause, when adaptive."""
    linger: float = 60.0
    """For how long after any pause it is looked at more often, when adaptive."""
    rest: float = 50.0
    """So many times what its reads take a device is left alone: no NIC spends more than 2 % of its time on us."""

    def seconds(self, now: float, paused_at: float, cost: float) -> float:
        """Until the next look at a device that last paused at `paused_at` and whose reads take `cost`."""
        fast = self.mode == FIXED or now - paused_at < self.linger
        return max(self.interval if fast else self.idle, self.rest * cost)


REMEMBERED = 9
NEEDED = 3


class Cost:
    """What a read takes the driver: the median of the last few, so that a hiccup does not slow the loop down.

    0 until there are a few: the first read of all warms caches up.
    """

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=REMEMBERED)
        self.seconds = 0.0

    def note(self, seconds: float) -> None:
        """A read took this long."""
        self._last.append(seconds)
        self.seconds = sorted(self._last)[(len(self._last) - 1) // 2] if len(self._last) >= NEEDED else 0.0
