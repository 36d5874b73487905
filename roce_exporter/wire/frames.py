"""A batch of captured frames: what every input yields and the decoders read; and bytes at many of its offsets at once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from roce_exporter.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bytes: TypeAlias = "NDArray[np.uint8]"
Integers: TypeAlias = "NDArray[np.int64]"
Flags: TypeAlias = "NDArray[np.bool_]"

ETHERNET = 1  # LINKTYPE_ETHERNET of https://www.tcpdump.org/linktypes.html, as the others
RAW_IP = 101
LINUX_COOKED = 113
LINUX_COOKED_2 = 276
LOOPBACK = 0  # LINKTYPE_NULL: four bytes before an IP packet
SAME_LINKS = {12: RAW_IP, 14: RAW_IP, 228: RAW_IP, 229: RAW_IP, 108: LOOPBACK}
"""Link types that are decoded as another one."""
LINK_NAMES = {105: " (802.11)", 127: " (802.11 radiotap)", 197: " (ERF)", 247: " (InfiniBand)"}

NO_TAG = -1


class InputError(UserError, ValueError):
    """A capture that cannot be read, in one line that names it and the remedy."""


class Frames(NamedTuple):
    """Frames in one buffer; valid until the input is read again. All arrays have one element per frame."""

    data: Bytes
    starts: Integers
    """Offset of the first byte of each frame in `data`."""
    captured: Integers
    """Bytes captured."""
    lengths: Integers
    """Bytes on the wire."""
    times: Integers
    """Nanoseconds since 1970."""
    tags: Integers
    """VLAN TCI that the kernel removed from the frame; -1 where there is no tag besides those in the frame."""
    link: int = ETHERNET


PER_FRAME = ("starts", "captured", "lengths", "times", "tags")


def merged(parts: Iterable[Frames]) -> list[Frames]:
    """The same frames in as few batches as possible: those of one link type that follow each other."""
    found = []
    for alike in (list(group) for _, group in groupby(parts, lambda part: part.link)):
        names = PER_FRAME if len(alike) > 1 else ()
        arrays = {name: np.concatenate([getattr(part, name) for part in alike]) for name in names}
        found.append(alike[0]._replace(**arrays))  # type: ignore[arg-type] # arrays, all of them
    return found


def window(data: Bytes, offsets: Integers, width: int) -> Bytes:
    """`width` bytes at each offset, a row each; zeros beyond the end of `data`."""
    if not len(offsets):
        return np.zeros((0, width), np.uint8)
    inside = offsets <= len(data) - width
    if inside.all():
        # Every offset of `data` is an element of `width` bytes, which overlap: indexing these is one copy per row.
        elements: NDArray[np.void] = np.ndarray((len(data) - width + 1,), f"V{width}", data, 0, (1,))
        return elements[offsets].view(np.uint8).reshape(-1, width)
    rows = np.zeros((len(offsets), width), np.uint8)
    rows[inside] = window(data, offsets[inside], width)
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
