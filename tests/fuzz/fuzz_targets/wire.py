"""A netlink socket that returns the next piece of the input for each receive, and times out after the last."""

import struct

from fuzz_targets.pieces import split

HEADER = struct.Struct("=IHHII")
PORT = 0xEB


class Wire:
    """See `kernel.netlink.Wire`."""

    def __init__(self, data: bytes) -> None:
        self._answers = split(data)
        self._sequence = 0

    def send(self, data: bytes, /) -> int:
        self._sequence = HEADER.unpack_from(data)[3]
        return len(data)

    def recvmsg_into(self, buffers, /):
        for answer in self._answers:
            datagram = self._addressed(bytearray(answer))[: len(buffers[0])]
            buffers[0][: len(datagram)] = datagram
            return len(datagram), [], 0, (0, 0)
        raise TimeoutError

    def _addressed(self, datagram: bytearray) -> bytearray:
        """Number 0 in the input represents the number of the request, which no mutation would find."""
        start = 0
        while len(datagram) - start >= HEADER.size:
            length, kind, flags, sequence, _ = HEADER.unpack_from(datagram, start)
            if sequence == 0:
                HEADER.pack_into(datagram, start, length, kind, flags, self._sequence, PORT)
            start += max(length + 3 & ~3, HEADER.size)
        return datagram

    def getsockname(self) -> tuple[int, int]:
        return PORT, 0

    def close(self) -> None:
        pass


def counts(found: dict[str, int]) -> None:
    """Every number fits the kernel's widest counter, after a change of unit of at most 10**6."""
    for name, value in found.items():
        assert isinstance(name, str)
        assert 0 <= value < 10**6 << 64, (name, value)
