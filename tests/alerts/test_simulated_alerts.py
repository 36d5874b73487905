"""Which alerts the simulated hosts fire, from counters of the NIC to the alert: the same ones in every metric set, and no others."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from alert_promtool import delivered, fired, history
from simulated_daemon import EVERY, ServedScrape, SimulatedDaemon, sample_lines

from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.simulated import SCENARIOS
from roce_exporter.host.simulated.kernel import simulate

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("promtool")

SCRAPE, MINUTES = 15, 40
ALERTS = {
    "broken": "FilesQuarantined PfcStormDetectorMissing SourceBroken",
    "dead-peer": "AckTimeouts TransportRetriesExceeded",
    "firmware": "",
    "flapping": "LinkFlapping",
    "incast": "CnpDeliveryDeficit PfcPauseBudgetBurnFast PfcPauseElevated PfcPauseHigh",
    "lossy": "AckTimeouts CrcErrors IcrcErrors UncorrectedLinkErrors",
    "misconfigured": "AckTimeouts ConfigCheckFailed EcnMarkedButNoCnpSent TrafficOutsideLosslessPriority",
    "overheating": "CrcErrors LinkFlapping UncorrectedLinkErrors",
    "pfc-storm": "AckTimeouts LosslessPriorityDrops PfcMicroPause PfcPauseElevated PfcPauseHigh PfcStormTransmitted",
    "quiet": "",
    "slow-receiver": "LosslessPriorityDrops PcieBackpressure PfcPauseBudgetBurnFast PfcPauseElevated PfcPauseHigh"
    " ReceiverNotReady SlowReceiver",
    "victim": "AckTimeouts PfcMicroPause PfcPauseElevated PfcPauseHigh PfcStormReceived",
}
"""The alerts of 40 minutes of each scenario, without `Roce`."""
SLOWLY_READ = {"PortCause"}
"""On facts that a thread reads next to the scrapes: on a busy machine a scenario shows them a scrape earlier or later, or not."""


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
    """At the same moment: no set hides a counter that is 0."""
    served = scrapes(SimulatedDaemon(("mlx5", "mlx5"), "pfc-storm"), 4)
    sets = {one: series_of(served, one, str(one)) for one in MetricSet}
    sizes = [len(series) for series in sets.values()]
    assert sizes[0] < sizes[1] / 1.5 < sizes[2] / 3
    found = alerts(tmp_path, [one for series in sets.values() for one in series], 4)
    assert any(name.startswith("RocePfcStormEnded") for name in found["full"])
    for smaller in ("lean", "standard"):
        assert found[smaller] == found["full"]


class Clock:
    """Monotonic seconds that the simulation sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def polled_slowly(scenario: str) -> list[ServedScrape]:
    """What an exporter serves whose fast loop polls once per second."""
    clock = Clock()
    kernel = simulate(scenario, clock=clock, vendors=("mlx5", "mlx5", "bnxt", "ionic"), seed=1)
    collector = Collector(kernel, Settings(), clock)
    sampler = Sampler(kernel, clock, clock, Pace(mode="fixed", interval=1.0))
    exporter = Exporter(collector, [Auditor(load_profile("auto")), sampler])
    served = []
    for number in range(MINUTES * 60 // SCRAPE):
        text = exporter.render(await exporter.observe(5.0), Format.TEXT).decode()
        served.append(ServedScrape(clock.now, {MetricSet.FULL: text}))
        until = (number + 1) * float(SCRAPE)
        while (due := sampler.tick()) is not None and due < until:
            clock.now = max(due, clock.now)
        clock.now = until
    return served


@pytest.mark.nightly
def test_a_scenario_fires_these_alerts_and_no_others(tmp_path: Path) -> None:
    needed = re.compile(r"(?<![:\w])(?:roce_\w+|up)(?![:\w])")
    metrics = set(needed.findall(str(delivered()).replace("\\n", " ")))
    series = []
    for scenario in SCENARIOS:
        served = series_of(asyncio.run(polled_slowly(scenario)), MetricSet.FULL, scenario)
        series += [one for one in served if one["series"].partition("{")[0] in metrics]
    test = history(series, MINUTES, SCRAPE, SCRAPE)
    found: dict[str, set[str]] = {}
    for labels in fired(tmp_path, delivered(), test, SCRAPE).spans:
        known = dict(labels)
        found.setdefault(known.get("cluster", ""), set()).add(known["alertname"].removeprefix("Roce"))
    assert not found.keys() - set(SCENARIOS)
    names = {scenario: found.get(scenario, set()) - SLOWLY_READ for scenario in SCENARIOS}
    assert names == {scenario: set(ALERTS.get(scenario, "").split()) for scenario in SCENARIOS}
