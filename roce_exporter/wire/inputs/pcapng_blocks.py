"""Blocks of a pcapng file: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.frames import NO_TAG, SAME_LINKS, Frames, InputError
from roce_exporter.wire.inputs.pcap_records import LARGEST, record_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

INTERFACE, SIMPLE, ENHANCED, SECTION = 1, 3, 6, 0x0A0D0D0A
ENHANCED_HEADER = 28
SIMPLE_HEADER = 12
INTERFACE_HEADER = 16
END_OF_OPTIONS, RESOLUTION, OFFSET = 0, 9, 14  # options of an interface: if_tsresol and if_tsoffset
SHORTEST = 12  # bytes of a block's type and its two lengths
MOST_INTERFACES = 4096
ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
BINARY = 0x80  # bit of if_tsresol: the exponent is one of 2, not of 10
MOST_BITS = 32  # largest exponent of 2 and (with 9 decimal digits to spare) of 10 that is accepted
MOST_DIGITS = 18
NANO, DIGITS = 1_000_000_000, 9


class Interface(NamedTuple):
    """What an interface description says about its packets."""

    link: int
    resolution: int
    """if_tsresol: 6 for microseconds."""
    offset: int
    """Seconds to add to each time."""
    snap: int


Run = tuple[list[int], int, int]
"""Where packets that follow each other are, the place of their section's first interface, and how many interfaces are described before them."""


class PcapngBlocks:
    """The blocks of one file, which may hold several sections, each with its byte order and interfaces."""

    def __init__(self) -> None:
        self._order = "<"
        self._interfaces: list[Interface] = []
        """Of this section, and in front those of sections whose packets are no frames yet."""
        self._first = 0
        self._fault: InputError | None = None

    def split(self, data: bytearray, begin: int, end: int) -> tuple[int, list[Frames]]:
        """See PcapRecords. Packets become frames together, also where each has an interface or a section of its own."""
        batches: list[Frames] = []
        runs: list[Run] = []
        position, used = begin, 1
        while used and not self._fault:
            starts, position = self._packets(data, position, end)
            if starts:
                runs.append((starts, self._first, len(self._interfaces)))
            order, used = self._order, 0
            try:
                used = self._other_block(data, position, end)
            except InputError as error:
                self._fault = error
            position += used
            if used and self._order == order:
                continue
            try:
                batches += self._frames(data, runs, order) if runs else []
            except InputError as error:
                self._fault = error
            runs = []
            del self._interfaces[: self._first]
            self._first = 0
        if self._fault and not batches:
            raise self._fault
        return position, batches

    def _packets(self, data: bytearray, position: int, end: int) -> tuple[list[int], int]:
        """The positions of enhanced and simple packet blocks up to one that says how to read others, or is not complete."""
        read = Struct(self._order + "II").unpack_from
        starts: list[int] = []
        add = starts.append
        last = end - 12
        while position <= last:
            kind, length = read(data, position)
            if kind in (INTERFACE, SECTION) or position + length > end or not is_length(length):
                break
            if kind in (ENHANCED, SIMPLE):
                add(position)
            position += length
        return starts, position

    def _other_block(self, data: bytearray, position: int, end: int) -> int:
        """Read one block that holds no packet; the bytes that it has, 0 while it is incomplete."""
        if position + 12 > end:
            return 0
        kind = Struct(self._order + "I").unpack_from(data, position)[0]
        if kind == SECTION:
            magic = bytes(data[position + 8 : position + 12])
            if magic not in ORDERS:
                raise InputError("a section has no byte order, so the file is damaged")
            self._order = ORDERS[magic]
        length = int(Struct(self._order + "I").unpack_from(data, position + 4)[0])
        if not is_length(length):
            raise InputError(f"a block claims {length} bytes, so the file is damaged")
        if position + length > end or (kind in (ENHANCED, SIMPLE)):
            return 0
        if kind == SECTION:
            self._first = len(self._interfaces)
        elif kind == INTERFACE:
            if len(self._interfaces) - self._first >= MOST_INTERFACES:
                raise InputError(f"describes more than {MOST_INTERFACES} interfaces, so the file is damaged")
            self._interfaces.append(read_interface(bytes(data[position : position + length]), self._order))
        return length

    def _frames(self, data: bytearray, runs: list[Run], order: str) -> list[Frames]:
        """The frames of these packets by link type, those of one in the order of the file."""
        whole = np.frombuffer(data, np.uint8)
        positions = np.array([start for starts, _, _ in runs for start in starts], np.int64)
        words = record_fields(whole, positions, ENHANCED_HEADER, order)
        simple = words[:, 0] == SIMPLE
        first, described = np.repeat([run[1:] for run in runs], [len(run[0]) for run in runs], axis=0).T
        names = first + np.where(simple, 0, words[:, 2])
        if (names >= described).any():
            raise InputError("a packet names an interface that is not described, so the file is damaged")
        links, resolutions, offsets, snaps = np.array(self._interfaces, np.int64)[names].T
        starts = positions + np.where(simple, SIMPLE_HEADER, ENHANCED_HEADER)
        captured = np.where(simple, np.minimum(words[:, 2], np.where(snaps, snaps, LARGEST)), words[:, 5])
        if (captured > words[:, 1] - 4 - starts + positions).any():
            raise InputError("a packet is longer than its block, so the file is damaged")
        lengths, times = np.where(simple, words[:, 2], words[:, 6]), np.zeros(len(names), np.int64)
        for resolution in np.unique(resolutions).tolist():
            alike = (resolutions == resolution) & ~simple
            ticks = words[alike, 3] << 32 | words[alike, 4]
            times[alike] = nanoseconds(ticks, resolution) + offsets[alike] * NANO
        tags = np.full(len(names), NO_TAG, np.int64)
        chosen = ((link, np.flatnonzero(links == link)) for link in np.unique(links).tolist())
        return [
            Frames(whole, starts[at], captured[at], lengths[at], times[at], tags[at], link)
            for link, at in chosen
        ]


