"""The fast loop over simulated hosts: hours in an instant, on a clock that the test sets."""

import _thread
import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from clock import EPOCH, Clock, pass_time
from kernel import Faults, ScriptedPort, simulate_script
from waiting import HUNG_SECONDS, Gate, until, wait_until
from worker_threads import die, refuse

from roce_exporter.cli.output import LineFormatter
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.fastloop import sampler as loop
from roce_exporter.fastloop.pfc_storm import StormLimits
from roce_exporter.host.inventory import describe, list_devices
from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT, Conditions, Pause, Span
from roce_exporter.host.simulated.kernel import SimulatedKernel, simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.model import DeviceReadings

FIXED = Pace(mode="fixed")


def devices(kernel: SimulatedKernel) -> list[DeviceReadings]:
    return [DeviceReadings(describe(kernel, listed), ()) for listed in list_devices(kernel)]


def watching(kernel: SimulatedKernel, clock: Clock, pace: Pace = FIXED) -> Sampler:
    sampler = Sampler(kernel, clock, clock.wall, pace)
    sampler.follow(devices(kernel))
    return sampler


def in_ci(first: object, *others: object) -> list[object]:
    """The first in `make test`, the others in CI."""
    return [
        first,
        *(pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.ci) for one in others),
    ]


def run(sampler: Sampler, clock: Clock, seconds: float) -> None:
    """Poll whenever it is due, for `seconds`."""
    until = clock.now + seconds
    while (due := sampler.tick()) < until:
        clock.now = max(clock.now, due)
    clock.now = until


def values(sampler: Sampler, name: str, **labels: str) -> dict[tuple[str, ...], object]:
    """The series of one row with these labels, by their other labels."""
    (samples,) = sampler.samples()
    found = {}
    for series, value in zip(samples.series, samples.values, strict=True):
        told = dict(zip(series.row.labels, series.labels, strict=True))
        if series.row.name + series.suffix == name and labels.items() <= told.items():
            found[tuple(text for label, text in told.items() if label not in labels)] = value
    return found


def total(sampler: Sampler, name: str, **labels: str) -> float:
    return sum(value for value in values(sampler, name, **labels).values())


@pytest.mark.slow
@pytest.mark.parametrize("vendor", in_ci("mlx5", "mlx5-lag", "bnxt", "ionic", "ice"))
def test_a_quarter_of_an_hour_of_storms_is_detected_correctly(vendor) -> None:
    clock = Clock(5000.0)
    kernel = simulate("pfc-storm", clock=clock, vendors=[vendor] * 2)
    sampler = watching(kernel, clock)
    run(sampler, clock, 900.0)
    truth = [storm for storm in kernel.world.storms if storm.end - storm.start > 2.4]
    assert len(truth) >= 6
    events = sampler.events()
    assert len(events) == len(kernel.world.storms)
    for storm in truth:
        of_port = [
            one for one in events if (one["netdev"], one["direction"]) == (storm.netdev, storm.direction)
        ]
        assert [one for one in of_port if abs(one["duration"] - (storm.end - storm.start)) < 2.2]
    seconds = sum(storm.end - storm.start for storm in kernel.world.storms)
    assert total(sampler, "roce_pfc_storm_seconds_total") == pytest.approx(seconds, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "seconds"), in_ci(("incast", 100.0), ("incast", 300.0), ("lossy", 300.0), ("quiet", 900.0))
)
def test_a_long_time_without_a_storm_reports_none(scenario, seconds) -> None:
    assert scenario in SCENARIOS
    clock = Clock(5000.0)
    kernel = simulate(scenario, clock=clock, vendors=["mlx5", "bnxt", "ionic", "ice"])
    sampler = watching(kernel, clock)
    run(sampler, clock, seconds)
    assert kernel.world.storms == ()
    assert total(sampler, "roce_pfc_storms_total") == 0
    assert total(sampler, "roce_pfc_detector_faults_total") == 0
    assert set(values(sampler, "roce_pfc_storm_detector_state").values()) == {0}


def pausing(direction: str, seconds: float = 3.0, **conditions: object) -> list[Span]:
    calm = Conditions(load=0.3)
    storm = replace(calm, pauses=(Pause(3, direction, 1.0),), **conditions)
    return [Span(5.0, calm), Span(seconds, storm), Span(1000.0, calm)]


