"""Collections shared by all kinds of callers, the slow chain, and devices that are replaced during a read."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import pytest
from descriptors import open_descriptors
from host_tree import HostTree

from roce_exporter.collect import Collector, Settings
from roce_exporter.collect.device_work import DeviceWork
from roce_exporter.collect.reads import attempt
from roce_exporter.collect.workers import InFlight
from roce_exporter.exporter import Exporter
from roce_exporter.inventory import list_devices
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from roce_exporter.exporter import Observation
    from roce_exporter.model import Snapshot, SourceState

REFRESH = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Gate:
    """A call that blocks until the test releases it, and that signals its start."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self._open = threading.Event()

    def hold(self) -> None:
        self.begun.set()
        assert self._open.wait(60)

    def release(self) -> None:
        self._open.set()


class Host:
    """A simulated host with two NICs, a clock that the test sets, and a hook before each kernel call."""

    def __init__(self, settings: Settings = Settings(timeout=0.3, patience=0.02, refresh=REFRESH)) -> None:  # noqa: B008 - frozen
        self.clock = Clock()
        self.kernel = simulate("quiet", clock=self.clock, vendors=["mlx5", "mlx5"])
        self.calls: list[tuple[str, str]] = []
        self.before: dict[tuple[str, str], Callable[[], object]] = {}
        for name in ("transceiver", "ethtool_settings", "ethtool_pause"):
            self._watch(name)
        self.collector = Collector(self.kernel, settings, self.clock)
        self.exporter = Exporter(self.collector)

    def _watch(self, name: str) -> None:
        answer = getattr(self.kernel, name)

        def watched(netdev: str) -> object:
            self.calls.append((name, netdev))
            self.before.get((name, netdev), lambda: None)()
            return answer(netdev)

        setattr(self.kernel, name, watched)

    async def background(self) -> None:
        """Wait until the slow chain has nothing in flight any more."""
        await until(lambda: self.collector._slow._batch is None or self.collector._slow._batch.is_over)

    async def overdue(self) -> None:
        """Let a read of the slow chain exceed its deadline, and a pass detect that."""
        self.clock.now += 1.0
        await self.collector.collect()


def state(snapshot: Snapshot, source: str, netdev: str = "eth0") -> SourceState | None:
    found = [one for one in snapshot.states if (one.source, one.netdev) == (source, netdev)]
    return found[0] if found else None


def raw(snapshot: Snapshot, source: str, netdev: str = "eth0") -> dict[str, int | None]:
    return {
        name: value
        for found in snapshot.devices
        for reading in found.readings
        if (reading.source, reading.netdev) == (source, netdev)
        for name, value in zip(reading.names, reading.values, strict=True)
    }


def series(observation: Observation) -> set[tuple[str, ...]]:
    return {
        (one.row.name, *one.labels)
        for part in observation.samples
        for one, value in zip(part.series, part.values, strict=True)
        if value is not None
    }


# Clients


async def test_a_hurried_client_gets_the_finished_part_and_does_not_affect_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = Host(Settings(timeout=60.0, patience=0.01, refresh=REFRESH))
    whole = series(await host.exporter.observe())
    gate = Gate()
    host.before["ethtool_pause", "eth1"] = gate.hold
    patient = asyncio.ensure_future(host.exporter.observe(59.0))
    await asyncio.to_thread(gate.begun.wait, 60)
    host.clock.now += 1.0  # another thread then runs the tasks behind the blocked read
    await until(lambda: host.collector._batch is not None and host.collector._batch.unfinished == 1)
    hurried = await host.exporter.observe(0.001)
    assert hurried.snapshot.unfinished == 1
    lost = {one for one in whole - series(hurried) if not one[0].startswith("roce_exporter_")}
    assert lost
    assert {one[1] for one in lost} == {"mlx5_1"}, "the other device was finished"
    assert ("roce_exporter_unfinished_sources",) in series(hurried)
    assert [one for one in hurried.snapshot.states if one.up is False] == []
    gate.release()
    assert series(await patient) == whole
    assert sum(one.errors_total for one in (await patient).snapshot.states) == 0
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_partial_observation_changes_no_series_and_no_plan() -> None:
    host = Host(Settings(timeout=60.0, patience=0.01, refresh=REFRESH))
    await host.exporter.observe()
    plans = dict(host.exporter.normaliser.plans)
    gate = Gate()
    host.before["ethtool_pause", "eth0"] = gate.hold
    host.before["ethtool_pause", "eth1"] = gate.hold
    hurried = await host.exporter.observe(0.05)
    assert hurried.snapshot.unfinished
    assert all(host.exporter.normaliser.plans[name] is plan for name, plan in plans.items())
    gate.release()
    assert not (await host.exporter.observe()).snapshot.unfinished


