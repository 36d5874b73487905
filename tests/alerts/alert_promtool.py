"""Runs of `promtool test rules`: the tests expect nothing, so its complaints list what fired, when, and with which texts."""

import json
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from alert_scenario import labels_of
from prometheus_client.parser import text_string_to_metric_families

ALERTS = Path(__file__).parents[2] / "alerts"
RULES = ALERTS / "roce.rules.yml"

Groups = list[dict[str, Any]]
Test = dict[str, Any]
"""A test in promtool's file."""
Labels = frozenset[tuple[str, str]]
Spans = dict[Labels, list[tuple[int, int]]]
"""By all labels of an alert: seconds of the first and the last evaluation at which it fired, one pair each time."""

EVERY = 60
"""Seconds between two evaluations: promtool ignores the intervals of groups."""
ALL_OWNERS_REQUIRED = 'cluster=~"none"'
"""The clusters whose owners must be seen: none as delivered, all in the tests."""


@cache
def delivered(place: Path = RULES) -> Groups:
    """The groups of a rules file."""
    return yaml.safe_load(place.read_text())["groups"]


@cache
def rules_of_cases() -> Groups:
    """The groups, in a fleet where all owners are required."""
    return json.loads(
        json.dumps(delivered()).replace(json.dumps(ALL_OWNERS_REQUIRED)[1:-1], r"cluster=~\".*\"")
    )


def needed(names: Collection[str], groups: Groups) -> Groups:
    """The groups reduced to these alerts and recordings and what they build on, directly or not: promtool is slow."""
    wanted, found = set(names), set()
    while wanted != found:
        found = set(wanted)
        used = " ".join(_text(rule) for group in groups for rule in group["rules"] if name_of(rule) in wanted)
        wanted |= set(re.findall(r"[a-z_]+:roce_\w+:\w+", used))
    kept = (
        {**group, "rules": [rule for rule in group["rules"] if name_of(rule) in wanted]} for group in groups
    )
    return [group for group in kept if group["rules"]]


def name_of(rule: Mapping[str, str]) -> str:
    """The alert or the recorded name."""
    return rule.get("alert") or rule["record"]


def _text(rule: Mapping[str, Any]) -> str:
    return " ".join([rule["expr"], *rule.get("annotations", {}).values()])


WINDOW = re.compile(r"\[((?:\d+(?:ms|[smhdwy]))+)(?=[:\]])")
"""The length of a range in PromQL."""


@cache
def _leaves_the_left_border_out() -> bool:
    """Since Prometheus 3 a window does not include a sample at its beginning."""
    said = subprocess.run(["promtool", "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"version (\d+)\.", said.stdout + said.stderr)
    return bool(found) and int(found[1]) >= 3


def complaints(folder: Path, groups: Groups, tests: Sequence[Test], every: int = EVERY) -> str:
    """What differs from what the tests expect.

    Raises:
        AssertionError: a rule fails, or promtool does not understand the tests.
    """
    rules = json.dumps({"groups": groups})
    # Scrapes and evaluations are at the same moments here, as on no real server: a millisecond more makes all versions see the same samples.
    (folder / "rules.yml").write_text(
        WINDOW.sub(r"[\g<1>1ms", rules) if _leaves_the_left_border_out() else rules
    )
    content = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{every}s",
        "group_eval_order": [group["name"] for group in groups],
        "tests": list(tests),
    }
    (folder / "test.yml").write_text(json.dumps(content))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"GOMAXPROCS": "1", "GOGC": "400"},  # a fifth of the time is its garbage collection
    )
    said = done.stdout + done.stderr
    assert "err:" not in said, said
    assert done.returncode == 0 or "got:" in said, said
    return "" if done.returncode == 0 else said


class Fired(NamedTuple):
    """What fired in a test."""

    spans: Spans
    texts: dict[Labels, dict[str, str]]
    """Annotations at the time when they were read."""

    def of(self, alert: str) -> Spans:
        """The spans of one alert, by its other labels."""
        own = ("alertname", alert)
        return {labels - {own}: spans for labels, spans in self.spans.items() if own in labels}


