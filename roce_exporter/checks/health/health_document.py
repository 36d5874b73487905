"""The health of a host as the document at `/health.json`, versions 1 and 2, described in docs/operating.md and docs/diagnosis.md.

Consumers must ignore fields that they do not know; a field that changes its meaning or disappears raises the version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_exporter.checks.finding import Report, Side, Status
from roce_exporter.checks.health.port_health import UNKNOWN_REASONS
from roce_exporter.checks.report import document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.checks.health.port_health import Condition, PortConditions, PortKey

VERSION = 1


def health_document(
    ports: Mapping[PortKey, PortConditions],
    report: Report,
    at: float,
    judged: float | None,
    interval: float,
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
    ports: Mapping[PortKey, PortConditions],
    report: Report,
    at: float,
    judged: float | None,
    interval: float,
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
        return ": ".join(
            [_name(held.health), ", ".join(held.unknown)] if held.unknown else [_name(held.health)]
        )
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
