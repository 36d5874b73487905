"""What a verdict consists of: causes from a documented list, and findings with their evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple


class Side(StrEnum):
    """The side of the link at fault."""

    HOST = "host"
    LINK = "link"
    FABRIC = "fabric"
    PEER = "peer"
    UNKNOWN = "unknown"


class Health(IntEnum):
    """The value of `roce_port_health`."""

    UNKNOWN = 0
    HEALTHY = 1
    DEGRADED = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of the list of causes."""

    name: str
    """Lower case with underscores; the value of the label `reason`."""
    side: Side
    health: Health
    """What the cause makes of a port: DEGRADED or FAILED; HEALTHY if it concerns programs or the load, and the port is fit."""
    title: str
    """One line without a full stop."""
    likely: str
    """The likely cause, and what else it could be."""
    next: tuple[str, ...]
    """The next commands or steps; may contain `{device}`, `{port}` and `{netdev}`."""
    runbook: str
    """Name of a file in alerts/runbooks, without `.md`."""


@dataclass(frozen=True, slots=True)
class PortFault:
    """One cause that was found on one port; `findings` in JSON."""

    device: str
    port: str
    """Empty if the whole device is affected."""
    cause: Cause
    side: Side
    """The side of the cause, or a better known one."""
    evidence: tuple[str, ...]
    """Facts with numbers and units that speak for it."""
    against: tuple[str, ...]
    """Facts that contradict it."""
    next: tuple[str, ...]
    """`Cause.next`, filled in."""
    harm: float
    """For the order of findings: the larger, the worse."""


class Diagnosis(NamedTuple):
    """Findings in order of harm, and what could not be seen."""

    findings: tuple[PortFault, ...]
    unseen: tuple[str, ...]
