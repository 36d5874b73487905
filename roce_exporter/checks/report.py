"""Findings as text for people and as the document for programs, the same for all topics."""

from __future__ import annotations

import re
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from roce_exporter.checks.finding import Finding, JudgedPort, NotChecked, Report, Side, Status, Topic
from roce_exporter.words import counted, few, table, word_list

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)

VERSION = 2
"""Consumers must ignore fields that they do not know; a field that changes its meaning or disappears raises the version."""
EXIT_CODES = {Status.OK: 0, Status.DEGRADED: 1, Status.FAILED: 1, Status.UNKNOWN: 3}
WIDTH = 80  # columns of the text where the terminal does not say how many it has
NAME = 10  # width of the names of parts
MOST_PLACES = 8  # ports that one heading names
MANY = 20  # lines of what is right from which on the last line names the flag that leaves them out
OWN = "each its own"
"""What was found on ports that differ, and are all right."""

RED, YELLOW, GREEN, DIM, BOLD, PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
COLOURS = {Status.FAILED: RED, Status.DEGRADED: YELLOW, Status.OK: GREEN, Status.UNKNOWN: DIM}
AT_FAULT = {Side.HOST: "this host", Side.LINK: "the link", Side.FABRIC: "the fabric", Side.PEER: "the peer"}
ACTS: dict[str, str] = {
    "job": "the owner of the job",
    "peer_job": "the owner of the job: its program at the peer",
    Side.HOST: "the host team",
    Side.LINK: "the network team: the cable and both of its ends",
    Side.FABRIC: "the network team",
    Side.PEER: "the team of the peer",
    Side.UNKNOWN: "not known: ask the host team first",
}
DRAIN = "Drain: "
JOBS = {
    Status.FAILED: f"{DRAIN}yes, a job cannot use this port",
    Status.DEGRADED: f"{DRAIN}after the job; it runs, slower or less safely",
}
"""Whether jobs can run, by the worst health of a place."""
ELSEWHERE = f"{DRAIN}no, the fault is not at this host"
Place = tuple[str, str, str]
"""Device, port, and network device, rail and switch port."""

ALIKE = " (likewise on the other ports)"
_DIGITS = re.compile("([0-9]+)")
_NUMBER = re.compile(r"(?<![\w.-])(?<!priority )(?<!lane )[0-9]+(?:[,.][0-9]+)*(?!\w)")
"""Numbers in texts that ports can share; no parts of names."""


def document(report: Report, source: str, time: float | None, *, failed: bool = False) -> dict[str, Any]:
    """The document of `check --format=json` (docs/diagnosis.md); `time` in seconds since 1970, `failed`: without what is right."""
    count = Counter(one.status for one in report.findings)
    return {
        "version": VERSION,
        "source": source,
        "time": time,
        "status": report.status.name.lower(),
        "summary": {status.name.lower(): count[status] for status in sorted(Status, reverse=True)},
        "findings": [_object(one) for one in report.findings if one.is_wrong or not failed],
        "fine": list(report.fine),
        "not_checked": [one._asdict() for one in report.not_checked],
        "ports": [_port_object(one, report.findings) for one in report.ports],
    }


def rows_document(status: Status, gaps: Iterable[NotChecked], **rows: object) -> dict[str, Any]:
    """The document of a command without findings, whose other keys are those of `document`."""
    unseen = [one._asdict() for one in gaps]
    return {"version": VERSION, "status": status.name.lower(), **rows, "not_checked": unseen}


FIELDS = word_list("""
device port netdev place topic check status side title expected found why evidence sure wrong_if against since until caused_by fix fixes runbook
""")
"""Of a finding in the document."""


def _object(finding: Finding) -> dict[str, Any]:
    return {
        **{name: list(it) if isinstance(it := getattr(finding, name), tuple) else it for name in FIELDS},
        "status": finding.status.name.lower(),
        "acts": _acts(finding),
        "since": finding.since or None,
        "until": finding.until or None,
        "fixes": [{"for": system, "command": command} for system, command in finding.fixes.items()],
    }


def _port_object(port: JudgedPort, findings: Sequence[Finding]) -> dict[str, Any]:
    here = [one for one in findings if one.device == port.device and one.port in ("", port.port)]
    return port._asdict() | {"health": port.health.name.lower(), "drain": _jobs(here).removeprefix(DRAIN)}


