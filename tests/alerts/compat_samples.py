"""Samples of exporters as input of `promtool test rules`, and what the rules of `alerts/compat/` make of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import yaml
from alert_promtool import ALERTS, complaints
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

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
