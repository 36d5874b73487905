"""A storm on a simulated host raises the same alerts whatever metric set its exporter serves: from counters of the NIC to the page.

The daemon is `introspection/simulated_daemon.py`; its expositions are the series of `promtool test rules`.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml
from alert_promtool import RULES

from roce_exporter.catalog.row import MetricSet
from roce_exporter.introspection.simulated_daemon import EVERY, SimulatedDaemon, sample_lines

if TYPE_CHECKING:
    from pathlib import Path

    from roce_exporter.introspection.simulated_daemon import ServedScrape

MINUTES = 4
TARGET = 'cluster="east",job="roce",instance="gpu-1"'
FIRING = 'count by (alertname, severity) (ALERTS{alertstate="firing",severity=~"page|ticket"})'
PAGE = 'alertname="RocePfcStormTransmitted"'


@pytest.fixture(scope="module")
def scrapes() -> list[ServedScrape]:
    async def of_a_storm() -> list[ServedScrape]:
        daemon = SimulatedDaemon(("mlx5", "mlx5"), "pfc-storm")
        return [one async for one in daemon.scrapes(60.0 * MINUTES)]

    return asyncio.run(of_a_storm())


def series_of(scrapes: list[ServedScrape], metric_set: MetricSet) -> list[dict[str, str]]:
    """The series in promtool's notation: a value per scrape, `_` where there was none."""
    found: dict[str, list[str]] = {f"up{{{TARGET}}}": ["1"] * len(scrapes)}
    for position, scrape in enumerate(scrapes):
        for line in sample_lines(scrape.texts[metric_set]):
            name, value = line.rsplit(" ", 1)
            if name.startswith("roce_"):
                found.setdefault(name, ["_"] * len(scrapes))[position] = value
    return [{"series": _of_target(name), "values": " ".join(values)} for name, values in found.items()]


def _of_target(series: str) -> str:
    name, _, labels = series.partition("{")
    return series if TARGET in labels else f"{name}{{{TARGET},{labels.removesuffix('}')}}}".replace(",}", "}")


def alerts(
    promtool: str, folder: Path, scrapes: list[ServedScrape], metric_set: MetricSet, minutes: int
) -> str:
    """The alerts that fire after these minutes, as promtool prints what it did not expect; empty if none fires."""
    test = {
        "interval": f"{EVERY:g}s",
        "input_series": series_of(scrapes, metric_set),
        "promql_expr_test": [{"expr": FIRING, "eval_time": f"{minutes}m", "exp_samples": []}],
    }
    place = folder / f"{metric_set}-{minutes}.yml"
    document = {"rule_files": [str(RULES)], "evaluation_interval": f"{EVERY:g}s", "tests": [test]}
    place.write_text(yaml.safe_dump(document))
    run = subprocess.run([promtool, "test", "rules", place], capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return ""
    found = re.search(r"^ *got:(.*)", run.stdout + run.stderr, re.MULTILINE | re.DOTALL)
    assert found, run.stdout + run.stderr
    return found[1].strip()


@pytest.mark.parametrize("metric_set", [MetricSet.LEAN, MetricSet.STANDARD])
def test_a_storm_pages_with_every_set(
    promtool: str, tmp_path: Path, scrapes: list[ServedScrape], metric_set: MetricSet
) -> None:
    """And the other tickets are the same: nothing more, nothing less than with all metrics."""
    assert alerts(promtool, tmp_path, scrapes, metric_set, 0) == ""
    found = alerts(promtool, tmp_path, scrapes, metric_set, MINUTES)
    assert PAGE in found
    assert found == alerts(promtool, tmp_path, scrapes, MetricSet.FULL, MINUTES)


def test_the_sets_are_of_different_size(scrapes: list[ServedScrape]) -> None:
    """The test above compares what differs."""
    sizes = [len(series_of(scrapes, one)) for one in MetricSet]
    assert sizes[0] < sizes[1] / 1.5 < sizes[2] / 3
