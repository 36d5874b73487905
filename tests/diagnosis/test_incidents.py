"""Hosts of public incidents and their look-alikes (`incidents.toml`): what `check health` says first, and what it says of hosts that are fit."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from built_host import FOREIGN, REPAIRED, Incident, fine_and_said, incident_history, load_incidents, misread
from write_diagnosis import misread_today

from roce_exporter.checks.health.causes import CAUSES
from roce_exporter.checks.health.diagnosis import diagnose

INCIDENTS = load_incidents()
FOREIGNERS = load_incidents(FOREIGN)


def test_the_truth_is_complete() -> None:
    assert len({one.id for one in INCIDENTS}) == len(INCIDENTS) >= 80
    assert {one.kind for one in INCIDENTS} == {"fault", "below", "alike", "busy", "idle"}
    assert all((one.truth == "fit") == (one.kind != "fault") for one in INCIDENTS)


def test_the_truth_of_the_foreign_hands_is_complete() -> None:
    names = {cause.name for cause in CAUSES} | {"none"}
    assert len({one.id for one in (*INCIDENTS, *FOREIGNERS)}) == len(INCIDENTS) + len(FOREIGNERS)
    faults = Counter(one.batch for one in FOREIGNERS if one.kind == "fault")
    assert faults[6] >= 60
    doubles = Counter(one.batch for one in FOREIGNERS if one.truth_too or one.other_truth)
    assert all(faults[batch] == 60 + doubles[batch] == 80 for batch in (7, 8, 9))
    assert faults[10] == 40 + doubles[10] == 56
    assert faults[11] == 50 + doubles[11] == 66
    assert faults[12] == 40 + doubles[12] == 52
    assert faults[13] == 40 + doubles[13] == 52
    assert faults[14] == 40 + doubles[14] == 52
    assert faults[15] == 40 + doubles[15] == 52
    assert faults[16] == 16 + doubles[16] == 46
    assert faults[17] == 14 + doubles[17] == 38
    fit = Counter(one.batch for one in FOREIGNERS if one.kind != "fault")
    assert fit[6] >= 12
    assert fit[7] == fit[8] == fit[9] == 24
    assert fit[10] == 16
    assert fit[11] == 20
    assert fit[12] == 16
    assert fit[13] == 16
    assert fit[14] == 16
    assert fit[15] == 16
    assert fit[16] == 14
    assert fit[17] == 12
    for one in FOREIGNERS:
        assert one.shown in {"values", "names", "words"}, one.id
        for truth in (one.truth, one.truth_too, one.other_truth) if one.kind == "fault" else ():
            side, _, causes = truth.partition(": ")
            assert side in {"", "host", "link", "fabric", "peer", "unknown"}, one.id
            assert not truth or set(causes.split("|")) <= names, one.id


@pytest.mark.ci
@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda one: one.id)
async def test_the_first_finding_is_the_truth(incident: Incident) -> None:
    if incident.open:
        pytest.xfail(incident.open)
    report = diagnose(await incident_history(incident))
    assert misread(incident, report.findings) == ""
    assert fine_and_said(report) == []


@pytest.mark.slow
@pytest.mark.parametrize("incident", load_incidents(REPAIRED), ids=lambda one: one.id)
async def test_what_was_repaired_stays_right(incident: Incident) -> None:
    report = diagnose(await incident_history(incident))
    assert misread(incident, report.findings) == ""
    assert fine_and_said(report) == []


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(1800)  # 192 histories of ten minutes
async def test_what_the_first_run_had_right_stays_right() -> None:
    """Prints what is misread today; rows that were wrong in the first run may still be."""
    today = await misread_today()
    sys.stdout.writelines(f"{name}: {wrong}\n" for name, wrong in today.items() if wrong)
    assert {one.id: today[one.id] for one in FOREIGNERS if today.get(one.id) and not one.missed} == {}
