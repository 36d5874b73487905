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
SAMPLE = 64  # records that are read one by one; those that follow them have about their sizes and times
CHAIN = 128  # records of a chain: a step of all chains takes as long as forty records one by one
FEWEST = 64  # chains from which they pay off
CLOCK = 1 << 20  # seconds by which times in one block differ at most, so that a record is recognised
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
        parts: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        position, last, alone = begin, end - self.header, SAMPLE
        while position <= last:
            starts: list[int] = []
            for _ in range(alone):
                starts.append(position)
                position += self.header + read(data, position + 8)[0]
                if position > last:
                    break
            parts.append(np.array(starts, np.int64))
            if (last - position) * SAMPLE > (position - starts[-SAMPLE:][0]) * CHAIN * FEWEST:
                ahead, met = self._chains(whole, parts[-1][-SAMPLE:], position, last)
                parts.append(ahead)
                position = int(ahead[-1]) + self.header + read(data, int(ahead[-1]) + 8)[0]
                alone = SAMPLE if met else 4 * alone
        found = np.concatenate(parts)
        if position > end:  # the last record is incomplete
            found, position = found[:-1], int(found[-1])
            (captured,) = read(data, position + 8)
            if captured > LARGEST and not len(found):
                raise InputError(f"a record claims {captured} bytes, so the file is damaged")
        return found, position

    def _chains(
        self, whole: NDArray[np.uint8], sample: NDArray[np.int64], position: int, last: int
    ) -> tuple[NDArray[np.int64], bool]:
        """Where records begin, the first of them at `position`; and whether all chains met.

        Each record says where the next one begins. Chains of them are followed from many places at once, from what resembles a record
        first. What a chain finds counts where the one before it comes to its begin.
        """
        words = np.ndarray((last + 13,), self.order + "u4", whole, 0, (1,))
        sizes = words[sample + 8]
        reach = self.header + int(sizes.max())
        count = (last - position) * SAMPLE // ((position - int(sample[0])) * CHAIN)
        places = np.linspace(position, last - reach, count, dtype=np.int64)
        rows = window(whole, places, reach + 3)
        times = np.ndarray((count, reach), self.order + "u4", rows, 0, (reach + 3, 1))
        lines, columns = np.nonzero(times - (words[sample[-1:]] - np.uint32(CLOCK)) <= 2 * CLOCK)
        found = places[lines] + columns
        captured = words[found + 8]
        likely = (captured >= sizes.min()) & (captured <= sizes.max()) & (words[found + 12] >= captured)
        first = np.unique(lines[likely], return_index=True)[1]
        at = begins = np.unique(np.append(found[likely][first], position))
        ends, steps = np.append(begins[1:], last + 1), [at]
        while len(steps) < 4 * CHAIN and (len(steps) % 16 or (at < ends).any()):
            at = np.minimum(at + words[at + 8] + self.header, last + 1)
            steps.append(at)
        table = np.stack(steps, axis=1)
        parted = np.flatnonzero((table[:-1] != begins[1:, None]).all(axis=1))
        good = int(parted[0]) + 1 if len(parted) else len(begins)
        return table[:good][table[:good] < ends[:good, None]], not len(parted)


def record_fields(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], size: int, order: str
) -> NDArray[np.int64]:
    """The 32-bit words of headers of one size at these offsets, a row per header."""
    words: NDArray[np.int64] = window(data, offsets, size).view(order + "u4").astype(np.int64)
    return words
