"""Checks of the IP side: addresses and neighbours, which a port needs to reach any peer although no counter moves without them; and rails.

The kernel chooses a route by the destination unless rules say otherwise, and replies to ARP requests for any address of the host on any
network device. Documentation/networking/ip-sysctl.rst has the settings. A host with several rails must lead each packet out by the rail of
its source address: RoCE takes the network device from the GID, but the kernel, ARP and the reverse path filter take it from rules and
routes. A host with one rail needs no rules and is only checked for packets that do not leave at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps

from roce_exporter.checks.settings.arithmetic import rdma_mtu
from roce_exporter.checks.settings.check import CheckResult, judged, unreadable
from roce_exporter.checks.settings.port_settings import VERSIONS, FollowedPath, IpNetdev, IpSide, PortSettings
from roce_exporter.checks.settings.profile import Profile
from roce_exporter.host.sources.ip_side import FACTS, PATHS, REACHABLE, is_everywhere
from roce_exporter.model.ip import RESOLVED, network_of, version_of
from roce_exporter.words import few

Judge = Callable[[PortSettings, Profile], CheckResult | None]
SideJudge = Callable[[PortSettings, IpSide], CheckResult | None]


def is_readable(one: IpNetdev) -> bool:
    """Whether the kernel reported addresses, neighbours and rules."""
    return FACTS not in one.missing


def shared_subnets(side: IpSide, one: IpNetdev) -> tuple[str, ...]:
    """Names of the other network devices of the host with an address in a subnet of this one, sorted."""
    found = set()
    for version in VERSIONS:
        nets = [network_of(mine.subnet) for mine in one.usable(version)]
        for other in side.rails(version):
            if other.netdev != one.netdev and any(
                net.overlaps(network_of(theirs.subnet)) for net in nets for theirs in other.usable(version)
            ):
                found.add(other.netdev)
    return tuple(sorted(found))


def remote_prefixes(one: IpNetdev) -> frozenset[str]:
    """The prefixes that a rail reaches by a gateway.

    The default route counts only where a rule leads the rail's packets to it: that of the whole host says nothing about
    the rail's fabric.
    """
    subnets = {mine.subnet for mine in one.addresses}
    ruled = {rule.source.partition("/")[0] for rule in one.rules}
    return frozenset(
        path.prefix
        for path in one.paths
        if path.prefix not in subnets and (not is_everywhere(path.prefix) or path.source in ruled)
    )


STRICT = 1
"""Of rp_filter."""

MOST_DIFFER = 2
"""Similar ports that must have a route before its absence counts: of two ports, either may be meant to differ where no rule says."""


def _of(key: str) -> Callable[[SideJudge], Judge]:
    """A judge of the IP side, where this key of the profile is set and the host reports one."""

    def made(judge: SideJudge) -> Judge:
        @wraps(judge)
        def whole(settings: PortSettings, profile: Profile) -> CheckResult | None:
            return judge(settings, settings.ip) if settings.ip and getattr(profile, key) else None

        return whole

    return made


@_of("addresses")
def ip_address(settings: PortSettings, side: IpSide) -> CheckResult | None:
    """Whether a port with a link has an address that peers elsewhere can use. A VF may wait for the pod that gets it."""
    if settings.up is False or settings.kind.endswith("vf"):
        return None
    expected = "an address that is not link-local"
    if not all(map(is_readable, side.own)):
        return unreadable(expected)
    found = [one for netdev in side.own for version in VERSIONS for one in netdev.usable(version)]
    usable = few([f"{one.address}/{one.length}" for one in found])
    rails = {mine.subnet for _, rail in side.host for mine in rail.addresses if rail not in side.own}
    if wide := [
        f"{one.subnet} contains {part}"
        for one in found
        for part in sorted(rails)
        if _contains(one.subnet, part)
    ]:
        return judged(False, "subnets of rails are apart, or the same", few(wide))
    others = sorted({one.scope for netdev in side.own for one in netdev.addresses})
    scopes = f"only of scope {', '.join(others)}" if others else "none"
    return judged(bool(usable), expected, usable or scopes)


def _contains(mine: str, other: str) -> bool:
    """Whether the subnet of another rail, of several hosts, is a part of the own one: its length is wrong."""
    own, part = network_of(mine), network_of(other)
    return own.overlaps(part) and own.prefixlen < part.prefixlen and part.num_addresses > 2  # noqa: PLR2004 - of a link of two ends


@_of("addresses")
def duplicate_address(_: PortSettings, side: IpSide) -> CheckResult | None:
    """Whether another port of this host, or by IPv6's detection another host, has an address of this port."""
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


@_of("addresses")
def neighbour(_: PortSettings, side: IpSide) -> CheckResult | None:
    """Whether the gateways resolve, and more of the peers than fail.

    One peer that does not resolve may just be switched off, so a few are no fault of this host.
    """
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


@_of("addresses")
def path_mtu(settings: PortSettings, side: IpSide) -> CheckResult | None:
    """Whether a route, or what routers replied, limits a path to less than the RDMA MTU of the port needs."""
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


def dangling(one: IpNetdev) -> list[str]:
    """Rules for this network device's addresses whose table has no route by it."""
    return [
        f"rule {rule.priority} leads {rule.source} to table {rule.table}, which has no route by {one.netdev}"
        for rule in one.rules
        if not rule.routes and _is_own(one, rule.source)
    ]


def _is_own(one: IpNetdev, prefix: str) -> bool:
    """Whether a prefix is one address of the network device, or one of its subnets."""
    address, _, length = prefix.partition("/")
    return any(
        prefix == mine.subnet or (address == mine.address and int(length) in (32, 128))
        for mine in one.addresses
    )


