"""Numbers and counters of pairs of addresses, bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roce_exporter.wire.tally.counter_layout import WIDTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roce_exporter.wire.decode.windows import Integers

OTHER = 0
"""The row of all pairs that have none of their own."""
MOST_PAIRS = 8192


class PairTable:
    """One row of counters per source and destination. Row 0 counts all pairs beyond the limit.

    A pair and its reverse are added together, so that a reply finds the requests that it answers.
    """

    def __init__(self, most: int = MOST_PAIRS) -> None:
        self._most = most
        self._numbers: dict[bytes, int] = {}
        self.counts = np.zeros((1, WIDTH), np.int64)
        self.reverse: NDArray[np.int64] = np.zeros(1, np.int64)
        """The number of the opposite direction."""
        self._active: NDArray[np.int64] = np.zeros(1, np.int64)
        self._used = 1

    def pairs(self) -> list[tuple[bytes, int]]:
        """Source and destination (16 bytes each) with the row of their counters."""
        return list(self._numbers.items())

    def number(self, addresses: bytes) -> int:
        """The row of a source and destination; OTHER while the table is full."""
        found = self._numbers.get(addresses)
        if found is not None:
            return found
        if self._used + 2 > self._most:
            return OTHER
        return self._add(addresses)

    def _add(self, addresses: bytes) -> int:
        back = addresses[16:] + addresses[:16]
        first, second = self._used, self._used + (back != addresses)
        self._used = second + 1
        if self._used > len(self.counts):
            self._grow()
        self._numbers[addresses], self._numbers[back] = first, second
        self.reverse[first], self.reverse[second] = second, first
        return first

    def _grow(self) -> None:
        more = len(self.counts) + 2
        self.counts = np.concatenate((self.counts, np.zeros((more, WIDTH), np.int64)))
        self.reverse = np.concatenate((self.reverse, np.zeros(more, np.int64)))
        self._active = np.concatenate((self._active, np.zeros(more, np.int64)))

    @property
    def full(self) -> bool:
        """Whether the next pair may have no row."""
        return self._used + 2 > self._most

    def touch(self, rows: Integers, moment: int) -> None:
        """These pairs were active at this moment (any growing number)."""
        self._active[rows] = moment

    def forget_half(self) -> Integers:
        """Add the half of the pairs that was not active for longest to OTHER; the new row of each old one."""
        active = np.maximum(self._active, self._active[self.reverse])[: self._used]
        order = np.argsort(active[1:], kind="stable") + 1
        kept = np.sort(order[len(order) // 2 :])
        kept = np.unique(np.concatenate((kept, self.reverse[kept])))
        gone = np.setdiff1d(np.arange(1, self._used), kept)
        renamed = np.zeros(len(self.counts), np.int64)
        renamed[kept] = np.arange(1, len(kept) + 1)
        self.counts[OTHER] += self.counts[gone].sum(axis=0)
        rows = np.concatenate(([OTHER], kept))
        self.counts, self._active = self.counts[rows], self._active[rows]
        self.reverse = renamed[self.reverse[rows]]
        self._used = len(rows)
        self._numbers = {key: int(renamed[row]) for key, row in self._numbers.items() if renamed[row]}
        return renamed
