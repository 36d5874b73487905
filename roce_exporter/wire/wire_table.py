"""The table of `roce-exporter wire`, as plain text and as rows for the live display."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.wire.sentences import sentences
from roce_exporter.words import counted, table

if TYPE_CHECKING:
    from roce_exporter.wire.wire_summary import PairSummary, WireSummary

HEADINGS = ("source", "destination", "packets", "bytes", "CE", "CNPs back", "resent", "gaps", "NAKs back", "RNR back", "bad ICRC", "outside")  # fmt: skip
TEXT_COLUMNS = 2


def table_rows(summary: WireSummary, top: int) -> list[tuple[str, ...]]:
    """One row of HEADINGS per pair, those that hurt most first."""
    return [_row(pair) for pair in summary.pairs[:top]]


def _row(pair: PairSummary) -> tuple[str, ...]:
    counts, back = pair.counts, pair.back
    numbers = (
        counts.packets,
        counts.wire_bytes,
        counts.ecn()["ce"],
        back.cnps,
        counts.one("retransmissions"),
        counts.one("gaps"),
        sum(back.naks().values()),
        back.one("rnr_naks"),
        counts.icrc()["bad"],
        pair.outside,
    )
    return pair.source, pair.destination, *(f"{number:,}" if number else "-" for number in numbers)


def headline(summary: WireSummary, dropped: int | None) -> str:
    """What was captured, in a line."""
    parts = [
        counted(summary.frames, "frame"),
        counted(summary.roce, "RoCE packet"),
        counted(len(summary.pairs), "pair"),
    ]
    if summary.first:
        parts.append(f"{summary.seconds:.1f} s")
    if dropped is not None:
        parts.append(f"{dropped:,} dropped by the ring")
    return ", ".join(parts)


def text_table(summary: WireSummary, top: int, dropped: int | None = None, width: int | None = None) -> str:
    """Headline, table, and the sentences."""
    rows = table_rows(summary, top)
    lines = [headline(summary, dropped), ""]
    if rows:
        lines += table([HEADINGS, *rows], right=range(TEXT_COLUMNS, len(HEADINGS)), width=width)
        if (left := len(summary.pairs) - len(rows)) > 0:
            lines.append(f"... and {left:,} pairs that hurt less (--top)")
        lines.append("")
    return "\n".join([*lines, *(sentences(summary, top) or [_nothing(summary)])]) + "\n"


def _nothing(summary: WireSummary) -> str:
    if summary.roce:
        return "Nothing wrong was seen in these packets."
    return "No RoCE packet was seen. NICs bypass the kernel: capture on a mirror port, or with the sniffer of the NIC; see docs/wire.md."