def text(report: Report, head: str, *, width: int = WIDTH, failed: bool = False, colour: bool = False) -> str:
    """A table per place, what is wrong in each with its reasons and fixes, what was not seen, and a last line.

    Args:
        report: what was found.
        head: the first line: where it is from.
        width: of a line; `table` and wrapped texts respect it.
        failed: only what is wrong.
        colour: for a terminal.
    """
    lines = [*_filled(head, "", width), ""]
    for heading, every in _places(report.findings, failed):
        # A consequence is a line of its cause.
        here = {one.check: one for one in every}
        also = [one for one in every if _root(one, here) is not one]
        findings = sorted(
            (one for one in every if one not in also), key=lambda one: -one.status * one.is_wrong
        )
        lines += [_paint(line, BOLD, colour) for line in _filled(heading, "", width)]
        lines += _filled(_jobs(every), "  ", width)
        lines += [*_rows(findings, width, colour), ""]
        for finding in findings:
            if finding.is_wrong or finding.evidence:
                lines += [*_details(finding, [one for one in also if _root(one, here) is finding], width), ""]
    if not failed:
        if report.fine:
            lines += [*_filled(f"Fine: {', '.join(report.fine)}.", "", width), ""]
        lines += _unseen(report, width)
    return "\n".join([*lines, *textwrap.wrap(_summary(report, failed), width)]) + "\n"


def _unseen(report: Report, width: int) -> Iterator[str]:
    """What is needed line by line, the rest of a place together."""
    rest: dict[str, list[str]] = {}
    for gap in report.not_checked:
        if not gap.needed:
            place = str(gap).removesuffix(gap.what)
            rest.setdefault(place, []).append(gap.what)
    if not report.not_checked:
        return
    yield "Not seen:"
    for gap in report.not_checked:
        if gap.needed:
            yield from _filled(str(gap), "  ! ", width)
    for place, what in rest.items():
        together = f"{place}{'; '.join(what)}"
        for line in [together] if len(together) < 2 * width else (f"{place}{one}" for one in what):
            yield from _filled(line, "  - ", width)
    yield ""


def _jobs(findings: Sequence[Finding]) -> str:
    """Whether jobs can run at a place; empty if nothing of its health is wrong."""
    health = [one for one in findings if one.topic is Topic.HEALTH and one.is_wrong]
    if health and all(one.side in (Side.FABRIC, Side.PEER) for one in health):
        return ELSEWHERE
    return JOBS.get(max((one.status for one in health), default=Status.OK), "")


def _acts(finding: Finding) -> str:
    """Who acts; empty for a consequence, whose cause says it, and for what is not of health."""
    return (
        ACTS[finding.acts or finding.side] if finding.topic is Topic.HEALTH and not finding.caused_by else ""
    )


def _root(finding: Finding, here: Mapping[str, Finding]) -> Finding:
    """The finding of the same place that this one follows from, itself if from none."""
    causes = [here[name] for name in finding.caused_by if name in here]
    return _root(causes[0], here) if causes else finding


def _summary(report: Report, failed: bool) -> str:
    here: dict[Place, dict[str, Finding]] = {}
    for one in report.findings:
        here.setdefault(_place(one), {})[one.check] = one
    order = sorted(report.findings, key=lambda one: -one.status)
    own = [one for one in order if (root := _root(one, here[_place(one)])) is one or not root.is_wrong]
    words = Counter(_word(one) for one in own)
    texts = {name: counted(number, name, name * (name != "note")) for name, number in words.items()}
    if lines := len(order) - len(own):  # as many as the lines `also`
        texts["degraded" if words["degraded"] else "failed"] += f" with {counted(lines, 'consequence')}"
    counts = ", ".join(texts.values())
    if words["ok"] >= MANY and not failed and any(one.is_wrong for one in report.findings):
        counts += " (--failed leaves these out)"
    if any(one.is_wrong for one in report.findings):
        return f"{counts}."
    if report.status is Status.UNKNOWN:
        more = "; leave out --failed to see what" * failed
        if words["unknown"]:
            more += ": the driver does not report it, or a privilege is missing (`roce-exporter check setup`)"
        return f"Unknown: not all that is needed was seen{f' ({counts})' * bool(counts)}{more}."
    return f"Nothing needs action: {counts}." if counts else "Nothing wrong was found."


