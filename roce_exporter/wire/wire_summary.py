"""What a capture says: pairs of addresses, ordered by how much they hurt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from roce_exporter.wire.decode.columns import address_text
from roce_exporter.wire.decode.link_frames import LinkNeighbour
from roce_exporter.wire.decode.locate import may_hide
from roce_exporter.wire.tally.incasts import Incast
from roce_exporter.wire.tally.pair_counts import OTHER, LosslessMarks, PairCounts
from roce_exporter.wire.tally.tally import GLOBAL, Tally, WirePauseCounts

OTHER_NAME = "other"
FILTERED = "RoCE packets that the filter leaves out"


@dataclass(frozen=True, slots=True)
class PairSummary:
    """One direction between two addresses."""

    source: str
    destination: str
    counts: PairCounts
    back: PairCounts
    """The opposite direction: CNPs and NAKs about this one."""
    outside: int
    """Packets outside the lossless priorities."""
    outside_dscp: tuple[int, ...]
    """Their DSCPs; none for RoCE v1."""

    @property
    def hurt(self) -> tuple[int, int, int, int]:
        """The order of pairs: packets about trouble that it caused or had, marks, wrong priority, packets."""
        back = self.back
        naks = sum(back.block("naks")) + back.one("rnr_naks")
        trouble = back.cnps + self.counts.one("retransmissions") + naks + self.counts.named("icrc")["bad"]
        return trouble, self.counts.named("ecn")["ce"], self.outside, self.counts.packets


@dataclass(frozen=True, slots=True)
class PauseSummary:
    """Pause frames of one sender."""

    sender: str
    priority: int | None
    """None: global pause."""
    counts: WirePauseCounts


class Interval(NamedTuple):
    """What was captured in an interval."""

    start: float
    """Seconds since 1970."""
    packets: int
    bytes: int
    ce: int
    cnps: int
    retransmissions: int
    missing: int
    naks: int
    """With those of a receiver that is not ready."""
    pauses: int
    """Frames that pause a priority or all traffic."""


@dataclass(frozen=True, slots=True)
class WireSummary:
    """A capture, or a live capture up to now."""

    frames: int
    roce: int
    first: int
    """Nanoseconds since 1970; 0: no frame has a valid time."""
    last: int
    pairs: tuple[PairSummary, ...]
    """All of them; the first hurts most."""
    pauses: tuple[PauseSummary, ...]
    neighbours: tuple[LinkNeighbour, ...]
    copies: int
    """Packets that were captured before, and are not counted again."""
    others: dict[str, int]
    """Frames of other kinds, by what they are, the most first."""
    incasts: tuple[Incast, ...]
    """In the order of their beginning."""
    intervals: tuple[Interval, ...]
    queues: dict[tuple[str, str], dict[int, list[int]]]
    """Counts by pair and destination QP, as `Tally.queue_pairs`."""

    @property
    def undecoded(self) -> dict[str, int]:
        """Frames that may hold RoCE packets that are not decoded, by what they are."""
        return {name: count for name, count in self.others.items() if may_hide(name)}

    @property
    def seconds(self) -> float:
        """Time from the first to the last frame."""
        return (self.last - self.first) / 1e9


def summarise(
    tally: Tally, lossless: LosslessMarks, intervals: Iterable[Interval] = (), *, queues: bool = False
) -> WireSummary:
    """The counts now."""
    tally.incasts.end_batch(tally.pairs)
    table = tally.pairs
    names = {OTHER: (OTHER_NAME, OTHER_NAME)} | {
        row: (address_text(key[:16]), address_text(key[16:])) for key, row in table.pairs()
    }
    counts = {row: PairCounts(table.counts[row].copy()) for row in names}
    found = []
    for row, name in names.items():
        mine, back = counts[row], counts[int(table.reverse[row])]
        # Replies can be about a direction of which no packet was captured: a mirror of one direction only.
        if mine.packets or back.cnps or back.one("rnr_naks") or sum(back.block("naks")):
            outside = mine.outside(lossless), tuple(mine.outside_dscp(lossless))
            found.append(PairSummary(*name, mine, back, *outside))
    by_queue: dict[tuple[str, str], dict[int, list[int]]] = {}
    for pair, queue, row_counts in tally.queue_pairs() if queues else ():
        by_queue.setdefault(names[pair], {})[queue] = row_counts.tolist()
    pauses = (
        PauseSummary(sender, None if priority == GLOBAL else priority, one)
        for (sender, priority), one in tally.link.pauses.items()
    )
    return WireSummary(
        *(tally.frames, tally.roce, tally.first, tally.last),
        tuple(sorted(found, key=lambda one: one.hurt, reverse=True)),
        tuple(sorted(pauses, key=lambda one: one.counts.frames, reverse=True)),
        tuple(tally.link.neighbours.values()),
        tally.copies,
        dict(tally.others.most_common()),
        tuple(tally.incasts.found),
        tuple(intervals),
        by_queue,
    )
