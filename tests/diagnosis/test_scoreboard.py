"""The scoreboard of faults: how often `check health` is right, and what docs/diagnosis.md says of it.

And what the set lean leaves out takes nothing from a diagnosis: every fault, seen through lean and standard.
"""

import asyncio

import pytest
from built_host import FOREIGN, load_incidents
from fault_table import Fault, agrees, load_faults
from scoreboard import Said, accused, judge_all, scored
from write_diagnosis import DOCUMENT, TABLE, cause_lines, document, filled, misread_today, whole_table

from roce_exporter.catalog.row import LEAN, STANDARD
from roce_exporter.checks.finding import Report
from roce_exporter.checks.health.causes import CAUSES

SIDES, NAMES = 0.95, 0.85
"""The goals: shares of faults whose side, and whose side and cause, are right."""
FAULTS = load_faults()
MISSED = {"rnr-server", "wrong-priority-pause", "moving-incast"}
"""The chosen faults that `check health` does not name rightly."""


def test_the_truth_is_complete() -> None:
    assert len({fault.id for fault in FAULTS}) == len(FAULTS) >= 130
    names = {cause.name for cause in CAUSES}
    for fault in FAULTS:
        assert fault.hidden or (fault.causes <= names and fault.owner and fault.next), fault.id
        assert fault.side in {"host", "link", "fabric", "peer", "unknown"}


def test_the_document_lists_every_cause() -> None:
    text = DOCUMENT.read_text()
    assert filled(text, "causes", cause_lines()) == text


@pytest.mark.slow
async def test_one_fault_of_each_cause_is_found() -> None:
    """The cheapest: two moments before ten minutes. Those that only a simulated host plays are in CI, where all are."""
    chosen: dict[str, Fault] = {}
    for fault in sorted(FAULTS, key=lambda fault: bool(fault.script)):
        if not fault.hidden and not fault.simulate:
            chosen.setdefault(fault.cause, fault)
    assert len(chosen) > 30
    said = await judge_all(list(chosen.values()))
    assert {one.fault.id for one in said if not one.is_right} == MISSED
    assert {one.fault.id for one in said if one.is_right and not says_what_to_do(one)} == set()
    assert {one.fault.id for one in said if one.is_right and not agrees(one.fault.owner, one.first)} == set()
    assert {one.fault.id: accused(one) for one in said if accused(one)} == {}


def says_what_to_do(said: Said) -> bool:
    return said.first is not None and any(said.fault.next in step for step in said.first.fix)


HOUR = 3600
"""Hundreds of histories, next to other work of the machine."""


@pytest.fixture(scope="module")
def today() -> dict[str, str]:
    return asyncio.run(misread_today())


@pytest.fixture(scope="module")
def all_said() -> tuple[Said, ...]:
    return asyncio.run(judge_all(FAULTS, LEAN, STANDARD))


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(HOUR)
def test_the_goals_are_met(all_said) -> None:
    counted = scored(all_said)
    sides = [said.fault.id for said in counted if not said.side_is_right]
    causes = [said.fault.id for said in counted if not said.is_right]
    silent = [said.fault.id for said in counted if said.is_right and not says_what_to_do(said)]
    assert len(sides) <= (1 - SIDES) * len(counted), sides
    assert len(causes) <= (1 - NAMES) * len(counted), causes
    assert len(silent) <= (1 - SIDES) * (len(counted) - len(causes)), silent
    assert {said.fault.id: accused(said) for said in all_said if accused(said)} == {}
    assert [one for one in counted if one.is_right and not agrees(one.fault.owner, one.first)] == []


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(HOUR)
def test_the_document_has_the_scoreboard(all_said, today) -> None:
    text, rows = DOCUMENT.read_text(), TABLE.read_text()
    assert document(text, all_said) == text, "run python tests/diagnosis/write_diagnosis.py"
    assert whole_table(rows, all_said, today) == rows, "run python tests/diagnosis/write_diagnosis.py"


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(HOUR)
def test_what_the_first_run_of_a_batch_had_right_stays_right(today) -> None:
    """Rows that were wrong in the first run may still be."""
    rows = load_incidents(FOREIGN)
    assert {one.id: today[one.id] for one in rows if today[one.id] and not one.missed} == {}


def findings(diagnosis: Report) -> list[tuple[str, str, str, str]]:
    return [(one.device, one.port, one.check, str(one.side)) for one in diagnosis.findings]


@pytest.mark.ci
@pytest.mark.slow
def test_every_fault_is_found_in_standard(all_said) -> None:
    """But for the device of a broken source, and for consequences that counters of full alone tell. Lean says that it has no evidence."""
    for said in all_said:
        told = [one for one in said.diagnosis.findings if one.check != "fault_counted" or not one.caused_by]
        whole = [one for one in findings(Report(tuple(told), ())) if one[2] != "source_broken"]
        assert findings(said.served[STANDARD]) == whole, said.fault.id
        assert any(gap.needed and "the set lean" in gap.what for gap in said.served[LEAN].not_checked)
