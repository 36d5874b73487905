"""Samples of exporters as input of `promtool test rules`, and what the rules of `alerts/compat/` make of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

COMPAT = Path(__file__).parents[2] / "alerts/compat"
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


def complaint(
    folder: Path,
    files: Iterable[str],
    given: Samples | Mapping[Series, str],
    expected: Mapping[str, Samples],
    at: str = "2m",
) -> str:
    """What promtool finds different when the rules of these files see the samples; empty when all is as expected.

    `expected` has for each expression all the samples that it must have. A value of `given` may be a text in promtool's notation.
    """
    values = {one: value if isinstance(value, str) else f"{value!r}x8" for one, value in given.items()}
    test = {
        "interval": "30s",
        "input_series": [{"series": written(one), "values": value} for one, value in values.items()],
        "promql_expr_test": [
            {
                "expr": expr,
                "eval_time": at,
                "exp_samples": [{"labels": written(one), "value": value} for one, value in samples.items()],
            }
            for expr, samples in expected.items()
        ],
    }
    place = folder / "compat_test.yml"
    content = {
        "rule_files": [str(COMPAT / one) for one in files],
        "evaluation_interval": "30s",
        "tests": [test],
    }
    place.write_text(json.dumps(content))
    command = ["promtool", "test", "rules", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=880)
    return "" if done.returncode == 0 else done.stdout + done.stderr
