"""What a check finds: one form for settings, health, setup and switches, on a page, in the document and in the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple


class Topic(StrEnum):
    """The words of `roce-exporter check`, in the order in which they are checked."""

    SETUP = "setup"
    SETTINGS = "settings"
    HEALTH = "health"
    SWITCHES = "switches"
    FABRIC = "fabric"


class Status(IntEnum):
    """What a finding means for its place; the values of `roce_port_health`."""

    UNKNOWN = 0
    OK = 1
    DEGRADED = 2
    FAILED = 3


class Side(StrEnum):
    """The side of the link at fault."""

    HOST = "host"
    LINK = "link"
    FABRIC = "fabric"
    PEER = "peer"
    UNKNOWN = "unknown"


class Sure(StrEnum):
    """How far a finding can be trusted."""

    SEEN = "seen"
    """A state that was read."""
    COUNTED = "counted"
    """By the device or its driver."""
    INFERRED = "inferred"
    """From counters that have other reasons, too."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check at one place. Texts that do not apply are empty."""

    topic: Topic
    check: str
    """Name of the check: lower case with underscores."""
    title: str
    """One line without a full stop."""
    status: Status
    """UNKNOWN: a value that the check needs was not seen."""
    device: str = ""
    """Empty for what concerns the whole host."""
    port: str = ""
    """Empty for what concerns the whole device."""
    netdev: str = ""
    side: Side = Side.UNKNOWN
    """Of this finding: that of its cause where it is a consequence."""
    expected: str = ""
    found: str = ""
    why: str = ""
    """Why it matters, or the likely cause."""
    evidence: tuple[str, ...] = ()
    """Facts with numbers and units that speak for it."""
    against: tuple[str, ...] = ()
    """Facts that contradict it."""
    caused_by: tuple[str, ...] = ()
    """Names of the checks of the same place of which this can be a consequence; they come before it."""
    fix: tuple[str, ...] = ()
    """The commands or steps that change it or show more, on this driver or operating system."""
    fixes: Mapping[str, str] = field(default_factory=dict)
    """The command on every driver or operating system, by name."""
    runbook: str = ""
    """Name of a file in alerts/runbooks, without `.md`."""
    since: float = 0.0
    """Seconds since 1970 at which it began; 0 if that is not seen."""
    until: float = 0.0
    """Its last sign, where it has ended; 0 while it lasts."""
    harm: float = 0.0
    """For the order of findings: the larger, the worse."""
    sure: Sure | None = None
    """None for checks of settings, setup and switches, which say what they found."""
    wrong_if: str = ""
    """The one fact that would prove it wrong."""
    direction: str = ""
    """`receive` or `transmit`, where only what the port receives or sends is affected; or another word that tells of what it can follow."""
    place: str = ""
    """Rail, rack and switch port, as far as they are known."""
    areas: frozenset[str] = frozenset()
    """What of its place it speaks of, its evidence too."""
    acts: str = ""
    """Who acts, where that does not follow from the side."""

    @property
    def is_wrong(self) -> bool:
        """Whether it says that something must be changed."""
        return self.status >= Status.DEGRADED


class NotChecked(NamedTuple):
    """What could not be judged, so that "nothing wrong" never means "nothing seen"."""

    what: str
    device: str = ""
    port: str = ""
    needed: bool = False
    """Whether a place without it cannot be called healthy. The rest adds detail: what some hardware or privilege does not show."""

    def __str__(self) -> str:
        place = f"{self.device}/{self.port}" if self.port else self.device
        return f"{place}: {self.what}" if place else self.what


class JudgedPort(NamedTuple):
    """The health of one port at the end of what was judged."""

    device: str
    port: str
    netdev: str
    health: Status


class Report(NamedTuple):
    """The findings of one or more topics, the worst of each place first, and what could not be seen."""

    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...] = ()
    ports: tuple[JudgedPort, ...] = ()
    """Of the topic health; empty for others."""
    fine: tuple[str, ...] = ()
    """What health looked at on every port, and found nothing wrong with."""

    @property
    def status(self) -> Status:
        """The worst of all findings. UNKNOWN if nothing is wrong and something needed was not seen."""
        worst = max((one.status for one in self.findings), default=Status.OK)
        blind = any(one.needed for one in self.not_checked)
        if worst < Status.DEGRADED and (blind or any(one.status is Status.UNKNOWN for one in self.findings)):
            return Status.UNKNOWN
        return worst


def joined(reports: Iterable[Report]) -> Report:
    """One report of several topics."""
    every = tuple(reports)
    findings = tuple(finding for one in every for finding in one.findings)
    # Health looks at some settings only.
    not_fine = {one.topic for one in findings if one.status is not Status.OK}
    return Report(
        findings,
        tuple(dict.fromkeys(gap for one in every for gap in one.not_checked)),
        tuple(port for one in every for port in one.ports),
        tuple(area for one in every for area in one.fine if area not in not_fine),
    )
