"""The fast loop over simulated hosts: hours in an instant, on a clock that the test sets."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import subprocess
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.storm import ROWS, SAMPLER
from roce_exporter.cli.log import LineFormatter
from roce_exporter.collect import Collector, Settings
from roce_exporter.detectors.pfc_storm import Method, StormLimits
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format, Renderer
from roce_exporter.inventory import describe, list_devices
from roce_exporter.kernel import Absent
from roce_exporter.model import DeviceReadings, Reading
from roce_exporter.sampler import OFF, Pace, Sampler
from roce_exporter.sampler import sampler as loop
from roce_exporter.simulation import RECEIVE, SCENARIOS, TRANSMIT, Conditions, Pause, Span
from roce_exporter.simulation.kernel import ScriptedPort, simulate, simulate_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.simulation.kernel import SimulatedKernel

FIXED = Pace(mode="fixed")

EPOCH = 1_700_000_000.0


class Clock:
    """Monotonic seconds that the test sets."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        return self.now


def devices(kernel: SimulatedKernel) -> list[DeviceReadings]:
    return [DeviceReadings(describe(kernel, listed), ()) for listed in list_devices(kernel)]


def watching(kernel: SimulatedKernel, clock: Clock, pace: Pace = FIXED) -> Sampler:
    sampler = Sampler(kernel, clock, lambda: clock.now + EPOCH, pace)
    sampler.follow(devices(kernel))
    return sampler


def in_ci(first: str, *others: str) -> list[object]:
    """The first in `make test`, the others in CI."""
    return [first, *(pytest.param(one, marks=pytest.mark.ci) for one in others)]


def run(sampler: Sampler, clock: Clock, seconds: float) -> None:
    """Poll whenever it is due, for `seconds`."""
    until = clock.now + seconds
    while (due := sampler.tick()) < until:
        clock.now = max(clock.now, due)
    clock.now = until