def test_a_storm_is_reported_with_all_known_facts(caplog) -> None:
    clock = Clock(5000.0)
    kernel = simulate_script([ScriptedPort("mlx5", pausing(TRANSMIT))], clock=clock)
    sampler = watching(kernel, clock)
    run(sampler, clock, 7.0)
    (event,) = sampler.events()
    assert (event["device"], event["netdev"], event["priority"]) == ("mlx5_0", "eth0", "3")
    assert (event["direction"], event["method"], event["end"]) == ("transmit", "duration", None)
    assert values(sampler, "roce_pfc_storm_active", direction="transmit", priority="3") == {
        ("mlx5_0", "1", "eth0"): 1
    }
    run(sampler, clock, 5.0)
    (event,) = sampler.events()
    assert event["duration"] == pytest.approx(3.0, abs=0.11)
    assert event["start"] == "2023-11-14T23:36:45.000+00:00"
    assert event["reason"] == "restored"
    assert event["paused_seconds"] == pytest.approx(2.6, abs=0.2)
    assert event["packets"] == 0
    assert json.loads(json.dumps(event)) == event
    began, _ = [record for record in caplog.records if "PFC storm" in record.message]
    assert (
        LineFormatter("logfmt")
        .format(began)
        .endswith(
            'msg="PFC storm begins" device=mlx5_0 port=1 netdev=eth0 priority=3 direction=transmit method=duration '
            "hint=receiver_overwhelmed start=2023-11-14T23:36:45.000+00:00"
        )
    )
    (when,) = values(
        sampler, "roce_pfc_storm_last_start_timestamp_seconds", direction="transmit", priority="3"
    ).values()
    assert when == pytest.approx(EPOCH + 5005.0, abs=0.11)


@pytest.mark.parametrize(
    ("ports", "hint"),
    [
        ([ScriptedPort("mlx5", pausing(TRANSMIT, pcie_stall=0.8))], "slow_receiver"),
        ([ScriptedPort("mlx5", pausing(TRANSMIT))], "receiver_overwhelmed"),
        ([ScriptedPort("mlx5", pausing(RECEIVE)), ScriptedPort("mlx5", [])], "paused_by_fabric"),
        (
            [ScriptedPort("mlx5", pausing(RECEIVE)), ScriptedPort("mlx5", pausing(RECEIVE))],
            "all_ports_paused",
        ),
    ],
)
def test_a_storm_has_a_hint_while_it_lasts(ports, hint) -> None:
    clock = Clock(5000.0)
    sampler = watching(simulate_script(ports, clock=clock), clock)
    run(sampler, clock, 7.0)
    assert hint in {labels[-1] for labels in values(sampler, "roce_pfc_storm_hint")}
    run(sampler, clock, 5.0)
    assert values(sampler, "roce_pfc_storm_hint") == {}


def test_the_interval_is_fifty_times_the_read_time() -> None:
    clock = Clock(5000.0)
    kernel = simulate("quiet", clock=clock, vendors=["mlx5-lag", "mlx5"])
    quick = kernel.ethtool_statistics

    def slow(netdev: str) -> object:
        if netdev != "eth2":
            clock.now += 0.004
        return quick(netdev)

    kernel.ethtool_statistics = slow
    sampler = watching(kernel, clock)
    run(sampler, clock, 60.0)
    # The two member ports of the bond are one device: together they take 8 ms.
    intervals = {
        labels[-1]: value
        for labels, value in values(sampler, "roce_exporter_sampler_interval_seconds").items()
    }
    assert intervals["eth0"] == intervals["eth1"] == pytest.approx(0.4, rel=0.05)
    assert intervals["eth2"] == pytest.approx(0.1)
    assert pytest.approx(0.004) == (
        total(sampler, "roce_exporter_sampler_read_duration_seconds_sum", netdev="eth0")
        / total(sampler, "roce_exporter_sampler_read_duration_seconds_count", netdev="eth0")
    )


def test_the_limits_are_the_configured_ones() -> None:
    clock = Clock(5000.0)
    kernel = simulate_script([ScriptedPort("mlx5", pausing(RECEIVE, 1.0))], clock=clock)
    for limits, storms in ((StormLimits(detect=0.8), 1), (StormLimits(detect=2.0), 0)):
        clock.now = kernel.world.start
        fresh = simulate_script([ScriptedPort("mlx5", pausing(RECEIVE, 1.0))], clock=clock)
        sampler = Sampler(fresh, clock, clock, FIXED, limits)
        sampler.follow(devices(fresh))
        run(sampler, clock, 10.0)
        assert total(sampler, "roce_pfc_storms_total") == storms


QUICK = Pace(mode="fixed", interval=0.05)
ETH0 = ("ethtool_statistics", "eth0")


class LateClock:
    """The time of this machine, and what a test adds: a read that answers has a minute, one that hangs is late at once."""

    def __init__(self) -> None:
        self.added = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.added

    def give_up(self, sampler: Sampler) -> None:
        """The only read under way is too late."""
        self.added += HUNG_SECONDS + 1
        sampler.supervise()


LATE = LateClock()


