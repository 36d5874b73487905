"""The invariant CRC of RoCE: annexes A16.5.1 and A17.4.1 (RoCE v1 and v2).

CRC-32 of Ethernet over a dummy LRH of ones, the network header with the fields that routers change set to ones, and
everything behind it. It is sent with its least significant byte first.

For a batch the linearity of CRC-32 is used. `invariant_crc` reads a copy of each packet whose headers are masked. Here the bytes are read where they are, once, and the CRC
of the masked packet follows from that of the packet: for two beginnings A and B of one length or another before the same
P, crc(A P) ^ crc(B P) is crc(A) ^ crc(B), moved over as many zeros as P has bytes. (zlib's crc32_combine is the same.)
A and B differ in the few bytes that are masked, so a table per byte gives crc(A) ^ crc(B), and tables per length move it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.decode.locate import Located
from roce_exporter.wire.frames import Bytes, Frames, Integers

try:
    from isal.isal_zlib import crc32  # five to nine times as fast as zlib's on a frame of 4 KB
except ImportError:  # pragma: no cover - a platform without it
    from zlib import crc32

from roce_exporter.wire.decode.infiniband import BTH_BYTES, ICRC_BYTES
from roce_exporter.wire.decode.locate import IPV4, IPV4_BYTES, IPV6, IPV6_BYTES, ROCE_V1, UDP, UDP_BYTES
from roce_exporter.wire.frames import numbered, window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Sums = NDArray[np.uint32]

UNKNOWN, WRONG, CORRECT = -1, 0, 1
ONES = 0xFFFFFFFF
SHORT, AT_ONCE = 256, 1024  # bytes, and parts of one length whose copies fit into the processor's cache
COMMON = 16  # packets of one length in a batch from which a table for the length pays off
LENGTHS = 1024  # lengths whose tables are kept, of 4 KB each

LRH = b"\xff" * 8
NETWORK_MASKS = {
    4: dict.fromkeys((1, 8, 10, 11), 0xFF),  # type of service, time to live, header checksum
    6: {0: 0x0F} | dict.fromkeys((1, 2, 3, 7), 0xFF),  # traffic class, flow label, hop limit
}
"""What routers change in an IP header: by its version the offsets, and the bits that become ones."""
TRANSPORT_MASKS = {1: (4,), 2: (6, 7, 12)}
"""Bytes behind the network header that become ones, by the version of RoCE: checksum of UDP, FECN and BECN."""


def invariant_crc(network: bytes, rest: bytes, *, version: int) -> int:
    """The CRC of a packet: `network` is its IP header or GRH, `rest` what follows up to the CRC (for v2 from UDP on)."""
    head, transport = bytearray(network), bytearray(rest)
    for at, mask in NETWORK_MASKS[head[0] >> 4].items():
        head[at] |= mask
    for at in TRANSPORT_MASKS[version]:
        transport[at] = 0xFF
    return int(crc32(transport, crc32(LRH + head)))


class Masks(NamedTuple):
    """What is ones in the headers of one kind."""

    size: int
    """Bytes from the network header to the end of the BTH."""
    bytes: dict[int, int]
    """Offset in the headers, and the bits of that byte that become ones."""


MASKS = {
    kind: Masks(
        network + transport + BTH_BYTES,
        NETWORK_MASKS[ip] | {network + at: 0xFF for at in TRANSPORT_MASKS[version]},
    )
    for kind, ip, version, network, transport in (
        (IPV4, 4, 2, IPV4_BYTES, UDP_BYTES),
        (IPV6, 6, 2, IPV6_BYTES, UDP_BYTES),
        (ROCE_V1, 6, 1, IPV6_BYTES, 0),
    )
}


def plain_crcs(data: Bytes, begins: Integers, ends: Integers) -> Sums:
    """The CRC-32 of these parts of `data`."""
    found = np.zeros(len(begins), np.uint32)
    lengths, which, counts = numbered(ends - begins)
    # Short parts of one length are copied together, which takes half as long as a view of each.
    common = (counts >= COMMON) & (lengths <= SHORT)
    for place in np.flatnonzero(common).tolist():
        every = np.flatnonzero(which == place)
        for at in range(0, len(every), AT_ONCE):
            rows = every[at : at + AT_ONCE]
            parts = window(data, begins[rows], int(lengths[place])).view(f"V{lengths[place]}")
            found[rows] = np.fromiter(map(crc32, parts[:, 0].tolist()), np.uint32, len(rows))
    rest = np.flatnonzero(~common[which])
    with memoryview(data) as view:  # type: ignore[arg-type,unused-ignore] # arrays are buffers; Python 3.11 has no type for them
        views = map(view.__getitem__, map(slice, begins[rest].tolist(), ends[rest].tolist()))
        found[rest] = np.fromiter(map(crc32, views), np.uint32, len(rest))
    return found


def check_crcs(frames: Frames, roce: Located) -> Integers:
    """Per packet: 1 for a correct CRC, 0 for a wrong one, -1 where the capture is cut off before it."""
    found = np.full(len(roce.rows), UNKNOWN, np.int64)
    complete = roce.end <= roce.limits
    for kind, masks in MASKS.items():
        mine = complete & (roce.kinds == kind)
        if not mine.any():
            continue
        plain = mine & (roce.bth + BTH_BYTES - roce.network == masks.size)
        rows = np.flatnonzero(plain)
        if len(rows):
            found[rows] = _check_plain(frames, roce, rows, kind)
        for row in np.flatnonzero(mine & ~plain):
            found[row] = _check_one(frames.data, roce, int(row))
    return found


def _check_plain(frames: Frames, roce: Located, rows: Integers, kind: int) -> Integers:
    """The packets whose network header has no options."""
    size = MASKS[kind].size
    begins, ends = roce.network[rows], roce.end[rows] - ICRC_BYTES
    head = window(frames.data, begins, size)
    tables, difference = _mask_tables(kind)
    differences = np.full(len(rows), difference, np.uint32)
    for table, at in zip(tables, MASKS[kind].bytes, strict=True):
        differences ^= table[head[:, at]]
    made = plain_crcs(frames.data, begins, ends) ^ _moved(differences, ends - begins - size)
    sent = window(frames.data, ends, ICRC_BYTES).view("<u4")[:, 0]
    return np.where(made == sent, CORRECT, WRONG)


def _check_one(data: Bytes, roce: Located, row: int) -> int:
    version = 1 if roce.kinds[row] == ROCE_V1 else 2
    transport = int(roce.bth[row]) - (UDP_BYTES if version == 2 else 0)  # noqa: PLR2004 - RoCE v2
    end = int(roce.end[row]) - ICRC_BYTES
    network = data[roce.network[row] : transport].tobytes()
    if roce.kinds[row] == IPV6:  # extension headers are not covered: the header is as if there were none
        size = int(roce.end[row]) - transport
        network = network[:4] + size.to_bytes(2) + bytes((UDP,)) + network[7:IPV6_BYTES]
    made = invariant_crc(network, data[transport:end].tobytes(), version=version)
    return int(made == int.from_bytes(data[end : end + ICRC_BYTES].tobytes(), "little"))


@lru_cache
def _mask_tables(kind: int) -> tuple[list[Sums], int]:
    """For each masked byte what its mask changes in the CRC of the headers, by its value; and what the dummy LRH changes."""
    masks = MASKS[kind]
    tables = []
    for at, mask in masks.bytes.items():
        behind = bytes(masks.size - 1 - at)
        sums = [crc32(bytes((value,)) + behind) for value in range(256)]
        tables.append(np.array([sums[value] ^ sums[value | mask] for value in range(256)], np.uint32))
    return tables, crc32(bytes(masks.size)) ^ crc32(LRH + bytes(masks.size))


def _moved(differences: Sums, sizes: Integers) -> Sums:
    """Each difference moved over its number of zero bytes."""
    lengths, which, counts = numbered(sizes)
    common = counts >= COMMON
    found = np.zeros(len(sizes), np.uint32)
    if common.any():
        tables = np.concatenate([_move_tables(int(length)) for length in lengths[common]])
        first = np.where(common, (np.cumsum(common) - 1) << 10, 0)[which]
        for place in range(4):
            found ^= tables[first + (place << 8) + (differences >> np.uint32(8 * place) & np.uint32(0xFF))]
    for row in np.flatnonzero(~common[which]):
        found[row] = _move(int(differences[row]), int(sizes[row]))
    return found


def _move(difference: int, size: int) -> int:
    """One difference moved over zero bytes."""
    return crc32(bytes(size), difference ^ ONES) ^ ONES


@lru_cache(maxsize=LENGTHS)
def _move_tables(size: int) -> Sums:
    """`_move` of every value of each of the four bytes of a difference: four times 256 numbers."""
    found = np.zeros((4, 256), np.uint32)
    for bit in range(8):
        power = [[_move(1 << (8 * place + bit), size)] for place in range(4)]
        found[:, 1 << bit : 2 << bit] = found[:, : 1 << bit] ^ np.array(power, np.uint32)
    return found.reshape(-1)
