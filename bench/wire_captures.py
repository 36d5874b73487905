"""Captures for the benchmarks of the wire view: RoCE v2 traffic of many pairs, with losses, written at once."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

from roce_exporter.wire.decode.invariant_crc import invariant_crc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILE_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
BEGIN = 1_800_000_000
MESSAGE = 8
"""Packets of a write; the last one requests an ACK."""
MARKED, LOST, CNPS = 0.05, 0.002, 0.02
"""Chances that a packet is marked, that a message is resent from its middle, and that a CNP follows."""


def frame(source: int, destination: int, bth: bytes, rest: bytes, ecn: int = 2) -> bytes:
    """An Ethernet frame with a RoCE v2 packet between two hosts of 10.0.0.0/16, with its CRC."""
    length = len(bth) + len(rest) + 4
    addresses = struct.pack(">II", 0x0A000000 + source, 0x0A000000 + destination)
    network = struct.pack(">BBHHHBBH", 0x45, 26 << 2 | ecn, 28 + length, 0, 0x4000, 64, 17, 0) + addresses
    behind = struct.pack(">HHHH", 0xC000 + source % 16384, 4791, 8 + length, 0) + bth + rest
    crc = invariant_crc(network, behind, version=2)
    return bytes(12) + b"\x08\x00" + network + behind + struct.pack("<I", crc)


def bth(opcode: int, queue: int, psn: int, *, acknowledge: bool = False) -> bytes:
    """A base transport header."""
    return struct.pack(">BBHII", opcode, 0, 0xFFFF, queue, (acknowledge << 31) | psn % (1 << 24))


def traffic(hosts: int, payload: int, seed: int = 1) -> Iterator[bytes]:
    """Packets without end: writes between random hosts, an ACK for every eighth, marks, CNPs and go-back-N."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    flows = [
        [source, (source + step) % hosts, 100 + source, chance.randrange(1 << 24)]
        for step in (1, 5)
        for source in range(hosts)
    ]
    body = bytes(payload)
    while True:
        flow = chance.choice(flows)
        source, destination, queue, psn = flow
        for at in range(MESSAGE):
            yield frame(
                source,
                destination,
                bth(0x07, queue, psn + at, acknowledge=at == MESSAGE - 1),
                body,
                3 if chance.random() < MARKED else 2,
            )
        flow[3] = psn + MESSAGE if chance.random() > LOST else psn + MESSAGE // 2
        yield frame(
            destination,
            source,
            bth(0x11, queue + 9, psn + MESSAGE - 1),
            struct.pack(">I", 0x1F << 24 | psn % (1 << 24)),
        )
        if chance.random() < CNPS:
            yield frame(
                destination,
                source,
                struct.pack(">BBHII", 0x81, 0, 0xFFFF, 0x40000000 | queue, 0),
                bytes(16),
                0,
            )


def write_capture(path: Path, packets: int, *, hosts: int = 64, payload: int = 1024) -> None:
    """Write a capture of this many packets, a microsecond apart."""
    with path.open("wb") as out:
        out.write(FILE_HEADER)
        for number, data in zip(range(packets), traffic(hosts, payload), strict=False):
            seconds, micro = divmod(number, 1_000_000)
            out.write(struct.pack("<IIII", BEGIN + seconds, micro, len(data), len(data)) + data)
