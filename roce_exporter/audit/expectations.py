"""What a profile means for one port: where it leaves a choice, what is set decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.audit.arithmetic import ECT_0, NOT_ECT, class_of, tos_of

if TYPE_CHECKING:
    from roce_exporter.audit.facts import Facts
    from roce_exporter.audit.profile import Profile


def lossless(facts: Facts, profile: Profile) -> tuple[int, ...]:
    """The priorities that shall have PFC. Without a word of the profile: those that have it."""
    if profile.lossless_priorities is not None:
        return profile.lossless_priorities
    return tuple(sorted(facts.pfc or ()))


def roce_priority(facts: Facts, profile: Profile) -> int | None:
    """The priority that RoCE shall get; None where that cannot be told."""
    if profile.roce_priority is not None:
        return profile.roce_priority
    priorities = lossless(facts, profile)
    return priorities[0] if len(priorities) == 1 else None


def wanted_tos(profile: Profile) -> int | None:
    """The ToS byte that RoCE packets shall have; None where the profile leaves the DSCP open."""
    if profile.roce_dscp is None:
        return None
    return tos_of(profile.roce_dscp, ECT_0 if profile.ecn else NOT_ECT)


def priority_of(facts: Facts, dscp: int) -> int | None:
    """The priority that a port gives to packets with this DSCP; None where that is not told.

    mlx5 begins with the class of the ToS byte, and tells only what was changed. Others put what is not mapped into
    priority 0.
    """
    if facts.dscp_priority is None:
        return None
    return facts.dscp_priority.get(dscp, class_of(tos_of(dscp)) if facts.dialect == "mlx5" else 0)
