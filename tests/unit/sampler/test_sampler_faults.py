"""The fast loop in its own thread after a fault: a read that hangs, a thread that dies."""

from __future__ import annotations

import _thread
import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from kernel import Faults
from test_sampler import devices, total
from waiting import Gate, until, wait_until
from worker_threads import WorkerThreads, die, refuse

from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.fastloop import sampler as loop
from roce_exporter.host.simulated.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = Pace(mode="fixed", interval=0.05)
ETH0 = ("ethtool_statistics", "eth0")


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch, worker_threads: WorkerThreads) -> Iterator[tuple[Sampler, Faults]]:
    """A running loop over two network devices."""
    monkeypatch.setattr(loop, "TIMEOUT", 0.05)
    kernel = simulate("quiet", clock=time.monotonic, vendors=["mlx5", "mlx5"])
    sampler = Sampler(kernel, time.monotonic, time.time, QUICK)
    sampler.follow(devices(kernel))
    yield sampler, Faults(kernel)
    sampler.close()


def stuck(sampler: Sampler, netdev: str) -> float:
    return total(sampler, "roce_exporter_sampler_stuck", netdev=netdev)


@pytest.mark.parametrize("error", [None, OSError(5, "Input/output error"), ValueError("an injected fault")])
def test_after_any_end_of_a_hang_the_device_is_polled_again(
    live: tuple[Sampler, Faults],
    error: Exception | None,
    caplog: pytest.LogCaptureFixture,
    worker_threads: WorkerThreads,
) -> None:
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
    wait_until(lambda: (sampler.supervise(), stuck(sampler, "eth0"))[1] == 1)
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


async def test_one_poll_of_all_leaves_out_a_device_that_hangs(live: tuple[Sampler, Faults]) -> None:
    sampler, faults = live
    gate = faults[ETH0] = Gate()
    await sampler.read_once()
    assert faults.calls.count(("ethtool_statistics", "eth1")) == faults.calls.count(ETH0) == 1
    await sampler.read_once()
    assert faults.calls.count(("ethtool_statistics", "eth1")) == 1, "it was polled before"
    gate.release()


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_loop_whose_thread_died_at_its_start_runs_in_another(
    live: tuple[Sampler, Faults],
    deaths: int,
    monkeypatch: pytest.MonkeyPatch,
    worker_threads: WorkerThreads,
    caplog: pytest.LogCaptureFixture,
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
    live: tuple[Sampler, Faults],
    shortage: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
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
        wait_until(lambda: (sampler.supervise(), stuck(sampler, "eth0"))[1] == 1)
        sampler.supervise()
        assert stuck(sampler, "eth1") == 1
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
    live: tuple[Sampler, Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler, faults = live
    monkeypatch.setattr(loop, "SUPERVISION", 0.001)
    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", refuse)
        running = asyncio.ensure_future(sampler.run())
        await until(lambda: stuck(sampler, "eth0") == stuck(sampler, "eth1") == 1)
    await until(lambda: ("ethtool_statistics", "eth1") in faults.calls and stuck(sampler, "eth0") == 0)
    running.cancel()
