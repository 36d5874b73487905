"""Checks of what makes a priority lossless: trust, PFC, DSCP mapping, buffers, scheduling, and who manages DCB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.settings.arithmetic import SLOWEST
from roce_exporter.checks.settings.arithmetic import headroom as needed_headroom
from roce_exporter.checks.settings.check import CheckResult, judged, unreadable
from roce_exporter.checks.settings.port_settings import (
    PRIORITIES,
    is_firmware_managed,
    lossless_priorities,
    priority_of,
    roce_priority,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from roce_exporter.checks.settings.port_settings import PortSettings
    from roce_exporter.checks.settings.profile import Profile

ETS = 2
"""IEEE_8021QAZ_TSA_ETS of include/uapi/linux/dcbnl.h."""


def listed(priorities: Iterable[int]) -> str:
    """Priorities as text: `3,4`, or `none`."""
    return ",".join(map(str, sorted(priorities))) or "none"


def trust(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the port trusts what the profile requires; DSCP by default if PFC is on."""
    expected = profile.trust or ("dscp" if lossless_priorities(settings, profile) else None)
    if expected is None:
        return None
    if settings.trust is None:
        return unreadable(expected)
    return judged(settings.trust == expected, expected, settings.trust)


def pfc(settings: PortSettings, profile: Profile) -> CheckResult:
    """Whether PFC is on for the priorities of the profile; without them, for one priority at most."""
    return judged_pfc(settings.pfc, profile)


def judged_pfc(found: Collection[int] | None, profile: Profile) -> CheckResult:
    """Whether PFC is on for the priorities of the profile, at either end of a link; None: it was not read."""
    priorities = profile.lossless_priorities
    expected = "at most one" if priorities is None else listed(priorities)
    if found is None:
        return unreadable(expected)
    right = len(found) <= 1 if priorities is None else set(found) == set(priorities)
    return judged(right, expected, listed(found))


def peer_pfc(settings: PortSettings, profile: Profile) -> CheckResult | None:  # noqa: ARG001 - signature of a check
    """Whether the switch has PFC on for the same priorities. Only firmware that runs DCBX reports it."""
    if settings.peer_pfc is None or settings.pfc is None:
        return None
    return judged(
        settings.peer_pfc == settings.pfc, f"{listed(settings.pfc)} as here", listed(settings.peer_pfc)
    )


def dscp_priority(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the DSCP of RoCE maps to its priority; if the profile has no DSCP, whether any DSCP does."""
    priority = roce_priority(settings, profile)
    if priority is None or settings.trust == "pcp":
        return None
    if profile.roce_dscp is None:
        expected = f"some DSCP to {priority}"
        if settings.dscp_priority is None:
            return unreadable(expected)
        found = listed(dscp for dscp, given in settings.dscp_priority.items() if given == priority)
        return judged(found != "none", expected, found)
    return _mapped(settings, profile.roce_dscp, priority)


def cnp_mapping(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the DSCP of CNPs maps to their priority."""
    if profile.cnp_dscp is None or profile.cnp_priority is None or settings.trust == "pcp":
        return None
    return _mapped(settings, profile.cnp_dscp, profile.cnp_priority)


def _mapped(settings: PortSettings, dscp: int, priority: int) -> CheckResult:
    expected, given = f"{dscp} to {priority}", priority_of(settings, dscp)
    return (
        unreadable(expected) if given is None else judged(given == priority, expected, f"{dscp} to {given}")
    )


def lossless_bandwidth(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the traffic class of RoCE has its share of the bandwidth."""
    priority, share = roce_priority(settings, profile), profile.lossless_bandwidth
    if priority is None or share is None:
        return None
    expected = f"ETS, {share} % or more"
    if settings.traffic_class is None or settings.algorithm is None or settings.bandwidth is None:
        return unreadable(expected)
    number = settings.traffic_class[priority]
    found, algorithm = settings.bandwidth[number], settings.algorithm[number]
    return judged(
        algorithm == ETS and found >= share, expected, f"{_scheduler(algorithm)}, {found} % of class {number}"
    )


def cnp_strict(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the traffic class of CNPs has strict priority."""
    if not profile.cnp_strict or profile.cnp_priority is None:
        return None
    if settings.traffic_class is None or settings.algorithm is None:
        return unreadable("strict")
    number = settings.traffic_class[profile.cnp_priority]
    algorithm = settings.algorithm[number]
    return judged(algorithm == 0, "strict", f"{_scheduler(algorithm)}, class {number}")


def _scheduler(algorithm: int) -> str:
    return {0: "strict", 1: "credit-based shaper", ETS: "ETS", 255: "vendor"}.get(algorithm, str(algorithm))


def lossless_buffer(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the lossless priorities have receive buffers that no lossy priority shares."""
    priorities = lossless_priorities(settings, profile)
    if not priorities:
        return None
    if settings.buffer_of is None:
        return unreadable("of its own")
    own = {settings.buffer_of[priority] for priority in priorities}
    lossy = (priority for priority in PRIORITIES if priority not in priorities)
    shared = sorted(priority for priority in lossy if settings.buffer_of[priority] in own)
    return judged(
        not shared, "of its own", f"shared with priority {listed(shared)}" if shared else "of its own"
    )


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


def cable_length(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the driver's cable length is at least that of the longest cable. The default of mlx5 is 7 m."""
    metres = profile.cable_metres
    if metres is None or not lossless_priorities(settings, profile):
        return None
    expected = f"{metres} m or more"
    if settings.delay is None:
        return unreadable(expected)
    return judged(settings.delay >= metres, expected, f"{settings.delay} m")


def dcbx(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether DCB is managed by the side that the profile expects (host or firmware)."""
    if profile.dcbx is None:
        return None
    if settings.dcbx is None:
        return unreadable(profile.dcbx)
    found = "firmware" if is_firmware_managed(settings.dcbx) else "host"
    return judged(found == profile.dcbx, profile.dcbx, found)


def global_pause(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether 802.3x pause is on or off as the profile requires."""
    if profile.global_pause is None:
        return None
    expected = _switch(profile.global_pause)
    if settings.global_pause is None:
        return unreadable(expected)
    return judged(settings.global_pause == profile.global_pause, expected, _switch(settings.global_pause))


def _switch(on: bool) -> str:
    return "on" if on else "off"


def pfc_prevention(settings: PortSettings, profile: Profile) -> CheckResult | None:
    """Whether the NIC stops a storm that it causes before the switch has to."""
    limit = profile.pfc_prevention
    if limit is None or not lossless_priorities(settings, profile):
        return None
    expected = f"{limit} ms or less"
    if settings.prevention is None:
        return unreadable(expected)
    found = f"{settings.prevention} ms" if settings.prevention else "never"
    return judged(0 < settings.prevention <= limit, expected, found)