def strayed(one: IpNetdev) -> list[FollowedPath]:
    """The packets that leave by another network device."""
    return [path for path in one.paths if path.netdev and path.netdev != one.netdev]


def _is_judged(side: IpSide) -> bool:
    """Whether it matters by which port packets leave: of several rails, or of one with a table, or in whose subnet a card without RDMA takes them."""
    own = {one.netdev for one in side.own}
    return side.is_multi_rail or any(
        one.unled or any(path.netdev not in own and _is_own_subnet(one, path.prefix) for path in strayed(one))
        for one in side.own
    )


@_of("multi_rail")
def ip_rule(_: PortSettings, side: IpSide) -> CheckResult | None:
    """Whether packets leave by the rail of their source address."""
    if not _is_judged(side):
        return None
    found = [text for one in side.own if not dangling(one) for text in _unruled(one)]
    return _leaving(side, "packets leave by the port of their source", found)


def _leaving(side: IpSide, expected: str, found: list[str]) -> CheckResult:
    """The result of a check that found this wrong, or nothing, which says something only where all paths are known."""
    known = found or _are_known(side)
    return judged(not found, expected, few(found) or expected) if known else unreadable(expected)


def _unruled(one: IpNetdev) -> Iterator[str]:
    for path in strayed(one):
        yield f"{path.source} to {path.prefix} leaves by {path.netdev}"
    for path in one.paths:
        if path.netdev == "" and not _is_own_subnet(one, path.prefix):
            yield f"no rule leads {path.source} to the route to {path.prefix}"
    for table in () if one.rules else one.unled:
        yield f"no rule leads to table {table}, which has routes by {one.netdev}"


def _is_own_subnet(one: IpNetdev, prefix: str) -> bool:
    return any(prefix == mine.subnet for mine in one.addresses)


def _are_known(side: IpSide) -> bool:
    return all(
        not one.missing & {FACTS, PATHS} and all(path.netdev is not None for path in one.paths)
        for one in side.own
    )


@_of("multi_rail")
def ip_route(settings: PortSettings, side: IpSide) -> CheckResult | None:
    """Whether packets from each address leave at all, and reach what most NICs of the same kind reach."""
    if not any(one.addresses for one in side.own):
        return None
    found = [text for one in side.own for text in _without_route(side, settings.kind, one)]
    return _leaving(side, "a route for each address", found)


def _without_route(side: IpSide, kind: str, one: IpNetdev) -> Iterator[str]:
    yield from dangling(one)
    for path in one.paths:
        if path.netdev == "" and _is_own_subnet(one, path.prefix):
            yield f"no route from {path.source} to {path.prefix}"
    # A table that a rule leads to, and that has no more than the subnet, is a rail's table whose gateway was forgotten. A strict filter
    # drops what the rail gets from beyond its subnet, if the way back is another card's.
    has_table = any(rule.routes for rule in one.rules) and not shared_subnets(side, one)
    is_strict = one.sysctls.get("rp_filter") == STRICT and not one.rules and not strayed(one)
    others = [
        remote_prefixes(other)
        for of, other in side.host
        if of == kind and other.netdev != one.netdev and other.addresses
    ]
    for prefix in sorted({prefix for prefixes in others for prefix in prefixes} - remote_prefixes(one)):
        has = sum(prefix in prefixes for prefixes in others)
        least = 1 if (has_table or is_strict) and is_everywhere(prefix) else MOST_DIFFER
        if has >= least and has * 2 > len(others) and one.usable(version_of(prefix)):
            yield f"no route to {prefix}, which {has} of {len(others)} similar ports have"


@_of("multi_rail")
def rp_filter(_: PortSettings, side: IpSide) -> CheckResult | None:
    """Whether the reverse path filter drops packets that arrive at this rail: strict, and replies leave by another one."""
    if not _is_judged(side):
        return None
    asymmetric = any(strayed(one) for one in side.own)
    expected = "0 or 2" if asymmetric else "0, 2, or 1 as replies leave here"
    values = [one.sysctls.get("rp_filter") for one in side.own]
    if None in values or not _are_known(side):
        return unreadable(expected)
    return judged(not (asymmetric and STRICT in values), expected, few([*dict.fromkeys(values)]))


def _in_shared_subnet(side: IpSide, name: str, expected: str, right: tuple[int, ...]) -> CheckResult | None:
    shared = [(one, others) for one in side.own if (others := shared_subnets(side, one))]
    if not shared:
        return None
    values = [one.sysctls.get(name) for one, _ in shared]
    if None in values:
        return unreadable(expected)
    # arp_filter lets the routing table decide who replies, which is right where the rules are.
    filtered = name == "arp_ignore" and all(
        one.sysctls.get("arp_filter") and not strayed(one) for one, _ in shared
    )
    neighbours = sorted({netdev for _, netdevs in shared for netdev in netdevs})
    found = f"{few([*dict.fromkeys(values)])}, same subnet as {few(neighbours)}"
    return judged(filtered or all(value in right for value in values), expected, found)


# Where several rails share a subnet: whether only the rail with the address replies to an ARP request for it, and whether ARP
# requests carry an address of the rail that they leave by.
arp_ignore = _of("multi_rail")(lambda _, side: _in_shared_subnet(side, "arp_ignore", "1 or 2", (1, 2)))
arp_announce = _of("multi_rail")(lambda _, side: _in_shared_subnet(side, "arp_announce", "2", (2,)))
