"""What a capture says to people: a table of the pairs, and a sentence for each thing that it shows to be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from roce_exporter.wire.decode.columns import address_text
from roce_exporter.wire.decode.infiniband import NAK_CODES
from roce_exporter.wire.wire_summary import FILTERED, PairSummary, WireSummary
from roce_exporter.words import counted, duration, few, share, some, table, wrapped

if TYPE_CHECKING:
    from os import terminal_size

    from roce_exporter.wire.tally.incasts import Incast

NAK_WORDS = dict(zip(NAK_CODES, ("lost packets", "an invalid request", "a remote access error", "an operation that failed",
                                 "an invalid RD request"), strict=True))  # fmt: skip
HEADINGS = ("source", "destination", "packets", "bytes", "CE", "CNPs back", "resent", "gaps", "NAKs back", "RNR back", "bad ICRC", "outside")  # fmt: skip
TEXT_COLUMNS = 2
INTERVAL_HEADINGS = ("from (UTC)", "packets", "bytes", "CE", "CNPs", "resent", "missing", "NAKs", "pauses")
AROUND = 5  # lines of a screen for the headline, the heading of the table and space


def _row(pair: PairSummary) -> tuple[str, ...]:
    """As HEADINGS."""
    counts, back = pair.counts, pair.back
    traffic = counts.packets, counts.wire_bytes, counts.named("ecn")["ce"], back.cnps
    losses = counts.one("retransmissions"), counts.one("gaps"), sum(back.block("naks")), back.one("rnr_naks")
    numbers = *traffic, *losses, counts.named("icrc")["bad"], pair.outside
    return pair.source, pair.destination, *map(_shown, numbers)


def _shown(number: float) -> str:
    return f"{number:,}" if number else "-"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S.%f")


def text_table(
    summary: WireSummary, top: int, dropped: int | None = None, width: int | None = None, fault: str = ""
) -> str:
    """What was captured in a line, the table, and the sentences; `fault`: why the input ended early."""
    parts = [
        counted(summary.frames, "frame"),
        counted(summary.roce, "RoCE packet"),
        counted(len(summary.pairs), "pair"),
        *([duration(summary.seconds)] if summary.first else ()),
        *([f"{dropped:,} dropped by the ring"] if dropped is not None else ()),
    ]
    rows = [_row(pair) for pair in summary.pairs[:top]]
    lines = [", ".join(parts), ""]
    if rows:
        lines += _counts([HEADINGS, *rows], 2 + TEXT_COLUMNS, range(TEXT_COLUMNS, len(HEADINGS)), width)
        if (left := len(summary.pairs) - len(rows)) > 0:
            more = counted(left, "pair that hurts less", "pairs that hurt less")
            lines.append(f"... and {more} (--top)")
        lines.append("")
    if summary.intervals:
        began = [_time(one.start).rstrip("0").rstrip(".") for one in summary.intervals]
        numbers = [tuple(map(_shown, one[1:])) for one in summary.intervals]
        intervals = [INTERVAL_HEADINGS, *((start, *row) for start, row in zip(began, numbers, strict=True))]
        lines += [*_counts(intervals, 3, range(1, len(INTERVAL_HEADINGS)), width), ""]
    said = sentences(summary, top, dropped) or (
        f"Nothing wrong was seen in {'what was read' if fault else 'these packets'}.",
    )
    return "\n".join(chain(lines, *(wrapped(one, width) for one in said))) + "\n"


def _counts(rows: list[tuple[str, ...]], always: int, right: range, width: int | None) -> list[str]:
    """A table without the columns behind the first `always` in which nothing was counted: so it fits a terminal."""
    kept = [at for at in range(len(rows[0])) if at < always or any(row[at] != "-" for row in rows[1:])]
    shown = [tuple(row[at] for at in kept) for row in rows]
    return table(shown, right=[place for place, at in enumerate(kept) if at in right], width=width)


def screen(summary: WireSummary, top: int, dropped: int | None, size: terminal_size) -> str:
    """What fits on a terminal: half of it at most for the pairs that hurt most, and the sentences."""
    pairs = max(1, min(top, (size.lines - AROUND) // 2))
    lines = text_table(summary, pairs, dropped, size.columns).splitlines()[: size.lines - 1]
    return "\n".join(line[: size.columns] for line in lines)


def sentences(summary: WireSummary, top: int, dropped: int | None = None) -> tuple[str, ...]:
    """The sentences about incasts, the first pairs and the pause frames, in the order of the pairs, and what could not be seen."""
    found: list[str] = []
    said: set[tuple[str, str]] = set()
    for incast in sorted(summary.incasts, key=lambda one: -one.marked)[:top]:
        receiver, senders = address_text(incast.receiver), {*map(address_text, incast.senders)}
        mine = [
            pair.source for pair in summary.pairs if pair.destination == receiver and pair.source in senders
        ]
        found.append(_incast(incast, receiver, mine))
        said |= {(sender, receiver) for sender in mine}
    for pair in summary.pairs[:top]:
        if (pair.source, pair.destination) not in said:
            found += _marks(pair, summary.seconds)
        found += _losses(pair)
    for one in summary.pauses[:top]:
        if one.counts.xoff:
            what = "all traffic" if one.priority is None else f"priority {one.priority}"
            frames = counted(one.counts.xoff, "pause frame")
            found.append(f"{one.sender} pauses {what} of its neighbor: {frames}")
    if summary.copies:
        packets = counted(summary.copies, "packet")
        found.append(f"{packets} captured twice, as by a mirror of ingress and egress: counted once")
    return (*found, *unseen(summary, dropped))


def _incast(one: Incast, receiver: str, senders: list[str]) -> str:
    """`senders`: those that hurt most come first."""
    began = _time(one.first / 1e9)[:-3]
    again = f", {one.retransmissions:,} sent again" if one.retransmissions else ""
    return (
        f"incast to {receiver} at {began} UTC for {duration((one.last - one.first) / 1e9)}: {len(one.senders)} senders ({few(senders, 3)}),"
        f" {share(one.marked / one.packets)} of {counted(one.packets, 'packet')} marked CE{again}"
    )


def unseen(summary: WireSummary, dropped: int | None = None, fault: str = "") -> Iterator[str]:
    """What the counts lack, so that none of them says that nothing is wrong; `fault`: why the input ended early."""
    if fault:
        yield fault
    if dropped:
        yield f"{counted(dropped, 'frame')} dropped by the ring, so the counts are too low: give FILTERs or a faster processor"
    if summary.undecoded:
        named = ", ".join(some(count, name) for name, count in summary.undecoded.items())
        none = "" if summary.roce else "No RoCE packet was seen. "
        yield f"{none}Left out, because they are not decoded: {named}"
    elif left := 0 if summary.roce else summary.others.get(FILTERED, 0):
        yield f"No RoCE packet passes the filter, which left out {left:,}"
    elif not summary.roce and not summary.pauses:
        named = ", ".join(f"{count:,} {name}" for name, count in summary.others.items())
        yield f"No RoCE packet was seen{f' ({named})' if named else ''}. NICs bypass the kernel: capture on a mirror port, or with the sniffer of the NIC; see docs/wire.md."


def _marks(pair: PairSummary, seconds: float) -> Iterator[str]:
    during = f" in {duration(seconds)}" if seconds > 0 else ""
    ce = pair.counts.named("ecn")["ce"]
    if pair.back.cnps:
        marked = f", {share(ce / pair.counts.packets)} of its packets arrive marked" if ce else ""
        yield (f"{pair.source} congests {pair.destination}: {counted(pair.back.cnps, 'CNP')}{during}{marked}")
    elif ce:
        yield f"{pair.source} to {pair.destination}: {counted(ce, 'packet')} marked CE ({share(ce / pair.counts.packets)}), and no CNP was captured in reply"


def _losses(pair: PairSummary) -> Iterator[str]:
    name = f"{pair.source} to {pair.destination}"
    again, gaps = pair.counts.one("retransmissions"), pair.counts.one("gaps")
    if again:
        yield f"{pair.source} retransmits to {pair.destination}: {counted(again, 'packet')} ({share(again / pair.counts.packets)})"
    if gaps:
        missing = pair.counts.one("missing")
        yield f"{name}: {counted(missing, 'packet')} missing in {counted(gaps, 'gap')}, lost or delayed before the capture"
    if unseen := pair.counts.one("not_captured"):
        yield f"{name}: {counted(unseen, 'packet')} not captured: {pair.destination} acknowledged them, so the mirror lost them and the network did not"
    for reason, count in pair.back.named("naks").items():
        if count:
            yield f"{pair.destination} refuses packets of {pair.source}: {counted(count, 'NAK')} for {NAK_WORDS.get(reason, 'a reserved code')}"
    if rnr := pair.back.one("rnr_naks"):
        yield f"{pair.destination} has no receive buffers for {pair.source}: {counted(rnr, 'RNR NAK')}"
    if bad := pair.counts.named("icrc")["bad"]:
        yield f"{name}: {counted(bad, 'packet')} with a wrong ICRC, corrupted between the NICs"
    if pair.outside:
        used = ", ".join(str(value) for value in pair.outside_dscp)
        yield (
            f"{name}: {counted(pair.outside, 'packet')} outside the lossless priority"
            f" ({share(pair.outside / pair.counts.packets)})" + (f", DSCP {used}" if used else "")
        )