async def test_before_the_first_collection_a_hurried_client_gets_self_metrics_only() -> None:
    host = Host(Settings(timeout=60.0, patience=0.01, refresh=REFRESH))
    gate = Gate()
    list_entries = host.kernel.entries

    def held(path: str) -> tuple[str, ...]:
        gate.hold()
        return list_entries(path)

    host.kernel.entries = held  # type: ignore[method-assign]
    hurried = await host.exporter.observe(0.01)
    assert hurried.snapshot.unfinished
    assert hurried.snapshot.devices == ()
    gate.release()
    assert len((await host.exporter.observe()).snapshot.devices) == 2


async def test_a_caller_with_time_for_the_deadline_waits_for_the_end() -> None:
    """Otherwise the deadline and the caller's own would race."""
    host = Host(Settings(timeout=0.1, patience=0.01, refresh=REFRESH))
    await host.collector.collect()
    gate = Gate()
    host.before["ethtool_pause", "eth0"] = gate.hold
    waiting = asyncio.ensure_future(host.collector.collect(0.1))
    await asyncio.to_thread(gate.begun.wait, 60)
    host.clock.now += 0.2
    snapshot = await waiting
    assert not snapshot.unfinished
    pause = state(snapshot, "pause")
    assert pause is not None
    assert (pause.up, pause.error) == (False, "no answer")
    gate.release()


async def test_a_collection_that_fails_after_its_callers_have_gone_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(Settings(timeout=60.0, patience=0.01, refresh=REFRESH))
    await host.collector.collect()
    gate = Gate()
    host.before["ethtool_pause", "eth0"] = gate.hold
    await host.collector.collect(0.02)
    monkeypatch.setattr(host.collector, "_settle", lambda outcomes: int("an injected fault"))
    gate.release()
    assert host.collector._running is not None
    with pytest.raises(ValueError, match="an injected fault"):
        await host.collector._running
    assert "a collection failed" in caplog.text


# The slow chain


async def test_a_slow_source_is_read_once_a_minute_and_waited_for_only_when_it_has_no_value() -> None:
    host = Host()
    first = await host.collector.collect()
    assert raw(first, "settings")
    assert host.calls.count(("ethtool_settings", "eth0")) == 1
    host.clock.now += REFRESH - 1
    await host.collector.collect()
    await host.background()
    assert host.calls.count(("ethtool_settings", "eth0")) == 1
    gate = Gate()
    host.before["ethtool_settings", "eth0"] = gate.hold
    host.clock.now += 1
    second = await asyncio.wait_for(host.collector.collect(), 60)
    assert raw(second, "settings") == raw(first, "settings"), "the last value during the next read"
    assert await asyncio.to_thread(gate.begun.wait, 60)
    gate.release()
    await host.background()
    assert host.calls.count(("ethtool_settings", "eth0")) == 2


async def test_an_old_slow_value_is_read_again_before_it_is_shown() -> None:
    host = Host()
    await host.collector.collect()
    host.clock.now += 2 * REFRESH
    host.calls.clear()
    await host.collector.collect()
    assert host.calls.count(("ethtool_settings", "eth0")) == 1


async def test_no_slow_value_outlives_the_failure_of_its_source() -> None:
    host = Host()
    await host.collector.collect()
    for error in (OSError(5, "Input/output error"), ValueError("an injected fault")):
        host.before["ethtool_settings", "eth0"] = raising(error)
        host.clock.now += REFRESH
        await host.collector.collect()
        await host.background()
        snapshot = await host.collector.collect()
        assert raw(snapshot, "settings") == {}
        assert raw(snapshot, "settings", "eth1") != {}
        broken = state(snapshot, "settings")
        assert broken is not None
        assert broken.up is False
        assert str(error) in broken.error or repr(error) in broken.error
    assert broken.errors_total == 2, "one per read, not one per scrape"
    host.before.clear()
    host.clock.now += REFRESH
    await host.collector.collect()
    await host.background()
    snapshot = await host.collector.collect()
    assert raw(snapshot, "settings")
    sound = state(snapshot, "settings")
    assert sound is not None
    assert sound.up is True