def is_length(length: int) -> bool:
    """Whether a writer produces blocks of this length."""
    return SHORTEST <= length <= LARGEST and not length % 4


def nanoseconds(ticks: NDArray[np.int64], resolution: int) -> NDArray[np.int64]:
    """Ticks of a resolution (if_tsresol) as nanoseconds."""
    exponent = resolution & ~BINARY
    found: NDArray[np.int64]
    if resolution & BINARY:
        whole, part = ticks >> exponent, ticks & ((1 << exponent) - 1)
        found = whole * NANO + (part * NANO >> exponent)
    elif exponent <= DIGITS:
        found = ticks * 10 ** (DIGITS - exponent)
    else:
        found = ticks // 10 ** (exponent - DIGITS)
    return found


def read_interface(block: bytes, order: str) -> Interface:
    """An interface description block. Raises InputError: it is damaged, or its time resolution is unusable."""
    if len(block) < INTERFACE_HEADER + 4:
        raise InputError("the description of an interface is damaged")
    link, _, snap = Struct(order + "HHI").unpack_from(block, 8)
    options: dict[int, bytes] = {}
    at = INTERFACE_HEADER
    while at + 4 <= len(block) - 4:
        code, size = Struct(order + "HH").unpack_from(block, at)
        options[code] = block[at + 4 : at + 4 + size]
        at += 4 + size + -size % 4
        if code == END_OF_OPTIONS:
            break
        if at > len(block) - 4:
            raise InputError("the description of an interface is damaged")
    resolution = (options.get(RESOLUTION) or b"\x06")[0]
    if resolution & ~BINARY > (MOST_BITS if resolution & BINARY else MOST_DIGITS):
        raise InputError(f"an interface has the time resolution {resolution:#x}, which no tool writes")
    shift = options.get(OFFSET, b"")
    offset = Struct(order + "q").unpack(shift)[0] if len(shift) == 8 else 0  # noqa: PLR2004 - a 64-bit number
    return Interface(SAME_LINKS.get(link, link), resolution, offset % (1 << 33), snap)
