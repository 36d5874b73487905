"""A sentence for each thing that a capture shows to be wrong: who does what to whom, with the counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.wire.decode.infiniband import NAK_CODES
from roce_exporter.words import counted, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.wire.wire_summary import PairSummary, PauseSummary, WireSummary

NAK_WORDS = dict(zip(NAK_CODES, ("lost packets", "an invalid request", "a remote access error", "an operation that failed",
                                 "an invalid RD request"), strict=True))  # fmt: skip


def sentences(summary: WireSummary, top: int) -> tuple[str, ...]:
    """The sentences about the first pairs and the pause frames, in the order of the pairs."""
    found: list[str] = []
    for pair in summary.pairs[:top]:
        found += _about(pair, summary.seconds)
    found += [_pause(one) for one in summary.pauses[:top] if one.counts.xoff]
    return tuple(found)


def _about(pair: PairSummary, seconds: float) -> Iterator[str]:
    name = f"{pair.source} to {pair.destination}"
    during = f" in {duration(seconds)}" if seconds > 0 else ""
    ce = pair.counts.ecn()["ce"]
    if pair.back.cnps:
        marked = f", {share(ce / pair.counts.packets)} of its packets arrive marked" if ce else ""
        yield (f"{pair.source} congests {pair.destination}: {counted(pair.back.cnps, 'CNP')}{during}{marked}")
    elif ce:
        yield f"{name}: {counted(ce, 'packet')} marked CE ({share(ce / pair.counts.packets)}), and no CNP was captured in reply"
    yield from _losses(pair, name)
    if pair.outside:
        used = ", ".join(str(value) for value in pair.outside_dscp)
        yield (
            f"{name}: {counted(pair.outside, 'packet')} outside the lossless priority"
            f" ({share(pair.outside / pair.counts.packets)})" + (f", DSCP {used}" if used else "")
        )


def _losses(pair: PairSummary, name: str) -> Iterator[str]:
    again, gaps = pair.counts.one("retransmissions"), pair.counts.one("gaps")
    if again:
        yield f"{pair.source} retransmits to {pair.destination}: {counted(again, 'packet')} ({share(again / pair.counts.packets)})"
    if gaps:
        missing = pair.counts.one("missing")
        yield f"{name}: {counted(missing, 'packet')} missing in {counted(gaps, 'gap')}, lost or delayed before the capture"
    for reason, count in pair.back.naks().items():
        if count:
            yield f"{pair.destination} refuses packets of {pair.source}: {counted(count, 'NAK')} for {NAK_WORDS.get(reason, 'a reserved code')}"
    if rnr := pair.back.one("rnr_naks"):
        yield f"{pair.destination} has no receive buffers for {pair.source}: {counted(rnr, 'RNR NAK')}"
    if bad := pair.counts.icrc()["bad"]:
        yield f"{name}: {counted(bad, 'packet')} with a wrong ICRC, corrupted between the NICs"


def _pause(one: PauseSummary) -> str:
    what = "all traffic" if one.priority is None else f"priority {one.priority}"
    return f"{one.sender} pauses {what} of its neighbor: {counted(one.counts.xoff, 'pause frame')}"
