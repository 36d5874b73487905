"""Checks of what is below and around: addresses, MTU, PCIe, the refresh of counters, and ports beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.audit.arithmetic import least_mtu, rdma_mtu
from roce_exporter.audit.verdict import Answer, Check, Mend, judged, unreadable

if TYPE_CHECKING:
    from roce_exporter.audit.facts import Facts
    from roce_exporter.audit.profile import Profile

KIND = {1: "IB/RoCE v1", 2: "RoCE v2"}


def gid(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the port has a GID of the wanted version with an IPv4 address. The link-local one does not count."""
    wanted = profile.roce_version
    if wanted is None:
        return None
    expected = f"RoCE v{wanted} with IPv4"
    if not facts.gids:
        return unreadable(expected)
    kinds = sorted({one.type.rpartition(" ")[2] for one in facts.gids})
    indices = [one.index for one in facts.gids if one.type == KIND[wanted] and ":" not in one.address]
    found = f"index {', '.join(map(str, indices))}" if indices else f"only {' and '.join(kinds)} without it"
    return judged(bool(indices), expected, found)


def mtu(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the network device's MTU leaves room for the wanted RDMA MTU."""
    wanted = profile.rdma_mtu
    if wanted is None:
        return None
    expected = f"{least_mtu(wanted)} or more, for an RDMA MTU of {wanted}"
    if facts.mtu is None:
        return unreadable(expected)
    return judged(rdma_mtu(facts.mtu) >= wanted, expected, f"{facts.mtu}, for {rdma_mtu(facts.mtu)}")


def pcie(facts: Facts, profile: Profile) -> Answer | None:
    """Whether the PCIe link is as wide and as fast as the device is able to. A VF has none of its own."""
    slot = facts.slot
    if not profile.full_pcie or (slot is None and not facts.pci):
        return None
    if slot is None:
        return unreadable("as the device is able to")
    return judged(
        slot.speed >= slot.most_speed and slot.width >= slot.most_width,
        _link(slot.most_width, slot.most_speed),
        _link(slot.width, slot.speed),
    )


def _link(width: int, speed: int) -> str:
    return f"x{width} at {speed / 1_000_000_000:g} GT/s"


def statistics_refresh(facts: Facts, profile: Profile) -> Answer | None:  # noqa: ARG001 - every check gets the profile
    """Whether bnxt goes on counting: at 0 it leaves the counters of the port as they are."""
    if facts.dialect != "bnxt_re":
        return None
    if facts.refresh is None:
        return unreadable("above 0")
    return judged(facts.refresh > 0, "above 0", f"{facts.refresh} us")


CHECKS = (
    Check(
        "gid",
        "GID table",
        "Programs pick a GID by its index: one of RoCE v1, or of the wrong subnet, reaches nobody behind a router.",
        gid,
        Mend("give {netdev} an IPv4 address: ip address add ADDRESS/LENGTH dev {netdev}"),
    ),
    Check(
        "mtu",
        "MTU",
        "Packets of a quarter of the size cost throughput; a peer with a larger MTU sends what is thrown away here.",
        mtu,
        Mend("ip link set dev {netdev} mtu {mtu}"),
    ),
    Check(
        "pcie",
        "PCIe link",
        "The host takes in less than the port brings: the NIC pauses the switch.",
        pcie,
        Mend("look at the slot, its BIOS settings and the riser: lspci -vv -s {pci}"),
    ),
    Check(
        "statistics_refresh",
        "refresh of the counters",
        "Pause durations stand still: no storm would be seen.",
        statistics_refresh,
        Mend("ethtool -C {netdev} stats-block-usecs 1000000"),
    ),
)
