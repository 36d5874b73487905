"""The header fields of all RoCE packets of a batch, a column per field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from roce_exporter.wire.decode.infiniband import (
    AETH_BYTES,
    BTH_BYTES,
    ICRC_BYTES,
    READ_REQUEST,
    RETH_BYTES,
    offset_of,
)
from roce_exporter.wire.decode.invariant_crc import check_crcs
from roce_exporter.wire.decode.link_frames import LinkNeighbour, PauseFrame, read_lldp, read_mac_control
from roce_exporter.wire.decode.locate import IPV4, IPV4_BYTES, IPV6_BYTES, ROCE_V1, Located, locate
from roce_exporter.wire.frames import Bytes, Frames, Integers, big32, window

if TYPE_CHECKING:
    from collections import Counter

    from numpy.typing import NDArray

T = TypeVar("T")
NO_SYNDROME = -1
EARLIEST = 946_684_800_000_000_000
"""The year 2000. The kernel stamps packets that Soft-RoCE sends with the time since boot, which is no date."""
MAPPED_WORD = 0xFFFF << 32
MAPPED = bytes(10) + b"\xff\xff"
"""What comes before an IPv4 address that is written as an IPv6 address."""


class Columns(NamedTuple):
    """The fields of the RoCE packets of a batch, in the order of the capture."""

    times: Integers
    lengths: Integers
    """Bytes of the frame on the wire, tunnels of a mirror included."""
    addresses: NDArray[np.uint64]
    """Source and destination, two words each; an IPv4 address is mapped into IPv6."""
    versions: Integers
    opcodes: Integers
    queues: Integers
    """Destination QP."""
    sequences: Integers
    """PSN."""
    ack_requests: NDArray[np.bool_]
    becn: NDArray[np.bool_]
    dscp: Integers
    ecn: Integers
    priorities: Integers
    """VLAN priority (PCP); -1 without a tag."""
    syndromes: Integers
    """Bits 0 to 6 of the AETH's syndrome; -1 without an AETH."""
    read_lengths: Integers
    """Bytes that a read request requests; -1 for other packets."""
    icrc: Integers
    """1: correct, 0: wrong, -1: cannot be verified, for the capture is cut off."""
    crcs: Integers
    """The CRC that was sent; 0 where it was not captured."""

    def where(self, chosen: NDArray[np.bool_]) -> Columns:
        """These packets."""
        return Columns(*(part[chosen] for part in self))  # type: ignore[arg-type] # each part is an array, of its own type


class Decoded(NamedTuple):
    """What a batch holds."""

    frames: int
    columns: Columns
    pauses: tuple[tuple[int, PauseFrame], ...]
    """Time and content of each pause frame."""
    neighbours: tuple[LinkNeighbour, ...]
    first: int
    last: int
    """Times of the first and last frame; 0 without a valid time."""
    others: Counter[str]
    """Frames of other kinds, by what they are."""

    def packets_only(self) -> Decoded:
        """The same without what is not a RoCE packet."""
        return self._replace(frames=0, pauses=(), neighbours=(), others=self.others.__class__())


def address_text(address: bytes) -> str:
    """A 16-byte address or GID as text; an IPv4 address that is mapped into IPv6 as IPv4."""
    return str(IPv4Address(address[12:])) if address.startswith(MAPPED) else str(IPv6Address(address))


def decode_frames(frames: Frames) -> Decoded:
    """The RoCE packets, pause frames and LLDP neighbours of a batch."""
    found = locate(frames)
    ends = frames.starts + frames.captured

    def each(places: Integers, read: Callable[[bytes, int], T | None]) -> Iterator[tuple[int, T]]:
        """What is read of these frames, each with its time."""
        for row, offset in places.tolist():
            start = int(frames.starts[row])
            if one := read(frames.data[start : ends[row]].tobytes(), offset - start):
                yield int(frames.times[row]), one

    pauses = tuple(each(found.control, read_mac_control))
    neighbours = tuple(one for _, one in each(found.lldp, read_lldp))
    valid = frames.times[frames.times > EARLIEST]
    first, last = (int(valid.min()), int(valid.max())) if len(valid) else (0, 0)
    columns = read_columns(frames, found.roce)
    return Decoded(len(frames.times), columns, pauses, neighbours, first, last, found.others)


