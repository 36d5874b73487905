"""Checks of addresses and neighbours: what a port needs to reach any peer, although no counter moves without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ANY
from roce_exporter.checks.settings.arithmetic import rdma_mtu
from roce_exporter.checks.settings.check import Check, CheckResult, judged, unreadable
from roce_exporter.checks.settings.ip_settings import is_readable
from roce_exporter.host.sources.ip_side import REACHABLE
from roce_exporter.model.ip import RESOLVED
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.settings.ip_settings import IpNetdev, IpSide
    from roce_exporter.checks.settings.port_settings import PortSettings
    from roce_exporter.checks.settings.profile import Profile


def ip_address(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether a port with a link has an address that peers elsewhere can use. A VF may wait for the pod that gets it."""
    side = settings.ip
    if not profile.addresses or side is None or settings.up is False or settings.kind.endswith("vf"):
        return None
    expected = "an address that is not link-local"
    if not all(map(is_readable, side.own)):
        return unreadable(expected)
    usable = [
        f"{one.address}/{one.length}"
        for netdev in side.own
        for one in netdev.addresses
        if one.scope in REACHABLE and not one.failed
    ]
    others = sorted({one.scope for netdev in side.own for one in netdev.addresses})
    return judged(
        bool(usable),
        expected,
        few(usable) or f"only of scope {', '.join(others)}" if usable or others else "none",
    )


IP_ADDRESS = Check(
    "ip_address",
    "IP address",
    "RoCE v2 packets carry the port's address: without one there is no GID that peers behind a router can reach.",
    ip_address,
    {ANY: "ip address add ADDRESS/LENGTH dev {ip_netdev}"},
)


def duplicate_address(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether another port of this host, or by IPv6's detection another host, has an address of this port."""
    side = settings.ip
    if not profile.addresses or side is None:
        return None
    expected = "each address once"
    if not all(map(is_readable, side.own)):
        return unreadable(expected)
    found = [text for one in side.own for text in _duplicates(side, one)]
    if not found and not any(one.addresses for one in side.own):
        return None
    return judged(not found, expected, few(found) or expected)


def _duplicates(side: IpSide, own: IpNetdev) -> Iterator[str]:
    for mine in own.addresses:
        if mine.failed:
            yield f"{mine.address} is used by another host"
        for _, other in side.host if mine.scope in REACHABLE else ():
            if other.netdev != own.netdev and any(one.address == mine.address for one in other.addresses):
                yield f"{mine.address} is also on {other.netdev}"


DUPLICATE_ADDRESS = Check(
    "duplicate_address",
    "duplicate addresses",
    "Packets of one connection arrive at the port or host whose ARP reply came last: connections time out at random.",
    duplicate_address,
    {ANY: "remove it from one of them: ip address del {address}/{length} dev {ip_netdev}"},
)


def neighbour(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the gateways resolve, and more of the peers than fail.

    One peer that does not resolve may just be switched off, so a few are no fault of this host.
    """
    side = settings.ip
    if not profile.addresses or side is None:
        return None
    expected = "gateways and peers resolve"
    if not all(map(is_readable, side.own)):
        return unreadable(expected)
    gateways = [
        f"gateway {address} {state}"
        for one in side.own
        for address, state in one.gateways.items()
        if state in ("failed", "incomplete")
    ]
    failing = [f"{address} {state}" for one in side.own for address, state in one.failing.items()]
    resolved = sum(one.neighbours.get(RESOLVED, 0) for one in side.own)
    if not gateways and not failing and not resolved:
        return None
    found = ", ".join(filter(None, (few([*gateways, *failing]), f"{resolved} resolved")))
    return judged(not gateways and (not failing or len(failing) < resolved), expected, found)


NEIGHBOUR = Check(
    "neighbour",
    "neighbours",
    "Without the MAC address of its gateway or peer no packet leaves: connections time out while all counters are clean.",
    neighbour,
    {
        ANY: "check VLAN, cabling and the other end, then: ip neigh flush dev {ip_netdev} nud failed; ping -I {ip_netdev} {gateway}"
    },
)


def path_mtu(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether a route, or what routers replied, limits a path to less than the RDMA MTU of the port needs."""
    side = settings.ip
    if not profile.addresses or side is None:
        return None
    limits = {
        prefix: mtu
        for one in side.own
        for prefix, mtu in (*one.limits.items(), *((path.prefix, path.mtu) for path in one.paths))
        if mtu
    }
    if not limits:
        return None
    if settings.mtu is None:
        return unreadable("no path below the RDMA MTU")
    size = rdma_mtu(settings.mtu)
    low = [f"{mtu} to {prefix}" for prefix, mtu in sorted(limits.items()) if rdma_mtu(mtu) < size]
    least = f"at least {min(limits.values())}"
    return judged(not low, f"room for an RDMA MTU of {size}", few(low) or least)


PATH_MTU = Check(
    "path_mtu",
    "MTU of paths",
    "RoCE takes its MTU from the network device only and never fragments: routers with a smaller MTU drop full packets.",
    path_mtu,
    {
        ANY: "correct the path and remove the limit (ip route flush cache; ip route show dev {ip_netdev}), or: ip link set dev {ip_netdev} mtu MTU"
    },
)

CHECKS = (IP_ADDRESS, DUPLICATE_ADDRESS, NEIGHBOUR, PATH_MTU)
