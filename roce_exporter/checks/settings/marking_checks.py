"""Checks of congestion control: the marks of RoCE packets, the CNPs that answer them, and the priority of CNPs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.settings.arithmetic import dscp_of, is_ect
from roce_exporter.checks.settings.check import CheckResult, judged, unreadable
from roce_exporter.checks.settings.lossless_checks import listed
from roce_exporter.checks.settings.port_settings import (
    expected_tos,
    lossless_priorities,
    priority_of,
    roce_priority,
)

if TYPE_CHECKING:
    from roce_exporter.checks.settings.port_settings import PortSettings
    from roce_exporter.checks.settings.profile import Profile

ENABLED = "cc.enabled.one"
CNP_DSCP_NAME = "np.cnp_dscp.one"
CNP_PRIORITY_NAME = "np.cnp_priority.one"
"""Names in `PortSettings.dcqcn`."""


def cm_tos(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether RDMA-CM connections have the ToS byte of RoCE."""
    return _tos(settings, profile, settings.cm_tos)


def traffic_class(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC forces the ToS byte of RoCE on all packets.

    If it forces none, each program chooses its own, and most choose 0.
    """
    tos = expected_tos(profile)
    if settings.tclass_forced is False:
        return None if tos is None else judged(False, _expected(profile, tos), "not set")
    return _tos(settings, profile, settings.tclass)


def _tos(settings: PortSettings, profile: Profile, found: int | None) -> CheckResult | None:
    tos = expected_tos(profile)
    if tos is None:
        return _fitting_tos(settings, profile, found)
    expected = _expected(profile, tos)
    if found is None:
        return unreadable(expected)
    right = found == tos or (profile.ecn is None and dscp_of(found) == profile.roce_dscp)
    return judged(right, expected, _shown(found))


def _fitting_tos(settings: PortSettings, profile: Profile, found: int | None) -> CheckResult | None:
    """If the profile has no DSCP: whether switches may mark the packets, and whether their DSCP is lossless."""
    priority = roce_priority(settings, profile)
    # 0 is the default of RDMA-CM, with which each program chooses its own.
    if not found or priority is None:
        return None
    given = priority_of(settings, dscp_of(found))
    right = is_ect(found) and given in (None, priority)
    return judged(right, f"ECT, and a DSCP of priority {priority}", _shown(found))


def _expected(profile: Profile, tos: int) -> str:
    return f"DSCP {profile.roce_dscp}" if profile.ecn is None else _shown(tos)


def _shown(tos: int) -> str:
    ecn = ("no ECT", "ECT(1)", "ECT(0)", "CE")[tos & 3]
    return f"{tos} (DSCP {dscp_of(tos)}, {ecn})"


def notification_point(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC answers marks on RoCE's priority with CNPs."""
    return _enabled(settings, profile, settings.notification, settings.reaction)


def reaction_point(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC slows RoCE's priority down when it receives CNPs."""
    return _enabled(settings, profile, settings.reaction, settings.notification)


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
        return _whole(settings, "on" if profile.ecn else "off")
    on = profile.ecn is not False
    return judged(
        (priority in (mine or ())) == on, f"{'on' if on else 'off'} for {priority}", listed(mine or ())
    )


def _whole(settings: PortSettings, expected: str) -> CheckResult:
    """For NICs with one switch for both points and all priorities, as bnxt."""
    switch = (settings.dcqcn or {}).get(ENABLED)
    if switch is None:
        return unreadable(expected)
    found = "on" if switch else "off"
    return judged(found == expected, expected, found)


def cnp_dscp(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC's CNPs have the DSCP by which the fabric recognises them."""
    return _parameter(settings, profile.cnp_dscp, CNP_DSCP_NAME)


def cnp_priority(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC's CNPs have their priority; if the profile sets none, whether it is not a lossless one."""
    if profile.cnp_priority is not None:
        return _parameter(settings, profile.cnp_priority, CNP_PRIORITY_NAME)
    found, priorities = (settings.dcqcn or {}).get(CNP_PRIORITY_NAME), lossless_priorities(settings, profile)
    if found is None or not priorities:
        return None
    return judged(found not in priorities, f"not {listed(priorities)}, which is lossless", found)


def _parameter(settings: PortSettings, expected: int | None, name: str) -> CheckResult | None:
    if expected is None:
        return None
    found = (settings.dcqcn or {}).get(name)
    return unreadable(expected) if found is None else judged(found == expected, expected, found)


def roce_version(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether RDMA-CM connections use the expected RoCE version."""
    if profile.roce_version is None:
        return None
    expected = f"RoCE v{profile.roce_version}"
    if settings.cm_version is None:
        return unreadable(expected)
    return judged(settings.cm_version == profile.roce_version, expected, f"RoCE v{settings.cm_version}")


def adaptive_retransmission(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether adaptive retransmission, which is meant for lossy fabrics, is on or off as the profile requires.

    No interface of the kernel exposes the setting. A counter of 0 is harmless if it must be off; that it rose proves nothing on a
    lossless fabric: a peer that does not answer makes it rise, too.
    """
    if profile.adaptive_retransmission is None:
        return None
    expected = "on" if profile.adaptive_retransmission else "off"
    if settings.adaptive is None or profile.adaptive_retransmission != settings.adaptive:
        return unreadable(expected)
    return judged(True, expected, "on, it happened" if settings.adaptive else "no retransmission")
