"""Runs of `promtool test rules` over the cases, and what it reports about an alert that it did not expect."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from alert_scenario import SICK, Case, Turn, input_series, labels_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ALERTS = Path(__file__).parents[2] / "alerts"
RULES = ALERTS / "roce.rules.yml"
ANNOTATIONS = Path(__file__).with_name("annotations.yml")

Expectation = dict[str, Any]


ALL_OWNERS_REQUIRED = 'cluster=~"none"'
"""The clusters of RoceOwnersHidden: none as delivered, all in the tests of this alert."""


@cache
def rules() -> list[dict[str, Any]]:
    """The groups of the generated rules, in a fleet where all owners are required."""
    return yaml.safe_load(RULES.read_text().replace(ALL_OWNERS_REQUIRED, 'cluster=~".*"'))["groups"]


def rule_of(alert: str) -> dict[str, Any]:
    """The generated rule of an alert."""
    return next(rule for group in rules() for rule in group["rules"] if rule.get("alert") == alert)


def when_fired(case: Case) -> int:
    """The minute in which the case's alert must be present."""
    return case.lead + (case.look or case.sick - 1)


def expected(case: Case, annotations: Mapping[str, str]) -> Expectation:
    """The one alert of the faulty host or cluster."""
    labels = {"cluster": "east"}
    if not case.fabric:
        labels |= {"job": "roce", "instance": case.sick_hosts[0]}
    labels |= rule_of(case.alert)["labels"] | labels_of(case.labels.replace("<host>", case.sick_hosts[0]))
    return {"exp_labels": labels, "exp_annotations": dict(annotations)}


def at(case: Case, minute: int, *alerts: Expectation) -> Expectation:
    """A check that exactly these alerts of the case's name fire at a minute."""
    return {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": list(alerts)}


def silent(case: Case) -> list[Expectation]:
    """A check that the alert does not fire at any time."""
    end = case.lead + case.sick + case.tail
    return [at(case, minute) for minute in {*range(2, end, max(end // 40, 1)), when_fired(case)}]


def test_of(case: Case, turn: Turn, expectations: list[Expectation]) -> dict[str, Any]:
    """One test of promtool's file."""
    return {
        "interval": f"{case.step}s",
        "input_series": list(input_series(case, turn)),
        "alert_rule_test": expectations,
    }


def needed_rules(alerts: Collection[str]) -> dict[str, Any]:
    """The rules file reduced to these alerts and the recording rules they build on, directly or not: promtool is slow."""
    wanted, found = set(alerts), set()
    while wanted != found:
        found = set(wanted)
        used = " ".join(_text(rule) for group in rules() for rule in group["rules"] if _is(rule, wanted))
        wanted |= set(re.findall(r"[a-z_]+:roce_\w+:\w+", used))
    kept = [(group["name"], [rule for rule in group["rules"] if _is(rule, wanted)]) for group in rules()]
    return {"groups": [{"name": name, "rules": rules} for name, rules in kept if rules]}


def _is(rule: Mapping[str, Any], names: set[str]) -> bool:
    return (rule.get("alert") or rule["record"]) in names


def _text(rule: Mapping[str, Any]) -> str:
    return " ".join([rule["expr"], *rule.get("annotations", {}).values()])


def run(folder: Path, *tests: Mapping[str, Any], every: str = "30s") -> str:
    """Promtool's complaints; empty when everything is as expected. `every` is the time between two evaluations."""
    alerts = {expectation["alertname"] for test in tests for expectation in test["alert_rule_test"]}
    (folder / "rules.yml").write_text(json.dumps(needed_rules(alerts)) if alerts else RULES.read_text())
    content = {"rule_files": ["rules.yml"], "evaluation_interval": every, "tests": list(tests)}
    place = folder / "rules_test.yml"
    place.write_text(json.dumps(content))
    done = subprocess.run(
        ["promtool", "test", "rules", str(place)], capture_output=True, text=True, check=False, timeout=880
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def annotations_got(complaint: str) -> dict[str, str]:
    """The annotations of the first alert that promtool got, from its complaint."""
    found = re.search(r"got:\[\s*0:\s*Labels:\{.*?\}\s*\n\s*Annotations:(\{.*\})\s*\n", complaint)
    assert found, complaint or "the alert did not fire"
    pairs = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*")', found[1])
    return {name: json.loads(text) for name, text in pairs}


def annotations_now(case: Case, folder: Path) -> dict[str, str]:
    """The annotations with which the case's alert fires now."""
    return annotations_got(run(folder, test_of(case, SICK, [at(case, when_fired(case))])))
