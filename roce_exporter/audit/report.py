"""The audit for people, as a table, and for scripts, as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from roce_exporter.audit.commands import best, mending

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.audit.facts import Facts
    from roce_exporter.audit.profile import Profile
    from roce_exporter.audit.verdict import Verdict

TABLE, JSON = "table", "json"
FORMATS = (TABLE, JSON)

RED, GREEN, DIM, BOLD, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"

STATUS = {True: "ok", False: "WRONG", None: "unreadable"}
COLOUR = {True: GREEN, False: RED, None: DIM}

Place = tuple[str, int, str]


def is_clean(verdicts: Sequence[Verdict]) -> bool:
    """Whether nothing was found wrong. What could not be read is not wrong."""
    return all(verdict.answer.ok is not False for verdict in verdicts)


def as_json(verdicts: Sequence[Verdict], profile: Profile) -> str:
    """Every check with all that is known of it, one object per check, and how many there were of each kind."""
    document = {
        "profile": profile.name,
        "ok": is_clean(verdicts),
        "summary": _summary(verdicts),
        "checks": [_object(verdict, profile) for verdict in verdicts],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _summary(verdicts: Sequence[Verdict]) -> dict[str, int]:
    told = [verdict.answer.ok for verdict in verdicts]
    return {"ok": told.count(True), "wrong": told.count(False), "unreadable": told.count(None)}


def _object(verdict: Verdict, profile: Profile) -> dict[str, object]:
    facts, answer = verdict.facts, verdict.answer
    return {
        "device": facts.device,
        "port": facts.port,
        "netdev": facts.netdev,
        "check": verdict.check.id,
        "status": STATUS[answer.ok].lower(),
        "expected": answer.expected,
        "found": None if answer.ok is None else answer.found,
        "why": verdict.check.why,
        "mend": mending(verdict, profile),
    }


def as_table(verdicts: Sequence[Verdict], profile: Profile, *, colour: bool) -> str:
    """A table per port, what is wrong with its reason and remedy, and one line that sums up."""
    lines: list[str] = []
    for place, found in _by_place(verdicts).items():
        lines += [
            _paint(_heading(place), BOLD, colour),
            *_rows(found, colour),
            *_remedies(found, profile),
            "",
        ]
    count = _summary(verdicts)
    lines.append(
        f"profile {profile.name}: {count['ok']} ok, {count['wrong']} wrong, {count['unreadable']} unreadable"
        if verdicts
        else f"profile {profile.name}: no RoCE ports on this host"
    )
    return "\n".join(lines) + "\n"


def _by_place(verdicts: Sequence[Verdict]) -> dict[Place, list[Verdict]]:
    found: dict[Place, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(_place(verdict.facts), []).append(verdict)
    return found


def _place(facts: Facts) -> Place:
    return facts.device, facts.port, facts.netdev


def _heading(place: Place) -> str:
    device, port, netdev = place
    return f"{device} port {port}" + (f", {netdev}" if netdev else "")


def _rows(verdicts: Sequence[Verdict], colour: bool) -> Iterator[str]:
    cells = [
        (STATUS[one.answer.ok], one.check.title, one.answer.expected, one.answer.found or "-")
        for one in verdicts
    ]
    widths = [max(map(len, column)) for column in zip(*cells, ("", "", "expected", "found"), strict=True)]
    yield _paint(_row(("", "", "expected", "found"), widths), DIM, colour)
    for one, row in zip(verdicts, cells, strict=True):
        yield _paint(_row(row, widths), COLOUR[one.answer.ok], colour)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _remedies(verdicts: Sequence[Verdict], profile: Profile) -> Iterator[str]:
    for verdict in verdicts:
        if verdict.answer.ok is False:
            yield f"  {verdict.check.title}: {verdict.check.why}"
            yield f"    mend: {best(verdict, profile)}"


def _paint(line: str, colour: str, wanted: bool) -> str:
    return f"{colour}{line}{PLAIN}" if wanted else line
