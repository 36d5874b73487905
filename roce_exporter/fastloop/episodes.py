"""How long each pause of one priority in one direction lasted, whether longer or shorter than the polling interval.

The NIC counts the time paused, so the sum of all lengths is exact. Where it also counts the pauses that ended (receive of
mlx5, mlx4 and bnxt), each of them is one episode; those that end between the same two reads share the time paused between
them equally. Otherwise the lengths are those of the smallest number of pauses that explains the samples. An episode whose
end was not observed is not counted: its length is never guessed.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from roce_exporter.normalise.series import Histogram


class Counts(NamedTuple):
    """The counters of one priority in one direction since the driver was loaded; None: not counted by the driver."""

    paused: float | None = None
    """Seconds."""
    stops: float | None = None
    """XOFF frames; with `Method.FRAMES` all pause frames."""
    resumes: float | None = None
    """Ends of pause: XON frames, or transitions of the NIC's own state."""
    packets: float | None = None
    """Packets of the priority in the direction that the pause blocks."""


class RecentMedian:
    """The median of the last `kept` values; 0 until there are `needed`, so that one odd value does not count."""

    def __init__(self, kept: int, needed: int) -> None:
        self._last: deque[float] = deque(maxlen=kept)
        self._needed = needed
        self.seconds = 0.0

    def note(self, seconds: float) -> None:
        """Enter a value."""
        self._last.append(seconds)
        if len(self._last) >= self._needed:
            self.seconds = sorted(self._last)[(len(self._last) - 1) // 2]


WINDOW = 300.0
SLICE = 30.0


class Longest:
    """The largest value of the last `WINDOW` seconds, exact to one `SLICE`."""

    def __init__(self) -> None:
        self._slices: deque[tuple[float, float]] = deque()
        """Number of each slice of time and the largest value in it."""

    def note(self, now: float, value: float) -> None:
        """Enter a value observed at `now`. Zeros need no slice."""
        number = now // SLICE
        if self._slices and self._slices[-1][0] == number:
            if value > self._slices[-1][1]:
                self._slices[-1] = (number, value)
        elif value > 0:
            self._slices.append((number, value))
        self._forget(now)

    def value(self, now: float) -> float:
        """The largest value; 0 without any."""
        self._forget(now)
        return max((value for _, value in self._slices), default=0.0)

    def _forget(self, now: float) -> None:
        while self._slices and self._slices[0][0] <= (now - WINDOW) // SLICE:
            self._slices.popleft()


# Seconds. Switch watchdogs act after 0.2 s, a storm is 0.4 s.
BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 1.0, 2.5, 5.0)
THROUGHOUT = 0.95  # from this share on, a span counts as filled by one pause
MOSTLY = 0.5  # the same for a span in which no packet passed

# Seconds without pause and without a packet after which a pause is over, if the NIC does not count the ends
# of pauses. Within this time the driver may only be late: unchanged counters prove nothing.
SILENT = 0.5


class Episodes:
    """The pauses of one priority in one direction. `see` takes one span after the other, without gaps."""

    __slots__ = ("_ended", "_lost", "_open", "_still", "lengths")

    def __init__(self) -> None:
        self.lengths = Histogram(BOUNDS)
        self._open = 0.0
        """Seconds of the pause that was still going on at the last read; 0: no pause."""
        self._ended = 0.0
        """Fraction of an end: bnxt counts both edges of a pause, and each counts as one half."""
        self._lost = True
        """Whether a pause may be under way whose beginning was not observed."""
        self._still = 0.0
        """Seconds without pause and without a packet."""

    def see(self, change: Counts, share: float, seconds: float) -> None:
        """Process the counts of `seconds` between two reads; the priority was paused for `share` of that time."""
        if not change.paused:
            self._still += seconds
            if change.resumes or change.packets != 0 or (change.resumes is None and self._still >= SILENT):
                self._end(0.0)
                self._ended = 0.0
            return
        self._still = 0.0
        if change.resumes is not None:
            self._count(change.paused, change.resumes)
        else:
            self._guess(change, share)

    def forget(self) -> None:
        """Drop the pause under way: the next span was not observed, so its length cannot be known."""
        self._open = self._ended = 0.0
        self._lost = True

    def _count(self, paused: float, resumes: float) -> None:
        self._ended += resumes
        ended, self._ended = divmod(self._ended, 1)
        # Half an end left over is the beginning of another pause, which takes its share of the time.
        mean = paused / (ended + (self._ended > 0)) if ended else paused
        if ended:
            self._end(mean)
            # Not in a loop: a broken counter may jump by billions.
            self.lengths.observe(mean, int(ended) - 1)
        if not ended or self._ended:
            self._open += mean

    def _guess(self, change: Counts, share: float) -> None:
        """Without counted ends, a span that is only partly paused ends the pause before it, or begins a new one."""
        goes_on = share >= THROUGHOUT or (change.packets == 0 and share >= MOSTLY)
        if goes_on or not (self._open or self._lost):
            self._open += change.paused or 0.0
        else:
            self._end(change.paused or 0.0)

    def _end(self, more: float) -> None:
        length = self._open + more
        if length and not self._lost:
            self.lengths.observe(length)
        self._open, self._lost = 0.0, False
