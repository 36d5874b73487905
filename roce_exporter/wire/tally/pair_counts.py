"""The counters of one pair of addresses: which column of the table of pairs counts what, and the counts by name."""

from __future__ import annotations

from dataclasses import fields
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.wire.decode.infiniband import NAK_CODES
from roce_exporter.wire.decode.opcodes import GROUPS
from roce_exporter.wire.tally.sequences import SequenceCounts

if TYPE_CHECKING:
    from roce_exporter.wire.frames import Integers

ROUND_TRIP_BOUNDS = (2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 0.05, 1.0)
"""Upper bounds in seconds of the histogram of round trips; the last bucket has none."""
NAK_REASONS = (*NAK_CODES, "reserved")
ECN_NAMES = ("not_ect", "ect1", "ect0", "ce")
"""By the two bits of the IP header (RFC 3168)."""
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


def _blocks(sizes: dict[str, int]) -> dict[str, Block]:
    starts = accumulate(sizes.values(), initial=0)
    return {name: Block(start, size) for (name, size), start in zip(sizes.items(), starts, strict=False)}


BLOCKS = _blocks(
    {
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
)
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