async def test_a_slow_read_that_hangs_is_down_after_the_deadline_and_holds_up_no_other_device() -> None:
    host = Host()
    await host.collector.collect()
    gate = Gate()
    host.before["ethtool_settings", "eth0"] = gate.hold
    host.clock.now += REFRESH
    await host.collector.collect()
    assert await asyncio.to_thread(gate.begun.wait, 60)
    snapshot = await host.collector.collect()
    assert raw(snapshot, "settings") != {}, "it still has time"
    for _ in range(3):
        await host.overdue()
    snapshot = await host.collector.collect()
    hung = state(snapshot, "settings")
    assert hung is not None
    assert (hung.up, hung.error, raw(snapshot, "settings")) == (False, "no answer", {})
    host.calls.clear()
    for _ in range(4):
        host.clock.now += REFRESH
        await host.collector.collect()
        await host.background()
    assert ("ethtool_settings", "eth0") not in host.calls, "one read in flight"
    assert ("ethtool_settings", "eth1") in host.calls
    assert ("transceiver", "eth1") in host.calls
    gate.release()
    await until(lambda: not host.collector._in_flight)
    host.clock.now += REFRESH
    await host.collector.collect()
    await host.background()
    snapshot = await host.collector.collect()
    sound = state(snapshot, "settings")
    assert sound is not None
    assert (sound.up, sound.error) == (True, "")
    assert raw(snapshot, "settings") != {}


async def test_the_age_of_the_configuration_is_that_of_its_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "roce_exporter.sources.configuration.read_settings", lambda kernel, device: {(1, ""): {"tcp_ecn": 1}}
    )
    host = Host()
    ages = []
    for _ in range(4):
        ages.append(raw(await host.collector.collect(), "configuration", "").get("age"))
        await host.background()
        host.clock.now += 25
    assert ages == [0, 25, 50, 75]
    assert raw(await host.collector.collect(), "configuration", "")["age"] == 25


# Devices that are replaced


async def test_a_device_replaced_during_a_stuck_read_is_read_and_the_old_one_forgotten() -> None:
    """Its reads have their own keys: the stuck read belongs to the removed device."""
    host = Host(Settings(timeout=0.1, patience=0.01, refresh=REFRESH))
    await host.collector.collect()
    gate = Gate()
    host.before["ethtool_pause", "eth0"] = gate.hold
    stuck = asyncio.ensure_future(host.collector.collect())
    await asyncio.to_thread(gate.begun.wait, 60)
    host.clock.now += 0.2
    down = state(await stuck, "pause")
    assert down is not None
    assert down.up is False
    host.before.clear()
    identity = host.kernel.identity
    host.kernel.identity = lambda path: identity(path) + 1  # type: ignore[method-assign]
    snapshot = await host.collector.collect()
    up = state(snapshot, "pause")
    assert up is not None
    assert (up.up, up.errors_total) == (True, 0)
    gate.release()
    await until(lambda: not host.collector._in_flight)
    again = state(await host.collector.collect(), "pause")
    assert again is not None
    assert again.up is True


async def test_devices_that_come_and_go_are_noticed_without_a_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roce_exporter.exporter.FOLLOW_SECONDS", 0.001)
    host = Host()
    await host.exporter.observe()
    seen: list[int] = []
    observe = host.exporter.observe

    async def observed(wait: float | None = None) -> Observation:
        observation = await observe(wait)
        seen.append(len(observation.snapshot.devices))
        return observation

    monkeypatch.setattr(host.exporter, "observe", observed)
    following = asyncio.ensure_future(host.exporter.follow())
    await asyncio.sleep(0.05)
    assert seen == [], "nothing has changed, so nothing is read"
    entries = host.kernel.entries
    host.kernel.entries = lambda path: tuple(name for name in entries(path) if name != "mlx5_1")  # type: ignore[method-assign]
    await until(lambda: bool(seen))
    assert seen == [1]
    host.clock.now += REFRESH
    await until(lambda: len(seen) == 2)
    following.cancel()


