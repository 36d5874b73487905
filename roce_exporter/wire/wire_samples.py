"""The counts of the wire as samples of the catalogue's rows: of the pairs that have series of their own, and of all others together.

A pair enters with counts from 0, and what it counted before stays in `other`; what a pair counted that leaves is remembered. So no
counter ever falls, except where a series ends.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.catalog import INDEX
from roce_exporter.normalise.series import Series
from roce_exporter.wire.decode.columns import address_text
from roce_exporter.wire.tally.pair_counts import BLOCKS, ROUND_TRIP_BOUNDS, WIDTH, PairCounts
from roce_exporter.wire.tally.tally import GLOBAL
from roce_exporter.wire.wire_summary import OTHER_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.normalise.series import Value
    from roce_exporter.wire.frames import Integers
    from roce_exporter.wire.tally.key_tables import PairTable
    from roce_exporter.wire.tally.pair_counts import LosslessMarks
    from roce_exporter.wire.tally.tally import Tally

Sample = tuple[Series, "Value"]

ROWS = INDEX.named

PACKETS = ROWS["roce_wire_packets_total"]
BYTES = ROWS["roce_wire_bytes_total"]
ECN = ROWS["roce_wire_ecn_packets_total"]
CNPS = ROWS["roce_wire_cnps_total"]
NAKS = ROWS["roce_wire_naks_total"]
RNR_NAKS = ROWS["roce_wire_rnr_naks_total"]
RETRANSMISSIONS = ROWS["roce_wire_retransmitted_packets_total"]
GAPS = ROWS["roce_wire_sequence_gaps_total"]
DUPLICATE_ACKS = ROWS["roce_wire_duplicate_acks_total"]
OUTSIDE_LOSSLESS = ROWS["roce_wire_outside_lossless_packets_total"]
BAD_ICRC = ROWS["roce_wire_bad_icrc_packets_total"]
ROUND_TRIP = ROWS["roce_wire_acknowledge_seconds"]
PFC_FRAMES = ROWS["roce_wire_pfc_frames_total"]
PAUSE_FRAMES = ROWS["roce_wire_global_pause_frames_total"]
NEIGHBOR = ROWS["roce_wire_neighbor_info"]
FRAMES = ROWS["roce_wire_capture_frames_total"]
DROPPED = ROWS["roce_wire_capture_dropped_frames_total"]
PAIRS = ROWS["roce_wire_pairs"]

SIMPLE = (
    (RNR_NAKS, "rnr_naks"),
    (RETRANSMISSIONS, "retransmissions"),
    (GAPS, "gaps"),
    (DUPLICATE_ACKS, "duplicate_acks"),
)
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
        self._born: dict[bytes, int] = {}
        """`PairTable.born` of each shown pair."""
        self._last: dict[bytes, Integers] = {}
        """What each shown pair counted at the last scrape."""
        self._retired = np.zeros(WIDTH, np.int64)
        self._packets: dict[bytes, int] = {}
        self._recent: dict[bytes, float] = {}

    def choose(self, table: PairTable) -> list[ShownPair]:
        """The pairs that sent most recently, and all others together, with the counts to export."""
        rows = dict(table.pairs())
        self._score(table, rows)
        for key, born in list(self._born.items()):
            if key not in rows or table.born[rows[key]] != born:
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
            self._born[key] = int(table.born[rows[key]])
            self._bases[key] = np.zeros(WIDTH, np.int64) if first else table.counts[rows[key]].copy()

    def _retire(self, key: bytes) -> None:
        del self._bases[key], self._born[key]
        self._retired += self._last.pop(key, 0)


def wire_samples(
    tally: Tally, shown: Sequence[ShownPair], lossless: LosslessMarks, dropped: int | None
) -> list[Sample]:
    """The samples of one scrape; `dropped` is None where the input cannot drop frames."""
    found: list[Sample] = []
    for pair in shown:
        ends = (pair.key[:16], pair.key[16:]) if pair.key else ()
        labels = tuple(map(address_text, ends)) or (OTHER_NAME, OTHER_NAME)
        found += _pair(labels, PairCounts(pair.counts), lossless)
    found += _link(tally)
    found.append((Series(FRAMES, ()), tally.frames))
    if dropped is not None:
        found.append((Series(DROPPED, ()), dropped))
    found.append((Series(PAIRS, ()), len(tally.pairs.pairs())))
    return found


def _pair(labels: tuple[str, ...], counts: PairCounts, lossless: LosslessMarks) -> Iterator[Sample]:
    """Operations and reasons that a pair has never had have no series; plain counters have, from 0 on."""
    for name, (packets, size) in counts.operations().items():
        if packets:
            yield Series(PACKETS, (*labels, name)), packets
            yield Series(BYTES, (*labels, name)), size
    for name, count in counts.ecn().items():
        yield Series(ECN, (*labels, name)), count
    yield Series(CNPS, labels), counts.cnps
    for name, count in counts.naks().items():
        if count:
            yield Series(NAKS, (*labels, name)), count
    for row, name in SIMPLE:
        yield Series(row, labels), counts.one(name)
    yield Series(OUTSIDE_LOSSLESS, labels), counts.outside(lossless)
    yield Series(BAD_ICRC, labels), counts.icrc()["bad"]
    yield from _round_trips(labels, counts)


def _round_trips(labels: tuple[str, ...], counts: PairCounts) -> Iterator[Sample]:
    buckets = list(accumulate(counts.block("round_trips")))
    if not buckets[-1]:
        return
    names = [*(f"{bound:g}" for bound in ROUND_TRIP_BOUNDS), "+Inf"]
    for name, count in zip(names, buckets, strict=True):
        yield Series(ROUND_TRIP, (*labels, name), "_bucket"), count
    yield Series(ROUND_TRIP, (*labels, ""), "_sum"), counts.one("round_trip_nanoseconds") / 1e9
    yield Series(ROUND_TRIP, (*labels, ""), "_count"), buckets[-1]


def _link(tally: Tally) -> Iterator[Sample]:
    for (sender, priority), counts in sorted(tally.link.pauses.items()):
        if priority == GLOBAL:
            yield Series(PAUSE_FRAMES, (sender,)), counts.xoff
        else:
            yield Series(PFC_FRAMES, (sender, str(priority))), counts.xoff
    for one in tally.link.neighbours.values():
        yield Series(NEIGHBOR, (one.source, one.chassis, one.port, one.name)), 1
