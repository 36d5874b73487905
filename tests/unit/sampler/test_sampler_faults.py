"""The fast loop after a fault: a read that hangs, a device that is removed, an exception of the exporter itself."""

from __future__ import annotations

import _thread
import itertools
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from test_sampler import EPOCH, FIXED, Clock, devices, run, total, values, watching
from worker_threads import WorkerThreads, die, refuse

from roce_exporter.model import Reading
from roce_exporter.sampler import Pace, Sampler
from roce_exporter.sampler import sampler as loop
from roce_exporter.sampler.hot import LinkFiles
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from roce_exporter.simulation.kernel import SimulatedKernel

QUICK = Pace(mode="fixed", interval=0.05)


class Held:
    """Blocks the reads of eth0 until the test releases them."""

    def __init__(self, kernel: SimulatedKernel, error: Exception | None = None) -> None:
        self.begun, self.gate, self.reads = threading.Event(), threading.Event(), 0
        self._answer, self._error = kernel.ethtool_statistics, error
        kernel.ethtool_statistics = self  # type: ignore[method-assign]

    def __call__(self, netdev: str) -> object:
        if netdev == "eth0":
            self.reads += 1
            if not self.gate.is_set():
                self.begun.set()
                assert self.gate.wait(60)
                if self._error is not None:
                    raise self._error
        return self._answer(netdev)


class Opened:
    """Counts opened and closed files of the link."""

    def __init__(self, kernel: SimulatedKernel) -> None:
        self.opened = self.closed = 0
        answer = kernel.open_files

        def open_files(paths: list[str], size: int = 64) -> object:
            files = answer(paths, size)
            self.opened += 1
            files.close = self._close
            return files

        kernel.open_files = open_files  # type: ignore[method-assign]

    def _close(self) -> None:
        self.closed += 1


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.005)


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch, worker_threads: WorkerThreads) -> Iterator[Sampler]:
    """A running loop over two network devices."""
    monkeypatch.setattr(loop, "PATIENCE", 0.05)
    kernel = simulate("quiet", clock=time.monotonic, vendors=["mlx5", "mlx5"])
    sampler = Sampler(kernel, time.monotonic, time.time, QUICK)
    sampler.kernel_of_test = kernel  # type: ignore[attr-defined]
    sampler.follow(devices(kernel))
    yield sampler
    sampler.close()


@pytest.mark.parametrize("error", [None, OSError(5, "Input/output error"), ValueError("an injected fault")])
def test_after_any_end_of_a_hang_the_device_is_polled_again(
    live: Sampler,
    error: Exception | None,
    caplog: pytest.LogCaptureFixture,
    worker_threads: WorkerThreads,
) -> None:
    caplog.set_level("CRITICAL")
    held = Held(live.kernel_of_test, error)  # type: ignore[attr-defined]
    live.start()
    assert held.begun.wait(60)
    until(lambda: (live.supervise(), total(live, "roce_exporter_sampler_stuck", netdev="eth0"))[1] == 1)
    assert total(live, "roce_exporter_sampler_stuck", netdev="eth1") == 0
    other = total(live, "roce_exporter_sampler_ticks_total", netdev="eth1")
    until(lambda: total(live, "roce_exporter_sampler_ticks_total", netdev="eth1") > other + 3)
    held.gate.set()
    until(lambda: total(live, "roce_exporter_sampler_stuck", netdev="eth0") == 0)
    reads = held.reads
    until(lambda: held.reads > reads + 3)
    assert not live._in_flight or len(live._in_flight.since()) == 1
    worker_threads.wait_until(1)


def test_one_abandoned_read_starts_one_thread(live: Sampler, worker_threads: WorkerThreads) -> None:
    held = Held(live.kernel_of_test)  # type: ignore[attr-defined]
    live.start()
    assert held.begun.wait(60)
    until(lambda: (live.supervise(), total(live, "roce_exporter_sampler_stuck", netdev="eth0"))[1] == 1)
    for _ in range(10):
        live.supervise()
    assert len(worker_threads.running()) == 2
    held.gate.set()


def test_a_device_removed_during_a_read_is_closed_by_that_read(live: Sampler) -> None:
    kernel = live.kernel_of_test  # type: ignore[attr-defined]
    opened, held = Opened(kernel), Held(kernel)
    reader = threading.Thread(target=live.tick)
    reader.start()
    assert held.begun.wait(60)
    live.follow([])
    before = opened.closed
    held.gate.set()
    reader.join(60)
    assert opened.opened > 0, "the read went on and opened the files of the link"
    assert opened.closed == opened.opened
    assert opened.closed > before
    assert live._targets == {}


def test_a_device_removed_between_two_reads_is_closed_at_once() -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["mlx5", "mlx5"])
    opened = Opened(kernel)
    sampler = watching(kernel, clock)
    run(sampler, clock, 1.0)
    assert (opened.opened, opened.closed) == (4, 0)
    sampler.follow(devices(kernel)[1:])
    assert opened.closed == 2
    sampler.close()
    assert opened.closed == 4


def test_a_device_added_again_is_read_after_its_stuck_read_returns(live: Sampler) -> None:
    kernel = live.kernel_of_test  # type: ignore[attr-defined]
    held = Held(kernel)
    live.start()
    assert held.begun.wait(60)
    live.follow(devices(kernel)[1:])
    live.follow(devices(kernel))
    until(lambda: (live.supervise(), total(live, "roce_exporter_sampler_stuck", netdev="eth0"))[1] == 1)
    assert held.reads == 1, "at most one read in flight"
    held.gate.set()
    until(lambda: held.reads > 3)
    assert total(live, "roce_exporter_sampler_stuck") == 0


