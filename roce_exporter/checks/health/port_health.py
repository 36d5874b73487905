"""The health of every port over time: a pure state machine over verdicts.

A reason holds from its first sign until it has had no sign for the recovery time. One that comes back within `MEMORY` needs twice the
time of the last recovery, at most `LONGEST`: a port that fails again and again does not look healthy in between. Nothing is
healthy that was not seen: while facts are missing, a port without any reason is UNKNOWN. `health_document` and `findings_document` are
the document at `/health.json`, versions 1 and 2, described in docs/operating.md and docs/diagnosis.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from roce_exporter.checks.finding import Finding, Report, Side, Status
from roce_exporter.checks.health.causes import NAMED, End
from roce_exporter.checks.health.coverage import FACTUAL_SOURCES
from roce_exporter.checks.health.link_rules import is_set_down
from roce_exporter.checks.report import document
from roce_exporter.view.host_view import History, PortView, View

VERSION = 1
"""Consumers must ignore fields that they do not know; a field that changes its meaning or disappears raises the version."""
RECOVERY = 300.0
"""Seconds without a sign after which a reason no longer holds."""
LONGEST = 2400.0
"""The longest recovery time, in seconds."""
DAY = 86_400.0
MEMORY = 3600.0
"""Seconds for which a reason that ended is remembered."""

NO_HISTORY = "no_history"
NO_LINK = "no_link"
FACTS_MISSING = "facts_missing"
NOT_JUDGED = "not_judged"
DOWN = "link_down"

UNKNOWN_REASONS: Mapping[str, str] = {
    NO_HISTORY: "There are no two collections yet, so no counter can have risen.",
    NO_LINK: "The port has had no link since it is watched: it is unused, or it failed earlier.",
    FACTS_MISSING: "Facts that a port of this driver must report are missing, or its state cannot be read.",
    NOT_JUDGED: "The rules could not be applied; the exporter's log has the error.",
}
"""Reasons for UNKNOWN, which are no causes, and what they mean."""

PortKey = tuple[str, str]
"""Device and port."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One reason on one port, as last seen. Times are seconds since 1970."""

    finding: Finding
    since: float
    """The first sign of this time."""
    last: float
    """The newest sign."""
    returns: int = 0
    """How often it came back."""
    ended: bool = False
    """Whether its end was seen; the port has only been interrupted from then on."""

    @property
    def recovery(self) -> float:
        """Seconds without a sign after which it no longer holds."""
        return min(RECOVERY * 2.0**self.returns, LONGEST)

    @property
    def status(self) -> Status:
        """What it makes of the port."""
        return min(self.finding.status, Status.DEGRADED) if self.ended else self.finding.status

    def holds(self, now: float) -> bool:
        """Whether it is a reason at this time."""
        return now - self.last < self.recovery


class PortConditions(NamedTuple):
    """All reasons of one port: those that hold, and those that are remembered."""

    reasons: tuple[Condition, ...] = ()
    health: Status = Status.UNKNOWN
    since: float = 0.0
    """Since when the port has this health."""
    unknown: tuple[str, ...] = (NO_HISTORY,)
    """Names of `UNKNOWN_REASONS` at present; only listed while the health is UNKNOWN."""

    def holding(self, now: float) -> list[Condition]:
        """The reasons that hold, the worst first."""
        held = [reason for reason in self.reasons if reason.holds(now)]
        return sorted(held, key=lambda reason: -reason.finding.harm)

    def shifted(self, seconds: float) -> PortConditions:
        """The same with all times moved."""
        reasons = tuple(
            replace(one, since=one.since + seconds, last=one.last + seconds) for one in self.reasons
        )
        return self._replace(reasons=reasons, since=self.since + seconds)


HostHealth = dict[PortKey, PortConditions]


def judge(before: Mapping[PortKey, PortConditions], history: History, diagnosis: Report) -> HostHealth:
    """The health of all ports of the history, given what was known before and the verdict on it.

    What the history forgets is no recovery: a link that was lost is down until it is up, and a device that vanished is
    missing until it is back, at most for a day. Other ports that no moment of the history has are forgotten.
    """
    host = View(history)
    now = host.end
    ports = {(port.device, port.port): port for port in host.ports()}
    found: HostHealth = {}
    for key, port in ports.items():
        held = before.get(key, PortConditions(since=now))
        findings = [one for one in diagnosis.findings if one.device == key[0] and one.port in ("", key[1])]
        found[key] = _judged(held, [*findings, *_still_down(held, port, findings, now)], _gaps(port), now)
    for key, held in before.items():
        missing = [
            one.finding
            for one in held.holding(now)
            if one.finding.check == "device_vanished" and now - one.since < DAY
        ]
        if key not in ports and missing:
            found[key] = _judged(held, missing, (), now)
    return found


def _still_down(
    held: PortConditions, port: PortView, findings: Iterable[Finding], now: float
) -> list[Finding]:
    if port.highest("roce_port_up") != 0 or is_set_down(port) or any(one.check == DOWN for one in findings):
        return []
    return [reason.finding for reason in held.holding(now) if reason.finding.check == DOWN]


def not_judged(before: Mapping[PortKey, PortConditions], now: float) -> HostHealth:
    """The health of all ports after rules that failed: what held before holds until it has recovered, the rest is UNKNOWN."""
    return {key: _judged(held, None, (NOT_JUDGED,), now) for key, held in before.items()}


