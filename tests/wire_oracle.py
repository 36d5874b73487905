"""One frame decoded field by field, as the standards write it: the oracle of the batch decoder, of which it uses nothing."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

ETHERNET, RAW_IP, COOKED, COOKED_2 = 1, 101, 113, 276
IPV4, IPV6, ROCE_V1 = 0x0800, 0x86DD, 0x8915
TAGS = (0x8100, 0x88A8, 0x9100)
UDP, GRE, BTH_NEXT = 17, 47, 0x1B
ROCE_PORT, VXLAN_PORT = 4791, 4789
LAYERS = 3
"""A frame, and two tunnels."""
WITH_AETH = {0: 0, 2: 4, 5: 0}
"""Bytes from the BTH to the AETH, by transport: RC, RD, XRC."""


class Expected(NamedTuple):
    """What a decoder should find."""

    opcode: int
    psn: int
    queue: int
    addresses: bytes
    traffic_class: int
    tags: tuple[int, ...]
    icrc: int
    """1: correct, 0: wrong, -1: cut off."""
    syndrome: int
    """-1: none."""


class _Network(NamedTuple):
    addresses: bytes
    traffic_class: int
    protocol: int
    size: int
    end: int


def expected_packet(frame: bytes, link: int = ETHERNET) -> Expected | None:
    """The RoCE packet of a frame; None if it holds none."""
    base = 0
    for layer in range(LAYERS):
        below = _link(frame[base:], link if layer == 0 else ETHERNET)
        if below is None:
            return None
        kind, offset, tags = below
        start = base + offset
        network = _network(frame[start:], kind)
        if network is None:
            return None
        if found := _roce(frame, kind, start, network, tags):
            return found
        inner = _tunnel(frame[start + network.size :], network.protocol)
        if inner is None:
            return None
        base = start + network.size + inner
    return None


def _link(data: bytes, link: int) -> tuple[int, int, tuple[int, ...]] | None:
    if link == RAW_IP:
        kind = {4: IPV4, 6: IPV6}.get(data[0] >> 4) if data else None
        return None if kind is None else (kind, 0, ())
    if link == COOKED_2:
        return (_big(data, 0, 2), 20, ()) if len(data) >= 20 else None
    at, tags = 12 if link == ETHERNET else 14, []
    while len(data) >= at + 2:
        if _big(data, at, 2) not in TAGS or len(tags) == 2:
            return _big(data, at, 2), at + 2, tuple(tags)
        tags.append(_big(data, at + 2, 2))
        at += 4
    return None


def _network(data: bytes, kind: int) -> _Network | None:
    if kind == IPV4:
        if len(data) < 20 or data[0] >> 4 != 4 or _big(data, 6, 2) & 0x3FFF:
            return None
        size, end = (data[0] & 15) * 4, _big(data, 2, 2)
        mapped = bytes(10) + b"\xff\xff"
        addresses = mapped + data[12:16] + mapped + data[16:20]
        return _Network(addresses, data[1], data[9], size, end) if 20 <= size <= end else None
    if kind not in (IPV6, ROCE_V1) or len(data) < 40 or data[0] >> 4 != 6:
        return None
    return _Network(data[8:40], _big(data, 0, 2) >> 4 & 0xFF, data[6], 40, 40 + _big(data, 4, 2))


def _roce(frame: bytes, kind: int, start: int, network: _Network, tags: tuple[int, ...]) -> Expected | None:
    transport = start + network.size
    if kind == ROCE_V1:
        if network.protocol != BTH_NEXT:
            return None
        bth, end = transport, start + network.end
    else:
        udp = frame[transport : transport + 8]
        if network.protocol != UDP or len(udp) < 8 or _big(udp, 2, 2) != ROCE_PORT:
            return None
        bth, end = transport + 8, transport + _big(udp, 4, 2)
        if end > start + network.end:
            return None
    if end - bth < 16 or len(frame) < bth + 12:
        return None
    opcode = frame[bth]
    return Expected(
        opcode,
        psn=_big(frame, bth + 9, 3),
        queue=_big(frame, bth + 5, 3),
        addresses=network.addresses,
        traffic_class=network.traffic_class,
        tags=tags,
        icrc=_icrc(frame, start, bth, end, old=kind == ROCE_V1) if len(frame) >= end else -1,
        syndrome=_syndrome(opcode, frame[bth + 12 : end - 4]),
    )


def _icrc(frame: bytes, start: int, bth: int, end: int, *, old: bool) -> int:
    """Annexes A16.5.1 and A17.4.1: ones for the LRH and for what routers change."""
    head = bytearray(frame[start : end - 4])
    if head[0] >> 4 == 4:
        changed = [1, 8, 10, 11]
    else:
        head[0] |= 0x0F
        changed = [1, 2, 3, 7]
    changed.append(bth - start + 4)
    if not old:
        changed += [bth - start - 2, bth - start - 1]
    for at in changed:
        head[at] = 0xFF
    return int(crc32(b"\xff" * 8 + head) == int.from_bytes(frame[end - 4 : end], "little"))


def _syndrome(opcode: int, behind: bytes) -> int:
    before = WITH_AETH.get(opcode >> 5)
    if before is None or opcode & 0x1F not in (0x0D, 0x0F, 0x10, 0x11, 0x12) or len(behind) < before + 4:
        return -1
    return behind[before] & 0x7F


def _tunnel(data: bytes, protocol: int) -> int | None:
    """Bytes before the Ethernet frame that GRE or VXLAN carries."""
    if protocol == UDP:
        vxlan = len(data) >= 16 and _big(data, 2, 2) == VXLAN_PORT and data[8] & 8
        return 16 if vxlan else None
    if protocol != GRE or len(data) < 4 or _big(data, 0, 2) & 7:
        return None
    flags, kind = _big(data, 0, 2), _big(data, 2, 2)
    offset = 4 + 4 * sum(flags >> bit & 1 for bit in (15, 13, 12))
    if kind == 0x6558:
        return offset
    if kind == 0x88BE:  # ERSPAN I, or II with a sequence number
        return offset + 8 if flags & 0x1000 else offset
    if kind != 0x22EB or len(data) < offset + 12 or _big(data, offset + 10, 2) >> 10 & 0x1F:
        return None
    return offset + (20 if data[offset + 11] & 1 else 12)


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size])
