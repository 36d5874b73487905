"""Records of a pcap file: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from dpkt import pcap  # type: ignore[import-untyped,unused-ignore] # it has no types

from roce_exporter.wire.frames import NO_TAG, SAME_LINKS, Frames, InputError, window

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 1 << 20
ALIKE = 16
"""Records of one size in succession from which the following ones are expected to have it, too."""
NANOSECONDS = (pcap.TCPDUMP_MAGIC_NANO, pcap.PMUDPCT_MAGIC_NANO)
MODIFIED = (pcap.MODPCAP_MAGIC, pcap.PACPDOM_MAGIC)
LITTLE = (pcap.PMUDPCT_MAGIC, pcap.PMUDPCT_MAGIC_NANO, pcap.PACPDOM_MAGIC)


class PcapRecords(NamedTuple):
    """How the records of one file are written."""

    order: str
    """Byte order: < or >."""
    header: int
    """Bytes of a record's header."""
    tick: int
    """Nanoseconds per unit of the second time field."""
    link: int

    @classmethod
    def from_header(cls, first: bytes) -> PcapRecords:
        """The format that a file header states.

        Raises:
            InputError: it is no pcap header.
            dpkt.UnpackError: it is too short.
        """
        header = pcap.FileHdr(first[:24])
        if header.magic not in pcap.MAGIC_TO_PKT_HDR:
            raise InputError("is neither pcap nor pcapng; write it with `tcpdump -w`")
        little = header.magic in LITTLE
        if little:
            header = pcap.LEFileHdr(first[:24])
        magic = pcap.FileHdr(first[:24]).magic
        link = header.linktype & 0xFFFF  # the upper half holds the length of the FCS
        order, tick = "<" if little else ">", 1 if magic in NANOSECONDS else 1000
        return cls(order, 24 if magic in MODIFIED else 16, tick, SAME_LINKS.get(link, link))

    def split(self, data: bytearray, begin: int, end: int) -> tuple[int, list[Frames]]:
        """See Records."""
        whole = np.frombuffer(data, np.uint8)
        found, used = self._starts(data, whole, begin, end)
        if not len(found):
            return used, []
        fields = record_fields(whole, found, 16, self.order)
        return used, [
            Frames(
                data=whole,
                starts=found + self.header,
                captured=fields[:, 2],
                lengths=fields[:, 3],
                times=fields[:, 0] * 1_000_000_000 + fields[:, 1] * self.tick,
                tags=np.full(len(found), NO_TAG, np.int64),
                link=self.link,
            )
        ]

    def _starts(
        self, data: bytearray, whole: NDArray[np.uint8], begin: int, end: int
    ) -> tuple[NDArray[np.int64], int]:
        """Where the complete records begin, and where the first incomplete one does."""
        read = Struct(self.order + "I").unpack_from
        header = self.header
        parts: list[NDArray[np.int64]] = []
        starts: list[int] = []
        add = starts.append
        position = begin
        last = end - header
        size, equal = -1, 0
        while position <= last:
            add(position)
            (captured,) = read(data, position + 8)
            position += header + captured
            if captured != size:
                size, equal = captured, 0
            elif (equal := equal + 1) == ALIKE and position <= end:
                run = self._run(whole, position, end, captured)
                parts += np.array(starts, np.int64), run
                starts.clear()
                position += len(run) * (header + captured)
                equal = 0 if len(run) > ALIKE else -len(run) * ALIKE
        if position > end:  # the last record is incomplete
            position = starts.pop()
            (captured,) = read(data, position + 8)
            if captured > LARGEST and not starts and not parts:
                raise InputError(f"a record claims {captured} bytes, so the file is damaged")
        return np.concatenate((*parts, np.array(starts, np.int64))), position

    def _run(self, whole: NDArray[np.uint8], begin: int, end: int, size: int) -> NDArray[np.int64]:
        """Where the next complete records begin as far as they have the size of the last ones, all at once."""
        step = self.header + size
        guessed = np.arange(begin, end - step + 1, step)
        sizes = window(whole, guessed + 8, 4).view(self.order + "u4")[:, 0]
        others = np.flatnonzero(sizes != size)
        return guessed[: others[0]] if len(others) else guessed


def record_fields(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], size: int, order: str
) -> NDArray[np.int64]:
    """The 32-bit words of headers of one size at these offsets, a row per header."""
    words: NDArray[np.int64] = window(data, offsets, size).view(order + "u4").astype(np.int64)
    return words