def _judged(
    before: PortConditions, findings: Iterable[Finding] | None, gaps: tuple[str, ...], now: float
) -> PortConditions:
    """What is known with these findings; None: nothing was judged, so nothing has ended."""
    reasons = before.reasons if findings is None else tuple(_renewed(before.reasons, list(findings), now))
    health = max((one.status for one in reasons if one.holds(now)), default=Status.OK)
    if health == Status.OK and gaps:
        health = Status.UNKNOWN
    since = before.since if health == before.health else now
    return PortConditions(reasons, health, since, gaps if health == Status.UNKNOWN else ())


def _renewed(reasons: Iterable[Condition], findings: list[Finding], now: float) -> Iterator[Condition]:
    """The reasons with their newest signs; those without a sign for `MEMORY` are forgotten."""
    known = {reason.finding.check: reason for reason in reasons}
    for finding in findings:
        reason = known.pop(finding.check, None)
        if reason is None:
            yield Condition(finding, now, now)
        elif reason.holds(now):
            yield replace(reason, finding=finding, last=now, ended=False)
        else:
            yield Condition(finding, now, now, reason.returns + 1)
    for reason in known.values():
        if now - reason.last < MEMORY:
            yield replace(reason, ended=NAMED[reason.finding.check].ends is not End.EVENT)


def _gaps(port: PortView) -> tuple[str, ...]:
    """Why a port without a reason cannot be called healthy; empty if it can."""
    if len(port.host.history) < 2:  # noqa: PLR2004 - a rise needs two
        return (NO_HISTORY,)
    up = port.highest("roce_port_up")
    facts = any(value for _, value in port.current("roce_exporter_missing_facts"))
    gaps = []
    broken = any(
        not up and labels["source"] in FACTUAL_SOURCES and labels["device"] in ("", port.device)
        for labels, up in port.host.current("roce_exporter_source_up")
    )
    if up is None or facts or broken:
        gaps.append(FACTS_MISSING)
    if up == 0:
        gaps.append(NO_LINK)
    return tuple(gaps)


def health_document(
    ports: Mapping[PortKey, PortConditions], report: Report, at: float, judged: float | None, interval: float
) -> dict[str, Any]:
    """The document. `at` is the time of the samples that were judged, `judged` the Unix time of the verdict, None before the first one."""
    return {
        "version": VERSION,
        "time": judged,
        "interval_seconds": interval,
        "health": _name(max((held.health for held in ports.values()), default=Status.UNKNOWN)),
        "summary": _summary(ports, at),
        "ports": [_port(key, held, at) for key, held in sorted(ports.items())],
        "fine": list(report.fine),
        "unseen": [str(gap) for gap in report.not_checked],
    }


def findings_document(
    ports: Mapping[PortKey, PortConditions], report: Report, at: float, judged: float | None, interval: float
) -> dict[str, Any]:
    """The same as the document of `check --format=json`, with the health of each port; `report`: of the last round."""
    findings = {
        (one.finding.device, one.finding.port, one.finding.check): one.finding
        for _, held in sorted(ports.items())
        for one in held.holding(at)
    }
    return {
        **document(report._replace(findings=tuple(findings.values()), ports=()), "this host", judged),
        "interval_seconds": interval,
        "ports": [
            {"device": device, "port": port, "status": held.health.name.lower(), "since": held.since}
            for (device, port), held in sorted(ports.items())
        ],
    }


def described(held: PortConditions, now: float) -> str:
    """The health of a port with its worst reason: `failed: link_down (link)`."""
    if held.health < Status.DEGRADED:
        return ": ".join(filter(None, (_name(held.health), ", ".join(held.unknown))))
    reason = max(held.holding(now), key=lambda one: (one.finding.status, one.finding.harm))
    side = f" ({reason.finding.side})" if reason.finding.side != Side.UNKNOWN else ""
    return f"{_name(held.health)}: {reason.finding.check}{side}"


def _summary(ports: Mapping[PortKey, PortConditions], now: float) -> str:
    """One line: every port that is degraded or failed with its worst reason, the failed ones first."""
    troubled = [(key, held) for key, held in ports.items() if held.health >= Status.DEGRADED]
    if not troubled:
        healthy = sum(held.health == Status.OK for held in ports.values())
        return f"{healthy} of {len(ports)} ports healthy" if ports else "no ports judged"
    troubled.sort(key=lambda item: (-item[1].health, item[0]))
    return ", ".join(f"{device}/{port} {described(held, now)}" for (device, port), held in troubled)


def _port(key: PortKey, held: PortConditions, now: float) -> dict[str, Any]:
    device, port = key
    return {
        "device": device,
        "port": port,
        "health": _name(held.health),
        "since": held.since,
        "reasons": [
            *(_reason(reason) for reason in held.holding(now)),
            *({"reason": name, "health": "unknown", "title": UNKNOWN_REASONS[name]} for name in held.unknown),
        ],
    }


def _reason(reason: Condition) -> dict[str, Any]:
    finding = reason.finding
    follows = [f"can follow from {', '.join(finding.caused_by)}"] if finding.caused_by else []
    return {
        "reason": finding.check,
        "place": finding.place,
        "health": _name(finding.status),
        "side": finding.side.value,
        "title": finding.title,
        "likely": finding.why,
        "since": reason.since,
        "last_sign": reason.last,
        "evidence": list(finding.evidence),
        "sure": finding.sure,
        "wrong_if": finding.wrong_if,
        "against": [*finding.against, *follows],
        "next": list(finding.fix),
        "runbook": finding.runbook,
    }


def _name(health: Status) -> str:
    """The words of version 1."""
    return "healthy" if health is Status.OK else health.name.lower()
