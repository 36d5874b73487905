"""Hosts of public incidents and their look-alikes (`incidents.toml`): what `check health` says first, and what it says of hosts that are fit."""

from __future__ import annotations

import pytest
from built_host import FOREIGN, Incident, incident_history, load_incidents

from roce_exporter.checks.health.causes import CAUSES
from roce_exporter.checks.health.diagnosis import diagnose

INCIDENTS = load_incidents()
FOREIGNERS = load_incidents(FOREIGN)


def test_the_truth_is_complete() -> None:
    assert len({one.id for one in INCIDENTS}) == len(INCIDENTS) >= 80
    assert {one.kind for one in INCIDENTS} == {"fault", "below", "alike", "busy", "idle"}
    assert all((one.truth == "fit") == (one.kind != "fault") for one in INCIDENTS)


def test_the_truth_of_the_foreign_hand_is_complete() -> None:
    names = {cause.name for cause in CAUSES} | {"none"}
    assert len({one.id for one in (*INCIDENTS, *FOREIGNERS)}) == len(INCIDENTS) + len(FOREIGNERS)
    assert sum(one.kind == "fault" for one in FOREIGNERS) >= 60
    assert sum(one.kind != "fault" for one in FOREIGNERS) >= 12
    for one in FOREIGNERS:
        assert one.shown in {"values", "names", "words"}, one.id
        for truth in (one.truth, one.truth_too) if one.kind == "fault" else ():
            side, _, causes = truth.partition(": ")
            assert side in {"", "host", "link", "fabric", "peer"}, one.id
            assert not truth or set(causes.split("|")) <= names, one.id


@pytest.mark.ci
@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda one: one.id)
async def test_the_first_finding_is_the_truth(incident: Incident) -> None:
    if incident.open:
        pytest.xfail(incident.open)
    findings = diagnose(await incident_history(incident)).findings
    here = [one for one in findings if one.device == incident.device]
    there = [one for one in findings if one.device == incident.other and incident.other_truth]
    assert not [one for one in findings if one.is_wrong and one not in (*here, *there)], (
        "a port without a fault"
    )
    first = [incident.truth]
    if incident.truth_too:
        # Both are said; which of two faults of a port is worse has no truth.
        first.append(incident.truth_too)
        for truth in first:
            assert any(incident.is_said(truth, one.side.value, one.check) for one in here)
    if incident.other_truth:
        assert there
        assert incident.is_said(incident.other_truth, there[0].side.value, there[0].check)
    if incident.truth == "fit":
        assert not [one for one in here if one.is_wrong]
    else:
        assert here
        assert any(incident.is_said(truth, here[0].side.value, here[0].check) for truth in first)
