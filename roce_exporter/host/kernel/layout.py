"""Fast path for replies whose layout has not changed since the last one: only the values are unpacked."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from roce_exporter.host.kernel.netlink import decode_number

_VALUE_BYTES = 8

Spans = dict[str, tuple[int, int] | None]
"""Per name, start and end of its number in the reply; None if the row has no number."""


class Layout(NamedTuple):
    """The positions of values in a reply whose other bytes are known: `fixed` parts and values alternate in `shape`."""

    shape: Struct
    fixed: tuple[bytes, ...]
    names: tuple[str, ...]


def decode_present_numbers(answer: bytes, rows: Spans) -> dict[str, int]:
    """Name to number, for the rows with a number.

    Raises:
        Malformed: a number of an unknown width.
    """
    return {name: decode_number(answer[span[0] : span[1]]) for name, span in rows.items() if span}


def learn_layout(answer: bytes, rows: Spans) -> Layout | None:
    """The layout of this reply; None if a value is not 64 bits wide, or a name occurs twice."""
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
    """Name to number; None if anything but the values differs from the reply that the layout was learnt from."""
    if len(answer) != layout.shape.size:
        return None
    parts = layout.shape.unpack(answer)
    return dict(zip(layout.names, parts[1::2], strict=True)) if parts[::2] == layout.fixed else None
