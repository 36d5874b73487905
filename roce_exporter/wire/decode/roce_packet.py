"""One frame, decoded exactly: the reference for the batch decoder, and what `wire --format=packets` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from roce_exporter.wire.decode import infiniband as ib
from roce_exporter.wire.decode import opcodes
from roce_exporter.wire.decode.internet import (
    GRH_NEXT,
    ROCE_PORT,
    UDP,
    Network,
    read_ipv4,
    read_ipv6,
    read_udp,
)
from roce_exporter.wire.decode.invariant_crc import invariant_crc
from roce_exporter.wire.decode.link_layer import (
    GRE,
    IPV4,
    IPV6,
    ROCE_V1,
    VXLAN_PORT,
    Carried,
    read_ethernet,
    read_gre,
    read_link,
    read_vxlan,
)
from roce_exporter.wire.frames import ETHERNET

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_TUNNELS = 2
T = TypeVar("T")


class Place(NamedTuple):
    """Where the parts of a RoCE packet are in its frame."""

    version: int
    network: int
    """Offset of the IP header or GRH."""
    bth: int
    end: int
    """Offset behind the ICRC, by the length that the network header states."""
    tags: tuple[int, ...]


class Extensions(NamedTuple):
    """The extended transport headers of one packet; None where the opcode has none."""

    rdeth: int | None = None
    deth: ib.Deth | None = None
    xrceth: int | None = None
    reth: ib.Reth | None = None
    atomic: ib.AtomicEth | None = None
    aeth: ib.Aeth | None = None
    atomic_ack: int | None = None
    immediate: int | None = None
    invalidate: int | None = None


class RocePacket(NamedTuple):
    """Every header of a RoCE packet."""

    place: Place
    network: Network
    source_port: int | None
    bth: ib.Bth
    extensions: Extensions
    icrc: int | None
    """The CRC of the packet; None where the capture is cut off before it."""
    icrc_valid: bool | None


def locate(frame: bytes, link: int = ETHERNET) -> Place | None:
    """Where the RoCE packet of a frame is, behind VLAN tags and the tunnels of a mirror port; None if it holds none."""
    found = read_link(frame, link)
    base = 0
    for _ in range(MOST_TUNNELS + 1):
        if found is None:
            return None
        start = base + found.offset
        network = _read_network(frame[start:], found.kind)
        if network is None:
            return None
        if place := _roce_place(frame, found, network, start):
            return place
        inner = _tunnelled(frame[start + network.offset :], network)
        if inner is None:
            return None
        base = start + network.offset + inner
        found = read_ethernet(frame[base:])
    return None


def _read_network(data: bytes, kind: int) -> Network | None:
    if kind == IPV4:
        return read_ipv4(data)
    return read_ipv6(data) if kind in (IPV6, ROCE_V1) else None


def _roce_place(frame: bytes, found: Carried, network: Network, start: int) -> Place | None:
    transport = start + network.offset
    if found.kind == ROCE_V1:
        bth, end, version = transport, start + network.end, 1
        if network.protocol != GRH_NEXT:
            return None
    else:
        udp = read_udp(frame[transport:]) if network.protocol == UDP else None
        if udp is None or udp.destination_port != ROCE_PORT:
            return None
        bth, end, version = transport + 8, transport + udp.length, 2
        if end > start + network.end:
            return None
    if end - bth < ib.BTH_BYTES + ib.ICRC_BYTES or len(frame) < bth + ib.BTH_BYTES:
        return None
    return Place(version, start, bth, end, found.tags)


def _tunnelled(data: bytes, network: Network) -> int | None:
    """Where the Ethernet frame begins in what the network header carries."""
    if network.protocol == GRE:
        return read_gre(data)
    udp = read_udp(data) if network.protocol == UDP else None
    if udp is None or udp.destination_port != VXLAN_PORT:
        return None
    inner = read_vxlan(data[8:])
    return None if inner is None else 8 + inner


def read_packet(frame: bytes, link: int = ETHERNET) -> RocePacket | None:
    """The RoCE packet of a frame with every header; None if it holds none."""
    place = locate(frame, link)
    if place is None:
        return None
    network = (read_ipv4 if frame[place.network] >> 4 == 4 else read_ipv6)(frame[place.network :])  # noqa: PLR2004
    bth = ib.read_bth(frame[place.bth :])
    if network is None or bth is None:
        return None
    transport = place.network + network.offset
    port = int.from_bytes(frame[transport : transport + 2]) if place.version == 2 else None  # noqa: PLR2004
    icrc = valid = None
    if len(frame) >= place.end:
        icrc = int.from_bytes(frame[place.end - 4 : place.end], "little")
        valid = icrc == invariant_crc(
            frame[place.network : transport], frame[transport : place.end - 4], version=place.version
        )
    behind = frame[place.bth + ib.BTH_BYTES : place.end - 4]
    return RocePacket(place, network, port, bth, read_extensions(bth.opcode, behind), icrc, valid)


def read_extensions(opcode: int, data: bytes) -> Extensions:
    """The extended headers behind the BTH, in the order of figure 9.2."""
    transport, low = opcodes.transport_of(opcode), opcode & 0x1F
    if low not in opcodes.DEFINED.get(transport, ()):
        return Extensions()
    requests = low not in opcodes.RESPONSES
    cursor = _Cursor(data)
    return Extensions(
        rdeth=cursor.read(transport == opcodes.RD, ib.read_qp_word, ib.RDETH_BYTES),
        deth=cursor.read(
            transport == opcodes.UD or (transport == opcodes.RD and requests), ib.read_deth, ib.DETH_BYTES
        ),
        xrceth=cursor.read(transport == opcodes.XRC and requests, ib.read_qp_word, ib.XRCETH_BYTES),
        reth=cursor.read(
            low in opcodes.WRITES or low in (opcodes.READ_REQUEST, opcodes.ATOMIC_WRITE),
            ib.read_reth,
            ib.RETH_BYTES,
        ),
        atomic=cursor.read(low in (opcodes.COMPARE_SWAP, opcodes.FETCH_ADD), ib.read_atomic, ib.ATOMIC_BYTES),
        aeth=cursor.read(low in opcodes.WITH_AETH, ib.read_aeth, ib.AETH_BYTES),
        atomic_ack=cursor.read(low == opcodes.ATOMIC_ACKNOWLEDGE, ib.read_atomic_ack, ib.ATOMIC_ACK_BYTES),
        immediate=cursor.read(low in opcodes.WITH_IMMEDIATE, ib.read_immediate, ib.IMMEDIATE_BYTES),
        invalidate=cursor.read(low in opcodes.WITH_INVALIDATE, ib.read_immediate, ib.IMMEDIATE_BYTES),
    )


class _Cursor:
    """Reads one header after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, present: bool, reader: Callable[[bytes], T | None], size: int) -> T | None:
        if not present:
            return None
        found = reader(self._data)
        self._data = self._data[size:]
        return found
