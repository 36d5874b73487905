"""The counts of the wire as samples of the catalogue's rows."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from roce_exporter.catalog import wire
from roce_exporter.normalise.series import Series
from roce_exporter.wire.decode.columns import address_text
from roce_exporter.wire.tally.link_events import GLOBAL
from roce_exporter.wire.tally.pair_counts import ROUND_TRIP_BOUNDS, PairCounts
from roce_exporter.wire.wire_summary import OTHER_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.normalise.series import Value
    from roce_exporter.wire.shown_pairs import ShownPair
    from roce_exporter.wire.tally.pair_counts import LosslessMarks
    from roce_exporter.wire.tally.tally import Tally

Sample = tuple[Series, "Value"]

SIMPLE = (
    (wire.RNR_NAKS, "rnr_naks"),
    (wire.RETRANSMISSIONS, "retransmissions"),
    (wire.GAPS, "gaps"),
    (wire.DUPLICATE_ACKS, "duplicate_acks"),
)


def wire_samples(
    tally: Tally, shown: Sequence[ShownPair], lossless: LosslessMarks, dropped: int | None
) -> list[Sample]:
    """The samples of one scrape; `dropped` is None where the input cannot drop frames."""
    found: list[Sample] = []
    for pair in shown:
        found += _pair(_labels(pair.key), PairCounts(pair.counts), lossless)
    found += _link(tally)
    found.append((Series(wire.FRAMES, ()), tally.frames))
    if dropped is not None:
        found.append((Series(wire.DROPPED, ()), dropped))
    found.append((Series(wire.PAIRS, ()), len(tally.pairs.pairs())))
    return found


def _labels(key: bytes) -> tuple[str, str]:
    return (address_text(key[:16]), address_text(key[16:])) if key else (OTHER_NAME, OTHER_NAME)


def _pair(labels: tuple[str, str], counts: PairCounts, lossless: LosslessMarks) -> Iterator[Sample]:
    """Operations and reasons that a pair has never had have no series; plain counters have, from 0 on."""
    for name, (packets, size) in counts.operations().items():
        if packets:
            yield Series(wire.PACKETS, (*labels, name)), packets
            yield Series(wire.BYTES, (*labels, name)), size
    for name, count in counts.ecn().items():
        yield Series(wire.ECN, (*labels, name)), count
    yield Series(wire.CNPS, labels), counts.cnps
    for name, count in counts.naks().items():
        if count:
            yield Series(wire.NAKS, (*labels, name)), count
    for row, name in SIMPLE:
        yield Series(row, labels), counts.one(name)
    yield Series(wire.OUTSIDE_LOSSLESS, labels), counts.outside(lossless)
    yield Series(wire.BAD_ICRC, labels), counts.icrc()["bad"]
    yield from _round_trips(labels, counts)


def _round_trips(labels: tuple[str, str], counts: PairCounts) -> Iterator[Sample]:
    buckets = list(accumulate(counts.block("round_trips")))
    if not buckets[-1]:
        return
    names = [*(f"{bound:g}" for bound in ROUND_TRIP_BOUNDS), "+Inf"]
    for name, count in zip(names, buckets, strict=True):
        yield Series(wire.ROUND_TRIP, (*labels, name), "_bucket"), count
    yield Series(wire.ROUND_TRIP, (*labels, ""), "_sum"), counts.one("round_trip_nanoseconds") / 1e9
    yield Series(wire.ROUND_TRIP, (*labels, ""), "_count"), buckets[-1]


def _link(tally: Tally) -> Iterator[Sample]:
    for (sender, priority), counts in sorted(tally.link.pauses.items()):
        if priority == GLOBAL:
            yield Series(wire.PAUSE_FRAMES, (sender,)), counts.xoff
        else:
            yield Series(wire.PFC_FRAMES, (sender, str(priority))), counts.xoff
    for one in tally.link.neighbours.values():
        yield Series(wire.NEIGHBOR, (one.source, one.chassis, one.port, one.name)), 1
