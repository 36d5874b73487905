"""When alerts fire: promtool evaluates all rules over a history, and its complaints about an empty expectation list what fired.

`starts.json` has these times for the rules of commit a8ce78b, which had no slow groups and no shared recordings. It was written by

    git show a8ce78b:alerts/roce.rules.yml > /tmp/former.yml && python tests/alerts/write_starts.py /tmp/former.yml
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from alert_scenario import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

STARTS = Path(__file__).with_name("starts.json")
FIRING = 'ALERTS{alertstate="firing"}'
COMPLAINT = re.compile(r", time: (\w+),\n\s+exp: *nil\n\s+got: *(.*)")
SERIES = re.compile(r"\{([^{}]*)\}")
LEFT_OUT = {"__name__", "alertstate", "severity", "scope"}

Series = dict[str, list[str]]
"""The values of a history by series, one per scrape; `_` is none."""
Spans = dict[str, list[list[int]]]
"""By alert and labels: seconds of the first and the last evaluation at which it fired, one pair each time."""


def promtool_test(series: Series, step: int, every: int) -> dict[str, Any]:
    """A test that expects no alert at any evaluation."""
    length = max(map(len, series.values())) * step
    return {
        "interval": f"{step}s",
        "input_series": [
            {"series": name, "values": " ".join(_with_ends(values))} for name, values in series.items()
        ],
        "promql_expr_test": [
            {"expr": FIRING, "eval_time": f"{at}s", "exp_samples": []} for at in range(0, length, every)
        ],
    }


def _with_ends(values: Sequence[str]) -> Iterator[str]:
    """A scrape without the series marks it as stale."""
    before = "_"
    for value in values:
        yield "stale" if value == "_" != before and before != "stale" else value
        before = value


def fired(folder: Path, rules: Mapping[str, Any], series: Series, step: int, every: int) -> Spans:
    """When which alerts fire; promtool evaluates every group every `every` seconds, whatever its interval is."""
    (folder / "rules.yml").write_text(json.dumps(rules))
    content = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{every}s",
        "group_eval_order": [group["name"] for group in rules["groups"]],
        "tests": [promtool_test(series, step, every)],
    }
    place = folder / "starts_test.yml"
    place.write_text(json.dumps(content))
    done = subprocess.run(
        ["promtool", "test", "rules", place.name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=880,
    )
    said = done.stdout + done.stderr
    found = COMPLAINT.findall(said)
    assert found or done.returncode == 0, said
    assert len(found) == said.count(" got:"), said
    return _spans(found, every)


def _spans(found: Sequence[tuple[str, str]], every: int) -> Spans:
    spans: dict[str, list[list[int]]] = defaultdict(list)
    for time, got in found:
        at = _seconds(time)
        for labels in SERIES.findall(got):
            runs = spans[name_of(labels_of(labels))]
            if runs and runs[-1][1] == at - every:
                runs[-1][1] = at
            else:
                runs.append([at, at])
    return dict(sorted(spans.items()))


def _seconds(time: str) -> int:
    return sum(
        int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in re.findall(r"(\d+)([hms])", time)
    )


def name_of(labels: Mapping[str, str]) -> str:
    """An alert with the labels that identify it; severity and scope follow from the alert."""
    rest = {key: value for key, value in labels.items() if key not in LEFT_OUT | {"alertname"}}
    return f"{labels['alertname']}{{{','.join(f'{key}={rest[key]}' for key in sorted(rest))}}}"


def intervals_of(rules: Mapping[str, Any]) -> dict[str, int]:
    """Seconds between two evaluations of each alert that is not evaluated every evaluation_interval of Prometheus."""
    return {
        rule["alert"]: _seconds(group["interval"])
        for group in rules["groups"]
        if "interval" in group
        for rule in group["rules"]
        if "alert" in rule
    }


def metrics_of(rules: Mapping[str, Any]) -> frozenset[str]:
    """The metrics that expressions and texts read."""
    return frozenset(
        re.findall(r"(?<![:\w])(?:roce_\w+|up|kube_\w+)(?![:\w])", str(rules).replace("\\n", " "))
    )


def read_rules(place: Path) -> dict[str, Any]:
    """The groups of a rules file."""
    return yaml.safe_load(place.read_text())
