"""Hosts of public incidents and their look-alikes (`incidents.toml`): what `check health` says first, and what it says of hosts that are fit."""

from __future__ import annotations

from collections import Counter

import pytest
from built_host import FOREIGN, REPAIRED, Incident, fine_and_said, incident_history, load_incidents, misread
from fault_table import agrees

from roce_exporter.checks.health.causes import CAUSES
from roce_exporter.checks.health.diagnosis import diagnose

ACTED = 20
"""The last batch whose rows were compared when the causes got the one who acts."""
OTHERS = {
    *("daqiri-174-retry-at-start", "ucx-2322-imb-datacheck", "ford-2-crossing-nodes", "ucx-3305-hercules"),
    *("iw-cxgb4-bound", "rpma-1197-no-pinning"),
}
"""Programs that look like a dead peer from here, or of which only the driver says something."""
INCIDENTS = load_incidents()
FOREIGNERS = load_incidents(FOREIGN)


def test_the_truth_is_complete() -> None:
    assert len({one.id for one in INCIDENTS}) == len(INCIDENTS) >= 80
    assert {one.kind for one in INCIDENTS} == {"fault", "below", "alike", "busy", "idle"}
    assert all((one.truth == "fit") == (one.kind != "fault") for one in INCIDENTS)


def test_the_truth_of_the_foreign_hands_is_complete() -> None:
    names = {cause.name for cause in CAUSES} | {"none"}
    assert len({one.id for one in (*INCIDENTS, *FOREIGNERS)}) == len(INCIDENTS) + len(FOREIGNERS)
    kinds = Counter(
        (one.batch, one.kind == "fault", bool(one.truth_too or one.other_truth)) for one in FOREIGNERS
    )
    assert kinds[6, True, False] >= 60
    assert kinds[6, False, False] >= 12
    sizes = {  # hosts with one fault, with two, and with none
        **dict.fromkeys((7, 8, 9), (60, 20, 24)),
        10: (40, 16, 16),
        11: (50, 16, 20),
        **dict.fromkeys((12, 13, 14, 15), (40, 12, 16)),
        16: (16, 30, 14),
        17: (14, 24, 12),
        18: (8, 24, 8),
        19: (8, 24, 8),
        20: (12, 24, 8),
        **dict.fromkeys((21, 22), (20, 16, 8)),
        **dict.fromkeys((23, 24), (16, 20, 10)),
        25: (36, 4, 10),
    }
    for batch, size in sizes.items():
        assert (kinds[batch, True, False], kinds[batch, True, True], kinds[batch, False, False]) == size, (
            batch
        )
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
async def test_who_acts_is_the_one_whom_the_truth_names() -> None:
    wrong = set()
    for one in FOREIGNERS:
        if one.acts and one.batch <= ACTED:
            report = diagnose(await incident_history(one))
            here = [said for said in report.findings if said.device == one.device]
            right = [said for said in here if one.is_said(one.truth, said.side.value, said.check)]
            wrong |= {one.id for said in right[:1] if not agrees(one.acts, said)}
    assert wrong == OTHERS
