"""Checks of a port: what makes a priority lossless, congestion control (marks, CNPs), GIDs, MTU, PCIe, the update interval of counters.

A judge has the name of its check in `checks.txt`, which has title, reason and fix: it is a row of `JUDGES`, or a function where a row does not
suffice. It returns None where the profile does not set the value, or the hardware does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from roce_exporter.checks.settings.arithmetic import SLOWEST, dscp_of, is_ect, least_mtu, rdma_mtu
from roce_exporter.checks.settings.arithmetic import headroom as needed_headroom
from roce_exporter.checks.settings.check import CheckResult, equal, judged, on_or_off, unreadable, within
from roce_exporter.checks.settings.port_settings import (
    PRIORITIES,
    PortSettings,
    expected_tos,
    lossless_priorities,
    mapped_dscps,
    priority_of,
    roce_priority,
)
from roce_exporter.checks.settings.profile import Profile
from roce_exporter.host.kernel.dcb_netlink import MODES

SCHEDULERS = {0: "strict", 1: "credit-based shaper", 2: "ETS", 255: "vendor"}
"""IEEE_8021QAZ_TSA_* of include/uapi/linux/dcbnl.h."""
STARVED = 5
"""A share in percent up to which no other scheduler is wrong: strict priority never starves the class."""
ENABLED = "cc.enabled.one"
CNP_DSCP_NAME = "np.cnp_dscp.one"
CNP_PRIORITY_NAME = "np.cnp_priority.one"
"""Names in `PortSettings.dcqcn`."""
KIND = {1: "IB/RoCE v1", 2: "RoCE v2"}


def listed(priorities: Iterable[int]) -> str:
    """Priorities as text: `3,4`, or `none`."""
    return ",".join(map(str, sorted(priorities))) or "none"


def judged_pfc(found: Collection[int] | None, profile: Profile) -> CheckResult:
    """Whether PFC is on for the priorities of the profile, at either end of a link; without them, for one priority at most."""
    priorities = profile.lossless_priorities
    if priorities is None:
        return within("at most one", found, lambda on: len(on) <= 1, listed)
    return within(listed(priorities), found, lambda on: set(on) == set(priorities), listed)


def peer_pfc(settings: PortSettings, _: Profile) -> CheckResult | None:
    """Whether the switch has PFC on for the same priorities. Only firmware that runs DCBX reports it."""
    here, there = settings.pfc, settings.peer_pfc
    if here is None or there is None:
        return None
    return judged(here == there, f"{listed(here)} as here", listed(there))


def dscp_priority(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the DSCP of RoCE maps to its priority; if the profile has no DSCP, whether any DSCP does."""
    priority = roce_priority(settings, profile)
    if priority is None or settings.trust == "pcp":
        return None
    if profile.roce_dscp is not None:
        return _mapped(settings, profile.roce_dscp, priority)
    those = None if settings.dscp_priority is None else mapped_dscps(settings, priority)
    return within(f"some DSCP to {priority}", those, bool, listed)


def _mapped(settings: PortSettings, dscp: int | None, priority: int | None) -> CheckResult | None:
    if dscp is None or priority is None or settings.trust == "pcp":
        return None
    return equal(priority, priority_of(settings, dscp), f"{dscp} to {{}}")