def history(series: Iterable[Mapping[str, str]], minutes: int, step: int = 30, every: int = EVERY) -> Test:
    """A test whose complaints are all alerts that fire, at each evaluation."""
    return {
        "interval": f"{step}s",
        "input_series": list(series),
        "promql_expr_test": [
            {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{at}s", "exp_samples": []}
            for at in range(0, minutes * 60, every)
        ],
        "alert_rule_test": [],
    }


AT = re.compile(r"^    expr: .*, time: (\w+),\n +exp: *nil\n +got: *(.*)", re.MULTILINE)
SERIES = re.compile(r"\{([^{}]*)\}")
TEXTS = re.compile(r"^ +Labels:(\{.*\})\n +Annotations:(\{.*\})", re.MULTILINE)
TEXT = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*")')


def fired(folder: Path, groups: Groups, test: Test, every: int = EVERY) -> Fired:
    """What fires in a history."""
    said = complaints(folder, groups, [test], every)
    return Fired(_spans(said, every), _texts(said))


def _spans(said: str, every: int) -> Spans:
    spans: Spans = defaultdict(list)
    for time, got in AT.findall(said):
        at = seconds(time)
        for found in SERIES.findall(got):
            labels = labels_of(found)
            del labels["__name__"], labels["alertstate"]
            runs = spans[frozenset(labels.items())]
            if runs and runs[-1][1] == at - every:
                runs[-1] = (runs[-1][0], at)
            else:
                runs.append((at, at))
    return spans


def _texts(said: str) -> dict[Labels, dict[str, str]]:
    return {
        frozenset(labels_of(labels).items()): {key: json.loads(text) for key, text in TEXT.findall(texts)}
        for labels, texts in TEXTS.findall(said)
    }


def seconds(time: str) -> int:
    """The seconds of a duration such as 1h30m."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([dhms])", time))


# ---- samples of exporters as input, and what the rules of `alerts/compat/` make of them

COMPAT = ALERTS / "compat"
Series = tuple[str, frozenset[tuple[str, str]]]
"""Name and labels."""
Samples = dict[Series, float]

OURS = {"job": "roce", "instance": "host1:10123"}
THEIRS = {"job": "node", "instance": "host1:9100"}
"""The targets of the two exporters of one host."""


def samples_of(text: str, target: Mapping[str, str]) -> Samples:
    """The samples of an exposition as Prometheus stores them: with the labels of the target and without empty ones."""
    return {
        series(one.name, {**one.labels, **target}): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def series(name: str, labels: Mapping[str, str]) -> Series:
    """A series, without empty labels."""
    return name, frozenset((label, value) for label, value in labels.items() if value)


def written(one: Series) -> str:
    """A series in the notation of Prometheus."""
    labels = ", ".join(f"{label}={json.dumps(value)}" for label, value in sorted(one[1]))
    return f"{one[0]}{{{labels}}}"


class Seen(NamedTuple):
    """What the rules see, in promtool's notation or as constants, and all samples that expressions must have then."""

    given: Mapping[Series, float | str]
    expected: Mapping[str, Samples]
    at: str = "2m"


def complaint(folder: Path, files: Iterable[str], *all_seen: Seen) -> str:
    """What promtool finds different with the rules of these files; empty when all is as expected."""
    tests = [
        {
            "interval": "30s",
            "input_series": [
                {"series": written(name), "values": value if isinstance(value, str) else f"{value!r}x8"}
                for name, value in seen.given.items()
            ],
            "promql_expr_test": [
                {
                    "expr": expr,
                    "eval_time": seen.at,
                    "exp_samples": [
                        {"labels": written(name), "value": value} for name, value in samples.items()
                    ],
                }
                for expr, samples in seen.expected.items()
            ],
        }
        for seen in all_seen
    ]
    groups = [group for one in files for group in yaml.safe_load((COMPAT / one).read_text())["groups"]]
    return complaints(folder, groups, tests, 30)
