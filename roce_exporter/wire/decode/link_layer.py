"""Headers below IP: Ethernet with VLAN tags (IEEE 802.1Q), the cooked headers of `tcpdump -i any`, and tunnels of mirror ports.

Each function takes bytes from the header's first byte on and returns the type of what follows and where it begins, or
None where the header is incomplete or is not one that can be followed.
"""

from __future__ import annotations

from typing import NamedTuple

from roce_exporter.wire.frames import ETHERNET, LINUX_COOKED, LINUX_COOKED_2

IPV4, IPV6, ROCE_V1 = 0x0800, 0x86DD, 0x8915
MAC_CONTROL, LLDP = 0x8808, 0x88CC
TAG_TYPES = (0x8100, 0x88A8, 0x9100)
MOST_TAGS = 2
GRE_ETHERNET, ERSPAN, ERSPAN_3 = 0x6558, 0x88BE, 0x22EB
VXLAN_BYTES = 8
VXLAN_PORT = 4789
GRE = 47


class Carried(NamedTuple):
    """What a header carries."""

    kind: int
    """EtherType."""
    offset: int
    """Bytes from the start of the header to what it carries."""
    tags: tuple[int, ...] = ()
    """TCI of each VLAN tag, the outer first."""


def read_ethernet(data: bytes) -> Carried | None:
    """An Ethernet header with up to two VLAN tags."""
    return _behind_tags(data, 12)


def read_cooked(data: bytes) -> Carried | None:
    """The header of LINKTYPE_LINUX_SLL."""
    return _behind_tags(data, 14)


def read_cooked_2(data: bytes) -> Carried | None:
    """The header of LINKTYPE_LINUX_SLL2, whose protocol comes first."""
    return Carried(int.from_bytes(data[:2]), 20) if len(data) >= 20 else None  # noqa: PLR2004 - its length


def read_raw_ip(data: bytes) -> Carried | None:
    """No header: the first four bits are the version of IP."""
    if not data:
        return None
    return {4: Carried(IPV4, 0), 6: Carried(IPV6, 0)}.get(data[0] >> 4)


def read_link(data: bytes, link: int) -> Carried | None:
    """The header of a link type of `frames.LINKS`."""
    if link == ETHERNET:
        return read_ethernet(data)
    if link == LINUX_COOKED:
        return read_cooked(data)
    return read_cooked_2(data) if link == LINUX_COOKED_2 else read_raw_ip(data)


def _behind_tags(data: bytes, offset: int) -> Carried | None:
    """The type at `offset`, or behind the tags that begin there."""
    tags: list[int] = []
    while len(data) >= offset + 2:
        kind = int.from_bytes(data[offset : offset + 2])
        if kind not in TAG_TYPES or len(tags) == MOST_TAGS:
            return Carried(kind, offset + 2, tuple(tags))
        tags.append(int.from_bytes(data[offset + 2 : offset + 4]))
        offset += 4
    return None


def read_gre(data: bytes) -> int | None:
    """Where the mirrored Ethernet frame begins behind a GRE header (RFC 2890): ERSPAN I, II, III or plain Ethernet.

    ERSPAN headers: draft-foschiano-erspan-03. Type I has no header and no sequence number in GRE.
    """
    if len(data) < 4:  # noqa: PLR2004 - the header without options
        return None
    flags, kind = int.from_bytes(data[:2]), int.from_bytes(data[2:4])
    if flags & 7:
        return None
    offset = 4 + 4 * ((flags >> 15 & 1) + (flags >> 13 & 1) + (flags >> 12 & 1))
    if kind == GRE_ETHERNET:
        return offset
    if kind == ERSPAN:
        return offset + 8 if flags & 0x1000 else offset
    if kind == ERSPAN_3 and len(data) >= offset + 12:
        return _behind_erspan_3(int.from_bytes(data[offset + 10 : offset + 12]), offset)
    return None


def _behind_erspan_3(last: int, offset: int) -> int | None:
    """Its last 16 bits: P, frame type (5 bits, 0 is Ethernet), hardware, direction, granularity, O (a subheader follows)."""
    if last >> 10 & 0x1F:
        return None
    return offset + (20 if last & 1 else 12)


def read_vxlan(data: bytes) -> int | None:
    """Where the Ethernet frame begins behind a VXLAN header (RFC 7348)."""
    return VXLAN_BYTES if len(data) >= VXLAN_BYTES and data[0] & 0x08 else None
