"""Which column of the table of pairs counts what."""

from __future__ import annotations

from typing import NamedTuple

from roce_exporter.wire.decode.infiniband import NAK_CODES
from roce_exporter.wire.decode.opcodes import GROUPS

ROUND_TRIP_BOUNDS = (2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 0.05, 1.0)
"""Upper bounds in seconds of the histogram of round trips; the last bucket has none."""
NAK_REASONS = (*NAK_CODES, "reserved")
ECN_NAMES = ("not_ect", "ect1", "ect0", "ce")
"""By the two bits of the IP header (RFC 3168)."""
ICRC_NAMES = ("unverified", "bad", "valid")
UNTAGGED = 8

SEQUENCE_COUNTS = (
    "retransmissions",
    "gaps",
    "missing",
    "duplicate_requests",
    "out_of_sequence",
    "go_back_n",
    "selective",
    "restarts",
)
"""What `sequences` counts per flow."""


class Block(NamedTuple):
    """Columns that belong together."""

    start: int
    size: int

    @property
    def columns(self) -> slice:
        """Their place in a row."""
        return slice(self.start, self.start + self.size)


def _blocks(sizes: dict[str, int]) -> dict[str, Block]:
    found, start = {}, 0
    for name, size in sizes.items():
        found[name] = Block(start, size)
        start += size
    return found


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