def _places(findings: Iterable[Finding], failed: bool) -> list[tuple[str, list[Finding]]]:
    """The findings by place, the worst place first; places with equal results are one."""
    places: dict[Place, list[Finding]] = {}
    for one in findings:
        if one.is_wrong or not failed:
            places.setdefault(_place(one), []).append(one)
    groups: dict[object, list[Place]] = {}
    for place, found in sorted(places.items(), key=_in_order):
        here = {one.check: one for one in found}
        own = (_shown(one) for one in found if _root(one, here) is one)
        groups.setdefault((bool(place[1]), *own), []).append(place)
    tables = [(_heading(alike), list(_merged([places[one] for one in alike]))) for alike in groups.values()]
    return sorted(tables, key=lambda one: -max(finding.status for finding in one[1]))


def _place(one: Finding) -> Place:
    return one.device, one.port, ", ".join(filter(None, (one.netdev, one.place)))


def _in_order(one: tuple[Place, Sequence[Finding]]) -> tuple[object, ...]:
    """The more harmful causes first; ports with the same ascend. How much of it each has is no order."""
    worst = max(int(finding.harm) for finding in one[1])
    parts = _DIGITS.split(" ".join(one[0]))
    return (-worst, not one[0][0], *(int(part) if at % 2 else part for at, part in enumerate(parts)))


def _shown(one: Finding) -> tuple[object, ...]:
    # Each port has its own neighbour and speed: what was found matters only where it is not right.
    found = "" if one.status is Status.OK else one.found
    what = one.topic, one.check, one.title, one.status, one.side, one.expected, found
    # A fault of several ports has the numbers of each.
    return what if one.topic is Topic.HEALTH else (*what, one.evidence, one.against)


def _heading(places: Sequence[Place]) -> str:
    device = places[0][0]
    if len(places) > 1 and all(one[0] == device and not one[2] for one in places):
        return f"{device} ports {few([port for _, port, _ in places], MOST_PLACES)}"
    names = [
        f"{device or 'this host'}{f' port {port}' * bool(port)}{f' ({netdev})' * bool(netdev)}"
        for device, port, netdev in places
    ]
    return few(names, MOST_PLACES)


def _merged(alike: Sequence[Sequence[Finding]]) -> Iterator[Finding]:
    """The findings of places with the same ones; consequences are those of any of them."""
    every: dict[object, list[Finding]] = {}
    for found in alike:
        for number, one in enumerate(found):
            nth = sum(other.check == one.check for other in found[:number])
            every.setdefault((one.topic, one.check, nth), []).append(one)
    for several in every.values():
        first = several[0]
        steps = zip(*(one.fix for one in several), strict=False)
        yield replace(
            first,
            found=first.found if len({one.found for one in several}) == 1 else OWN,
            evidence=_of_all(several, "evidence"),
            against=_of_all(several, "against"),
            fix=tuple(step[0] + ALIKE * (len({*step}) > 1) for step in steps),
            since=min(filter(None, (one.since for one in several)), default=0.0),
            until=max(one.until for one in several) if all(one.until for one in several) else 0.0,
        )


def _of_all(several: Sequence[Finding], part: str) -> tuple[str, ...]:
    """What several ports say: one line with the range of each number where all say it in the same words, else a line per port."""
    rows: dict[tuple[str, int], dict[str, str]] = {}
    for one in several:
        nth: Counter[str] = Counter()  # a port can say two things in the same words, of two queues
        for said in getattr(one, part):
            words = _NUMBER.sub("", said)
            rows.setdefault((words, nth[words]), {})[f"{one.device}/{one.port}".rstrip("/")] = said
            nth[words] += 1
    return tuple(
        line
        for row in rows.values()
        for line in (
            [_range([*row.values()])]
            if len(row) == len(several)
            else [f"{place}: {said}" for place, said in row.items()]
        )
    )


