"""The rules were made cheaper: over the histories of all scenarios and all cases, the same alerts fire at the same times as before."""

from __future__ import annotations

import json
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from alert_histories import (
    SCENARIOS,
    SCRAPE,
    SIMILAR_CASES,
    USUAL,
    case_histories,
    scenario_histories,
)
from alert_promtool import RULES
from alert_starts import STARTS, Series, Spans, fired, intervals_of, metrics_of, read_rules

pytestmark = [pytest.mark.usefixtures("promtool"), pytest.mark.slow]

EXPECTED: dict[str, Spans] = json.loads(STARTS.read_text())
APART = 2
"""Evaluations by which an alert may start or end earlier or later."""
SLOWLY_READ = ("RoceDevlinkReporterUnhealthy",)
"""Alerts on facts that a thread reads next to the scrapes: on a busy machine a scenario shows them a scrape earlier or later, or not."""


@cache
def rules() -> dict[str, Any]:
    return read_rules(RULES)


@cache
def histories(kind: str) -> Series:
    return scenario_histories(metrics_of(rules())) if kind == "scenarios" else case_histories()


@cache
def found(kind: str, every: int) -> Spans:
    """When alerts fire if all groups are evaluated this often; promtool ignores the intervals of groups."""
    step = SCRAPE if kind == "scenarios" else USUAL.step
    with tempfile.TemporaryDirectory() as folder:
        return fired(Path(folder), rules(), histories(kind), step, every)


def of_cluster(spans: Spans, *clusters: str) -> Spans:
    """What fired in these clusters."""
    return {
        name: times
        for name, times in spans.items()
        if any(f"{{cluster={cluster}," in name or f"{{cluster={cluster}}}" in name for cluster in clusters)
    }


def assert_alike(now: Spans, before: Spans, tolerated: int) -> None:
    """The same alerts, which begin at the same times."""
    assert now.keys() == before.keys()
    for name, times in before.items():
        if name.startswith(SLOWLY_READ):
            continue
        begun = [begin for begin, _ in now[name]]
        assert len(begun) == len(times), name
        assert all(abs(one - begin) <= tolerated for one, (begin, _) in zip(begun, times, strict=True)), name


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_fires_the_same_alerts(scenario: str) -> None:
    assert_alike(
        of_cluster(found("scenarios", SCRAPE), scenario),
        of_cluster(EXPECTED["scenarios"], scenario),
        APART * SCRAPE,
    )


@pytest.mark.parametrize("case", SIMILAR_CASES, ids=lambda case: case.title)
def test_a_case_fires_the_same_alerts(case: Any) -> None:
    clusters = (f"{case.title} (east)", f"{case.title} (west)")
    assert_alike(
        of_cluster(found("cases", USUAL.step), *clusters),
        of_cluster(EXPECTED["cases"], *clusters),
        APART * USUAL.step,
    )


@pytest.mark.parametrize("pace", sorted(set(intervals_of(rules()).values())))
def test_an_alert_that_can_wait_starts_at_most_one_interval_later(pace: int) -> None:
    """All rules are evaluated at the pace of the alert's group, so the recordings that it reads are as late: two intervals then."""
    names = {name for name, interval in intervals_of(rules()).items() if interval == pace}
    reading = {
        rule["alert"]
        for group in rules()["groups"]
        for rule in group["rules"]
        if "alert" in rule and re.search(r"\w:\w+:", rule["expr"])
    }
    late = {
        name: spans for name, spans in found("scenarios", pace).items() if name.partition("{")[0] in names
    }
    assert late
    for name, times in EXPECTED["scenarios"].items():
        if name.partition("{")[0] not in names or name.startswith(SLOWLY_READ):
            continue
        # what fires for less than an interval can be missed
        lasting = [begin for begin, end in times if end - begin >= 2 * pace]
        begun = [begin for begin, _ in late.get(name, [])]
        most = pace * (2 if name.partition("{")[0] in reading else 1) + APART * SCRAPE
        assert all(any(abs(one - begin) <= most for one in begun) for begin in lasting), (
            name,
            begun,
            lasting,
        )


def test_nothing_else_fires() -> None:
    """Alerts without a cluster."""
    for kind, step in (("scenarios", SCRAPE), ("cases", USUAL.step)):
        assert found(kind, step).keys() == EXPECTED[kind].keys()


def test_enough_fires_to_compare() -> None:
    """Most alerts, and each scenario with a fault."""
    alerts = {name.partition("{")[0] for spans in EXPECTED.values() for name in spans}
    assert len(alerts) > 80
    assert all(of_cluster(EXPECTED["scenarios"], scenario) for scenario in SCENARIOS if scenario != "quiet")
