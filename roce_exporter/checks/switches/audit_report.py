"""The audit of switches as a table for people and as JSON for scripts, in the form of the host's audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.row import ANY
from roce_exporter.checks.settings.report import Finding, findings_json, findings_table, summary_line
from roce_exporter.checks.switches.audit_check import fix_text, fix_texts
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.switches.audit_check import SwitchVerdict

MOST_PORTS = 8
"""Ports that one heading names."""
OWN = "each its own"
"""What was found on ports that differ, and are all right."""


def is_clean_switch(verdicts: Sequence[SwitchVerdict]) -> bool:
    """Whether no check failed. A check that could not be made has not failed."""
    return all(verdict.result.ok is not False for verdict in verdicts)


def switches_json(verdicts: Sequence[SwitchVerdict], profile: Profile) -> str:
    """One object per check with everything the audit found, and the number of checks by status."""
    return findings_json([_finding(verdict, profile) for verdict in verdicts], profile)


def switches_table(verdicts: Sequence[SwitchVerdict], profile: Profile, *, colour: bool) -> str:
    """A table per group of ports with equal results, each failed check with its reason and fix, and a summary line."""
    findings = [_finding(verdict, profile) for verdict in verdicts]
    last = summary_line(findings, profile) if findings else f"profile {profile.name}: no switch answered"
    return findings_table(list(_merged(findings)), last, colour=colour)


def _finding(verdict: SwitchVerdict, profile: Profile) -> Finding:
    settings, check = verdict.settings, verdict.check
    place = {"device": settings.device, "port": settings.port}
    fixes = {
        {ANY: "generic"}.get(system, system): text for system, text in fix_texts(verdict, profile).items()
    }
    heading = f"{settings.device} port {settings.port}" if settings.port else settings.device
    fix = fix_text(verdict, profile)
    return Finding(place, heading, check.id, check.title, check.why, verdict.result, fix, fixes)


def _merged(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings with one table for all ports of a switch whose results are equal."""
    ports: dict[tuple[object, object], list[Finding]] = {}
    for finding in findings:
        ports.setdefault((finding.place["device"], finding.place["port"]), []).append(finding)
    groups: dict[tuple[object, ...], list[list[Finding]]] = {}
    for (device, _), found in ports.items():
        key = (device, *((one.check, *_shown(one)) for one in found))
        groups.setdefault(key, []).append(found)
    for alike in groups.values():
        yield from _group(alike)


def _shown(finding: Finding) -> tuple[object, ...]:
    # Each port has its own neighbour: what was found matters only where it is not right.
    return finding.result if finding.result.ok is not True else (True,)


def _group(alike: Sequence[Sequence[Finding]]) -> Iterator[Finding]:
    first = alike[0]
    if len(alike) == 1:
        yield from first
        return
    names = [str(found[0].place["port"]) for found in alike]
    heading = f"{first[0].place['device']} ports {few(names, MOST_PORTS)}"
    for position, finding in enumerate(first):
        same = len({found[position].result.found for found in alike}) == 1
        result = finding.result if same else finding.result._replace(found=OWN)
        yield finding._replace(
            heading=heading, result=result, fix=f"{finding.fix} (likewise on the other ports)"
        )
