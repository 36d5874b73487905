"""The scoreboard of faults: how often `diagnose` is right, and what docs/diagnosis.md says of it.

And what the set lean leaves out takes nothing from a diagnosis: every fault, seen through lean and standard.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from fault_table import load_faults
from scoreboard import Diagnoses, Said, accused, diagnose_all, faulty_devices, host_of, judge_all, scored
from write_diagnosis import DOCUMENT, cause_lines, document, filled

from roce_exporter.catalog.row import FULL, LEAN, STANDARD, MetricSet
from roce_exporter.health.causes import CAUSES

if TYPE_CHECKING:
    from fault_table import Fault

    from roce_exporter.health.port_fault import Diagnosis

SIDES, NAMES = 0.95, 0.85
"""The goals: shares of faults whose side, and whose side and cause, are right."""

FAULTS = load_faults()


@pytest.fixture(scope="module")
def diagnoses() -> dict[object, Diagnoses]:
    return asyncio.run(diagnose_all())


@pytest.fixture(scope="module")
def all_said(diagnoses: dict[object, Diagnoses]) -> tuple[Said, ...]:
    return judge_all(diagnoses)


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


def findings(diagnosis: Diagnosis) -> list[tuple[str, str, str, str]]:
    return [(one.device, one.port, one.cause.name, str(one.side)) for one in diagnosis.findings]


@pytest.mark.slow
@pytest.mark.parametrize("metric_set", [LEAN, STANDARD], ids=str)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_a_fault_is_found_in_every_set(
    fault: Fault, metric_set: MetricSet, diagnoses: dict[object, Diagnoses]
) -> None:
    everything, seen = diagnoses[host_of(fault)][FULL], diagnoses[host_of(fault)][metric_set]
    assert findings(seen) == findings(everything)
    if "mlx5" in fault.vendors:
        assert set(seen.unseen) <= set(everything.unseen)