async def test_a_hung_or_failed_list_is_not_a_change() -> None:
    host = Host(Settings(timeout=0.01, refresh=REFRESH))
    await host.collector.collect()
    gate = Gate()
    entries = host.kernel.entries
    host.kernel.entries = lambda path: (gate.hold(), entries(path))[1]  # type: ignore[method-assign]
    assert not await host.collector.is_outdated()
    threads = set(threading.enumerate())
    assert not await host.collector.is_outdated()
    assert not set(threading.enumerate()) - threads, "no second read of the list"
    gate.release()
    host.kernel.entries = raising(OSError(5, "Input/output error"))  # type: ignore[method-assign]
    await until(lambda: not host.collector._in_flight)
    assert not await host.collector.is_outdated()


async def test_a_first_list_that_fails_is_an_error_of_the_host_and_no_device() -> None:
    host = Host()
    entries = host.kernel.entries
    host.kernel.entries = raising(OSError(5, "Input/output error"))  # type: ignore[method-assign]
    snapshot = await host.collector.collect()
    assert snapshot.devices == ()
    assert [(one.source, one.device, one.up) for one in snapshot.states] == [("inventory", "", False)]
    host.kernel.entries = entries  # type: ignore[method-assign]
    assert len((await host.collector.collect()).devices) == 2


async def test_a_host_that_was_never_collected_is_outdated_even_if_it_has_no_device() -> None:
    host = Host()
    host.kernel.entries = lambda path: ()  # type: ignore[method-assign]
    assert await host.collector.is_outdated()
    await host.collector.collect()
    assert not await host.collector.is_outdated()


async def test_each_network_device_of_a_lag_has_an_account_of_its_own() -> None:
    clock = Clock()
    kernel = simulate("quiet", clock=clock, vendors=["mlx5-lag"])
    pause = kernel.ethtool_pause
    kernel.ethtool_pause = lambda netdev: raising(OSError(5, "EIO"))() if netdev == "eth0" else pause(netdev)  # type: ignore[method-assign]
    snapshot = await Collector(kernel, Settings(), clock).collect()
    states = {one.netdev: one.up for one in snapshot.states if one.source == "pause"}
    assert states == {"eth0": False, "eth1": True}


def test_files_of_an_unused_first_description_are_closed(tmp_path: Path) -> None:
    """Its device was removed meanwhile, or its collection failed."""
    HostTree(tmp_path, devices=1)
    kernel, clock = LiveKernel(str(tmp_path), netlink=False), Clock()
    (listed,) = list_devices(kernel)
    work = DeviceWork(kernel, listed, (), InFlight(clock), clock)
    before = len(open_descriptors())
    (describe,) = work.tasks(REFRESH)
    assert work.slow_tasks(REFRESH) == (), "not in the slow chain: a collection waits for an unknown device"
    first = describe.run().more
    for task in first:
        attempt(clock, task)
    assert len(open_descriptors()) > before
    second = describe.run().more
    assert len(open_descriptors()) == before, "another description replaces it"
    for task in second:
        attempt(clock, task)
    work.retire()
    assert len(open_descriptors()) == before
    late = describe.run().more
    assert {attempt(clock, task).result.up for task in (*second, *late)} == {None}, (
        "nothing is opened any more"
    )
    assert len(open_descriptors()) == before


async def test_without_a_thread_a_collection_fails_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Host()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", raising(RuntimeError("can't start new thread")))
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await host.collector.collect()
    assert len((await host.collector.collect()).devices) == 2


async def test_a_closed_collector_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    host = Host()
    await host.collector.collect()
    host.clock.now += REFRESH
    await host.collector.collect()
    await host.background()
    made = set(threading.enumerate()) - before
    assert made
    host.collector.close()
    for thread in made:
        await asyncio.to_thread(thread.join, 20)
        assert not thread.is_alive()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - a worker thread has no event to wait for
        await asyncio.sleep(0.001)


def raising(error: Exception) -> Callable[..., object]:
    def fail(*_: object) -> object:
        raise error

    return fail
