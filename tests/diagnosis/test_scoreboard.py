"""The scoreboard of faults: how often `diagnose` is right, and what docs/diagnosis.md says of it."""

from __future__ import annotations

import asyncio

import pytest
from fault_table import load_faults
from scoreboard import Said, accused, faulty_devices, judge_all, scored
from write_diagnosis import DOCUMENT, cause_lines, document, filled

from roce_exporter.health.causes import CAUSES

SIDES, NAMES = 0.95, 0.85
"""The goals: shares of faults whose side, and whose side and cause, are right."""

FAULTS = load_faults()


@pytest.fixture(scope="module")
def all_said() -> tuple[Said, ...]:
    return asyncio.run(judge_all())


def test_the_truth_is_complete() -> None:
    assert len({fault.id for fault in FAULTS}) == len(FAULTS) >= 30
    names = {cause.name for cause in CAUSES}
    for fault in FAULTS:
        assert fault.hidden or (fault.causes <= names and fault.owner and fault.next), fault.id
        assert fault.side in {"host", "link", "fabric", "peer", "unknown"}


def test_the_document_lists_every_cause() -> None:
    text = DOCUMENT.read_text()
    assert filled(text, "causes", cause_lines()) == text


@pytest.mark.slow
def test_the_side_is_right_nearly_always(all_said: tuple[Said, ...]) -> None:
    counted = scored(all_said)
    wrong = [said.fault.id for said in counted if not said.side_is_right]
    assert len(wrong) <= (1 - SIDES) * len(counted), wrong


@pytest.mark.slow
def test_the_cause_is_right_mostly(all_said: tuple[Said, ...]) -> None:
    counted = scored(all_said)
    wrong = [said.fault.id for said in counted if not (said.side_is_right and said.cause_is_right)]
    assert len(wrong) <= (1 - NAMES) * len(counted), wrong


@pytest.mark.slow
def test_the_next_step_is_among_those_printed(all_said: tuple[Said, ...]) -> None:
    right = [said for said in scored(all_said) if said.first and said.side_is_right and said.cause_is_right]
    missing = [
        said.fault.id
        for said in right
        if said.first and not any(said.fault.next in step for step in said.first.next)
    ]
    assert len(missing) <= (1 - SIDES) * len(right), missing


@pytest.mark.slow
def test_no_device_without_a_fault_has_failed(all_said: tuple[Said, ...]) -> None:
    found = {
        said.fault.id: [(one.device, one.cause.name) for one in blamed]
        for said in all_said
        if (blamed := accused(said, faulty_devices(said.fault, FAULTS)))
    }
    assert found == {}


@pytest.mark.slow
def test_the_document_has_the_scoreboard(all_said: tuple[Said, ...]) -> None:
    text = DOCUMENT.read_text()
    assert document(text, all_said) == text, "run python tests/diagnosis/write_diagnosis.py"
