"""How often a driver refreshes its counters, learnt from when they change.

Most drivers query the NIC at every read; bnxt copies what the firmware wrote up to a second ago. If such a copy were taken
for fresh, nine samples would show no change and the tenth ten times too much.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

REMEMBERED = 32
NEEDED = 4

CACHED = 1.5
"""Counters that stay the same for more than this number of samples are a copy."""

FINE = 0.3
"""Samples further apart than this, in seconds, cannot show a refresh interval of one second."""


class Refresh:
    """The refresh interval of one network device."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """Median time between two refreshes; 0 while it is not known."""
        self._intervals: deque[float] = deque()
        self._sorted: list[float] = []

    def note(self, interval: float, poll: float) -> None:
        """Enter that counters changed under traffic `interval` seconds after the last change, polled every `poll` seconds."""
        if poll > FINE:
            return
        self._intervals.append(interval)
        insort(self._sorted, interval)
        if len(self._intervals) > REMEMBERED:
            del self._sorted[bisect_left(self._sorted, self._intervals.popleft())]
        if len(self._sorted) >= NEEDED:
            self.seconds = self._sorted[len(self._sorted) // 2]

    def is_cached(self, poll: float) -> bool:
        """Whether samples `poll` seconds apart contain the same copy more than once."""
        return self.seconds > CACHED * poll