def read_columns(frames: Frames, roce: Located) -> Columns:
    """The fields of the located packets."""
    data = frames.data
    addresses, traffic_classes = _network_fields(data, roce)
    bth = window(data, roce.bth, BTH_BYTES)
    codes = bth[:, 0].astype(np.int64)
    queue_word, sequence_word = big32(bth, 4), big32(bth, 8)
    room = np.minimum(roce.limits, roce.end - ICRC_BYTES) - roce.bth - BTH_BYTES

    def extended(offsets: Integers, size: int) -> tuple[NDArray[np.bool_], Bytes]:
        """Which packets have the whole of an extended header at these offsets, and its bytes."""
        present = (offsets >= 0) & (room >= offsets + size)
        return present, window(data, roce.bth[present] + BTH_BYTES + offsets[present], size)

    syndromes = np.full(len(codes), NO_SYNDROME, np.int64)
    present, head = extended(AETH_OFFSET[codes], AETH_BYTES)
    syndromes[present] = head[:, 0] & 0x7F
    read_lengths = np.full(len(codes), -1, np.int64)
    present, head = extended(READ_OFFSET[codes], RETH_BYTES)
    read_lengths[present] = big32(head, 12)
    return Columns(
        times=frames.times[roce.rows],
        lengths=frames.lengths[roce.rows],
        addresses=addresses,
        versions=np.where(roce.kinds == ROCE_V1, 1, 2),
        opcodes=codes,
        queues=queue_word & 0xFFFFFF,
        sequences=sequence_word & 0xFFFFFF,
        ack_requests=sequence_word >> 31 != 0,
        becn=queue_word & 0x40000000 != 0,
        dscp=traffic_classes >> 2,
        ecn=traffic_classes & 3,
        priorities=roce.tags >> 13,  # of NO_TAG -1
        syndromes=syndromes,
        read_lengths=read_lengths,
        icrc=check_crcs(frames, roce),
        crcs=np.where(
            roce.end <= roce.limits, window(data, roce.end - ICRC_BYTES, ICRC_BYTES).view("<u4")[:, 0], 0
        ),
    )


def _network_fields(data: Bytes, roce: Located) -> tuple[NDArray[np.uint64], Integers]:
    """Addresses and traffic class of each packet."""
    count = len(roce.rows)
    addresses = np.zeros((count, 4), np.uint64)
    classes = np.zeros(count, np.int64)
    old = roce.kinds == IPV4
    if old.any():
        head = window(data, roce.network[old], IPV4_BYTES)
        words = head.view(">u4")
        addresses[old, 1] = words[:, 3].astype(np.uint64) | np.uint64(MAPPED_WORD)
        addresses[old, 3] = words[:, 4].astype(np.uint64) | np.uint64(MAPPED_WORD)
        classes[old] = head[:, 1]
    if not old.all():
        head = window(data, roce.network[~old], IPV6_BYTES)
        addresses[~old] = head.view(">u8")[:, 1:].astype(np.uint64)
        classes[~old] = (head[:, 0].astype(np.int64) & 0xF) << 4 | head[:, 1] >> 4
    return addresses, classes


AETH_OFFSET = np.array([offset_of("aeth", opcode) for opcode in range(256)], np.int64)
"""Bytes from the end of the BTH to the AETH by opcode; -1 without one."""
READ_OFFSET = np.array(
    [offset_of("reth", one) if one & 0x1F == READ_REQUEST else -1 for one in range(256)], np.int64
)
"""The same for the RETH of a read request."""
