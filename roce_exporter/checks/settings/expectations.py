"""What a profile requires of one port. Where the profile leaves a choice open, the port's own settings decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.drivers import family_of
from roce_exporter.checks.settings.arithmetic import ECT_0, NOT_ECT, precedence_of, tos_of

if TYPE_CHECKING:
    from roce_exporter.checks.settings.port_settings import PortSettings
    from roce_exporter.checks.settings.profile import Profile


def lossless_priorities(settings: PortSettings, profile: Profile) -> tuple[int, ...]:
    """The priorities that must have PFC; if the profile does not list them, those that have PFC."""
    if profile.lossless_priorities is not None:
        return profile.lossless_priorities
    return tuple(sorted(settings.pfc or ()))


def roce_priority(settings: PortSettings, profile: Profile) -> int | None:
    """The priority of RoCE packets; None if neither the profile nor the port determines it."""
    if profile.roce_priority is not None:
        return profile.roce_priority
    priorities = lossless_priorities(settings, profile)
    return priorities[0] if len(priorities) == 1 else None


def expected_tos(profile: Profile) -> int | None:
    """The ToS byte of RoCE packets; None if the profile sets no DSCP."""
    if profile.roce_dscp is None:
        return None
    return tos_of(profile.roce_dscp, ECT_0 if profile.ecn else NOT_ECT)


def priority_of(settings: PortSettings, dscp: int) -> int | None:
    """The priority that a port assigns to packets with this DSCP; None if its mapping is not reported.

    Drivers report only DSCPs with a mapping. The driver table says what the others get.
    """
    if settings.dscp_priority is None:
        return None
    by_precedence = family_of(settings.dialect).dscp_by_precedence
    return settings.dscp_priority.get(dscp, precedence_of(tos_of(dscp)) if by_precedence else 0)
