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
    if last < 0:
        data = np.concatenate((data, np.zeros(width, np.uint8)))
        last = len(data) - width
    rows = np.lib.stride_tricks.sliding_window_view(data, width)[np.minimum(offsets, last)]
    for row in np.flatnonzero(offsets > last):
        tail = data[offsets[row] :]
        rows[row] = 0
        rows[row, : len(tail)] = tail
    return rows


def big16(rows: Bytes, at: int) -> Integers:
    """The 16-bit number at an even offset of each row."""
    return rows.view(">u2")[:, at // 2].astype(np.int64)


def big32(rows: Bytes, at: int) -> Integers:
    """The 32-bit number at an offset that is a multiple of 4, in rows of a multiple of 4 bytes."""
    return rows.view(">u4")[:, at // 4].astype(np.int64)