def values(sampler: Sampler, name: str, **labels: str) -> dict[tuple[str, ...], object]:
    """The series of one row with these labels, by their other labels."""
    samples = sampler.samples()
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
def test_a_quarter_of_an_hour_of_storms_is_detected_correctly(vendor: str) -> None:
    clock = Clock()
    kernel = simulate("pfc-storm", clock=clock, vendors=[vendor] * 2)
    sampler = watching(kernel, clock)
    run(sampler, clock, 900.0)
    truth = [storm for storm in kernel.world.storms if storm.end - storm.start > 2.4]
    assert len(truth) >= 6
    told = [
        (
            event["netdev"],
            event["direction"],
            event["start"],
            event["end"],
            event["duration"],
            event["reason"],
        )
        for event in sampler.events()
    ]
    assert len(told) == len(kernel.world.storms)
    for storm in truth:
        near = [
            event
            for event in sampler.events()
            if event["netdev"] == storm.netdev
            and event["direction"] == storm.direction
            and abs(event["duration"] - (storm.end - storm.start)) < 2.2
        ]
        assert near
    seconds = sum(storm.end - storm.start for storm in kernel.world.storms)
    assert total(sampler, "roce_pfc_storm_seconds_total") == pytest.approx(seconds, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", in_ci("incast", "lossy", "quiet"))
def test_a_long_time_without_a_storm_reports_none(scenario: str) -> None:
    assert scenario in SCENARIOS
    clock = Clock()
    kernel = simulate(scenario, clock=clock, vendors=["mlx5", "bnxt", "ionic", "ice"])
    sampler = watching(kernel, clock)
    run(sampler, clock, 900.0 if scenario == "quiet" else 300.0)
    assert kernel.world.storms == ()
    assert total(sampler, "roce_pfc_storms_total") == 0
    assert total(sampler, "roce_pfc_detector_faults_total") == 0
    assert set(values(sampler, "roce_pfc_storm_detector_state").values()) == {0}


@pytest.mark.parametrize(
    ("vendor", "method"),
    [
        ("mlx5", Method.DURATION),
        ("bnxt", Method.DURATION),
        ("ionic", Method.DURATION),
        ("ice", Method.XOFF_XON),
    ],
)
def test_each_vendor_is_evaluated_by_its_best_counter(vendor: str, method: Method) -> None:
    clock = Clock()
    sampler = watching(simulate("quiet", clock=clock, vendors=[vendor]), clock)
    run(sampler, clock, 1.0)
    info = values(sampler, "roce_pfc_storm_detector_info", priority="3")
    assert {labels[-1] for labels in info} == {method.value}
    assert {labels[-2] for labels in info} == {"receive", "transmit"}


def test_every_series_starts_at_0() -> None:
    clock = Clock()
    sampler = watching(simulate("quiet", clock=clock, vendors=["mlx5"]), clock)
    run(sampler, clock, 0.2)
    for name in (
        "roce_pfc_storm_active",
        "roce_pfc_storms_total",
        "roce_pfc_storms_restored_total",
        "roce_pfc_storm_seconds_total",
        "roce_pfc_storm_near_misses_total",
        "roce_pfc_congested_seconds_total",
        "roce_pfc_storm_detector_state",
        "roce_pfc_longest_pause_seconds",
    ):
        assert set(values(sampler, name, netdev="eth0", priority="3").values()) == {0}, name
    assert set(values(sampler, "roce_pfc_storm_last_start_timestamp_seconds").values()) == {None}


def pausing(direction: str, seconds: float = 3.0, **conditions: object) -> list[Span]:
    calm = Conditions(load=0.3)
    storm = replace(calm, pauses=(Pause(3, direction, 1.0),), **conditions)
    return [Span(5.0, calm), Span(seconds, storm), Span(1000.0, calm)]


def test_a_storm_is_reported_with_all_known_facts(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
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
    assert json.loads(json.dumps(sampler.events())) == sampler.events()
    (began, ended) = [record for record in caplog.records if "PFC storm" in record.message]
    assert (
        LineFormatter("logfmt")
        .format(began)
        .endswith(
            'msg="PFC storm begins" device=mlx5_0 port=1 netdev=eth0 priority=3 direction=transmit method=duration '
            "hint=receiver_overwhelmed start=2023-11-14T23:36:45.000+00:00"
        )
    )
    assert json.loads(LineFormatter("json").format(ended))["duration"] == "3.000"
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
def test_a_storm_has_a_hint_while_it_lasts(ports: list[ScriptedPort], hint: str) -> None:
    clock = Clock()
    sampler = watching(simulate_script(ports, clock=clock), clock)
    run(sampler, clock, 7.0)
    assert hint in {labels[-1] for labels in values(sampler, "roce_pfc_storm_hint")}
    run(sampler, clock, 5.0)
    assert values(sampler, "roce_pfc_storm_hint") == {}


def test_a_quiet_device_is_polled_once_a_second_and_a_paused_one_ten_times() -> None:
    clock = Clock()
    spans = [
        Span(30.0, Conditions()),
        Span(0.05, Conditions(pauses=(Pause(3, RECEIVE, 0.5),))),
        Span(1e6, Conditions()),
    ]
    sampler = watching(simulate_script([ScriptedPort("mlx5", spans)], clock=clock), clock, Pace())
    run(sampler, clock, 29.0)
    assert total(sampler, "roce_exporter_sampler_ticks_total") == pytest.approx(29, abs=2)
    run(sampler, clock, 31.0)
    assert total(sampler, "roce_exporter_sampler_interval_seconds") == pytest.approx(0.1)
    assert total(sampler, "roce_exporter_sampler_ticks_total") > 250
    run(sampler, clock, 60.0)
    before = total(sampler, "roce_exporter_sampler_ticks_total")
    run(sampler, clock, 60.0)
    assert total(sampler, "roce_exporter_sampler_ticks_total") - before == pytest.approx(60, abs=2)


def test_the_interval_is_fifty_times_the_read_time() -> None:
    clock = Clock()
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


def test_late_and_omitted_polls_are_counted() -> None:
    clock = Clock()
    sampler = watching(simulate("quiet", clock=clock, vendors=["mlx5"]), clock)
    run(sampler, clock, 2.0)
    assert total(sampler, "roce_exporter_sampler_late_ticks_total") == 0
    due = sampler.tick()
    clock.now = due + 0.56
    sampler.tick()
    assert total(sampler, "roce_exporter_sampler_late_ticks_total") == 1
    assert total(sampler, "roce_exporter_sampler_missed_ticks_total") == 5


def test_a_device_that_fails_is_unknown_for_its_errno_and_costs_itself_only() -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["mlx5", "mlx5"])
    sound = kernel.ethtool_statistics
    sampler = watching(kernel, clock)
    run(sampler, clock, 1.0)

    def fail(netdev: str) -> object:
        if netdev == "eth1":
            raise OSError(errno.EIO, "broken")
        return sound(netdev)

    kernel.ethtool_statistics = fail
    run(sampler, clock, 1.0)
    assert total(sampler, "roce_exporter_sampler_errors_total", netdev="eth0") == 0
    assert total(sampler, "roce_exporter_sampler_errors_total", netdev="eth1") == 10
    assert {labels[2:] for labels in values(sampler, "roce_pfc_storm_unknown")} == {
        ("eth1", "3", "receive", "EIO"),
        ("eth1", "3", "transmit", "EIO"),
    }
    kernel.ethtool_statistics = sound
    run(sampler, clock, 1.0)
    assert values(sampler, "roce_pfc_storm_unknown") == {}


def test_a_driver_without_private_counters_is_queried_once_a_minute_and_has_no_series() -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["mlx5"])
    asked = []

    def absent(netdev: str) -> object:
        asked.append(netdev)
        raise Absent(errno.EOPNOTSUPP, "none")

    kernel.ethtool_statistics = absent
    sampler = watching(kernel, clock)
    run(sampler, clock, 119.0)
    assert len(asked) == 2
    assert sampler.samples().series == ()


