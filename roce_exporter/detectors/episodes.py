"""How long each pause of one priority in one direction lasted, although it is longer or shorter than the interval of reads.

The NIC counts the time paused, so the sum of all lengths is exact. Where it also counts the pauses that ended (receive of
mlx5, mlx4 and bnxt), each of them is one episode; those that end between the same two reads share the time paused between
them equally. Where it does not, the lengths are those of the fewest pauses that explain what was read. An episode that
cannot be followed to its end is not counted: nothing is made up for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.detectors.histogram import Histogram

if TYPE_CHECKING:
    from roce_exporter.detectors.pfc_storm import Counts

BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 1.0, 2.5, 5.0)
"""Seconds. Switch watchdogs act after 0.2 s, a storm is 0.4 s."""

THROUGHOUT = 0.95
"""Share of a span from which on one pause fills it."""

MOSTLY = 0.5
"""The same where no packet passed."""

SILENT = 0.5
"""Seconds without pause and without a packet after which a pause is over, where its end is not counted. Before, the driver
may only be late: counters that stand still prove nothing. Where ends are counted, silence alone ends no pause."""


class Episodes:
    """The pauses of one priority in one direction. `see` is called with one span after the other, without gaps."""

    __slots__ = ("_ended", "_lost", "_open", "_still", "lengths")

    def __init__(self) -> None:
        self.lengths = Histogram(BOUNDS)
        self._open = 0.0
        """Seconds of the pause that had not ended when the counters were last read; 0: no pause."""
        self._ended = 0.0
        """Part of an end: bnxt counts both edges of a pause, and each is half of one."""
        self._lost = True
        """Whether a pause may be open whose beginning was not seen."""
        self._still = 0.0
        """Seconds without pause and without a packet."""

    def see(self, change: Counts, share: float, seconds: float) -> None:
        """What was counted in `seconds` between two reads, in a `share` of which the priority was paused."""
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
        """What came next was not seen: how long an open pause lasts cannot be known."""
        self._open = self._ended = 0.0
        self._lost = True

    def _count(self, paused: float, resumes: float) -> None:
        self._ended += resumes
        ended, self._ended = divmod(self._ended, 1)
        # Half an end left over is the beginning of one more pause, which has its share of the time.
        mean = paused / (ended + (self._ended > 0)) if ended else paused
        if ended:
            self._end(mean)
            # At once, for a counter that went mad may say billions.
            self.lengths.observe(mean, int(ended) - 1)
        if not ended or self._ended:
            self._open += mean

    def _guess(self, change: Counts, share: float) -> None:
        """A pause may begin in one span, fill others and end in one more: a third span that it only touches is another."""
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
