"""Checks of the host: addresses, MTU, PCIe, and the update interval of the counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ANY
from roce_exporter.checks.settings.arithmetic import least_mtu, rdma_mtu
from roce_exporter.checks.settings.check import Check, CheckResult, judged, unreadable

if TYPE_CHECKING:
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


GID = Check(
    "gid",
    "GID table",
    "Programs select a GID by its index: with one of RoCE v1, or of the wrong subnet, no peer behind a router is reachable.",
    gid,
    {ANY: "give {netdev} an IPv4 address: ip address add ADDRESS/LENGTH dev {netdev}"},
)


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


MTU = Check(
    "mtu",
    "MTU",
    "Packets of a quarter of the size reduce throughput; packets of a peer with a larger MTU are dropped here.",
    mtu,
    {ANY: "ip link set dev {netdev} mtu {mtu}"},
)


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


PCIE = Check(
    "pcie",
    "PCIe link",
    "The host accepts data more slowly than the port delivers it: the NIC pauses the switch.",
    pcie,
    {ANY: "check the slot, its BIOS settings and the riser: lspci -vv -s {pci}"},
)


def statistics_refresh(settings: PortSettings, profile: Profile) -> CheckResult | None:  # noqa: ARG001 - signature of a check
    """Whether bnxt updates the counters of the port: at an interval of 0 it does not."""
    if settings.refresh is None:
        return unreadable("above 0")
    return judged(settings.refresh > 0, "above 0", f"{settings.refresh} us")


STATISTICS_REFRESH = Check(
    "statistics_refresh",
    "update interval of the counters",
    "The counters of the port do not change: no storm would be detected.",
    statistics_refresh,
    {ANY: "ethtool -C {netdev} stats-block-usecs 1000000"},
    only=("bnxt_re",),
)

CHECKS = (GID, MTU, PCIE, STATISTICS_REFRESH)