def test_a_new_device_of_the_same_name_starts_from_zero() -> None:
    clock = Clock()
    kernel = simulate_script([ScriptedPort("mlx5", pausing(RECEIVE)), ScriptedPort("mlx5", [])], clock=clock)
    sampler = watching(kernel, clock)
    run(sampler, clock, 10.0)
    first, second = devices(kernel)
    assert total(sampler, "roce_pfc_storms_total", netdev="eth0") == 1
    sampler.follow([first])
    assert {labels[0] for labels in values(sampler, "roce_exporter_sampler_ticks_total")} == {"mlx5_0"}
    assert total(sampler, "roce_pfc_storms_total", netdev="eth0") == 1
    sampler.follow([DeviceReadings(replace(first.device, incarnation=7), ()), second])
    run(sampler, clock, 1.0)
    assert total(sampler, "roce_pfc_storms_total") == 0


def test_priorities_without_pfc_according_to_dcb_are_not_evaluated() -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["bnxt"])
    (found,) = devices(kernel)
    told = Reading("dcb", found.device.name, 1, ("pfc_enabled_2", "pfc_enabled_3"), (0, 1), (), "eth0")
    sampler = Sampler(kernel, clock, clock, FIXED)
    sampler.follow([DeviceReadings(found.device, (told,))])
    run(sampler, clock, 1.0)
    assert {labels[3] for labels in values(sampler, "roce_pfc_storm_active")} == {"3"}


def test_switched_off_it_reads_nothing() -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock)
    kernel.ethtool_statistics = lambda netdev: pytest.fail("asked")
    sampler = watching(kernel, clock, Pace(mode=OFF))
    sampler.start()
    run(sampler, clock, 10.0)
    assert sampler.samples().series == ()


