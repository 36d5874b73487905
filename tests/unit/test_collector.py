"""Collections of a simulated host: what a hurried client gets, reads that hang or fail, and devices that are replaced."""

import _thread
import asyncio
import logging
from dataclasses import replace

import pytest
from clock import Clock
from descriptors import open_below
from host_tree import HostTree
from kernel import Faults
from waiting import Gate, until
from worker_threads import refuse

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.collect.device_work import DeviceWork
from roce_exporter.collect.reads import attempt
from roce_exporter.collect.workers import InFlight
from roce_exporter.exporter import Exporter, Observation
from roce_exporter.host.inventory import list_devices
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.model import Snapshot, SourceState

REFRESH = 60.0
EIO = OSError(5, "Input/output error")


class Host:
    """A simulated host with two NICs, a clock that the test sets, and faults in its kernel."""

    def __init__(self, **settings: float) -> None:
        self.clock = Clock()
        self.kernel = simulate("quiet", clock=self.clock, vendors=["mlx5", "mlx5"])
        self.faults = Faults(self.kernel)
        limits = {"timeout": 60.0, "overtake": 0.01, "refresh": REFRESH} | settings
        self.collector = Collector(self.kernel, Settings(**limits), self.clock)  # type: ignore[arg-type]
        self.exporter = Exporter(self.collector)

    async def later(self, seconds: float) -> Snapshot:
        """A collection after this time, when what the slow chain read for it is there."""
        self.clock.now += seconds
        await self.collector.collect()
        await until(lambda: self.collector._slow._batch is None or self.collector._slow._batch.is_over)
        return await self.collector.collect()

    def pause(self, gate: Gate, *netdevs: str) -> None:
        for netdev in netdevs:
            self.faults["ethtool_pause", netdev] = gate


def state(snapshot: Snapshot, source: str, netdev: str = "eth0") -> SourceState:
    return next(one for one in snapshot.states if (one.source, one.netdev) == (source, netdev))


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


async def test_a_hurried_client_gets_the_finished_part_and_does_not_affect_the_others(caplog) -> None:
    host, gate = Host(), Gate()
    whole = series(await host.exporter.observe())
    host.pause(gate, "eth1")
    patient = asyncio.ensure_future(host.exporter.observe(59.0))
    await gate.entered()
    host.clock.now += 1.0  # another thread then runs the tasks behind the blocked read
    await until(lambda: host.collector._batch is not None and host.collector._batch.unfinished == 1)
    plans = dict(host.exporter.normaliser.plans)
    hurried = await host.exporter.observe(0.001)
    assert (hurried.snapshot.unfinished, hurried.snapshot.seconds) == (1, 1.0)
    lost = {one for one in whole - series(hurried) if not one[0].startswith("roce_exporter_")}
    assert {one[1] for one in lost} == {"mlx5_1"}, "the other device was finished"
    assert ("roce_exporter_unfinished_sources",) in series(hurried)
    assert [one for one in hurried.snapshot.states if one.up is False] == []
    assert all(host.exporter.normaliser.plans[name] is plan for name, plan in plans.items())
    gate.release()
    assert series(await patient) == whole
    assert sum(one.errors_total for one in (await patient).snapshot.states) == 0
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_clients_whose_wait_is_too_short_for_a_collection_do_not_begin_more_of_them() -> None:
    host = Host()
    host.collector._settings = replace(host.collector._settings, least=0.5)
    begun = set()
    for _ in range(20):
        await host.collector.collect(0.0)
        begun.add(host.collector._begun)
        await host.collector.collect(59.0)
        host.clock.now += 0.1
    assert len(begun) == 4


async def test_no_slow_value_outlives_the_failure_of_its_source() -> None:
    host = Host()
    await host.collector.collect()
    for error in (EIO, ValueError("an injected fault")):
        host.faults["ethtool_settings", "eth0"] = error
        snapshot = await host.later(REFRESH)
        assert raw(snapshot, "settings") == {}
        assert raw(snapshot, "settings", "eth1") != {}
        broken = state(snapshot, "settings")
        assert broken.up is False
        assert str(error) in broken.error or repr(error) in broken.error
    assert broken.errors_total == 2, "one per read, not one per scrape"
    host.faults.clear()
    snapshot = await host.later(REFRESH)
    assert raw(snapshot, "settings")
    assert state(snapshot, "settings").up is True


async def test_a_slow_read_that_hangs_is_down_after_the_deadline_and_holds_up_no_other_device() -> None:
    host, gate = Host(timeout=0.3), Gate()
    await host.collector.collect()
    host.faults["ethtool_settings", "eth0"] = gate
    host.clock.now += REFRESH
    await host.collector.collect()
    await gate.entered()
    assert raw(await host.collector.collect(), "settings") != {}, "it still has time"
    host.clock.now += 1.0
    await host.collector.collect()
    snapshot = await host.collector.collect()
    hung = state(snapshot, "settings")
    assert (hung.up, hung.error, raw(snapshot, "settings")) == (False, "no answer", {})
    await until(lambda: len(host.collector._in_flight.since()) == 1)
    host.faults.calls.clear()
    for _ in range(4):
        await host.later(REFRESH)
    assert ("ethtool_settings", "eth0") not in host.faults.calls, "one read in flight"
    assert {("ethtool_settings", "eth1"), ("transceiver", "eth1")} <= set(host.faults.calls)
    gate.release()
    await until(lambda: not host.collector._in_flight)
    snapshot = await host.later(REFRESH)
    sound = state(snapshot, "settings")
    assert (sound.up, sound.error) == (True, "")
    assert raw(snapshot, "settings") != {}


