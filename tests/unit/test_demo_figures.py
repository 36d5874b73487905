"""Observations become what the demo shows: shares paused, rates, states, storms."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from roce_exporter.collect import Collector, Settings
from roce_exporter.demo.figures import Figures, Look, rate, storms, take
from roce_exporter.demo.lines import changes
from roce_exporter.demo.scene import Scene
from roce_exporter.demo.screen import screen
from roce_exporter.exporter import Exporter
from roce_exporter.sampler import Pace, Sampler
from roce_exporter.simulation import SCENARIOS, VENDORS
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from roce_exporter.simulation.kernel import SimulatedKernel

PLACE = ("mlx5_0", "1", "eth0", "3")


def look(time: float, paused: float = 0.0, marked: float = 0.0, refresh: float | None = None) -> Look:
    values = {
        ("roce_port_up", ("mlx5_0", "1")): 1.0,
        ("roce_ecn_marked_packets_total", ("mlx5_0", "1")): marked,
        ("roce_pfc_transmit_pause_seconds_total", PLACE): paused,
        ("roce_pfc_storm_detector_state", (*PLACE, "transmit")): 1.0,
        ("roce_pfc_storms_total", (*PLACE, "transmit")): 4.0,
    }
    if refresh is not None:
        values["roce_exporter_sampler_refresh_seconds", PLACE[:-1]] = refresh
    return Look(time, values)


def shares(*looks: Look) -> list[float | None]:
    """The history of the share paused after the last look."""
    figures = Figures()
    for found in looks:
        (priority,) = figures.priorities(found)
    return [share and round(share, 3) for share in priority.transmit.history]


def test_a_share_is_of_the_time_between_two_looks() -> None:
    assert shares(look(10.0), look(10.5, 0.25), look(11.0, 0.75)) == [None, 0.5, 1.0]


def test_a_share_is_never_above_one() -> None:
    assert shares(look(10.0), look(10.5, 0.51)) == [None, 1.0]


def test_a_reset_is_no_pause() -> None:
    assert shares(look(10.0, 99.0), look(10.5, 0.25), look(11.0, 0.5)) == [None, None, 0.5]


def test_a_copy_that_is_renewed_once_a_second_does_not_flicker() -> None:
    """Paused throughout, told of once a second: every share after the first renewals is whole."""
    looks = [look(tenths / 10, float(int(tenths / 10)), refresh=1.0) for tenths in range(0, 100, 5)]
    assert set(shares(*looks)[6:]) == {1.0}


def test_packets_are_counted_over_two_seconds() -> None:
    figures = Figures()
    told = [
        figures.priorities(found)[0].marked
        for found in (look(0.0), look(1.0, marked=100), look(2.0, marked=100), look(3.0, marked=100))
    ]
    assert told == [None, 100.0, 50.0, 0.0]


def test_what_is_not_counted_is_not_zero() -> None:
    figures = Figures()
    figures.priorities(look(0.0))
    (priority,) = figures.priorities(look(1.0))
    assert priority.marked == 0.0
    assert priority.notified is None
    assert priority.receive is None
    assert priority.up is True
    assert (priority.transmit.state, priority.transmit.storms) == ("suspect", 4)


def test_a_nic_that_counts_frames_shows_the_bound() -> None:
    bound = ("roce_pfc_pause_estimated_max_seconds_total", (*PLACE, "transmit"))
    first, second = look(0.0), look(1.0)
    figures = Figures()
    figures.priorities(first._replace(values=first.values | {bound: 1.0}))
    (priority,) = figures.priorities(second._replace(values=second.values | {bound: 1.5}))
    assert priority.transmit.estimated
    assert priority.transmit.ratio == 0.5


def test_no_time_no_rate() -> None:
    assert rate(look(1.0), look(1.0), "roce_ecn_marked_packets_total", ("mlx5_0", "1")) is None


def test_of_a_nic_that_counts_all_priorities_those_that_pause_are_shown() -> None:
    places = [("ionic_0", "1", "eth0", str(number)) for number in range(8)]
    states = {("roce_pfc_storm_detector_state", (*place, "receive")): 0.0 for place in places}
    figures = Figures()
    idle = figures.priorities(Look(0.0, states))
    assert [found.number for found in idle] == ["0"], "a port is never left out"
    busy = {("roce_pfc_receive_pause_seconds_total", place): 0.1 for place in places[3:5]}
    assert [found.number for found in figures.priorities(Look(1.0, states | busy))] == ["3", "4"]


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def replay(kernel: SimulatedKernel, sampler: Sampler, clock: Clock, seconds: int) -> list[Scene]:
    """What the demo would have shown, two scenes a second, in simulated time."""
    collector = Collector(kernel, Settings(), clock)
    exporter, figures, seen = Exporter(collector, sampler), Figures(), []
    try:
        for moment in (half / 2 for half in range(2 * seconds)):
            while (due := sampler.tick()) < moment:
                clock.now = due
            clock.now = moment
            look = take((await exporter.observe(5.0)).samples, moment)
            seen.append(
                Scene("", "", moment, priorities=figures.priorities(look), storms=storms(sampler.events()))
            )
    finally:
        collector.close()
    return seen


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_storm_of_the_scenario_is_seen_as_it_happens(vendor: str) -> None:
    """The whole way from the simulated host to the scene, for each kind of NIC."""
    clock = Clock()
    kernel = simulate("pfc-storm", clock=clock, vendors=(vendor,))
    seen = await replay(kernel, Sampler(kernel, clock, clock, Pace("fixed")), clock, 45)
    (truth,) = (storm for storm in kernel.world.storms if storm.start < clock.now)
    (told,) = seen[-1].storms
    assert (told.netdev, told.priority, told.direction) == (truth.netdev, str(truth.priority), "transmit")
    assert told.duration is not None
    during, before = seen[int(truth.end * 2)], seen[int(truth.start * 2) - 1]
    (stormy,) = (found for found in during.priorities if found.netdev == truth.netdev)
    assert stormy.transmit.state in ("storm", "recovering")
    assert stormy.transmit.storms == 1
    assert stormy.transmit.ratio > 0.9
    assert before.storms == ()
    assert all(found.transmit.storms == 0 for found in before.priorities)


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_every_scenario_can_be_shown_on_every_kind_of_nic(scenario: str) -> None:
    clock = Clock()
    kernel = simulate(scenario, clock=clock, vendors=VENDORS)
    seen = await replay(kernel, Sampler(kernel, clock, clock), clock, 20)
    for before, after in pairwise(seen):
        console = Console(file=io.StringIO(), width=80, height=24)
        console.print(screen(after, 80, 24))
        assert console.file.getvalue().count("\n") <= 24
        assert len(changes(before, after)) >= len(after.storms) - len(before.storms)
    netdevs = {found.netdev for found in seen[-1].priorities}
    if scenario != "broken":
        assert netdevs == {leg.netdev for leg in kernel.world.netdevs}