def lossless_bandwidth(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the traffic class of RoCE has its share of the bandwidth. Of a share up to `STARVED` only that it is not there is said."""
    priority, share = roce_priority(settings, profile), profile.lossless_bandwidth
    if priority is None or share is None:
        return None
    expected = f"ETS, {share} % or more" if share > STARVED else f"no share below {share} %"
    if settings.traffic_class is None or settings.algorithm is None or settings.bandwidth is None:
        return unreadable(expected) if share > STARVED else None
    number = settings.traffic_class[priority]
    found, scheduler = settings.bandwidth[number], _scheduler(settings.algorithm[number])
    ok = found >= share if scheduler == "ETS" else share <= STARVED
    said = f"{scheduler}, {found} % of class {number}"
    return None if ok and share <= STARVED else judged(ok, expected, said)


def cnp_strict(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the traffic class of CNPs has strict priority."""
    if not profile.cnp_strict or profile.cnp_priority is None:
        return None
    if settings.traffic_class is None or settings.algorithm is None:
        return unreadable("strict")
    number = settings.traffic_class[profile.cnp_priority]
    scheduler = _scheduler(settings.algorithm[number])
    return judged(scheduler == "strict", "strict", f"{scheduler}, class {number}")


def _scheduler(algorithm: int) -> str:
    return SCHEDULERS.get(algorithm, str(algorithm))


def lossless_buffer(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the lossless priorities have receive buffers that no lossy priority shares."""
    priorities, buffers = lossless_priorities(settings, profile), settings.buffer_of
    if not priorities:
        return None
    if buffers is None:
        return unreadable("of its own")
    own = {buffers[priority] for priority in priorities}
    shared = [one for one in PRIORITIES if one not in priorities and buffers[one] in own]
    found = f"shared with priority {listed(shared)}" if shared else "of its own"
    return judged(not shared, "of its own", found)


def headroom(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the lossless buffers hold the packets in flight when the NIC sends a pause frame."""
    priorities = lossless_priorities(settings, profile)
    if not priorities:
        return None
    metres = profile.cable_metres or settings.delay
    if settings.buffer_of is None or settings.buffer_bytes is None or settings.mtu is None or metres is None:
        return unreadable("as much as cable, speed and MTU need")
    needed = needed_headroom(settings.mtu, settings.speed or SLOWEST, metres)
    smallest = min(settings.buffer_bytes[settings.buffer_of[priority]] for priority in priorities)
    return judged(smallest >= needed, f"{needed} bytes or more for {metres} m", f"{smallest} bytes")


def pfc_prevention(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC stops a storm that it causes before the switch has to."""
    limit = profile.pfc_prevention
    if limit is None or not lossless_priorities(settings, profile):
        return None
    expected = f"{limit} ms or less"
    return within(
        expected, settings.prevention, lambda ms: 0 < ms <= limit, lambda ms: f"{ms} ms" if ms else "never"
    )


def traffic_class(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC forces the ToS byte of RoCE on all packets.

    If it forces none, each program chooses its own, and most choose 0.
    """
    tos = expected_tos(profile)
    if settings.tclass_forced is False:
        return None if tos is None else judged(False, _expected(profile, tos), "not set")
    return _tos(settings, profile, settings.tclass)


def _tos(settings: PortSettings, profile: Profile, found: int | None) -> CheckResult | None:
    """As the profile says; if it has no DSCP: whether switches may mark the packets, and whether their DSCP is lossless."""
    tos, priority = expected_tos(profile), roce_priority(settings, profile)
    if tos is not None:
        by_dscp = profile.ecn is None
        return within(
            _expected(profile, tos),
            found,
            lambda one: one == tos or (by_dscp and dscp_of(one) == profile.roce_dscp),
            _shown,
        )
    # 0 is the default of RDMA-CM, with which each program chooses its own.
    if not found or priority is None:
        return None
    # Where no DSCP has the priority, the map is wrong, not the ToS: `dscp_priority` says so.
    unmapped = priority_of(settings, dscp_of(found)) is None or not mapped_dscps(settings, priority)
    right = is_ect(found) and (unmapped or priority_of(settings, dscp_of(found)) == priority)
    return judged(right, f"ECT, and a DSCP of priority {priority}", _shown(found))


def _expected(profile: Profile, tos: int) -> str:
    return f"DSCP {profile.roce_dscp}" if profile.ecn is None else _shown(tos)


def _shown(tos: int) -> str:
    ecn = ("no ECT", "ECT(1)", "ECT(0)", "CE")[tos & 3]
    return f"{tos} (DSCP {dscp_of(tos)}, {ecn})"


def _enabled(
    settings: PortSettings, profile: Profile, mine: frozenset[int] | None, other: frozenset[int] | None
) -> CheckResult | None:
    priority = roce_priority(settings, profile)
    if priority is None:
        return None
    if profile.ecn is None:
        # The profile does not say whether it must be on: one of the two points alone is wrong in any case.
        if mine is None or other is None or priority not in other:
            return None
    elif mine is None:
        # NICs with one switch for both points and all priorities, as bnxt.
        return equal(on_or_off(profile.ecn), on_or_off(_dcqcn(settings, ENABLED)))
    on = profile.ecn is not False
    return judged((priority in (mine or ())) == on, f"{on_or_off(on)} for {priority}", listed(mine or ()))


def _dcqcn(settings: PortSettings, name: str) -> int | None:
    return (settings.dcqcn or {}).get(name)


def cnp_priority(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC's CNPs have their priority; if the profile sets none, whether it is not a lossless one."""
    found, priorities = _dcqcn(settings, CNP_PRIORITY_NAME), lossless_priorities(settings, profile)
    if profile.cnp_priority is not None:
        return equal(profile.cnp_priority, found)
    if found is None or not priorities:
        return None
    return judged(found not in priorities, f"not {listed(priorities)}, which is lossless", found)


def adaptive_retransmission(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether adaptive retransmission, which is meant for lossy fabrics, is on or off as the profile requires.

    No interface of the kernel exposes the setting. A counter of 0 is harmless if it must be off; that it rose proves nothing on a
    lossless fabric: a peer that does not answer makes it rise, too.
    """
    wanted, happened = profile.adaptive_retransmission, settings.adaptive
    if wanted is None:
        return None
    if happened is None or wanted != happened:
        return unreadable(on_or_off(wanted))
    return judged(True, on_or_off(wanted), "on, it happened" if happened else "no retransmission")


def gid(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the port has a GID of the expected version with an IPv4 or IPv6 address. The link-local one does not count."""
    version = profile.roce_version
    if version is None:
        return None
    kinds = sorted({one.type.rpartition(" ")[2] for one in settings.gids})
    # A link-local address is made of the MAC address: no router forwards it.
    indices = [
        str(one.index)
        for one in settings.gids
        if one.type == KIND[version] and not one.address.startswith("fe80:")
    ]
    found = f"index {', '.join(indices)}" if indices else f"only {' and '.join(kinds)} without it"
    expected = f"RoCE v{version} with an IP address"
    return judged(bool(indices), expected, found) if settings.gids else unreadable(expected)


def mtu(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the expected RDMA MTU fits into the network device's MTU."""
    size = profile.rdma_mtu
    if size is None:
        return None
    expected = f"{least_mtu(size)} or more, for an RDMA MTU of {size}"
    return within(
        expected, settings.mtu, lambda mtu: rdma_mtu(mtu) >= size, lambda mtu: f"{mtu}, for {rdma_mtu(mtu)}"
    )


def pcie(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the PCIe link is as wide and as fast as the device supports. A VF has none of its own."""
    link = settings.pcie
    if not profile.full_pcie or (link is None and not settings.pci):
        return None
    if link is None:
        return unreadable("as the device supports")
    speeds = (link.max_width, link.max_speed), (link.width, link.speed)
    most, now = (f"x{width} at {speed / 1_000_000_000:g} GT/s" for width, speed in speeds)
    return judged(link.speed >= link.max_speed and link.width >= link.max_width, most, now)


JUDGES: Mapping[str, Callable[[PortSettings, Profile], CheckResult | None]] = {
    # DSCP by default if PFC is on.
    "trust": lambda port, profile: equal(
        profile.trust or ("dscp" if lossless_priorities(port, profile) else None), port.trust
    ),
    "pfc": lambda port, profile: judged_pfc(port.pfc, profile),
    "cnp_mapping": lambda port, profile: _mapped(port, profile.cnp_dscp, profile.cnp_priority),
    # DCB is managed by the host, or by firmware that may overwrite the host's settings.
    "dcbx": lambda port, profile: equal(
        profile.dcbx,
        None if port.dcbx is None else "firmware" if port.dcbx & MODES["lld_managed"] else "host",
    ),
    "global_pause": lambda port, profile: equal(
        on_or_off(profile.global_pause), on_or_off(port.global_pause)
    ),
    "cm_tos": lambda port, profile: _tos(port, profile, port.cm_tos),
    # Whether the NIC answers marks on RoCE's priority with CNPs, and slows the priority down when it receives CNPs.
    "notification_point": lambda port, profile: _enabled(port, profile, port.notification, port.reaction),
    "reaction_point": lambda port, profile: _enabled(port, profile, port.reaction, port.notification),
    "cnp_dscp": lambda port, profile: equal(profile.cnp_dscp, _dcqcn(port, CNP_DSCP_NAME)),
    "roce_version": lambda port, profile: equal(profile.roce_version, port.cm_version, "RoCE v{}"),
    # The driver's cable length; the default of mlx5 is 7 m.
    "cable_length": lambda port, profile: (
        within(f"{metres} m or more", port.delay, lambda delay: delay >= metres, "{} m".format)
        if (metres := profile.cable_metres) and lossless_priorities(port, profile)
        else None
    ),
    # bnxt does not update the counters of the port at an interval of 0.
    "statistics_refresh": lambda port, _: within("above 0", port.refresh, bool, "{} us".format),
}
"""Checks that differ in the fact and what is expected of it."""
