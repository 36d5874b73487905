"""Writes the generated parts of docs/diagnosis.md, the list of causes and the score, and of scoreboard.md, each fault and the first runs.

`python tests/diagnosis/write_diagnosis.py` takes two minutes.
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from built_host import DRIVERS, FOREIGN, Incident, incident_history, load_incidents, misread
from fault_table import load_faults
from hardware_trials import load_trials
from scoreboard import Said, judge_all, score_lines, share_of, sources, table

from roce_exporter.checks.finding import Status
from roce_exporter.checks.health.causes import CAUSES, End
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.report import ACTS

DOCUMENT = Path(__file__).parents[2] / "docs/diagnosis.md"
TABLE = Path(__file__).with_name("scoreboard.md")
LATER = 7
"""The first batch of the table of later ones."""
ENDS = {End.SEEN: "state", End.STOPS: "stop", End.EVENT: "window"}
TEAMS = ("host", "network", "peer", "job")
"""Words of who acts."""
MAKES = {Status.FAILED: "failed", Status.DEGRADED: "degraded", Status.OK: "healthy"}


def cause_lines() -> Iterator[str]:
    """One line of Markdown per cause, in order of harm."""
    yield "| cause | side | acts | port is | from | until | meaning | likely | runbook |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for cause in CAUSES:
        runbook = f"[{cause.runbook}](../alerts/runbooks/{cause.runbook}.md)"
        events, ratio = cause.begins
        begins = f"{events:g}{f', {ratio:g} of the bits' * bool(ratio)}"
        sides = ", ".join(sorted(cause.sides, key=lambda side: (side is not cause.side, side)))
        acts = next((one for one in TEAMS if one in ACTS[cause.acts or cause.side].partition(":")[0]), "-")
        what = (f"`{cause.name}`", sides, acts, MAKES[cause.health], begins, ENDS[cause.ends])
        cells = (*what, cause.title, cause.likely, runbook)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def hidden_lines(all_said: Iterable[Said]) -> Iterator[str]:
    """The faults that no host can tell, and why."""
    for said in all_said:
        if said.fault.hidden:
            yield f"* {said.fault.title} ({said.fault.id}): {said.fault.hidden}."


def incident_lines() -> Iterator[str]:
    """How many hosts of `incidents.toml` there are of each kind and driver: each is right, which a test holds."""
    kinds = ("fault", "below", "alike", "busy", "idle")
    found = Counter((one.driver, one.kind) for one in load_incidents())
    yield f"| driver | {' | '.join(kinds)} |"
    yield "| --- |" + " ---: |" * len(kinds)
    for driver in DRIVERS:
        yield f"| {driver} | {' | '.join(str(found[driver, kind]) for kind in kinds)} |"


def batch_lines() -> Iterator[str]:
    """What the first run of each batch said that was written before the rules were changed for it, by class."""
    yield "| class | faults right in the first run (95 % interval) | healthy hosts without a finding |"
    yield "| --- | --- | --- |"
    later = [one for one in load_incidents() if one.batch > 1]
    for number in sorted({one.batch for one in later}):
        yield _first_run(f"**batch {number}**", [one for one in later if one.batch == number])
    for group in dict.fromkeys(one.group for one in later):
        yield _first_run(group, [one for one in later if one.group == group])


def _first_run(name: str, rows: list[Incident]) -> str:
    shares = []
    for is_fault in (True, False):
        here = [one for one in rows if (one.kind == "fault") is is_fault]
        shares.append(share_of(sum(not one.missed for one in here), len(here)))
    return f"| {name} | {' | '.join(shares)} |"


async def misread_today() -> dict[str, str]:
    """What is wrong in what the rules say today of each row of the foreign hands."""
    return {
        one.id: misread(one, diagnose(await incident_history(one)).findings)
        for one in load_incidents(FOREIGN)
    }


def foreign_lines(today: Mapping[str, str]) -> Iterator[str]:
    """The first run and today, by class and by what the source shows: side, side and cause, healthy hosts without a finding."""
    rows = [one for one in load_incidents(FOREIGN) if one.batch == 6]
    first = {one.id: one.missed for one in rows}
    yield "| rows | first run: side (95 % interval) | side and cause | healthy, no finding | today: side | side and cause | healthy, no finding |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, here in (
        ("**all**", rows),
        *(
            (group, [one for one in rows if one.group == group])
            for group in dict.fromkeys(one.group for one in rows)
        ),
        *(
            (f"source shows {shown}", [one for one in rows if one.shown == shown])
            for shown in ("values", "names", "words")
        ),
    ):
        yield f"| {name} | {' | '.join((*_shares(here, first), *_shares(here, today)))} |"


def later_lines(today: Mapping[str, str]) -> Iterator[str]:
    """The same of all later batches, by batch, class and driver; of a double fault, whether both are said."""
    rows = [one for one in load_incidents(FOREIGN) if one.batch >= LATER]
    first = {one.id: one.missed for one in rows}
    yield "| rows | first run: side (95 % interval) | cause | side and cause | both of two | healthy, no finding | today: side and cause | both of two | healthy |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    parts = {"**all**": rows}
    for key in ("batch", "group", "driver"):
        # groups of two faults and of none are columns
        some = [one for one in rows if key != "group" or (one.kind == "fault" and not _is_double(one))]
        for value in dict.fromkeys(getattr(one, key) for one in some):
            name = f"batch {value}" if key == "batch" else value
            parts[name] = [one for one in rows if getattr(one, key) == value]
    for name, here in parts.items():
        two = [one for one in here if _is_double(one)]
        told = [one for one in here if one.kind == "fault" and not _is_double(one)]
        fit = [one for one in here if one.kind != "fault"]
        sides = [one for one in told if not one.missed or one.missed.split(":")[0] in one.sides]
        causes = [one for one in told if not one.missed or _is_cause(one)]
        cells = [share_of(len(sides), len(told)), share_of(len(causes), len(told))]
        cells += [
            share_of(sum(not wrong[one.id] for one in some), len(some))
            for wrong in (first, today)
            for some in (told, two, fit)
        ]
        yield f"| {name} | {' | '.join(cells)} |"
    trials = [one for one in load_trials(2) if one.truth != "hidden"]
    right = sum(not one.missed for one in trials)
    yield f"| counters of real NICs, with batch {LATER} | - | - | {share_of(right, len(trials))} | - | - | - | - | - |"


def _is_double(one: Incident) -> bool:
    return bool(one.truth_too or one.other_truth)


def _is_cause(one: Incident) -> bool:
    """Whether the first run named the cause, of whatever side."""
    check = one.missed.partition(";")[0].rpartition(" ")[2]
    side = one.truth.partition(":")[0]
    return one.is_said(one.truth, side, check)


def _shares(rows: Sequence[Incident], wrong: Mapping[str, str]) -> Iterator[str]:
    faults = [one for one in rows if one.kind == "fault"]
    sides = [one for one in faults if not wrong[one.id] or wrong[one.id].split(":")[0] in one.sides]
    yield share_of(len(sides), len(faults))
    for here in (faults, [one for one in rows if one.kind != "fault"]):
        yield share_of(sum(not wrong[one.id] for one in here), len(here))


def filled(text: str, name: str, lines: Iterable[str]) -> str:
    """The document with these lines between the comments NAME and /NAME."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    assert len(pattern.findall(text)) == 1, name
    return pattern.sub(lambda _: "\n".join((begin, *lines, end)), text)


def document(text: str, all_said: tuple[Said, ...]) -> str:
    """The whole document with its generated parts."""
    text = filled(text, "causes", cause_lines())
    missed = [said for said in all_said if not (said.fault.hidden or said.is_right)]
    return filled(text, "scoreboard", (*score_lines(all_said), "", *sources(all_said), "", *table(missed)))


def whole_table(text: str, all_said: tuple[Said, ...], today: Mapping[str, str]) -> str:
    """The whole of scoreboard.md with its generated parts."""
    text = filled(text, "faults", table(all_said))
    text = filled(text, "hidden", hidden_lines(all_said))
    text = filled(text, "incidents", incident_lines())
    text = filled(text, "batches", batch_lines())
    text = filled(text, "foreign", foreign_lines(today))
    return filled(text, "later", later_lines(today))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    found = asyncio.run(judge_all(load_faults()))
    DOCUMENT.write_text(document(DOCUMENT.read_text(), found))
    TABLE.write_text(whole_table(TABLE.read_text(), found, asyncio.run(misread_today())))
