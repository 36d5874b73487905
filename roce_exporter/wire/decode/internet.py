"""IPv4 (RFC 791), IPv6 (RFC 8200), the GRH of RoCE v1 (InfiniBand specification 8.3) and UDP (RFC 768)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

UDP = 17
ROCE_PORT = 4791
IPV4_BYTES = 20
IPV6_BYTES = 40
UDP_BYTES = 8
GRH_NEXT = 0x1B
"""Next header of a GRH that is followed by a base transport header."""
MAPPED = bytes(10) + b"\xff\xff"
"""What comes before an IPv4 address that is written as an IPv6 address."""


class Network(NamedTuple):
    """A header of the network layer."""

    source: bytes
    """16 bytes; an IPv4 address is mapped into IPv6."""
    destination: bytes
    traffic_class: int
    """DSCP and ECN."""
    protocol: int
    offset: int
    """Bytes of this header."""
    end: int
    """Bytes of this header and what it carries."""


class Udp(NamedTuple):
    """A UDP header."""

    source_port: int
    destination_port: int
    length: int


def read_ipv4(data: bytes) -> Network | None:
    """The header of an IPv4 packet; None for a fragment, which holds no complete RoCE packet."""
    if len(data) < IPV4_BYTES or data[0] >> 4 != 4 or int.from_bytes(data[6:8]) & 0x3FFF:  # noqa: PLR2004
        return None
    offset, end = (data[0] & 0xF) * 4, int.from_bytes(data[2:4])
    if offset < IPV4_BYTES or end < offset:
        return None
    return Network(MAPPED + data[12:16], MAPPED + data[16:20], data[1], data[9], offset, end)


def read_ipv6(data: bytes) -> Network | None:
    """The header of an IPv6 packet, or a GRH, which has the same form. Extension headers are not followed."""
    if len(data) < IPV6_BYTES or data[0] >> 4 != 6:  # noqa: PLR2004
        return None
    end = IPV6_BYTES + int.from_bytes(data[4:6])
    return Network(data[8:24], data[24:40], int.from_bytes(data[:2]) >> 4 & 0xFF, data[6], IPV6_BYTES, end)


def read_udp(data: bytes) -> Udp | None:
    """The header of a UDP datagram."""
    if len(data) < UDP_BYTES:
        return None
    return Udp(*(int.from_bytes(data[at : at + 2]) for at in (0, 2, 4)))


def address_text(address: bytes) -> str:
    """A 16-byte address or GID as text; an IPv4 address that is mapped into IPv6 as IPv4."""
    return str(IPv4Address(address[12:])) if address.startswith(MAPPED) else str(IPv6Address(address))
