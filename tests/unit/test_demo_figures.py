"""From observations to scenes: shares paused, rates, states, storms."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from roce_exporter.collect import Collector, Settings
from roce_exporter.demo.figures import Figures, TimedValues, rate, storm_events, wanted_values
from roce_exporter.demo.scene import Scene
from roce_exporter.demo.screen import screen
from roce_exporter.demo.views import changes
from roce_exporter.exporter import Exporter
from roce_exporter.sampler import Pace, Sampler
from roce_exporter.simulation import SCENARIOS, VENDORS
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from roce_exporter.simulation.kernel import SimulatedKernel

PLACE = ("mlx5_0", "1", "eth0", "3")


def moment(
    time: float, paused: float = 0.0, marked: float = 0.0, refresh: float | None = None
) -> TimedValues:
    values = {
        ("roce_port_up", ("mlx5_0", "1")): 1.0,
        ("roce_ecn_marked_packets_total", ("mlx5_0", "1")): marked,
        ("roce_pfc_transmit_pause_seconds_total", PLACE): paused,
        ("roce_pfc_storm_detector_state", (*PLACE, "transmit")): 1.0,
        ("roce_pfc_storms_total", (*PLACE, "transmit")): 4.0,
    }
    if refresh is not None:
        values["roce_exporter_sampler_refresh_seconds", PLACE[:-1]] = refresh
    return TimedValues(time, values)


def shares(*moments: TimedValues) -> list[float | None]:
    """The history of the share paused after the last moment."""
    figures = Figures()
    for found in moments:
        (priority,) = figures.priorities(found)
    return [share and round(share, 3) for share in priority.transmit.shares]


def test_a_share_is_of_the_time_between_two_moments() -> None:
    assert shares(moment(10.0), moment(10.5, 0.25), moment(11.0, 0.75)) == [None, 0.5, 1.0]


def test_a_share_is_never_above_one() -> None:
    assert shares(moment(10.0), moment(10.5, 0.51)) == [None, 1.0]


def test_a_reset_is_not_a_pause() -> None:
    assert shares(moment(10.0, 99.0), moment(10.5, 0.25), moment(11.0, 0.5)) == [None, None, 0.5]


def test_a_copy_refreshed_once_a_second_does_not_flicker() -> None:
    """Paused throughout, refreshed once a second: every share after the first refreshes is 1."""
    moments = [moment(tenths / 10, float(int(tenths / 10)), refresh=1.0) for tenths in range(0, 100, 5)]
    assert set(shares(*moments)[6:]) == {1.0}


def test_packets_are_counted_over_two_seconds() -> None:
    figures = Figures()
    rates = [
        figures.priorities(found)[0].marked
        for found in (moment(0.0), moment(1.0, marked=100), moment(2.0, marked=100), moment(3.0, marked=100))
    ]
    assert rates == [None, 100.0, 50.0, 0.0]


def test_a_missing_counter_is_not_zero() -> None:
    figures = Figures()
    figures.priorities(moment(0.0))
    (priority,) = figures.priorities(moment(1.0))
    assert priority.marked == 0.0
    assert priority.notified is None
    assert priority.receive is None
    assert priority.up is True
    assert (priority.transmit.state, priority.transmit.storms) == ("suspect", 4)


def test_a_nic_that_counts_frames_shows_the_bound() -> None:
    bound = ("roce_pfc_pause_estimated_max_seconds_total", (*PLACE, "transmit"))
    first, second = moment(0.0), moment(1.0)
    figures = Figures()
    figures.priorities(first._replace(values=first.values | {bound: 1.0}))
    (priority,) = figures.priorities(second._replace(values=second.values | {bound: 1.5}))
    assert priority.transmit.estimated
    assert priority.transmit.now == 0.5


def test_no_time_no_rate() -> None:
    assert rate(moment(1.0), moment(1.0), "roce_ecn_marked_packets_total", ("mlx5_0", "1")) is None


def test_only_paused_priorities_are_shown_of_a_nic_that_counts_all() -> None:
    places = [("ionic_0", "1", "eth0", str(number)) for number in range(8)]
    states = {("roce_pfc_storm_detector_state", (*place, "receive")): 0.0 for place in places}
    figures = Figures()
    idle = figures.priorities(TimedValues(0.0, states))
    assert [found.number for found in idle] == ["0"], "a port is never left out"
    busy = {("roce_pfc_receive_pause_seconds_total", place): 0.1 for place in places[3:5]}
    assert [found.number for found in figures.priorities(TimedValues(1.0, states | busy))] == ["3", "4"]


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def replay(kernel: SimulatedKernel, sampler: Sampler, clock: Clock, seconds: int) -> list[Scene]:
    """The scenes of the demo, two a second, in simulated time."""
    collector = Collector(kernel, Settings(), clock)
    exporter, figures, seen = Exporter(collector, sampler), Figures(), []
    try:
        for time in (half / 2 for half in range(2 * seconds)):
            while (due := sampler.tick()) < time:
                clock.now = due
            clock.now = time
            values = wanted_values((await exporter.observe(5.0)).samples, time)
            seen.append(
                Scene(
                    "", "", time, priorities=figures.priorities(values), storms=storm_events(sampler.events())
                )
            )
    finally:
        collector.close()
    return seen


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_scenes_show_the_storm_of_the_scenario(vendor: str) -> None:
    """The whole way from the simulated host to the scene, for each kind of NIC."""
    clock = Clock()
    kernel = simulate("pfc-storm", clock=clock, vendors=(vendor,))
    seen = await replay(kernel, Sampler(kernel, clock, clock, Pace("fixed")), clock, 45)
    (truth,) = (storm for storm in kernel.world.storms if storm.start < clock.now)
    (event,) = seen[-1].storms
    assert (event.netdev, event.priority, event.direction) == (truth.netdev, str(truth.priority), "transmit")
    assert event.duration is not None
    during, before = seen[int(truth.end * 2)], seen[int(truth.start * 2) - 1]
    (stormy,) = (found for found in during.priorities if found.netdev == truth.netdev)
    assert stormy.transmit.state in ("storm", "recovering")
    assert stormy.transmit.storms == 1
    assert stormy.transmit.now > 0.9
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
        assert netdevs == {leg.netdev for leg in kernel.world.legs}
