"""Stand-ins for IP addresses that keep their subnets: two addresses share as many leading bits as their stand-ins do.

So address, prefix, route, rule and gateway fit together in a recording as on the host. Every bit is flipped or not by a keyed
hash of the bits before it (the method of Crypto-PAn, Xu et al. 2002), with a key that is forgotten. IPv4 stand-ins are from
240.0.0.0/4 (RFC 1112, reserved): the first octet is replaced by a number from 240 upwards, in the order of appearance.
IPv6 stand-ins are from 2001:db8::/32 (RFC 3849), and link-local ones stay link-local.

Addresses without an owner keep their value: unspecified, loopback, multicast, IPv4 link-local, and the ranges for
documentation that stand for everything.
"""

from __future__ import annotations

import hashlib
import ipaddress

from roce_exporter.host.sources.ip_side import ANYWHERE
from roce_exporter.model.ip import EVERYWHERE, network_of

RESERVED, RESERVED_OCTETS = 240, 15
"""255 is left out: 255.255.255.255 is broadcast."""

DOCUMENTATION = int(ipaddress.IPv6Address("2001:db8::"))
LINK_LOCAL = int(ipaddress.IPv6Address("fe80::"))


class SubnetScrubber:
    """Maps addresses and prefixes to their stand-ins."""

    def __init__(self, key: bytes) -> None:
        """`key` has at most 64 bytes; the same key gives the same stand-ins."""
        self._key = key
        self._octets: dict[int, int] = {}

    def address(self, text: str) -> str:
        """The stand-in of an address."""
        address = ipaddress.ip_address(text)
        if _has_no_owner(address) or text in ANYWHERE.values():
            return str(address)
        if isinstance(address, ipaddress.IPv6Address):
            kept, first = (64, LINK_LOCAL) if address.is_link_local else (32, DOCUMENTATION)
            return str(
                ipaddress.IPv6Address(self._flipped(int(address), 128, kept) % 2 ** (128 - kept) + first)
            )
        octet = int(address) >> 24
        stand_in = RESERVED + self._octets.setdefault(octet, len(self._octets)) % RESERVED_OCTETS
        return str(ipaddress.IPv4Address(self._flipped(int(address), 32, 8) % 2**24 + (stand_in << 24)))

    def prefix(self, text: str) -> str:
        """The stand-in of a prefix; that of all addresses is itself."""
        if text in EVERYWHERE.values() or not text:
            return text
        network = network_of(text)
        length = network.prefixlen
        return str(network_of(f"{self.address(str(network.network_address))}/{length}"))

    def _flipped(self, value: int, bits: int, kept: int) -> int:
        """The value with each bit after the first `kept` ones flipped, or not, by a hash of the bits before it."""
        found = value
        for position in range(kept, bits):
            before = value >> (bits - position)
            digest = hashlib.blake2b(
                before.to_bytes(17), key=self._key, digest_size=1, salt=bytes((position,))
            ).digest()
            found ^= (digest[0] & 1) << (bits - position - 1)
        return found


def _has_no_owner(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if address.is_unspecified or address.is_loopback or address.is_multicast:
        return True
    return address.version == 4 and address.is_link_local  # noqa: PLR2004 - of IP
