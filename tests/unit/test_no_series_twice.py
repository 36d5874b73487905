"""An exposition has no series twice: Prometheus would refuse the second sample at every scrape."""

from __future__ import annotations

from collections import Counter

import pytest

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.catalog.row import MetricSet
from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.simulation.kernel import simulate


@pytest.mark.parametrize("metric_set", MetricSet)
@pytest.mark.parametrize("scenario", ["quiet", "broken", "firmware"])
async def test_every_series_is_served_once(metric_set: MetricSet, scenario: str) -> None:
    clock = [0.0]
    kernel = simulate(scenario, clock=lambda: clock[0])
    collector = Collector(kernel, Settings(), lambda: clock[0])
    exporter = Exporter(collector, auditor=Auditor(load_profile("auto")), served=ServedSeries(metric_set))
    for clock[0] in (0.0, 30.0, 60.0):
        text = exporter.render(await exporter.observe(), Format.TEXT).decode()
        series = Counter(line.rpartition(" ")[0] for line in text.splitlines() if line[0] != "#")
        assert not {name for name, count in series.items() if count > 1}
    collector.close()
