"""Every alert: it fires at this time, with these labels and texts, for the faulty host alone; it ends; and it fires for nothing less.

A simulated host fires the same ones in every metric set, from counters of the NIC to the alert. Which they are in which fault: test_week.py.
"""

import asyncio
from pathlib import Path

import pytest
from alert_checks import problems, run_case
from alert_promtool import delivered, fired, history
from alert_scenario import CASES
from mutants.rules import main
from simulated_daemon import EVERY, ServedScrape, SimulatedDaemon, sample_lines

from roce_exporter.catalog.row import MetricSet

pytestmark = pytest.mark.usefixtures("promtool")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_case_fires_as_it_must(case, tmp_path) -> None:
    assert not list(problems(case, run_case(tmp_path, case)))


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_nearly_all_breaks_of_the_rules_are_noticed() -> None:
    """Thousands of runs of promtool."""
    assert main() == 0


def scrapes(daemon: SimulatedDaemon, minutes: int) -> list[ServedScrape]:
    """What a simulated daemon serves."""

    async def of_all() -> list[ServedScrape]:
        return [one async for one in daemon.scrapes(60.0 * minutes)]

    return asyncio.run(of_all())


def series_of(served: list[ServedScrape], metric_set: MetricSet, cluster: str) -> list[dict[str, str]]:
    """The series in promtool's notation: a value per scrape; a scrape without the series makes it stale."""
    target = f'cluster="{cluster}",job="roce",instance="gpu-1"'
    found: dict[str, list[str]] = {f"up{{{target}}}": ["1"] * len(served)}
    for position, scrape in enumerate(served):
        for line in sample_lines(scrape.texts[metric_set]):
            name, value = line.rsplit(" ", 1)
            if name.startswith("roce_"):
                metric, _, labels = name.partition("{")
                series = f"{metric}{{{target},{labels or '}'}".replace(",}", "}")
                found.setdefault(series, ["_"] * len(served))[position] = value
    for values in found.values():
        for position in range(len(values) - 1, 0, -1):
            if values[position] == "_" and values[position - 1] not in {"_", "stale"}:
                values[position] = "stale"
    return [{"series": name, "values": " ".join(values)} for name, values in found.items()]


def alerts(
    folder: Path, series: list[dict[str, str]], minutes: int
) -> dict[str, dict[str, list[tuple[int, int]]]]:
    """When which tickets and pages fire, by cluster and by alert with the labels of its object."""
    every = int(EVERY)
    found: dict[str, dict[str, list[tuple[int, int]]]] = {}
    for labels, spans in fired(
        folder, delivered(), history(series, minutes, every, every), every
    ).spans.items():
        known = dict(labels)
        if known["severity"] != "info":
            cluster = known.pop("cluster", "")
            name = known["alertname"] + " " + ",".join(f"{key}={known[key]}" for key in sorted(known))
            found.setdefault(cluster, {})[name] = spans
    return found


def test_a_storm_fires_the_same_alerts_in_every_set(tmp_path) -> None:
    """At the same moment: no set hides a counter that is 0."""
    served = scrapes(SimulatedDaemon(("mlx5", "mlx5"), "pfc-storm"), 4)
    sets = {one: series_of(served, one, str(one)) for one in MetricSet}
    sizes = [len(series) for series in sets.values()]
    assert sizes[0] < sizes[1] / 1.5 < sizes[2] / 3
    found = alerts(tmp_path, [one for series in sets.values() for one in series], 4)
    assert any(name.startswith("RocePfcStormEnded") for name in found["full"])
    for smaller in ("lean", "standard"):
        assert found[smaller] == found["full"]
