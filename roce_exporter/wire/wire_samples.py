"""The counts of the wire as samples of the catalogue's rows: of the pairs that have series of their own, and of all others together.

A pair enters with counts from 0, and what it counted before stays in `other`; what a pair counted that leaves is remembered. So no
counter ever falls, except where a series ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from roce_exporter.catalog import INDEX
from roce_exporter.normalise.series import Series, Value
from roce_exporter.wire.decode.columns import address_text
from roce_exporter.wire.frames import Integers
from roce_exporter.wire.tally.pair_counts import BLOCKS, WIDTH, LosslessMarks, PairCounts, PairTable
from roce_exporter.wire.tally.tally import GLOBAL, Tally
from roce_exporter.wire.wire_summary import OTHER_NAME

Sample = tuple[Series, "Value"]

SIMPLE = ("rnr_naks", "retransmitted_packets", "sequence_gaps", "duplicate_acks")
OF_SIMPLE = ("rnr_naks", "retransmissions", "gaps", "duplicate_acks")
"""Metrics of one counter, and that counter."""
ROUND_TRIP = "acknowledge_seconds"
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
        # Packets of late: half of the last score and those since the last scrape.
        packets = table.counts[:, BLOCKS["operation_packets"].columns].sum(axis=1)
        now = {key: int(packets[row]) for key, row in rows.items() if packets[row]}
        self._recent = {
            key: self._recent.get(key, 0) / 2 + max(0, count - self._packets.get(key, 0))
            for key, count in now.items()
        }
        self._packets = now
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
    for (sender, priority), counts in sorted(tally.link.pauses.items()):
        name, labels = ("global_pause", (sender,)) if priority == GLOBAL else ("pfc", (sender, str(priority)))
        found.append((_series(f"{name}_frames_total", *labels), counts.xoff))
    for one in tally.link.neighbours.values():
        found.append((_series("neighbor_info", one.source, one.chassis, one.port, one.name), 1))
    found.append((_series("capture_frames_total"), tally.frames))
    if dropped is not None:
        found.append((_series("capture_dropped_frames_total"), dropped))
    found.append((_series("pairs"), len(tally.pairs.pairs())))
    return found


def _series(name: str, *labels: str, part: str = "") -> Series:
    return Series(INDEX.named[f"roce_wire_{name}"], labels, part)


def _pair(labels: tuple[str, ...], counts: PairCounts, lossless: LosslessMarks) -> Iterator[Sample]:
    """Operations and reasons that a pair has never had have no series; plain counters have, from 0 on."""
    for name, (packets, size) in counts.operations().items():
        if packets:
            yield _series("packets_total", *labels, name), packets
            yield _series("bytes_total", *labels, name), size
    for name, count in counts.named("ecn").items():
        yield _series("ecn_packets_total", *labels, name), count
    yield _series("cnps_total", *labels), counts.cnps
    for name, count in counts.named("naks").items():
        if count:
            yield _series("naks_total", *labels, name), count
    for name, counter in zip(SIMPLE, OF_SIMPLE, strict=True):
        yield _series(f"{name}_total", *labels), counts.one(counter)
    yield _series("outside_lossless_packets_total", *labels), counts.outside(lossless)
    yield _series("bad_icrc_packets_total", *labels), counts.named("icrc")["bad"]
    if total := sum(counts.block("round_trips")):
        buckets = counts.named("round_trips")
        for name, count in zip(buckets, accumulate(buckets.values()), strict=True):
            yield _series(ROUND_TRIP, *labels, name, part="_bucket"), count
        yield _series(ROUND_TRIP, *labels, "", part="_sum"), counts.one("round_trip_nanoseconds") / 1e9
        yield _series(ROUND_TRIP, *labels, "", part="_count"), total
