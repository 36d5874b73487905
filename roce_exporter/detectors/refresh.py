"""How often a driver renews its counters, learnt from when they change.

Most drivers ask the NIC at every read; bnxt copies what the firmware wrote a second ago. Judged as if it were fresh, a
copy shows nothing for nine looks and ten times too much in the tenth.
"""

from __future__ import annotations

from collections import deque
from statistics import median

REMEMBERED = 32
NEEDED = 4

CACHED = 1.5
"""Counters that change more rarely than so many looks are a copy."""

FINE = 0.3
"""Looks further apart than this, in seconds, tell nothing of a driver that renews its counters every second."""


class Refresh:
    """What was learnt of one network device."""

    def __init__(self) -> None:
        self._intervals: deque[float] = deque(maxlen=REMEMBERED)

    @property
    def seconds(self) -> float:
        """The time between two renewals; 0 while it is not known."""
        return median(self._intervals) if len(self._intervals) >= NEEDED else 0.0

    def note(self, interval: float, poll: float) -> None:
        """The counters changed under traffic, `interval` seconds after they last did, seen by looks `poll` seconds apart."""
        if poll <= FINE:
            self._intervals.append(interval)

    def is_cached(self, poll: float) -> bool:
        """Whether looks `poll` seconds apart see the same copy more than once."""
        return self.seconds > CACHED * poll
