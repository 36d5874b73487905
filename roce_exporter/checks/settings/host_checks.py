"""Checks of the host: GIDs, MTU, PCIe, the update interval of the counters; addresses and neighbours: what a port needs to reach any peer, although no counter moves without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.settings.arithmetic import least_mtu, rdma_mtu
from roce_exporter.checks.settings.check import CheckResult, judged, unreadable
from roce_exporter.checks.settings.ip_settings import is_readable
from roce_exporter.host.sources.ip_side import REACHABLE
from roce_exporter.model.ip import RESOLVED
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.settings.ip_settings import IpNetdev, IpSide
    from roce_exporter.checks.settings.port_settings import PortSettings
    from roce_exporter.checks.settings.profile import Profile

KIND = {1: "IB/RoCE v1", 2: "RoCE v2"}


def gid(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the port has a GID of the expected version with an IPv4 or IPv6 address. The link-local one does not count."""
    version = profile.roce_version
    if version is None:
        return None
    expected = f"RoCE v{version} with an IP address"
    if not settings.gids:
        return unreadable(expected)
    kinds = sorted({one.type.rpartition(" ")[2] for one in settings.gids})
    indices = [
        one.index
        for one in settings.gids
        # A link-local address is made of the MAC address: no router forwards it.
        if one.type == KIND[version] and not one.address.startswith("fe80:")
    ]
    found = f"index {', '.join(map(str, indices))}" if indices else f"only {' and '.join(kinds)} without it"
    return judged(bool(indices), expected, found)


def mtu(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the expected RDMA MTU fits into the network device's MTU."""
    size = profile.rdma_mtu
    if size is None:
        return None
    expected = f"{least_mtu(size)} or more, for an RDMA MTU of {size}"
    if settings.mtu is None:
        return unreadable(expected)
    fits = rdma_mtu(settings.mtu)
    return judged(fits >= size, expected, f"{settings.mtu}, for {fits}")


def pcie(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the PCIe link is as wide and as fast as the device supports. A VF has none of its own."""
    link = settings.pcie
    if not profile.full_pcie or (link is None and not settings.pci):
        return None
    if link is None:
        return unreadable("as the device supports")
    return judged(
        link.speed >= link.max_speed and link.width >= link.max_width,
        _link(link.max_width, link.max_speed),
        _link(link.width, link.speed),
    )


def _link(width: int, speed: int) -> str:
    return f"x{width} at {speed / 1_000_000_000:g} GT/s"


def statistics_refresh(settings: PortSettings, profile: Profile) -> CheckResult | None:  # noqa: ARG001 - signature of a check
    """Whether bnxt updates the counters of the port: at an interval of 0 it does not."""
    if settings.refresh is None:
        return unreadable("above 0")
    return judged(settings.refresh > 0, "above 0", f"{settings.refresh} us")


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
