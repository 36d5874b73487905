"""The IP side of a network device: addresses, neighbours, routes, policy rules. Frozen data, without I/O.

Follows include/uapi/linux/rtnetlink.h, fib_rules.h and neighbour.h. Addresses are text in their shortest form; a prefix is
`ADDRESS/LENGTH`, and the prefix of all addresses is `0.0.0.0/0` or `::/0`.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

RESOLVED, INCOMPLETE, FAILED = "resolved", "incomplete", "failed"
NEIGHBOUR_STATES = (RESOLVED, INCOMPLETE, FAILED)
"""What is known of a neighbour's MAC address: it is known (also when it must be confirmed), it is being requested, or no
reply came."""

MAIN, LOCAL, DEFAULT = 254, 255, 253
"""The tables that every host has."""

EVERYWHERE = {4: "0.0.0.0/0", 6: "::/0"}

NO_LIMIT = 0xFFFFFFFF
"""`suppress_prefixlength` of a rule that suppresses nothing."""


def unmapped(address: str | bytes) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address, of IPv4 where it is written as `::ffff:192.0.2.1`. Raises ValueError: it is none."""
    found = ipaddress.ip_address(address)
    return (isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped) or found


@dataclass(frozen=True, slots=True)
class IpAddress:
    """An address of a network device."""

    address: str
    length: int
    scope: str
    """`global`, `site`, `link`, `host`, or a number."""
    failed: bool = False
    """Whether duplicate address detection found another host with it (IFA_F_DADFAILED); IPv6 only."""
    tentative: bool = False
    """Whether that detection has not ended."""


@dataclass(frozen=True, slots=True)
class IpNeighbour:
    """A unicast entry of the neighbour table (ARP, NDP) that the kernel resolves."""

    address: str
    state: str
    """One of `NEIGHBOUR_STATES`."""
    seconds: float | None = None
    """Time since its state last changed; None if not reported."""


@dataclass(frozen=True, slots=True)
class NextHop:
    """Where a route leads."""

    netdev: str
    gateway: str = ""
    """Empty: the destination is on the link."""
    usable: bool = True
    """False: the kernel skips it (RTNH_F_DEAD). It still uses one whose link is down, unless `ignore_routes_with_linkdown` is set."""


@dataclass(frozen=True, slots=True)
class IpRoute:
    """A route of one table."""

    table: int
    destination: str
    kind: str = "unicast"
    hops: tuple[NextHop, ...] = ()
    metric: int = 0
    mtu: int = 0
    """In bytes; 0: the network device's."""
    advmss: int = 0
    """The TCP segment size that is announced; 0: from the MTU."""
    tos: int = 0
    source: str = ""
    """Prefix of the sources that it is for; empty: for all. IPv6 only."""


@dataclass(frozen=True, slots=True)
class IpRule:
    """A policy rule: which packets are looked up in which table."""

    priority: int
    version: int
    """4 or 6."""
    table: int
    action: str = "lookup"
    """`lookup`, `goto`, `nop`, `unreachable`, `blackhole`, `prohibit`."""
    source: str = ""
    """A prefix; empty: any."""
    destination: str = ""
    inverted: bool = False
    input: str = ""
    """Name of the network device by which a packet came; `lo` for those of this host."""
    output: str = ""
    """Name of the network device to which the socket is bound."""
    mark: int = 0
    mask: int = 0
    """Of the firewall mark: a packet without mark matches where `mark` has no bit of `mask`."""
    target: int = 0
    """For `goto`: priority of the next rule."""
    suppress: int = NO_LIMIT
    """Routes with a prefix of at most this length do not count; `NO_LIMIT`: all count."""
    others: tuple[str, ...] = ()
    """Names of selectors that are not in these fields."""


@dataclass(frozen=True, slots=True)
class IpFacts:
    """What the kernel reports of one network device."""

    addresses: tuple[IpAddress, ...] = ()
    neighbours: tuple[IpNeighbour, ...] = ()
    routes: tuple[IpRoute, ...] = ()
    """Those that leave by this network device, from all tables."""
    rules: tuple[IpRule, ...] = ()
    """Of the whole network namespace, in the order in which the kernel tries them."""
    capped: tuple[str, ...] = ()
    """Names of the fields above that are incomplete because the host has too many."""


@dataclass(frozen=True, slots=True)
class IpPath:
    """How a packet of this host from one address to another leaves."""

    netdev: str = ""
    """Empty: it does not leave, for the reason in `failure`."""
    gateway: str = ""
    mtu: int = 0
    """What the kernel knows of the path's MTU, from the route or from ICMP, in bytes; 0: the network device's."""
    local: bool = False
    """Whether the destination is an address of this host."""
    failure: str = ""
    """The kernel's reason, such as `unreachable`."""
    unknown: bool = False
    """Whether a rule with an unsupported selector, or a missing table, leaves the result open."""


def version_of(text: str) -> int:
    """4 or 6, of an address or a prefix."""
    return 6 if ":" in text else 4


@lru_cache(maxsize=4096)
def network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """The network of a prefix or of an address with its length. ValueError: it is neither."""
    return ipaddress.ip_network(text, strict=False)