def _range(row: Sequence[str]) -> str:
    columns = zip(*(_NUMBER.findall(said) for said in row), strict=True)
    ends = iter([sorted({*column}, key=lambda one: float(one.replace(",", ""))) for column in columns])
    return _NUMBER.sub(
        lambda _: " to ".join(dict.fromkeys((one := next(ends))[:: max(len(one) - 1, 1)])), row[0]
    )


def _rows(findings: Sequence[Finding], width: int, colour: bool) -> Iterator[str]:
    compared = any(one.expected for one in findings)
    if not compared:  # settings of which nothing but the title is known, and that they are right: one line
        plain = [
            one
            for one in findings
            if one.topic is Topic.SETTINGS and one.status is Status.OK and not one.found
        ]
        findings = [one for one in findings if one not in plain[1:]]
        titles = ", ".join(one.title for one in plain)
        findings = [replace(one, title=titles) if one in plain else one for one in findings]
    cells = [
        (
            _word(one),
            one.title,
            one.expected,
            one.found or next(iter(one.evidence), "not seen" if one.status is Status.UNKNOWN else "-"),
        )
        if compared
        else (_word(one), one.title, one.found or _when(one))
        for one in findings
    ]
    head = ("", "", "expected", "found") if compared else ("", "", "")
    shown = table([head, *cells], indent="  ", width=width)
    if compared:
        yield _paint(shown[0], DIM, colour)
    for one, row in zip(findings, shown[1:], strict=True):
        yield _paint(row, COLOURS[one.status], colour)


def _when(finding: Finding) -> str:
    """Since when it is seen, and until when where it has ended; UTC. Empty if the time is not seen."""
    if not finding.since:
        return ""
    begin, end = (time.strftime("%H:%M:%S", time.gmtime(one)) for one in (finding.since, finding.until))
    if not finding.until:
        return f"since {begin} UTC"
    return f"at {begin} UTC" if begin == end else f"{begin} to {end} UTC"


def _word(finding: Finding) -> str:
    """The status; what rules of health say of a port that is fit reads like a fault, and is none."""
    is_note = finding.topic is Topic.HEALTH and finding.status is Status.OK
    return "note" if is_note else finding.status.name.lower()


def _details(finding: Finding, also: Sequence[Finding], width: int) -> Iterator[str]:
    """The parts of one finding. A consequence has no side and no reason of its own: its cause has them."""
    yield from _filled(f"{finding.title} ({finding.check})", "  ", width)
    if finding.caused_by:
        yield from _part("follows", (f"from {', '.join(finding.caused_by)}",), width)
    elif finding.side in AT_FAULT:
        host = finding.topic is Topic.FABRIC and finding.side is Side.HOST
        yield from _part("at fault", ("the host" if host else AT_FAULT[finding.side],), width)
    if finding.topic is Topic.HEALTH:
        day = time.strftime(" on %Y-%m-%d", time.gmtime(finding.since))
        yield from _part("when", (_when(finding) and _when(finding) + day,), width)
        yield from _part("acts", (_acts(finding),), width)
    yield from _part("evidence", finding.evidence, width)
    yield from _part(
        "also", [f"{one.title} ({one.check}): {', '.join(one.evidence[:1])}" for one in also], width
    )
    if not finding.caused_by:
        yield from _part("likely" if finding.topic is Topic.HEALTH else "why", (finding.why,), width)
    yield from _part("against", finding.against, width)
    if finding.sure:
        yield from _part("sure", (f"{finding.sure}; wrong if {finding.wrong_if}",), width)
    yield from _part("next" if finding.topic in (Topic.HEALTH, Topic.FABRIC) else "fix", finding.fix, width)
    if finding.runbook:
        yield from _part("runbook", (f"alerts/runbooks/{finding.runbook}.md",), width)


def _part(name: str, texts: Iterable[str], width: int) -> Iterator[str]:
    for one in texts:
        if one:
            yield from _filled(one, f"    {name:<{NAME}}", width)
            name = ""


def _filled(line: str, begin: str, width: int) -> list[str]:
    """The text in lines of at most `width`, indented like its first line."""
    return textwrap.wrap(
        line, width, initial_indent=begin, subsequent_indent=" " * len(begin), break_on_hyphens=False
    )


def _paint(line: str, colour: str, wanted: bool) -> str:
    return f"{colour}{line}{PLAIN}" if wanted and line else line
