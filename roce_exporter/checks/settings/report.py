"""The audit as a table for people and as JSON for scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.row import ANY
from roce_exporter.checks.settings.commands import fix_command, fix_commands
from roce_exporter.words import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.checks.settings.profile import Profile
    from roce_exporter.checks.settings.verdict import CheckResult, Verdict

TABLE, JSON = "table", "json"
FORMATS = (TABLE, JSON)

RED, GREEN, DIM, BOLD, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"

STATUS = {True: "ok", False: "WRONG", None: "unreadable"}
COLOUR = {True: GREEN, False: RED, None: DIM}


class Finding(NamedTuple):
    """A verdict with everything that is printed about it, for hosts and switches."""

    place: Mapping[str, object]
    """Where it is, as in JSON: device, port and so on."""
    heading: str
    """Where it is, for people; findings with the same heading are one table."""
    check: str
    title: str
    why: str
    result: CheckResult
    fix: str
    """The command for this system."""
    fixes: Mapping[str, str]
    """The commands by system."""


def is_clean(verdicts: Sequence[Verdict]) -> bool:
    """Whether no check failed. A check that could not be made has not failed."""
    return all(verdict.result.ok is not False for verdict in verdicts)


def as_json(verdicts: Sequence[Verdict], profile: Profile) -> str:
    """One object per check with everything the audit found, and the number of checks by status."""
    return findings_json([_finding(verdict, profile) for verdict in verdicts], profile)


def findings_json(findings: Sequence[Finding], profile: Profile) -> str:
    """See `as_json`."""
    document = {
        "profile": profile.name,
        "ok": all(finding.result.ok is not False for finding in findings),
        "summary": _summary(findings),
        "checks": [_object(finding) for finding in findings],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _summary(findings: Sequence[Finding]) -> dict[str, int]:
    results = [finding.result.ok for finding in findings]
    return {"ok": results.count(True), "wrong": results.count(False), "unreadable": results.count(None)}


def summary_line(findings: Sequence[Finding], profile: Profile) -> str:
    """The number of checks by status."""
    count = _summary(findings)
    return (
        f"profile {profile.name}: {count['ok']} ok, {count['wrong']} wrong, {count['unreadable']} unreadable"
    )


def _object(finding: Finding) -> dict[str, object]:
    result = finding.result
    return {
        **finding.place,
        "check": finding.check,
        "status": STATUS[result.ok].lower(),
        "expected": result.expected,
        "found": None if result.ok is None else result.found,
        "why": finding.why,
        "mend": dict(finding.fixes),
    }


def _finding(verdict: Verdict, profile: Profile) -> Finding:
    settings, check = verdict.settings, verdict.check
    place = {"device": settings.device, "port": settings.port, "netdev": settings.netdev}
    fixes = {_driver(dialect): command for dialect, command in fix_commands(verdict, profile).items()}
    heading = f"{settings.device} port {settings.port}" + (f", {settings.netdev}" if settings.netdev else "")
    fix = fix_command(verdict, profile)
    return Finding(place, heading, check.id, check.title, check.why, verdict.result, fix, fixes)


def _driver(dialect: str) -> str:
    return {ANY: "generic"}.get(dialect) or family_of(dialect).json_name or dialect


def as_table(verdicts: Sequence[Verdict], profile: Profile, *, colour: bool) -> str:
    """A table per port, each failed check with its reason and fix, and a summary line."""
    findings = [_finding(verdict, profile) for verdict in verdicts]
    last = (
        summary_line(findings, profile) if findings else f"profile {profile.name}: no RoCE ports on this host"
    )
    return findings_table(findings, last, colour=colour)


def findings_table(findings: Sequence[Finding], last: str, *, colour: bool) -> str:
    """A table per heading, each failed check with its reason and fix, and a last line."""
    by_heading: dict[str, list[Finding]] = {}
    for finding in findings:
        by_heading.setdefault(finding.heading, []).append(finding)
    lines: list[str] = []
    for heading, found in by_heading.items():
        lines += [_paint(heading, BOLD, colour), *_rows(found, colour), *_fixes(found), ""]
    return "\n".join([*lines, last]) + "\n"


def _rows(findings: Sequence[Finding], colour: bool) -> Iterator[str]:
    cells = [
        (STATUS[one.result.ok], one.title, one.result.expected, one.result.found or "-") for one in findings
    ]
    headings, *rows = table([("", "", "expected", "found"), *cells], indent="  ")
    yield _paint(headings, DIM, colour)
    for one, row in zip(findings, rows, strict=True):
        yield _paint(row, COLOUR[one.result.ok], colour)


def _fixes(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.result.ok is False:
            yield f"  {finding.title}: {finding.why}"
            yield f"    fix: {finding.fix}"


def _paint(line: str, colour: str, wanted: bool) -> str:
    return f"{colour}{line}{PLAIN}" if wanted else line
