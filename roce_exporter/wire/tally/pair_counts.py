"""Pairs of addresses and other keys as numbers, for a whole batch at once, and the counters of a pair, by column and by name."""

from __future__ import annotations

import os
from dataclasses import fields
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.decode.infiniband import GROUPS, NAK_CODES
from roce_exporter.wire.tally.sequences import UNNUMBERED, SequenceCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roce_exporter.wire.frames import Integers

ROUND_TRIP_BOUNDS = (2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 0.05, 1.0)
"""Upper bounds in seconds of the histogram of round trips; the last bucket has none."""
NAK_REASONS = (*NAK_CODES, "reserved")
ECN_NAMES = ("not_ect", "ect1", "ect0", "ce")  # by the two bits of the IP header (RFC 3168)
ICRC_NAMES = ("unverified", "bad", "valid")
UNTAGGED = 8

SEQUENCE_COUNTS = tuple(field.name for field in fields(SequenceCounts))
"""What `sequences` counts per flow."""
LOSSLESS_DSCP = frozenset(range(24, 32))
"""DSCP values of priority 3 in the usual map, `priority = dscp / 8`."""
LOSSLESS_PRIORITY = frozenset({3})


class Block(NamedTuple):
    """Columns that belong together."""

    start: int
    size: int

    @property
    def columns(self) -> slice:
        """Their place in a row."""
        return slice(self.start, self.start + self.size)


_SIZES = {
    "operation_packets": len(GROUPS),
    "operation_bytes": len(GROUPS),
    "ecn": 4,
    "naks": len(NAK_REASONS),
    "rnr_naks": 1,
    "becn": 1,
    "icrc": len(ICRC_NAMES),
    "dscp": 64,
    "cnp_dscp": 64,
    "priority": UNTAGGED + 1,
    "version_1_priority": UNTAGGED + 1,
    "round_trips": len(ROUND_TRIP_BOUNDS) + 1,
    "round_trip_nanoseconds": 1,
    "duplicate_acks": 1,
    **dict.fromkeys(SEQUENCE_COUNTS, 1),
}
BLOCKS = dict(zip(_SIZES, map(Block, accumulate(_SIZES.values(), initial=0), _SIZES.values()), strict=True))
WIDTH = sum(block.size for block in BLOCKS.values())
NAMES = {
    "operation_packets": GROUPS,
    "ecn": ECN_NAMES,
    "naks": NAK_REASONS,
    "icrc": ICRC_NAMES,
    "round_trips": (*(f"{bound:g}" for bound in ROUND_TRIP_BOUNDS), "+Inf"),
}
"""What each column of a block counts."""


class LosslessMarks(NamedTuple):
    """What belongs to the lossless priorities."""

    dscp: frozenset[int] = LOSSLESS_DSCP
    priorities: frozenset[int] = LOSSLESS_PRIORITY
    """VLAN priorities, which decide for RoCE v1."""


class PairCounts:
    """One row of the table of pairs."""

    __slots__ = ("_row",)

    def __init__(self, row: Integers) -> None:
        self._row = row

    def block(self, name: str) -> list[int]:
        """The counts of one block of `BLOCKS`."""
        return [int(count) for count in self._row[BLOCKS[name].columns]]

    def one(self, name: str) -> int:
        """The count of a block of one column."""
        return int(self._row[BLOCKS[name].start])

    def named(self, name: str) -> dict[str, int]:
        """The counts of one block of `NAMES`."""
        return dict(zip(NAMES[name], self.block(name), strict=True))

    @property
    def packets(self) -> int:
        """All RoCE packets."""
        return sum(self.block("operation_packets"))

    @property
    def wire_bytes(self) -> int:
        """Bytes of their frames."""
        return sum(self.block("operation_bytes"))

    @property
    def cnps(self) -> int:
        """Congestion notification packets."""
        return self.named("operation_packets")["cnp"]

    def operations(self) -> dict[str, tuple[int, int]]:
        """Packets and bytes by group of operations."""
        counts = zip(self.block("operation_packets"), self.block("operation_bytes"), strict=True)
        return dict(zip(GROUPS, counts, strict=True))

    def sequences(self) -> dict[str, int]:
        """Counts of PSN sequences."""
        return {name: self.one(name) for name in SEQUENCE_COUNTS}

    def dscp(self, name: str = "dscp") -> dict[int, int]:
        """Packets of RoCE v2 by DSCP: all but CNPs, or with `cnp_dscp` those."""
        return {value: count for value, count in enumerate(self.block(name)) if count}

    def vlan_priorities(self) -> dict[str, int]:
        """Packets by VLAN priority, `untagged` without a tag."""
        counts = enumerate(self.block("priority"))
        return {"untagged" if value == UNTAGGED else str(value): count for value, count in counts if count}

    def outside_dscp(self, lossless: LosslessMarks) -> dict[int, int]:
        """Packets of RoCE v2 outside the lossless priorities, by DSCP."""
        return {value: count for value, count in self.dscp().items() if value not in lossless.dscp}

    def outside(self, lossless: LosslessMarks) -> int:
        """Packets outside the lossless priorities."""
        second = sum(self.outside_dscp(lossless).values())
        first = self.block("version_1_priority")
        return second + sum(count for value, count in enumerate(first) if value not in lossless.priorities)


OTHER = 0  # the row of all pairs that have none of their own
MOST_PAIRS = 8192


class KeyTable:
    """Numbers keys 1, 2, ... in the order of their appearance, up to a limit.

    Keys are found by a hash with constants that are random per process, so that no sender can make keys collide. Words
    are compared, so two keys never share a number.
    """

    def __init__(self, words: int, most: int) -> None:
        self._factors = np.frombuffer(os.urandom(8 * words), np.uint64) | np.uint64(1)
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
        self.born: NDArray[np.int64] = np.zeros(1, np.int64)
        """A number that is larger for each pair that is added later: one that was forgotten and comes back is another one."""
        self._added = 0
        self._used = 1

    def pairs(self) -> list[tuple[bytes, int]]:
        """Source and destination (16 bytes each) with the row of their counters."""
        return list(self._numbers.items())

    def number(self, addresses: bytes) -> int:
        """The row of a source and destination; OTHER while the table is full."""
        found = self._numbers.get(addresses)
        if found is not None:
            return found
        if self.full:
            return OTHER
        back = addresses[16:] + addresses[:16]
        first, second = self._used, self._used + (back != addresses)
        self._used = second + 1
        if (more := self._used - len(self.counts)) > 0:
            more += len(self.counts)
            for name in ("counts", "reverse", "_active", "born"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate((array, np.zeros((more, *array.shape[1:]), np.int64))))
        self._added += 1
        self.born[first] = self.born[second] = self._added
        self._numbers[addresses], self._numbers[back] = first, second
        self.reverse[first], self.reverse[second] = second, first
        return first

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
        self.counts, self._active, self.born = self.counts[rows], self._active[rows], self.born[rows]
        self.reverse = renamed[self.reverse[rows]]
        self._used = len(rows)
        self._numbers = {key: int(renamed[row]) for key, row in self._numbers.items() if renamed[row]}
        return renamed
