"""Which packets of a network device are followed to where they leave.

These are packets from each of its addresses to its own subnet, and to every prefix that it reaches by a gateway. A prefix is represented by up to three of its addresses, because a more specific route may lead some of them elsewhere on
purpose. Everything is represented by an address of the ranges for documentation (RFC 5737, RFC 9637), which no route singles
out.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.model.ip import EVERYWHERE, RESOLVED, network_of, version_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.model.ip import IpAddress, IpFacts, IpPath, IpRoute

ANYWHERE = {4: "203.0.113.1", 6: "3fff:fff::1"}

MOST_ADDRESSES, MOST_PREFIXES, MOST_CANDIDATES = 8, 8, 3
"""Addresses of a network device, and prefixes behind its gateways, that are followed."""

REACHABLE = ("global", "site")
"""Scopes of the addresses that peers on other links can use."""


class PathEnds(NamedTuple):
    """Packets from one address to one prefix."""

    source: str
    prefix: str
    candidates: tuple[str, ...]
    """Addresses that represent the prefix."""


def usable_addresses(facts: IpFacts) -> tuple[IpAddress, ...]:
    """The addresses that can be a source for peers elsewhere."""
    found = (one for one in facts.addresses if one.scope in REACHABLE and not one.failed)
    return tuple(found)[:MOST_ADDRESSES]


def gateway_routes(facts: IpFacts, netdev: str) -> tuple[IpRoute, ...]:
    """The routes that lead to a gateway by this network device."""
    return tuple(
        route
        for route in facts.routes
        if route.kind == "unicast" and any(hop.netdev == netdev and hop.gateway for hop in route.hops)
    )


def targets(facts: IpFacts, netdev: str) -> tuple[PathEnds, ...]:
    """The packets of a network device that are followed."""
    peers = [one.address for one in facts.neighbours if one.state == RESOLVED]
    behind = tuple(dict.fromkeys(route.destination for route in gateway_routes(facts, netdev)))
    return tuple(
        target
        for address in usable_addresses(facts)
        for target in _of_address(address, peers, behind)
        if target.candidates
    )


def _of_address(address: IpAddress, peers: Sequence[str], behind: Sequence[str]) -> Iterator[PathEnds]:
    subnet = str(network_of(f"{address.address}/{address.length}"))
    own = {address.address}
    known = [one for one in peers if version_of(one) == version_of(subnet) and is_in(one, subnet)]
    yield PathEnds(address.address, subnet, _candidates(subnet, own, known))
    same_version = (
        prefix for prefix in behind if version_of(prefix) == version_of(subnet) and prefix != subnet
    )
    for prefix in tuple(same_version)[:MOST_PREFIXES]:
        yield PathEnds(address.address, prefix, _candidates(prefix, own, ()))


def _candidates(prefix: str, own: set[str], known: Sequence[str]) -> tuple[str, ...]:
    network = network_of(prefix)
    if network.prefixlen == 0:
        return (ANYWHERE[network.version],)
    last = network.num_addresses - 1
    # Without the network's and the broadcast address, where there are such.
    ends = (1, last - 1) if last > 1 else (0, last)
    offsets = dict.fromkeys((ends[1], last // 2, ends[0], ends[1] - 1, ends[0] + 1))
    chosen = [str(network[offset]) for offset in offsets if 0 <= offset <= last]
    return tuple(dict.fromkeys(one for one in (*known, *chosen) if one not in own))[:MOST_CANDIDATES]


def decisive(paths: Sequence[IpPath], netdev: str) -> IpPath | None:
    """The path that represents a prefix: one by the network device itself, else one that is known; None: all are local."""
    elsewhere = [path for path in paths if not path.local]
    order = sorted(elsewhere, key=lambda path: (path.netdev != netdev, path.unknown, not path.netdev))
    return order[0] if order else None


def is_everywhere(prefix: str) -> bool:
    """Whether a prefix has all addresses."""
    return prefix in EVERYWHERE.values()


def is_in(address: str, prefix: str) -> bool:
    """Whether an address is in a prefix of the same version of IP."""
    return ipaddress.ip_address(address) in network_of(prefix)
