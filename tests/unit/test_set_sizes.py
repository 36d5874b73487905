"""How many series a port costs in each set: a simulated host with the fast loop, the audit, the kernel log and the verdict."""

from __future__ import annotations

from collections import Counter

import pytest
from observed import samples
from prometheus_client.openmetrics import parser as openmetrics

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.catalog.row import FULL, LEAN, STANDARD, MetricSet
from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.health.health_watch import HealthWatch
from roce_exporter.introspection.host_history import HostClock, play
from roce_exporter.sampler import Sampler
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.simulation.kernel import simulate
from roce_exporter.surroundings import Surroundings
from roce_exporter.surroundings.kernel_log_follower import KernelLogFollower

LIMITS = {LEAN: 70, STANDARD: 160}
"""Series per port with eight ports of mlx5, without owners and virtual functions."""
BEGIN = 1_763_000_000.0
TIMES = (0.0, 15.0, 30.0, 45.0, 60.0)


async def expositions(scenario: str, ports: int) -> dict[MetricSet, bytes]:
    """What an exporter has served after a minute, in OpenMetrics, in each set."""
    clock = HostClock()
    kernel = simulate(scenario, clock=clock, vendors=("mlx5",) * ports)
    collector = Collector(kernel, Settings(), clock)
    sampler = Sampler(kernel, clock, lambda: BEGIN + clock.now)
    around = Surroundings([], clock, followers=[KernelLogFollower(kernel, clock)])
    health = HealthWatch(clock, lambda: BEGIN + clock.now)
    exporter = Exporter(collector, sampler, Auditor(load_profile("auto")), None, around, health=health)
    reach = play(clock, sampler)
    served = {one: ServedSeries(one) for one in MetricSet}
    own = OwnRegistry().render(openmetrics=True)
    try:
        for time in TIMES:
            await reach(time)
            await around.read_all()
            observation = await exporter.observe()
            await health.judge(exporter.observe)
            selected = {one: selection.select(observation.samples) for one, selection in served.items()}
        return {one: Renderer().render(parts, Format.OPENMETRICS) + own for one, parts in selected.items()}
    finally:
        collector.close()
        sampler.close()
        around.close()


def sizes(shown: dict[MetricSet, bytes], ports: int) -> dict[MetricSet, float]:
    return {
        one: sum("roce_vf_" not in series for series in samples(text)) / ports for one, text in shown.items()
    }


@pytest.mark.parametrize("scenario", ["incast", "quiet"])
async def test_a_port_costs_no_more_than_its_set_allows(scenario: str) -> None:
    shown = await expositions(scenario, 8)
    found = sizes(shown, 8)
    assert {one: size for one, size in found.items() if size > LIMITS.get(one, 1000)} == {}, found
    assert found[LEAN] * 5 < found[FULL], found
    names = {
        one: Counter(series.partition("{")[0] for series in samples(text)) for one, text in shown.items()
    }
    assert names[LEAN].keys() < names[STANDARD].keys() < names[FULL].keys()
    for text in shown.values():
        assert sum(
            len(family.samples) for family in openmetrics.text_string_to_metric_families(text.decode())
        )


async def test_a_host_with_one_port_pays_for_its_sources_alone() -> None:
    """Sources and the process cost the same for one port as for eight; so one port has more series, but not twice as many."""
    one, eight = sizes(await expositions("incast", 1), 1), sizes(await expositions("incast", 8), 8)
    for metric_set, limit in LIMITS.items():
        assert eight[metric_set] < one[metric_set] < 1.7 * limit, (one, eight)


async def test_storms_bring_series_of_what_is_wrong_only() -> None:
    """The storm, its hint and pauses: not a third more than the quiet host has."""
    quiet, storm = sizes(await expositions("quiet", 8), 8), sizes(await expositions("pfc-storm", 8), 8)
    assert quiet[LEAN] < storm[LEAN] < 4 / 3 * quiet[LEAN], (quiet, storm)
