"""A sentence for each thing that a capture shows to be wrong: who does what to whom, with the counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.wire.decode.infiniband import NAK_CODES

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
    ce = pair.counts.ecn()["ce"]
    if pair.back.cnps:
        marked = f", {_share(ce, pair.counts.packets)} of its packets arrive marked" if ce else ""
        yield (
            f"{pair.source} congests {pair.destination}: {_many(pair.back.cnps, 'CNP')}{_during(seconds)}{marked}"
        )
    elif ce:
        yield f"{name}: {_many(ce, 'packet')} marked CE ({_share(ce, pair.counts.packets)}), and no CNP was captured in reply"
    yield from _losses(pair, name)
    if pair.outside:
        used = ", ".join(str(value) for value in pair.outside_dscp)
        yield (
            f"{name}: {_many(pair.outside, 'packet')} outside the lossless priority"
            f" ({_share(pair.outside, pair.counts.packets)})" + (f", DSCP {used}" if used else "")
        )


def _losses(pair: PairSummary, name: str) -> Iterator[str]:
    again, gaps = pair.counts.one("retransmissions"), pair.counts.one("gaps")
    if again:
        yield f"{pair.source} retransmits to {pair.destination}: {_many(again, 'packet')} ({_share(again, pair.counts.packets)})"
    if gaps:
        missing = pair.counts.one("missing")
        yield f"{name}: {_many(missing, 'packet')} missing in {_many(gaps, 'gap')}, lost or delayed before the capture"
    for reason, count in pair.back.naks().items():
        if count:
            yield f"{pair.destination} refuses packets of {pair.source}: {_many(count, 'NAK')} for {NAK_WORDS.get(reason, 'a reserved code')}"
    if rnr := pair.back.one("rnr_naks"):
        yield f"{pair.destination} has no receive buffers for {pair.source}: {_many(rnr, 'RNR NAK')}"
    if bad := pair.counts.icrc()["bad"]:
        yield f"{name}: {_many(bad, 'packet')} with a wrong ICRC, corrupted between the NICs"


def _pause(one: PauseSummary) -> str:
    what = "all traffic" if one.priority is None else f"priority {one.priority}"
    return f"{one.sender} pauses {what} of its neighbor: {_many(one.counts.xoff, 'pause frame')}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _share(count: int, whole: int) -> str:
    """A percentage without a false 0 or 100."""
    percent = 100 * count / whole
    if count and percent < 1:
        return "less than 1 %"
    if count < whole and percent > 99:  # noqa: PLR2004 - per cent
        return "more than 99 %"
    return f"{percent:.0f} %"


def _during(seconds: float) -> str:
    if seconds <= 0:
        return ""
    return f" in {seconds:.0f} s" if seconds >= 10 else f" in {seconds:.2g} s"  # noqa: PLR2004 - two digits
