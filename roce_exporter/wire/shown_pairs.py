"""Which pairs have series of their own, and what all the others count together.

A pair enters with counts from 0, and what it counted before stays in `other`; what a pair counted that leaves is
remembered. So no counter ever falls, except where a series ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.tally.pair_counts import BLOCKS, WIDTH

if TYPE_CHECKING:
    from roce_exporter.wire.frames import Integers
    from roce_exporter.wire.tally.key_tables import PairTable

KEEP = 2
"""A shown pair leaves only for one with this many times its recent packets, so that series do not come and go."""


class ShownPair(NamedTuple):
    """One pair with series; an empty key is all others."""

    key: bytes
    counts: Integers


class ShownPairs:
    """The choice of pairs between two scrapes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bases: dict[bytes, Integers] = {}
        self._last: dict[bytes, Integers] = {}
        """What each shown pair counted at the last scrape."""
        self._retired = np.zeros(WIDTH, np.int64)
        self._packets: dict[bytes, int] = {}
        self._recent: dict[bytes, float] = {}

    def choose(self, table: PairTable) -> list[ShownPair]:
        """The pairs that sent most recently, and all others together, with the counts to export."""
        rows = dict(table.pairs())
        self._score(table, rows)
        for key in [key for key in self._bases if key not in rows]:
            self._retire(key)
        self._admit(table, rows)
        shown = []
        for key, base in self._bases.items():
            counts = table.counts[rows[key]] - base
            self._last[key] = counts
            shown.append(ShownPair(key, counts))
        total = table.counts.sum(axis=0) - self._retired
        others = total - sum((one.counts for one in shown), np.zeros(WIDTH, np.int64))
        return [*shown, ShownPair(b"", others)]

    def _score(self, table: PairTable, rows: dict[bytes, int]) -> None:
        """Packets of late: half of the last score and those since the last scrape."""
        packets = table.counts[:, BLOCKS["operation_packets"].columns].sum(axis=1)
        now = {key: int(packets[row]) for key, row in rows.items() if packets[row]}
        self._recent = {
            key: self._recent.get(key, 0) / 2 + max(0, count - self._packets.get(key, 0))
            for key, count in now.items()
        }
        self._packets = now

    def _admit(self, table: PairTable, rows: dict[bytes, int]) -> None:
        for key in sorted(self._recent, key=self._recent.__getitem__, reverse=True)[: self._most]:
            if key in self._bases:
                continue
            if len(self._bases) >= self._most:
                least = min(self._bases, key=lambda one: self._recent.get(one, 0))
                if self._recent[key] <= KEEP * self._recent.get(least, 0):
                    continue
                self._retire(least)
            first = not self._last and not self._retired.any()
            self._bases[key] = np.zeros(WIDTH, np.int64) if first else table.counts[rows[key]].copy()

    def _retire(self, key: bytes) -> None:
        del self._bases[key]
        self._retired += self._last.pop(key, 0)
