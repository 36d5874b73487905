"""Which alerts the simulated hosts fire, from counters of the NIC to the alert: the same ones in every metric set, and no others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from alert_promtool import delivered, fired, history

from roce_exporter.catalog.row import MetricSet
from roce_exporter.introspection.simulated_daemon import EVERY, SimulatedDaemon, sample_lines
from roce_exporter.simulation import SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from roce_exporter.introspection.simulated_daemon import ServedScrape

pytestmark = pytest.mark.usefixtures("promtool")

ALERTS = {
    "quiet": "",
}
"""The alerts of 40 minutes of each scenario."""


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


def test_a_storm_fires_the_same_alerts_in_every_set(tmp_path: Path) -> None:
    """At most two scrapes later: a small set serves a counter from its first event on."""
    served = scrapes(SimulatedDaemon(("mlx5", "mlx5"), "pfc-storm"), 4)
    sets = {one: series_of(served, one, str(one)) for one in MetricSet}
    sizes = [len(series) for series in sets.values()]
    assert sizes[0] < sizes[1] / 1.5 < sizes[2] / 3
    found = alerts(tmp_path, [one for series in sets.values() for one in series], 4)
    assert any(name.startswith("RocePfcStormTransmitted") for name in found["full"])
    for smaller in ("lean", "standard"):
        assert found[smaller].keys() == found["full"].keys()
        for name, ((begin, _), *_) in found["full"].items():
            assert begin <= found[smaller][name][0][0] <= begin + 2 * EVERY, name


@pytest.mark.nightly
def test_a_scenario_fires_no_other_alert(tmp_path: Path) -> None:
    series = []
    for scenario in SCENARIOS:
        served = scrapes(SimulatedDaemon(("mlx5", "mlx5", "bnxt", "ionic"), scenario), 40)
        series += series_of(served, MetricSet.LEAN, scenario)
    found = alerts(tmp_path, series, 40)
    names = {scenario: {name.split()[0] for name in found.get(scenario, ())} for scenario in SCENARIOS}
    assert names == {scenario: set(text.split()) for scenario, text in ALERTS.items()}
