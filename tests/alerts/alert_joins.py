"""Recorded joins are tested in situations: one history, a cluster for each, and queries with `{}` where they select the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from alert_promtool import complaints, delivered, name_of, needed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ALWAYS = "1x240"
"""A constant, for two hours of scrapes."""


class Check(NamedTuple):
    """A query at a minute, and the samples that it must have by their labels."""

    minute: int
    query: str
    samples: dict[str, float]


Situation = tuple[dict[str, str], tuple[Check, ...]]
"""Series with their values, and what is checked."""


def target(series: str, instance: str, job: str = "roce", cluster: str = "<cluster>") -> str:
    """The series as Prometheus labels it on a target."""
    metric, labels = series.split("{", maxsplit=1)
    return f'{metric}{{cluster="{cluster}",job="{job}",instance="{instance}",{labels}'


def always(*names: str) -> dict[str, str]:
    """Series that never change."""
    return dict.fromkeys(names, ALWAYS)


def differences(folder: Path, recorded: str, situations: Mapping[str, Situation]) -> str:
    """What promtool finds different, with the names of the situations; `recorded` begins the names of the rules that are needed."""
    series, queries = [], []
    for name, (given, checks) in situations.items():
        series += [{"series": one.replace("<cluster>", name), "values": text} for one, text in given.items()]
        for check in checks:
            samples = [
                {"labels": labels.replace("<cluster>", name), "value": value}
                for labels, value in check.samples.items()
            ]
            query = check.query.replace("{}", f'{{cluster="{name}"}}')
            queries.append({"expr": query, "eval_time": f"{check.minute}m", "exp_samples": samples})
    names = {name_of(rule) for group in delivered() for rule in group["rules"]}
    groups = needed({name for name in names if name.startswith(recorded)}, delivered())
    return complaints(
        folder, groups, [{"interval": "30s", "input_series": series, "promql_expr_test": queries}]
    )
