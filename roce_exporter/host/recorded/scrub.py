"""Replacements for values that identify a machine: the same one for the same value, from ranges without an owner.

IPv4 addresses come from 198.18.0.0/15 (RFC 2544), IPv6 addresses from 2001:db8::/32 (RFC 3849), GUIDs and MAC-based
interface identifiers from the locally administered range 0200:00ff:fe00:0000 upwards, MAC addresses from
02:00:00:00:00:00 upwards. A host is named host-001.

Where a capture has the host's subnets and routes, IP addresses get the stand-ins of `subnet_scrub` instead.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from typing import TYPE_CHECKING

from roce_exporter.host.recorded.subnet_scrub import SubnetScrubber

if TYPE_CHECKING:
    from collections.abc import Callable

KEY_BYTES = 32

_GUID = re.compile(r"\b[0-9a-f]{4}(?::[0-9a-f]{4}){3}\b")
_NO_GUID = "0000:0000:0000:0000"
_MAC = re.compile(r"\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b")

_FIRST_IPV4 = int(ipaddress.IPv4Address("198.18.0.1"))
_FIRST_IPV6 = int(ipaddress.IPv6Address("2001:db8::1"))
_FIRST_LINK_LOCAL = int(ipaddress.IPv6Address("fe80::200:ff:fe00:1"))


class Scrubber:
    """Maps each original value to its replacement."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}
        self._subnets: SubnetScrubber | None = None

    def keep_subnets(self) -> None:
        """From now on, stand-ins of IP addresses share as many leading bits as the addresses do."""
        self._subnets = self._subnets or SubnetScrubber(secrets.token_bytes(KEY_BYTES))

    def ip(self, address: str) -> str:
        """The stand-in of an IP address, as text; the one that `gid` has for it."""
        return self._subnets.address(address) if self._subnets else self.peer(address)

    def prefix(self, prefix: str) -> str:
        """The stand-in of a prefix; an empty one stays empty."""
        if self._subnets is None:
            raise RuntimeError("prefixes have stand-ins only after keep_subnets()")
        return self._subnets.prefix(prefix)

    def text(self, text: str) -> str:
        """The text with every GUID and MAC address replaced, except an unset GUID (all zeros)."""
        text = _GUID.sub(lambda match: self._guid(match[0]), text)
        return _MAC.sub(lambda match: self._stand_in("mac", match[0], _mac), text)

    def peer(self, address: str) -> str:
        """The replacement of an IP address, the one that `gid` has for it, as text."""
        found = ipaddress.IPv6Address(self.gid(_unmapped(address)))
        return str(found.ipv4_mapped or found)

    def numbered(self, kind: str, value: str, make: Callable[[int], str]) -> str:
        """The replacement of a value of this kind: `make` of 1 for the first one, of 2 for the second."""
        return self._stand_in(kind, value, lambda number: make(number + 1))

    def hostname(self, name: str) -> str:
        """The replacement of a host's name."""
        return self._stand_in("hostname", name, lambda number: f"host-{number + 1:03}")

    def gid(self, address: str) -> str:
        """The replacement of an address from the inventory, as a GID in the eight groups of sysfs."""
        if self._subnets:
            found = ipaddress.ip_address(self._subnets.address(address))
            return _mapped(int(found)) if found.version == 4 else found.exploded  # noqa: PLR2004 - of IP
        if "." in address and ":" not in address:
            return self._stand_in("ipv4", address, _mapped_ipv4)
        local = ipaddress.IPv6Address(address).is_link_local
        first = _FIRST_LINK_LOCAL if local else _FIRST_IPV6
        kind = "link-local" if local else "ipv6"
        return self._stand_in(kind, address, lambda number: ipaddress.IPv6Address(first + number).exploded)

    def _guid(self, guid: str) -> str:
        return guid if guid == _NO_GUID else self._stand_in("guid", guid, _guid)

    def _stand_in(self, kind: str, value: str, make: Callable[[int], str]) -> str:
        known = self._known.setdefault(kind, {})
        if value not in known:
            known[value] = make(len(known))
        return known[value]


def _unmapped(address: str) -> str:
    found = ipaddress.ip_address(address)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def _mapped_ipv4(number: int) -> str:
    return _mapped(_FIRST_IPV4 + number)


def _mapped(value: int) -> str:
    # By hand, because newer Pythons write a mapped address with dots where sysfs has groups.
    return f"0000:0000:0000:0000:0000:ffff:{value >> 16:04x}:{value & 0xFFFF:04x}"


def _guid(number: int) -> str:
    return f"0200:00ff:fe{number >> 16 & 0xFF:02x}:{number & 0xFFFF:04x}"


def _mac(number: int) -> str:
    return f"02:00:00:{number >> 16 & 0xFF:02x}:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"
