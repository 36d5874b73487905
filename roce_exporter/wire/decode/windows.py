"""Bytes at the same distance from many offsets, read at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bytes: TypeAlias = "NDArray[np.uint8]"
Integers: TypeAlias = "NDArray[np.int64]"
Flags: TypeAlias = "NDArray[np.bool_]"


def window(data: Bytes, offsets: Integers, width: int) -> Bytes:
    """`width` bytes at each offset, a row each; zeros beyond the end of `data`."""
    last = len(data) - width
    if not len(offsets):
        return np.zeros((0, width), np.uint8)
    if int(offsets.max()) <= last:
        return _rows(data, offsets, width)
    return _padded(data, offsets, width)


def _rows(data: Bytes, offsets: Integers, width: int) -> Bytes:
    """Every offset of `data` is an element of `width` bytes, which overlap: indexing these is one copy per row."""
    elements: NDArray[np.void] = np.ndarray((len(data) - width + 1,), f"V{width}", data, 0, (1,))
    return elements[offsets].view(np.uint8).reshape(-1, width)


def _padded(data: Bytes, offsets: Integers, width: int) -> Bytes:
    """The same where some rows reach beyond the end."""
    last = len(data) - width
    inside = offsets <= last
    rows = np.zeros((len(offsets), width), np.uint8)
    if inside.any():
        rows[inside] = _rows(data, offsets[inside], width)
    for row in np.flatnonzero(~inside):
        tail = data[offsets[row] :]
        rows[row, : len(tail)] = tail
    return rows


def big16(rows: Bytes, at: int) -> Integers:
    """The 16-bit number at an even offset of each row."""
    return rows.view(">u2")[:, at // 2].astype(np.int64)


def big32(rows: Bytes, at: int) -> Integers:
    """The 32-bit number at an offset that is a multiple of 4, in rows of a multiple of 4 bytes."""
    return rows.view(">u4")[:, at // 4].astype(np.int64)


def numbered(values: Integers) -> tuple[Integers, Integers, Integers]:
    """The distinct values, the position of each value among them, and how often each is there.

    As np.unique, for numbers from 0 to some ten thousand, which need no sorting.
    """
    counts = np.bincount(values)
    distinct = np.flatnonzero(counts)
    places = np.zeros(len(counts), np.int64)
    places[distinct] = np.arange(len(distinct))
    return distinct, places[values], counts[distinct]
