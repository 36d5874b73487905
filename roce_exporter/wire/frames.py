"""A batch of captured frames: what every input yields and the decoders read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ETHERNET = 1
"""LINKTYPE_ETHERNET of https://www.tcpdump.org/linktypes.html, as the others."""
RAW_IP = 101
LINUX_COOKED = 113
LINUX_COOKED_2 = 276

LINKS = (ETHERNET, RAW_IP, LINUX_COOKED, LINUX_COOKED_2)
"""Link types that can be decoded."""

NO_TAG = -1


class Sums(NamedTuple):
    """CRC-32 of a part of each frame, computed by an input while the bytes are in the processor's cache."""

    begins: NDArray[np.int64]
    """Offset in `data` of the first byte; -1 where no CRC was computed."""
    values: NDArray[np.uint32]
    """From there to four bytes before the end of what was captured."""


class Frames(NamedTuple):
    """Frames in one buffer; valid until the input is read again. All arrays have one element per frame."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    """Offset of the first byte of each frame in `data`."""
    captured: NDArray[np.int64]
    """Bytes captured."""
    lengths: NDArray[np.int64]
    """Bytes on the wire."""
    times: NDArray[np.int64]
    """Nanoseconds since 1970."""
    tags: NDArray[np.int64]
    """VLAN TCI that the kernel removed from the frame; -1 where there is no tag besides those in the frame."""
    link: int = ETHERNET
    sums: Sums | None = None