@pytest.fixture
def live(monkeypatch, worker_threads) -> Iterator[tuple[Sampler, Faults]]:
    """A running loop over two network devices."""
    monkeypatch.setattr(loop, "TIMEOUT", HUNG_SECONDS)
    kernel = simulate("quiet", clock=LATE, vendors=["mlx5", "mlx5"])
    sampler = Sampler(kernel, LATE, time.time, QUICK)
    sampler.follow(devices(kernel))
    yield sampler, Faults(kernel)
    sampler.close()


def stuck(sampler: Sampler, netdev: str) -> float:
    return total(sampler, "roce_exporter_sampler_stuck", netdev=netdev)


@pytest.mark.parametrize("error", [None, OSError(5, "Input/output error"), ValueError("an injected fault")])
def test_after_any_end_of_a_hang_the_device_is_polled_again(live, error, caplog, worker_threads) -> None:
    caplog.set_level("CRITICAL")
    sampler, faults = live
    gate = Gate()

    def hang(netdev: str) -> None:
        gate(netdev)
        if error is not None:
            del faults[ETH0]
            raise error

    faults[ETH0] = hang
    sampler.start()
    gate.wait()
    LATE.give_up(sampler)
    assert stuck(sampler, "eth0") == 1
    for _ in range(10):
        sampler.supervise()
    assert len(worker_threads.running()) == 2, "one abandoned read starts one thread"
    assert stuck(sampler, "eth1") == 0
    other = faults.calls.count(("ethtool_statistics", "eth1"))
    wait_until(lambda: faults.calls.count(("ethtool_statistics", "eth1")) > other + 3)
    gate.release()
    wait_until(lambda: stuck(sampler, "eth0") == 0)
    reads = faults.calls.count(ETH0)
    wait_until(lambda: faults.calls.count(ETH0) > reads + 3)
    assert not sampler._in_flight or len(sampler._in_flight.since()) == 1
    worker_threads.wait_until(1)


async def test_one_poll_of_all_leaves_out_a_device_that_hangs(live) -> None:
    sampler, faults = live
    gate = faults[ETH0] = Gate()
    reading = asyncio.ensure_future(sampler.read_once())
    await gate.entered()
    LATE.added += HUNG_SECONDS + 1
    pass_time(HUNG_SECONDS)
    await reading
    assert faults.calls.count(("ethtool_statistics", "eth1")) == faults.calls.count(ETH0) == 1
    await sampler.read_once()
    assert faults.calls.count(("ethtool_statistics", "eth1")) == 1, "it was polled before"
    gate.release()


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_loop_whose_thread_died_at_its_start_runs_in_another(
    live, deaths, monkeypatch, worker_threads, caplog
) -> None:
    sampler, _ = live
    monkeypatch.setattr(_thread, "start_new_thread", die(deaths))
    sampler.start()
    for _ in range(deaths):
        worker_threads.wait_until(0)
        sampler.supervise()
    assert (
        caplog.messages == ["the thread of the fast loop has died, out of memory?; starting another"] * deaths
    )
    wait_until(lambda: total(sampler, "roce_exporter_sampler_ticks_total") > 2)


@pytest.mark.parametrize("shortage", ["no thread", "too many stuck"])
def test_a_loop_without_a_thread_reports_all_as_stuck_and_continues_with_the_first_one(
    live, shortage, monkeypatch, caplog
) -> None:
    sampler, faults = live
    gate = faults[ETH0] = Gate()
    sampler.start()
    gate.wait()
    with monkeypatch.context() as patch:
        if shortage == "no thread":
            patch.setattr(_thread, "start_new_thread", refuse)
        else:
            patch.setattr(loop, "MOST_STUCK", 1)
        LATE.give_up(sampler)
        sampler.supervise()
        assert stuck(sampler, "eth0") == stuck(sampler, "eth1") == 1
        (error,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
        assert error.startswith("PFC storms are detected nowhere: ")
        polls = faults.calls.count(("ethtool_statistics", "eth1"))
        if shortage == "too many stuck":
            gate.release()
            wait_until(lambda: not sampler._in_flight)
            sampler.supervise()
    wait_until(lambda: (sampler.supervise(), faults.calls.count(("ethtool_statistics", "eth1")))[1] > polls)
    assert stuck(sampler, "eth1") == 0
    gate.release()
    wait_until(lambda: stuck(sampler, "eth0") == 0)


async def test_a_host_that_has_no_thread_at_the_start_is_polled_as_soon_as_it_has_one(
    live, monkeypatch
) -> None:
    sampler, faults = live
    monkeypatch.setattr(loop, "SUPERVISION", 0.001)
    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", refuse)
        running = asyncio.ensure_future(sampler.run())
        await until(lambda: stuck(sampler, "eth0") == stuck(sampler, "eth1") == 1)
    await until(lambda: ("ethtool_statistics", "eth1") in faults.calls and stuck(sampler, "eth0") == 0)
    running.cancel()
