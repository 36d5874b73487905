"""One frame decoded field by field, as the standards write it: the oracle of the batch decoder, of which it uses nothing."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

ETHERNET, RAW_IP, COOKED, COOKED_2 = 1, 101, 113, 276
IPV4, IPV6, ROCE_V1 = 0x0800, 0x86DD, 0x8915
TAGS = (0x8100, 0x88A8, 0x9100)
UDP, GRE, BTH_NEXT = 17, 47, 0x1B
ROCE_PORT = 4791
BRIDGED, MPLS = 0x6558, (0x8847, 0x8848)
STEPS, LABELS, EXTENSIONS = 8, 8, 4
"""Headers behind the link header, labels of a stack, extension headers of IPv6 that are followed."""
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
    below = _link(frame, link)
    if below is None:
        return None
    kind, start, tags = below
    for _ in range(STEPS):
        inner: tuple[int, int] | None
        if kind == BRIDGED:
            below = _link(frame[start:], ETHERNET)
            if below is None:
                return None
            kind, start, tags = below[0], start + below[1], below[2]
            continue
        if kind in MPLS:
            inner = _behind_labels(frame[start:])
        else:
            network = _network(frame[start:], kind)
            if network is None:
                return None
            if found := _roce(frame, kind, start, network, tags):
                return found
            inner = None if kind == ROCE_V1 else _tunnel(frame[start + network.size :], network)
            start += network.size
        if inner is None or start + inner[1] > len(frame):
            return None
        kind, start, tags = inner[0], start + inner[1], ()
    return None


def _behind_labels(data: bytes) -> tuple[int, int] | None:
    """EtherType and offset of what is behind MPLS labels."""
    for at in range(0, 4 * LABELS, 4):
        if len(data) < at + 4:
            return None
        if data[at + 2] & 1:
            break
    else:
        return None
    at += 4
    first = data[at] >> 4 if len(data) > at else 0
    if first in (4, 6):
        return {4: IPV4, 6: IPV6}[first], at
    known = len(data) >= at + 14 and _big(data, at + 12, 2) in (IPV4, IPV6, ROCE_V1, *MPLS, *TAGS)
    return BRIDGED, at if first or known else at + 4


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
    protocol, size = data[6], 40
    for _ in range(EXTENSIONS if kind == IPV6 else 0):
        if protocol not in (0, 43, 44, 51, 60, 135, 139, 140) or len(data) < size + 8:
            break
        if protocol == 44 and _big(data, size + 2, 2) & 0xFFF9:
            return None
        length = (
            8 if protocol == 44 else (data[size + 1] + 2) * 4 if protocol == 51 else (data[size + 1] + 1) * 8
        )
        protocol, size = data[size], size + length
    return _Network(data[8:40], _big(data, 0, 2) >> 4 & 0xFF, protocol, size, 40 + _big(data, 4, 2))


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
    if head[0] >> 4 == 6 and not old and bth - start != 48:  # as if there were no extension headers
        head = bytearray(frame[start : start + 40] + frame[bth - 8 : end - 4])
        head[4:7] = (end - bth + 8).to_bytes(2) + bytes((UDP,))
        bth = start + 48
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


def _tunnel(data: bytes, network: _Network) -> tuple[int, int] | None:
    """EtherType and offset of what a tunnel carries."""
    if network.protocol == UDP:
        return _udp_tunnel(data) if len(data) >= 8 else None
    fixed = {4: (IPV4, 0), 41: (IPV6, 0), 97: (BRIDGED, 2), 137: (MPLS[0], 0)}.get(network.protocol)
    if fixed or network.protocol != GRE or len(data) < 4 or _big(data, 0, 2) & 7:
        return fixed
    flags, kind = _big(data, 0, 2), _big(data, 2, 2)
    offset = 4 + 4 * sum(flags >> bit & 1 for bit in (15, 13, 12))
    if kind == 0x88BE:  # ERSPAN I, or II with a sequence number
        return BRIDGED, offset + 8 if flags & 0x1000 else offset
    if kind != 0x22EB:
        return (kind, offset) if kind else None
    if len(data) < offset + 12 or _big(data, offset + 10, 2) >> 10 & 0x1F:
        return None
    return BRIDGED, offset + (20 if data[offset + 11] & 1 else 12)


def _udp_tunnel(data: bytes) -> tuple[int, int] | None:
    port, head = _big(data, 2, 2), data[8:16]
    if port == 6635:
        return MPLS[0], 8
    if len(head) < 8:
        return None
    if port in (4789, 8472):
        return (BRIDGED, 16) if head[0] & 8 else None
    if port == 4790 and head[0] & 8:
        following = {1: IPV4, 2: IPV6, 3: BRIDGED, 5: MPLS[0]}.get(head[3]) if head[0] & 4 else BRIDGED
        return (following, 16) if following else None
    if port == 6081 and head[0] >> 6 == 0 and (kind := _big(head, 2, 2)):
        return kind, 16 + 4 * (head[0] & 0x3F)
    return None


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size])
