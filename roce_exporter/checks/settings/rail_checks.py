"""Checks of hosts with several rails: whether packets leave by the rail of their source address, and ARP replies name it.

The kernel chooses a route by the destination unless rules say otherwise, and replies to ARP requests for any address
of the host on any network device. Documentation/networking/ip-sysctl.rst has the settings. A host with one rail needs none of
this and is only checked for packets that do not leave at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.settings.check import CheckResult, judged, unreadable
from roce_exporter.checks.settings.ip_settings import are_paths_readable, remote_prefixes, shared_subnets
from roce_exporter.model.ip import version_of
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.settings.ip_settings import FollowedPath, IpNetdev, IpSide
    from roce_exporter.checks.settings.port_settings import PortSettings
    from roce_exporter.checks.settings.profile import Profile

STRICT = 1
"""Of rp_filter."""

MOST_DIFFER = 2
"""Similar ports that must have a route before its absence counts: of two ports, either may be meant to differ."""


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


def ip_rule(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether packets leave by the rail of their source address."""
    side = settings.ip
    if not profile.multi_rail or side is None or not side.is_multi_rail:
        return None
    expected = "packets leave by the port of their source"
    found = [text for one in side.own if not dangling(one) for text in _unruled(one)]
    if found:
        return judged(False, expected, few(found))
    if not _are_known(side):
        return unreadable(expected)
    return judged(True, expected, expected)


def _unruled(one: IpNetdev) -> Iterator[str]:
    for path in strayed(one):
        yield f"{path.source} to {path.prefix} leaves by {path.netdev}"
    for path in one.paths:
        if path.netdev == "" and not _is_own_subnet(one, path.prefix):
            yield f"no rule leads {path.source} to the route to {path.prefix}"


def _is_own_subnet(one: IpNetdev, prefix: str) -> bool:
    return any(prefix == mine.subnet for mine in one.addresses)


def _are_known(side: IpSide) -> bool:
    return all(
        are_paths_readable(one) and all(path.netdev is not None for path in one.paths) for one in side.own
    )


def ip_route(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether packets from each address leave at all, and reach what most NICs of the same kind reach."""
    side = settings.ip
    if not profile.multi_rail or side is None or not any(one.addresses for one in side.own):
        return None
    expected = "a route for each address"
    found = [text for one in side.own for text in _without_route(side, settings.kind, one)]
    if found:
        return judged(False, expected, few(found))
    if not _are_known(side):
        return unreadable(expected)
    return judged(True, expected, expected)


def _without_route(side: IpSide, kind: str, one: IpNetdev) -> Iterator[str]:
    yield from dangling(one)
    for path in one.paths:
        if path.netdev == "" and _is_own_subnet(one, path.prefix):
            yield f"no route from {path.source} to {path.prefix}"
    others = [
        remote_prefixes(other)
        for of, other in side.host
        if of == kind and other.netdev != one.netdev and other.addresses
    ]
    for prefix in sorted({prefix for prefixes in others for prefix in prefixes} - remote_prefixes(one)):
        has = sum(prefix in prefixes for prefixes in others)
        if has >= MOST_DIFFER and has * 2 > len(others) and one.usable(version_of(prefix)):
            yield f"no route to {prefix}, which {has} of {len(others)} similar ports have"


def rp_filter(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the reverse path filter drops packets that arrive at this rail: strict, and replies leave by another one."""
    side = settings.ip
    if not profile.multi_rail or side is None or not side.is_multi_rail:
        return None
    asymmetric = any(strayed(one) for one in side.own)
    expected = "0 or 2" if asymmetric else "0, 2, or 1 as replies leave here"
    values = [one.sysctls.get("rp_filter") for one in side.own]
    if None in values or not _are_known(side):
        return unreadable(expected)
    return judged(not (asymmetric and STRICT in values), expected, _listed(values))


def _listed(values: list[int | None]) -> str:
    return ", ".join(str(value) for value in dict.fromkeys(values))


def arp_ignore(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether only the rail with the address replies to an ARP request for it, where several rails share a subnet."""
    return _in_shared_subnet(settings, profile, "arp_ignore", "1 or 2", (1, 2))


def arp_announce(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether ARP requests carry an address of the rail that they leave by, where several rails share a subnet."""
    return _in_shared_subnet(settings, profile, "arp_announce", "2", (2,))


def _in_shared_subnet(
    settings: PortSettings, profile: Profile, name: str, expected: str, right: tuple[int, ...]
) -> CheckResult | None:
    side = settings.ip
    if not profile.multi_rail or side is None:
        return None
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
    found = f"{_listed(values)}, same subnet as {few(neighbours)}"
    return judged(filtered or all(value in right for value in values), expected, found)
