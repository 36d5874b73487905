"""The audit as a table for people and as JSON for scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from roce_exporter.audit.commands import fix_command, fix_commands
from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.row import ANY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.audit.port_settings import PortSettings
    from roce_exporter.audit.profile import Profile
    from roce_exporter.audit.verdict import Verdict

TABLE, JSON = "table", "json"
FORMATS = (TABLE, JSON)

RED, GREEN, DIM, BOLD, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"

STATUS = {True: "ok", False: "WRONG", None: "unreadable"}
COLOUR = {True: GREEN, False: RED, None: DIM}

PortKey = tuple[str, int, str]
"""Device, port and network device."""


def is_clean(verdicts: Sequence[Verdict]) -> bool:
    """Whether no check failed. A check that could not be made has not failed."""
    return all(verdict.result.ok is not False for verdict in verdicts)


def as_json(verdicts: Sequence[Verdict], profile: Profile) -> str:
    """One object per check with everything the audit found, and the number of checks by status."""
    document = {
        "profile": profile.name,
        "ok": is_clean(verdicts),
        "summary": _summary(verdicts),
        "checks": [_object(verdict, profile) for verdict in verdicts],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _summary(verdicts: Sequence[Verdict]) -> dict[str, int]:
    results = [verdict.result.ok for verdict in verdicts]
    return {"ok": results.count(True), "wrong": results.count(False), "unreadable": results.count(None)}


def _object(verdict: Verdict, profile: Profile) -> dict[str, object]:
    settings, result = verdict.settings, verdict.result
    return {
        "device": settings.device,
        "port": settings.port,
        "netdev": settings.netdev,
        "check": verdict.check.id,
        "status": STATUS[result.ok].lower(),
        "expected": result.expected,
        "found": None if result.ok is None else result.found,
        "why": verdict.check.why,
        "mend": {_driver(dialect): command for dialect, command in fix_commands(verdict, profile).items()},
    }


def _driver(dialect: str) -> str:
    return {ANY: "generic"}.get(dialect) or family_of(dialect).json_name or dialect


def as_table(verdicts: Sequence[Verdict], profile: Profile, *, colour: bool) -> str:
    """A table per port, each failed check with its reason and fix, and a summary line."""
    lines: list[str] = []
    for key, found in _by_port(verdicts).items():
        lines += [
            _paint(_heading(key), BOLD, colour),
            *_rows(found, colour),
            *_fixes(found, profile),
            "",
        ]
    count = _summary(verdicts)
    lines.append(
        f"profile {profile.name}: {count['ok']} ok, {count['wrong']} wrong, {count['unreadable']} unreadable"
        if verdicts
        else f"profile {profile.name}: no RoCE ports on this host"
    )
    return "\n".join(lines) + "\n"


def _by_port(verdicts: Sequence[Verdict]) -> dict[PortKey, list[Verdict]]:
    found: dict[PortKey, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(_key(verdict.settings), []).append(verdict)
    return found


def _key(settings: PortSettings) -> PortKey:
    return settings.device, settings.port, settings.netdev


def _heading(key: PortKey) -> str:
    device, port, netdev = key
    return f"{device} port {port}" + (f", {netdev}" if netdev else "")


def _rows(verdicts: Sequence[Verdict], colour: bool) -> Iterator[str]:
    cells = [
        (STATUS[one.result.ok], one.check.title, one.result.expected, one.result.found or "-")
        for one in verdicts
    ]
    widths = [max(map(len, column)) for column in zip(*cells, ("", "", "expected", "found"), strict=True)]
    yield _paint(_row(("", "", "expected", "found"), widths), DIM, colour)
    for one, row in zip(verdicts, cells, strict=True):
        yield _paint(_row(row, widths), COLOUR[one.result.ok], colour)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _fixes(verdicts: Sequence[Verdict], profile: Profile) -> Iterator[str]:
    for verdict in verdicts:
        if verdict.result.ok is False:
            yield f"  {verdict.check.title}: {verdict.check.why}"
            yield f"    fix: {fix_command(verdict, profile)}"


def _paint(line: str, colour: str, wanted: bool) -> str:
    return f"{colour}{line}{PLAIN}" if wanted else line