def test_a_device_with_an_old_read_in_flight_is_retried_only_when_due() -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["mlx5"])
    sampler = watching(kernel, clock)
    (target,) = sampler._targets.values()
    before = sampler._in_flight.begin(target.key)
    assert before
    due = sampler.tick()
    assert due is not None
    assert due > clock.now
    sampler._in_flight.end(before)
    run(sampler, clock, 5.0)
    assert total(sampler, "roce_exporter_sampler_ticks_total") > 3


def test_a_storm_ends_when_its_device_is_removed() -> None:
    clock = Clock()
    kernel = simulate("pfc-storm", clock=clock, vendors=["mlx5"])
    sampler = watching(kernel, clock)
    while not total(sampler, "roce_pfc_storm_active"):
        run(sampler, clock, 0.1)
    sampler.follow([])
    assert [event["reason"] for event in sampler.events()][:1] == ["device_gone"]
    assert sampler.events()[0]["end"] is not None


def test_while_dcb_cannot_be_read_the_same_priorities_are_watched() -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["bnxt"])
    (found,) = devices(kernel)
    dcb = Reading("dcb", found.device.name, 1, ("pfc_enabled_3", "pfc_enabled_4"), (1, 0), (), "eth0")
    sampler = Sampler(kernel, clock, clock, FIXED)
    sampler.follow([replace(found, readings=(dcb,))])
    run(sampler, clock, 3.0)
    watched = set(values(sampler, "roce_pfc_storm_active"))
    assert {labels[-2] for labels in watched} == {"3"}
    sampler.follow([found])
    run(sampler, clock, 3.0)
    assert set(values(sampler, "roce_pfc_storm_active")) == watched


def test_an_error_in_evaluation_costs_one_device_and_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["mlx5", "mlx5"])
    sampler = watching(kernel, clock)
    run(sampler, clock, 1.0)
    target = sampler._targets["mlx5_0", "eth0"]
    monkeypatch.setattr(target, "judge", lambda seen: int("an injected fault"))
    ticks = total(sampler, "roce_exporter_sampler_ticks_total", netdev="eth1")
    run(sampler, clock, 1.0)
    assert total(sampler, "roce_exporter_sampler_errors_total", netdev="eth0") > 3
    assert total(sampler, "roce_exporter_sampler_errors_total", netdev="eth1") == 0
    assert total(sampler, "roce_exporter_sampler_ticks_total", netdev="eth1") > ticks + 3
    assert {labels[-1] for labels in values(sampler, "roce_pfc_storm_unknown", netdev="eth0")} == {"fault"}
    assert "could not be judged" in caplog.text
    monkeypatch.undo()
    run(sampler, clock, 3.0)
    assert values(sampler, "roce_pfc_storm_unknown") == {}, "and is over when the fault is"


def test_a_link_state_that_is_not_text_counts_as_up() -> None:
    class Odd:
        def read(self, skip: object = ()) -> list[bytes]:
            return [b"\xff\xfe", b"\xff"]

        def close(self) -> None:
            pass

    kernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5"])
    kernel.open_files = lambda paths, size=64: Odd()  # type: ignore[method-assign]
    files = LinkFiles(kernel, "eth0")
    files._rarely.read = lambda skip=(): [b"\xff"]  # type: ignore[method-assign]
    assert files.read(0.0) == (True, 0, None)


def test_the_start_of_the_last_storm_does_not_move_with_the_wall_clock() -> None:
    clock, drift = Clock(), itertools.count()
    kernel = simulate("pfc-storm", clock=clock, vendors=["mlx5"])
    sampler = Sampler(kernel, clock, lambda: clock.now + EPOCH + next(drift), FIXED)
    sampler.follow(devices(kernel))
    run(sampler, clock, 120.0)
    name = "roce_pfc_storm_last_start_timestamp_seconds"
    starts = {labels: value for labels, value in values(sampler, name).items() if value is not None}
    assert starts
    assert len(sampler.events()) >= 1
    for _ in range(5):
        assert {
            labels: value for labels, value in values(sampler, name).items() if value is not None
        } == starts


def test_a_failed_loop_is_reported_to_its_supervisor(
    live: Sampler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")
    monkeypatch.setattr(live, "_claim", lambda: int("an injected fault"))
    live.start()
    assert live._worker is not None
    until(lambda: live._worker is not None and live._worker.error is not None)
    with pytest.raises(RuntimeError, match="the fast loop has failed"):
        live.supervise()


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_loop_whose_thread_died_at_its_start_runs_in_another(
    live: Sampler,
    deaths: int,
    monkeypatch: pytest.MonkeyPatch,
    worker_threads: WorkerThreads,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", die(deaths))
    live.start()
    for _ in range(deaths):
        worker_threads.wait_until(0)
        live.supervise()
    assert (
        caplog.messages == ["the thread of the fast loop has died, out of memory?; starting another"] * deaths
    )
    until(lambda: total(live, "roce_exporter_sampler_ticks_total") > 2)


def test_supervision_fails_without_a_replacement_thread(
    live: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(live.kernel_of_test)  # type: ignore[attr-defined]
    live.start()
    assert held.begun.wait(60)
    time.sleep(0.06)
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        live.supervise()
    held.gate.set()


def test_closed_it_ends_its_thread(live: Sampler, worker_threads: WorkerThreads) -> None:
    live.start()
    until(lambda: total(live, "roce_exporter_sampler_ticks_total") > 2)
    live.close()
    worker_threads.wait_until(0)
