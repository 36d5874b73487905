"""How often a driver renews its counters, learnt from when they change.

Most drivers ask the NIC at every read; bnxt copies what the firmware wrote a second ago. Judged as if it were fresh, a
copy shows nothing for nine looks and ten times too much in the tenth.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

REMEMBERED = 32
NEEDED = 4

CACHED = 1.5
"""Counters that change more rarely than so many looks are a copy."""

FINE = 0.3
"""Looks further apart than this, in seconds, tell nothing of a driver that renews its counters every second."""


class Refresh:
    """What was learnt of one network device."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """The time between two renewals, the median of what was seen; 0 while it is not known."""
        self._intervals: deque[float] = deque()
        self._sorted: list[float] = []

    def note(self, interval: float, poll: float) -> None:
        """The counters changed under traffic, `interval` seconds after they last did, seen by looks `poll` seconds apart."""
        if poll > FINE:
            return
        self._intervals.append(interval)
        insort(self._sorted, interval)
        if len(self._intervals) > REMEMBERED:
            del self._sorted[bisect_left(self._sorted, self._intervals.popleft())]
        if len(self._sorted) >= NEEDED:
            self.seconds = self._sorted[len(self._sorted) // 2]

    def is_cached(self, poll: float) -> bool:
        """Whether looks `poll` seconds apart see the same copy more than once."""
        return self.seconds > CACHED * poll
