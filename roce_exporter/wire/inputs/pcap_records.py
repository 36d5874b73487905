"""Records of a pcap file: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.frames import NO_TAG, SAME_LINKS, Frames, InputError, window

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 1 << 20
"""Bytes: no frame is longer, a record that claims more is damage. A jumbo frame has 9 KB, an offloaded one 64."""
ALIKE = 16
"""Records of one size in succession from which the following ones are expected to have it, too."""
MOST_ALIKE = 1024
"""Records whose size is compared at once: where sizes change again and again, all that follow would be compared each time."""
HEADER_BYTES = 24
FORMATS = {
    0xA1B2C3D4: (1000, 16),
    0xA1B23C4D: (1, 16),
    0xA1B2CD34: (1000, 24),  # of the patched libpcap of old Linux distributions
}
"""By magic number: nanoseconds per unit of the second time field, and bytes of a record's header."""


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
        """The format that a file header states. Raises InputError: it is no pcap header."""
        for order in "<>":
            magic, *_, link = Struct(f"{order}I16xI").unpack_from(first)
            if magic in FORMATS:
                link &= 0xFFFF  # the upper half holds the length of the FCS
                tick, header = FORMATS[magic]
                return cls(order, header, tick, SAME_LINKS.get(link, link))
        raise InputError("is neither pcap nor pcapng; write it with `tcpdump -w`")

    def split(self, data: bytearray, begin: int, end: int) -> tuple[int, list[Frames]]:
        """The complete records of `data[begin:end]`: where the next one begins, and their frames.

        Raises InputError: the first record is damaged. A record behind others is not reached.
        """
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
        alone = ALIKE
        while position <= last:
            for _ in range(alone):
                add(position)
                position += header + read(data, position + 8)[0]
                if position > last:
                    break
            step = position - starts[-1]
            if position > last or position - starts[-min(len(starts), ALIKE)] != ALIKE * step:
                continue
            run = self._run(whole, position, end, step - header)
            parts += np.array(starts, np.int64), run
            starts.clear()
            position += len(run) * step
            alone = ALIKE if len(run) > ALIKE else min(2 * alone, MOST_ALIKE)
        if position > end:  # the last record is incomplete
            position = starts.pop()
            (captured,) = read(data, position + 8)
            if captured > LARGEST and not starts and not parts:
                raise InputError(f"a record claims {captured} bytes, so the file is damaged")
        return np.concatenate((*parts, np.array(starts, np.int64))), position

    def _run(self, whole: NDArray[np.uint8], begin: int, end: int, size: int) -> NDArray[np.int64]:
        """Where the next complete records begin as far as they have the size of the last ones, all at once."""
        step = self.header + size
        guessed = np.arange(begin, min(end, begin + MOST_ALIKE * step) - step + 1, step)
        sizes = window(whole, guessed + 8, 4).view(self.order + "u4")[:, 0]
        others = np.flatnonzero(sizes != size)
        return guessed[: others[0]] if len(others) else guessed


def record_fields(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], size: int, order: str
) -> NDArray[np.int64]:
    """The 32-bit words of headers of one size at these offsets, a row per header."""
    words: NDArray[np.int64] = window(data, offsets, size).view(order + "u4").astype(np.int64)
    return words