def wait_for(condition: Callable[[], bool]) -> None:
    """The limit is generous: the test checks whether it happens, not when."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def test_a_hung_device_stops_only_its_own_polling_and_recovers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "PATIENCE", 0.05)
    kernel = simulate("quiet", clock=time.monotonic, vendors=["mlx5", "mlx5"])
    sound, hang, held = kernel.ethtool_statistics, threading.Event(), threading.Event()

    def hanging(netdev: str) -> object:
        if netdev == "eth0" and not hang.is_set():
            held.set()
            hang.wait(60)
        return sound(netdev)

    kernel.ethtool_statistics = hanging
    sampler = Sampler(kernel, time.monotonic, time.time, Pace(mode="fixed", interval=0.05))
    sampler.follow(devices(kernel))
    sampler.start()
    try:
        assert held.wait(30)
        wait_for(
            lambda: (
                (sampler.supervise(), total(sampler, "roce_exporter_sampler_stuck", netdev="eth0"))[1] == 1
            )
        )
        before = total(sampler, "roce_exporter_sampler_ticks_total", netdev="eth1")
        wait_for(lambda: total(sampler, "roce_exporter_sampler_ticks_total", netdev="eth1") > before + 3)
        assert total(sampler, "roce_exporter_sampler_stuck", netdev="eth1") == 0
        hang.set()
        wait_for(lambda: total(sampler, "roce_exporter_sampler_stuck", netdev="eth0") == 0)
        ticks = total(sampler, "roce_exporter_sampler_ticks_total", netdev="eth0")
        wait_for(lambda: total(sampler, "roce_exporter_sampler_ticks_total", netdev="eth0") > ticks + 3)
    finally:
        hang.set()
        sampler.close()


def test_the_storm_state_is_unknown_while_a_poll_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["mlx5"])
    sampler = watching(kernel, clock)
    run(sampler, clock, 1.0)
    sound = kernel.ethtool_statistics
    reasons = []

    def supervised(netdev: str) -> object:
        # While this poll hangs, the event loop's thread supervises.
        clock.now += 2.0
        monkeypatch.setattr(sampler, "_start_worker", lambda: setattr(sampler, "_worker", object()))
        sampler.supervise()
        reasons.extend(labels[-1] for labels in values(sampler, "roce_pfc_storm_unknown"))
        return sound(netdev)

    kernel.ethtool_statistics = supervised
    clock.now += 1.0
    sampler.tick()
    assert set(reasons) == {"stuck"}


def test_the_exposition_has_the_rows_and_promtool_finds_no_problem() -> None:
    text = asyncio.run(storm_exposition())
    for row in (*ROWS, *SAMPLER):
        if row.name not in (
            "roce_pfc_storm_hint",
            "roce_pfc_storm_unknown",
            "roce_exporter_sampler_refresh_seconds",
        ):
            assert f"# TYPE {row.name} {row.kind}".encode() in text, row.name
    labels = 'device="mlx5_0",port="1",netdev="eth0",priority="3",direction="receive"'
    assert f'roce_pfc_pause_ratio_bucket{{{labels},le="+Inf"}} '.encode() in text
    if promtool := shutil.which("promtool"):
        answer = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, b"", b"")


async def storm_exposition() -> bytes:
    clock = Clock()
    kernel = simulate("pfc-storm", clock=clock, vendors=["mlx5", "ice"])
    sampler = Sampler(kernel, clock, lambda: clock.now + EPOCH, FIXED)
    exporter = Exporter(Collector(kernel, Settings(), clock), sampler)
    for _ in range(4):
        await exporter.observe(5)
        run(sampler, clock, 15.0)
    return exporter.render(await exporter.observe(5), Format.TEXT)


def test_the_template_is_made_once_while_the_series_stay() -> None:
    clock = Clock()
    sampler = watching(simulate("quiet", clock=clock, vendors=["mlx5"]), clock)
    run(sampler, clock, 1.0)
    first = sampler.samples()
    run(sampler, clock, 1.0)
    assert sampler.samples().series is first.series
    assert Renderer(CATALOG).render((first,), Format.OPENMETRICS).count(b"# TYPE") > 10


def test_the_limits_are_the_configured_ones() -> None:
    clock = Clock()
    kernel = simulate_script([ScriptedPort("mlx5", pausing(RECEIVE, 1.0))], clock=clock)
    for limits, storms in ((StormLimits(detect=0.8), 1), (StormLimits(detect=2.0), 0)):
        clock.now = kernel.world.start
        fresh = simulate_script([ScriptedPort("mlx5", pausing(RECEIVE, 1.0))], clock=clock)
        sampler = Sampler(fresh, clock, clock, FIXED, limits)
        sampler.follow(devices(fresh))
        run(sampler, clock, 10.0)
        assert total(sampler, "roce_pfc_storms_total") == storms


def test_a_first_read_that_takes_long_does_not_slow_the_loop_down() -> None:
    """Seen on an emulated machine: the first read fills caches, and its 0.25 s delayed the next poll by 12 s."""
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["mlx5"])
    quick, slow = kernel.ethtool_statistics, [0.25]

    def first_slow(netdev: str) -> object:
        clock.now += slow.pop() if slow else 0.0
        return quick(netdev)

    kernel.ethtool_statistics = first_slow
    sampler = watching(kernel, clock)
    run(sampler, clock, 3.0)
    assert total(sampler, "roce_exporter_sampler_ticks_total") > 20


def test_an_internal_error_on_one_device_does_not_stop_polling_the_others() -> None:
    kernel = simulate("quiet", clock=time.monotonic, vendors=["mlx5", "mlx5"])
    sound = kernel.ethtool_statistics

    def faulty(netdev: str) -> object:
        if netdev == "eth0":
            raise ValueError("ours")
        return sound(netdev)

    kernel.ethtool_statistics = faulty
    sampler = Sampler(kernel, time.monotonic, time.time, Pace(mode="fixed", interval=0.05))
    sampler.follow(devices(kernel))
    sampler.start()
    try:
        wait_for(lambda: total(sampler, "roce_exporter_sampler_ticks_total", netdev="eth1") > 5)
        wait_for(lambda: total(sampler, "roce_exporter_sampler_errors_total", netdev="eth0") > 2)
    finally:
        sampler.close()
