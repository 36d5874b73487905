"""Replacements for values that identify a machine or a user: the same one for the same value, from ranges without an owner.

IPv4 addresses come from 198.18.0.0/15 (RFC 2544), IPv6 addresses from 2001:db8::/32 (RFC 3849), GUIDs and MAC-based
interface identifiers from the locally administered range 0200:00ff:fe00:0000 upwards, MAC addresses from
02:00:00:00:00:00 upwards. A host is named host-001.

Where a capture has the host's subnets and routes, two addresses share as many leading bits as their stand-ins do. So address,
prefix, route, rule and gateway fit together in a recording as on the host. Every bit is flipped or not by a keyed hash of the
bits before it (the method of Crypto-PAn, Xu et al. 2002), with a key that is forgotten. IPv4 stand-ins are then from 240.0.0.0/4
(RFC 1112, reserved): the first octet is replaced by a number from 240 upwards, in the order of appearance. Link-local IPv6
stand-ins stay link-local. Addresses without an owner keep their value: unspecified, loopback, multicast, IPv4 link-local, and the
ranges for documentation that stand for everything.

In what /proc reports of processes, users are replaced, and the names of pods, containers, jobs and instances in cgroups. Each keeps
its form, so that the owner of a cgroup is found in the recording as on the host. Commands are kept. A part of a path that has
no known form may be the name of a project or a person, so it is replaced, too.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from typing import TYPE_CHECKING

from roce_exporter.host.sources.ip_side import ANYWHERE
from roce_exporter.model.ip import EVERYWHERE, network_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.model.owner import ProcessFacts


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
            return self._stand_in("ipv4", address, lambda number: _mapped(_FIRST_IPV4 + number))
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


def _mapped(value: int) -> str:
    # By hand, because newer Pythons write a mapped address with dots where sysfs has groups.
    return f"0000:0000:0000:0000:0000:ffff:{value >> 16:04x}:{value & 0xFFFF:04x}"


def _guid(number: int) -> str:
    return f"0200:00ff:fe{number >> 16 & 0xFF:02x}:{number & 0xFFFF:04x}"


def _mac(number: int) -> str:
    return f"02:00:00:{number >> 16 & 0xFF:02x}:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"


ROOT = "root"

_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_POD = re.compile(r"(?<=pod)[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}(?![0-9a-f])")
_STATIC_POD = re.compile(r"(?<=pod)[0-9a-f]{32}(?![0-9a-f])")
"""The UID of a static pod is a hash without hyphens."""
_JOB = re.compile(r"(?<=^job_)\d+$", re.ASCII)
_UID = re.compile(r"(?<=^uid_)\d+$|(?<=^user-)\d+(?=\.slice$)|(?<=^user@)\d+(?=\.service$)", re.ASCII)
_INSTANCE = re.compile(r"(?<=@)[^@]+(?=\.(?:service|socket|slice)$)")
_MACHINE = re.compile(r"(?<=^machine-).+(?=\.(?:scope|slice)$)")

_NODE = re.compile(r"(?<=^slurm_).+|.+(?=_slurmstepd\.scope$)")
"""Slurm puts the name of the node there if one host has several."""

_UNIT = re.compile(r".+\.(?:service|scope|slice|socket|mount|swap)")
_KNOWN = re.compile(
    r"|\.\.|init|user|system|slurm(?:_.+)?|docker|lxc|libpod|kubepods|besteffort|burstable|guaranteed"
    r"|(?:step|task|job|uid)_[\w.+]+|pod[0-9a-f_-]{32,36}"
    r"|(?:(?:crio|docker|libpod|cri-containerd)-|[\w.-]+:cri-containerd:)?[0-9a-f]{64}"
)
_DELETED = " (deleted)"
"""Appended by the kernel to the path of a removed cgroup of version 2."""

_LOCAL_UIDS = 60_000
"""Replaced user numbers are above it."""


def scrub_user(scrub: Scrubber, user: str) -> str:
    """The replacement of a user's name or number; `root` stays."""
    return user if user in ("", ROOT) else scrub.numbered("user", user, lambda number: f"user{number}")


def scrub_process(scrub: Scrubber, facts: ProcessFacts) -> ProcessFacts:
    """The process with everything replaced that names a user, a pod, a container, a job or an instance."""
    lines = (_line(scrub, line, facts.user) for line in facts.cgroups.splitlines())
    return facts._replace(user=scrub_user(scrub, facts.user), cgroups="".join(f"{line}\n" for line in lines))


def _line(scrub: Scrubber, line: str, user: str) -> str:
    """A line of /proc/PID/cgroup: `HIERARCHY:CONTROLLERS:PATH`."""
    head, colon, path = line.partition(":/")
    here = path.removesuffix(_DELETED)
    parts = (_part(scrub, part, user) for part in here.split("/"))
    return f"{head}{colon}{'/'.join(parts)}{path.removeprefix(here)}"


def _part(scrub: Scrubber, part: str, user: str) -> str:
    if not (_UNIT.fullmatch(part) or _KNOWN.fullmatch(part)):
        return scrub.numbered("cgroup", part, lambda number: f"group{number}")
    part = _CONTAINER.sub(
        lambda found: scrub.numbered("container", found[0], lambda n: f"{n:012x}".ljust(64, "0")), part
    )
    part = _POD.sub(lambda found: _pod(scrub, found[0]), part)
    part = _STATIC_POD.sub(lambda found: scrub.numbered("pod", found[0], lambda n: f"{n:032x}"), part)
    part = _NODE.sub(lambda found: scrub.numbered("node", found[0], lambda n: f"node{n}"), part)
    part = _JOB.sub(lambda found: scrub.numbered("job", found[0], str), part)
    part = _UID.sub(lambda found: scrub.numbered("uid", found[0], lambda n: str(_LOCAL_UIDS + n)), part)
    if not _UID.search(part):
        for pattern in (_INSTANCE, _MACHINE):
            part = pattern.sub(
                lambda found: scrub.numbered("instance", found[0], lambda n: f"instance{n}"), part
            )
    return _without_name(scrub, part, user)


def _without_name(scrub: Scrubber, part: str, user: str) -> str:
    """The part without this user's name where it is a word of it: units such as `jupyter-alice.service`."""
    if user in ("", ROOT) or user.isdecimal():
        return part
    word = rf"(?<![^\W_]){re.escape(user)}(?![^\W_])"
    return re.sub(word, scrub_user(scrub, user), part)


def _pod(scrub: Scrubber, uid: str) -> str:
    separator = "_" if "_" in uid else "-"
    made = scrub.numbered(
        "pod", uid.replace("_", "-"), lambda number: f"00000000-0000-4000-8000-{number:012x}"
    )
    return made.replace("-", separator)
