"""From observations to scenes: shares paused, rates, states, storms, owners."""

import io
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TypeVar

import pytest
from clock import Clock
from rich.console import Console

from roce_exporter.catalog import owners
from roce_exporter.cli import main
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.demo.figures import (
    CNPS,
    RETRIES,
    WANTED,
    Moments,
    Scene,
    ShownOwner,
    priorities,
    shown_owners,
    storm_events,
    suffering,
)
from roce_exporter.demo.screen import changes, screen
from roce_exporter.exporter import Exporter
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.simulated.kernel import SimulatedKernel, simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.host.simulated.world import VENDORS
from roce_exporter.owners import SurveyLimits, Surveyor
from roce_exporter.view.host_view import TimedSamples, timed_samples

T = TypeVar("T")

PLACE = ("mlx5_0", "1", "eth0", "3")


def timed(time: float, values: dict[tuple[str, tuple[str, ...]], float]) -> TimedSamples:
    """A moment with these series."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for (name, labels), value in values.items():
        found.setdefault(name, {})[labels] = value
    return TimedSamples(time, found)


def last(moments: Iterable[TimedSamples], show: Callable[[Moments], T]) -> T:
    """What is shown after the last moment, each of them having been shown."""
    followed = Moments()
    for one in moments:
        followed.add(one)
        found = show(followed)
    return found


def moment(
    time: float,
    paused: float = 0.0,
    marked: float = 0.0,
    refresh: float | None = None,
    bound: float | None = None,
) -> TimedSamples:
    values = {
        ("roce_port_up", ("mlx5_0", "1")): 1.0,
        ("roce_ecn_marked_packets_total", ("mlx5_0", "1")): marked,
        ("roce_pfc_transmit_pause_seconds_total", PLACE): paused,
        ("roce_pfc_storm_detector_state", (*PLACE, "transmit")): 1.0,
        ("roce_pfc_storms_total", (*PLACE, "transmit")): 4.0,
    }
    if refresh is not None:
        values["roce_exporter_sampler_refresh_seconds", PLACE[:-1]] = refresh
    if bound is not None:
        values["roce_pfc_pause_estimated_max_seconds_total", (*PLACE, "transmit")] = bound
    return timed(time, values)


@pytest.mark.parametrize(
    ("paused", "shares"),
    [
        ((0.0, 0.25, 0.75), [None, 0.5, 1.0]),
        ((0.0, 0.51), [None, 1.0]),
        ((99.0, 0.25, 0.5), [None, 0.5, 0.5]),
    ],
    ids=["of the time between two moments", "never above one", "after a reset the counter begins at 0"],
)
def test_a_share_paused(paused, shares) -> None:
    (priority,) = last(
        (moment(10 + number / 2, seconds) for number, seconds in enumerate(paused)), priorities
    )
    assert [share and round(share, 3) for share in priority.transmit.shares] == shares


def test_a_copy_refreshed_once_a_second_does_not_flicker() -> None:
    """Paused throughout, refreshed once a second: every share after the first refreshes is 1."""
    copies = (moment(half / 2, float(half // 2), refresh=1.0) for half in range(20))
    (priority,) = last(copies, priorities)
    assert {share and round(share, 3) for share in priority.transmit.shares[6:]} == {1.0}


def test_packets_are_counted_over_two_seconds_and_a_missing_counter_is_not_zero() -> None:
    moments = [moment(float(now), marked=100.0 * bool(now)) for now in range(4)]
    found = [last(moments[: count + 1], priorities)[0] for count in range(4)]
    assert [priority.marked for priority in found] == [None, 100.0, 50.0, 0.0]
    assert (found[-1].notified, found[-1].receive, found[-1].up) == (None, None, True)
    assert (found[-1].transmit.state, found[-1].transmit.storms) == ("suspect", 4)
    assert last([moment(1.0), moment(1.0)], priorities)[0].marked is None


def test_a_nic_that_counts_frames_shows_the_bound() -> None:
    (priority,) = last([moment(0.0, bound=1.0), moment(1.0, bound=1.5)], priorities)
    assert priority.transmit.estimated
    assert priority.transmit.shares[-1] == 0.5


def test_only_paused_priorities_are_shown_of_a_nic_that_counts_all() -> None:
    places = [("ionic_0", "1", "eth0", str(number)) for number in range(8)]
    states = {("roce_pfc_storm_detector_state", (*place, "receive")): 0.0 for place in places}
    idle = last([timed(0.0, states)], priorities)
    assert [found.number for found in idle] == ["0"], "a port is never left out"
    busy = {("roce_pfc_receive_pause_seconds_total", place): 0.1 for place in places[3:5]}
    assert [found.number for found in last([timed(1.0, states | busy)], priorities)] == ["3", "4"]


async def replay(kernel: SimulatedKernel, sampler: Sampler, clock: Clock, seconds: int) -> list[Scene]:
    """The scenes of the demo, two a second, in simulated time."""
    collector = Collector(kernel, Settings(), clock)
    exporter, moments, seen = Exporter(collector, [sampler]), Moments(), []
    for time in (half / 2 for half in range(2 * seconds)):
        while (due := sampler.tick()) < time:
            clock.now = due
        clock.now = time
        moments.add(timed_samples((await exporter.observe(5.0)).samples, time, WANTED))
        storms = storm_events(sampler.events())
        seen.append(Scene("", "", time, priorities=priorities(moments), storms=storms))
    return seen


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_scenes_show_the_storm_of_the_scenario(vendor) -> None:
    """The whole way from the simulated host to the scene, for each kind of NIC."""
    clock = Clock(0.0)
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
    assert stormy.transmit.shares[-1] > 0.9
    assert before.storms == ()
    assert all(found.transmit.storms == 0 for found in before.priorities)


@pytest.mark.ci
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_every_scenario_can_be_shown_on_every_kind_of_nic(scenario) -> None:
    clock = Clock(0.0)
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


# Owners


def survey(time: float, in_error: int = 0, **counters: float) -> TimedSamples:
    values = {
        ("roce_owner_queue_pairs", ("a_0", "slurm/1.0", "RTS", "RC")): 8.0,
        ("roce_owner_queue_pairs", ("a_1", "slurm/1.0", "RTS", "UD")): 2.0,
        ("roce_owner_queue_pairs_in_error", ("a_0", "slurm/1.0")): float(in_error),
        ("roce_owner_queue_pairs_in_error", ("a_1", "slurm/1.0")): 0.0,
        ("roce_owner_info", ("slurm/1.0", "slurm", "gmx", "", "", "", "1", "0", "")): 1.0,
    }
    for name, value in counters.items():
        for device in ("a_0", "a_1"):
            values[f"roce_owner_{name}_total", (device, "slurm/1.0", "1")] = value
    return timed(time, values)


TIMEOUTS, NAKS, CNP = "transport_ack_timeouts", "transport_packet_sequence_errors", "flow_cnp_received"
CALM = [survey(float(second), **{CNP: 100.0}) for second in range(20)]


@pytest.mark.parametrize(
    ("surveys", "retries", "cnps"),
    [
        ([survey(0.0, 1)], None, None),
        (CALM, None, 0),
        ([*CALM, survey(20.0, **{CNP: 130.0})], None, 2 * 30 / 6),
        ([survey(0.0, **{TIMEOUTS: 0, NAKS: 0}), survey(6.0, **{TIMEOUTS: 6, NAKS: 12})], 2 * (1 + 2), None),
        ([survey(0.0, cnp_handled=0, **{CNP: 0}), survey(6.0, cnp_handled=0, **{CNP: 60})], None, 20),
    ],
)
def test_an_owner_is_summed_over_devices_and_rates_are_of_the_last_seconds(surveys, retries, cnps) -> None:
    """A counter that is 0 for ports only does not hide the other."""
    (found,) = last(surveys, shown_owners)
    assert (found.owner, found.command, found.queue_pairs) == ("slurm/1.0", "gmx", 10)
    assert found.in_error == (len(surveys) == 1)
    assert (found.retries, found.cnps) == (pytest.approx(retries), pytest.approx(cnps))


def test_queue_pairs_in_error_come_first_then_retries_then_cnps() -> None:
    calm, notified, retrying, broken = (
        ShownOwner(name, "", 1, in_error, retries=retries, cnps=cnps)
        for name, in_error, retries, cnps in (
            ("a", 0, None, None),
            ("b", 0, None, 9.0),
            ("c", 0, 1.0, None),
            ("d", 1, None, None),
        )
    )
    assert sorted((calm, notified, retrying, broken), key=suffering) == [broken, retrying, notified, calm]
    assert owners.ROWS.keys() >= {*CNPS, *RETRIES}


async def test_the_scenario_shows_who_suffers() -> None:
    """The whole way from the simulated host to the scene."""
    clock = Clock()
    kernel = simulate("dead-peer", clock=clock)
    surveyor = Surveyor(kernel, SurveyLimits(), clock, clock.wall)
    exporter, moments = Exporter(Collector(kernel, Settings(), clock), [surveyor]), Moments()
    seen = []
    for clock.now in range(1000, 1070, 2):
        observation = await exporter.observe_complete()
        moments.add(timed_samples(observation.samples, clock.now, WANTED))
        seen.append(shown_owners(moments))
    assert sorted(one.owner.partition("/")[0] for one in seen[-1]) == ["kernel", "kernel", "pod", "slurm"]
    worst, *others = seen[-1]
    assert (worst.command, worst.in_error, worst.queue_pairs) == ("python3", 8, 112)
    assert all(one.in_error == 0 for one in others)
    most = {
        command: max(one.retries or 0 for moment in seen for one in moment if one.command == command)
        for command in ("python3", "gmx_mpi")
    }
    assert most["python3"] > 5
    assert most["gmx_mpi"] == 0


# The command


def test_without_rich_one_line_says_how_to_install_it_and_no_other_command_needs_it(
    monkeypatch, capsys
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["demo"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "roce-exporter: demo needs the package rich; install the extra demo, in a clone: pip install '.[demo]'\n"
    )
    assert main(["once", "--host.simulate=quiet"]) == 0
    assert "roce_port_up{" in capsys.readouterr().out