async def test_a_device_replaced_during_a_stuck_read_is_read_and_the_old_one_forgotten() -> None:
    """Its reads have their own keys: the stuck read belongs to the removed device."""
    host, gate = Host(timeout=0.1), Gate()
    await host.collector.collect()
    host.pause(gate, "eth0")
    stuck = asyncio.ensure_future(host.collector.collect())
    await gate.entered()
    host.clock.now += 1.0  # past its deadline
    assert state(await stuck, "pause").up is False
    host.faults.clear()
    identity = host.kernel.identity
    host.kernel.identity = lambda path: identity(path) + 1  # type: ignore[method-assign]
    replaced = state(await host.collector.collect(), "pause")
    assert (replaced.up, replaced.errors_total) == (True, 0)
    gate.release()
    await until(lambda: not host.collector._in_flight)
    assert state(await host.collector.collect(), "pause").up is True


async def test_network_devices_that_exchange_their_names_are_followed_in_the_same_collection(
    tmp_path,
) -> None:
    """All reads of a network device use its name; udev and `ip link set name` change it."""
    tree = HostTree(tmp_path, devices=0)
    for number in range(2):
        tree.add(f"mlx5_{number}", netdev=f"eth{number}", guid=number + 1)
    kernel = LiveKernel(str(tmp_path), netlink=False)
    kernel.ethtool_statistics = lambda netdev: (("of",), (int(netdev[-1]),))  # type: ignore[method-assign]
    clock = Clock()
    collector = Collector(kernel, Settings(), clock)

    async def read() -> dict[str, str]:
        found = await collector.collect()
        return {
            one.device.name: reading.netdev
            for one in found.devices
            for reading in one.readings
            if reading.names == ("of",)
        }

    assert [await read(), await read()] == [{"mlx5_0": "eth0", "mlx5_1": "eth1"}] * 2
    assert not await collector.is_outdated()
    folders = [tree.infiniband / f"mlx5_{number}/device/net" for number in range(2)]
    for number, folder in enumerate(folders):
        (folder / f"eth{number}").rename(folder / f"eth{1 - number}")
    assert await collector.is_outdated()
    assert [await read(), await read()] == [{"mlx5_0": "eth1", "mlx5_1": "eth0"}] * 2
    assert not await collector.is_outdated()
    collector.close()


async def test_devices_that_come_and_go_are_noticed_without_a_scrape(monkeypatch) -> None:
    monkeypatch.setattr("roce_exporter.exporter.FOLLOW_SECONDS", 0.001)
    host, seen, checks = Host(), list[int](), list[bool]()
    await host.exporter.observe()
    observe, is_outdated = host.exporter.observe, host.collector.is_outdated

    async def observed(wait: float | None = None) -> Observation:
        observation = await observe(wait)
        seen.append(len(observation.snapshot.devices))
        return observation

    async def checked() -> bool:
        checks.append(await is_outdated())
        return checks[-1]

    monkeypatch.setattr(host.exporter, "observe", observed)
    monkeypatch.setattr(host.collector, "is_outdated", checked)
    following = asyncio.ensure_future(host.exporter._follow_devices())
    await until(lambda: len(checks) > 3)
    assert (set(checks), seen) == ({False}, []), "nothing has changed, so nothing is read"
    entries = host.kernel.entries
    host.kernel.entries = lambda path: tuple(name for name in entries(path) if name != "mlx5_1")  # type: ignore[method-assign]
    await until(lambda: seen == [1])
    host.clock.now += REFRESH
    await until(lambda: len(seen) == 2)
    following.cancel()


def test_files_of_an_unused_first_description_are_closed(tmp_path) -> None:
    """Its device was removed meanwhile, or its collection failed."""
    HostTree(tmp_path, devices=1)
    kernel, clock = LiveKernel(str(tmp_path), netlink=False), Clock()
    (listed,) = list_devices(kernel)
    work = DeviceWork(kernel, listed, (), InFlight(clock), clock)
    before = len(open_below(tmp_path))
    (describe,) = work.tasks(REFRESH)
    assert work.slow_tasks(REFRESH) == (), "not in the slow chain: a collection waits for an unknown device"
    first = describe.run().more
    for task in first:
        attempt(clock, task)
    assert len(open_below(tmp_path)) > before
    second = describe.run().more
    assert len(open_below(tmp_path)) == before, "another description replaces it"
    for task in second:
        attempt(clock, task)
    work.retire()
    assert len(open_below(tmp_path)) == before
    late = describe.run().more
    assert {attempt(clock, task).result.up for task in (*second, *late)} == {None}
    assert len(open_below(tmp_path)) == before, "nothing is opened any more"


async def test_without_a_thread_a_collection_fails_and_the_next_one_works(monkeypatch) -> None:
    host = Host()
    with monkeypatch.context() as patched:
        patched.setattr(_thread, "start_new_thread", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await host.collector.collect()
    assert len((await host.collector.collect()).devices) == 2


async def test_threads_follow_reads_that_are_slow_in_every_pass() -> None:
    """A busy machine makes the reads of one pass look slow; a thread for it would cost more than it saves."""
    host, slow = Host(overtake=1000.0), 1.0

    def link(_: str) -> dict[str, int]:
        host.clock.now += slow
        return {"up": 1}

    host.faults["ethtool_link"] = link

    async def workers() -> int:
        await host.collector.collect()
        return len(host.collector._crew._workers)

    assert (await workers(), await workers()) == (1, 3), "from the second pass on: two devices and their list"
    slow = 0.0
    assert (await workers(), await workers()) == (3, 1)
    slow = 1.0
    assert [await workers() for _ in range(4)] == [1, 1, 1, 1]
    assert await workers() == 3
