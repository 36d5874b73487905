"""Numbers for keys of several 64-bit words, for a whole batch at once."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNNUMBERED = 0
"""The number of a key that has no place."""


class KeyTable:
    """Numbers keys 1, 2, ... in the order of their appearance, up to a limit.

    Keys are found by a hash with constants that are random per process, so that no sender can make keys collide. Words
    are compared, so two keys never share a number.
    """

    def __init__(self, words: int, most: int) -> None:
        self._factors = np.array([secrets.randbits(64) | 1 for _ in range(words)], np.uint64)
        self._most = most
        self.keys = np.zeros((1, words), np.uint64)
        """The words of each number."""
        self._hashes = np.zeros(0, np.uint64)
        self._numbers = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    def number(self, rows: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The number of each row's key; UNNUMBERED where the table is full."""
        hashes = self._hash(rows)
        numbers = self._known(rows, hashes)
        unknown = np.flatnonzero(numbers == UNNUMBERED)
        if len(unknown) and len(self.keys) <= self._most:
            self._add(rows[unknown], hashes[unknown])
            numbers[unknown] = self._known(rows[unknown], hashes[unknown])
        return numbers

    def retain(self, kept: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget all but these numbers; the new number of each old one, UNNUMBERED for a forgotten one."""
        renamed = np.full(len(self.keys), UNNUMBERED, np.int64)
        renamed[kept] = np.arange(1, len(kept) + 1)
        self.keys = np.concatenate((self.keys[:1], self.keys[kept]))
        self._sort()
        return renamed

    def _hash(self, rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
        mixed: NDArray[np.uint64] = rows[:, 0] * self._factors[0]
        for word in range(1, rows.shape[1]):
            mixed = (mixed ^ (mixed >> np.uint64(29))) + rows[:, word] * self._factors[word]
        return mixed ^ (mixed >> np.uint64(32))

    def _known(self, rows: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        if not len(self._hashes):
            return np.full(len(rows), UNNUMBERED, np.int64)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        numbers = self._numbers[places]
        differs = np.zeros(len(rows), np.bool_)
        for word in range(rows.shape[1]):  # `any` along a short axis takes five times as long
            differs |= self.keys[numbers, word] != rows[:, word]
        return np.where(differs, UNNUMBERED, numbers)

    def _add(self, rows: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> None:
        """Append unknown keys in their order, one for each hash: of two with one hash the second has no number."""
        _, first = np.unique(hashes, return_index=True)
        first = np.sort(first)[: self._most + 1 - len(self.keys)]
        taken = np.isin(hashes[first], self._hashes)
        self.keys = np.concatenate((self.keys, rows[first[~taken]]))
        self._sort()

    def _sort(self) -> None:
        hashes = self._hash(self.keys[1:])
        order = np.argsort(hashes)
        self._hashes, self._numbers = hashes[order], order + 1
