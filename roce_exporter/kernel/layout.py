"""Answers that differ from the last one in their numbers only, read at a glance."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from roce_exporter.kernel.netlink import decode_number

_VALUE_BYTES = 8

Spans = dict[str, tuple[int, int] | None]
"""Per name, where in the answer its number starts and ends; None where the row has no number."""


class Layout(NamedTuple):
    """Where the values are in an answer whose other bytes are known: `fixed` and values take turns in `shape`."""

    shape: Struct
    fixed: tuple[bytes, ...]
    names: tuple[str, ...]


def decode_present_numbers(answer: bytes, rows: Spans) -> dict[str, int]:
    """Name to number, of the rows that have one.

    Raises:
        Malformed: a number of an unknown width.
    """
    return {name: decode_number(answer[span[0] : span[1]]) for name, span in rows.items() if span}


def learn_layout(answer: bytes, rows: Spans) -> Layout | None:
    """How to read the next answer like this one at a glance; None where a value is not 64 bits wide, or a name told twice."""
    formats, fixed, position = ["="], [], 0
    for span in rows.values():
        if span is None or span[1] - span[0] != _VALUE_BYTES:
            return None
        start, end = span
        if start < position:
            return None
        formats.append(f"{start - position}sQ")
        fixed.append(answer[position:start])
        position = end
    formats.append(f"{len(answer) - position}s")
    fixed.append(answer[position:])
    return Layout(Struct("".join(formats)), tuple(fixed), tuple(rows))


def read_by_layout(answer: bytes, layout: Layout) -> dict[str, int] | None:
    """Name to number; None where anything but the values differs from what the layout was learnt from."""
    if len(answer) != layout.shape.size:
        return None
    parts = layout.shape.unpack(answer)
    return dict(zip(layout.names, parts[1::2], strict=True)) if parts[::2] == layout.fixed else None
