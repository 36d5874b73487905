"""Messages of the kernel log are counted once, for the devices that they are about."""

import asyncio
import errno
import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from kernel import host
from waiting import HUNG_SECONDS, Gate, until

from roce_exporter.catalog.named import KERNEL_LOG_EVENTS, KERNEL_LOG_LOST, KERNEL_LOG_READABLE
from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.kmsg import LogHiddenError, LogPart
from roce_exporter.host_sources import HostSource, HostSources
from roce_exporter.host_sources.kernel_log import MOST_DEVICES, MOST_RECORDS, KernelLogFollower, LogDevices
from roce_exporter.model import Device, DeviceReadings, Netdev, Port, decode_record
from roce_exporter.normalise.log_lines import read_line
from roce_exporter.normalise.series import Series

FIRST, SECOND = "0000:3b:00.0", "0000:3b:00.1"
UNPLUGGED = "Port module event: module 0, Cable unplugged"


class Ring:
    """A kernel log in memory that overwrites its oldest records, with the positions of its readers."""

    def __init__(self, size: int = 10_000) -> None:
        self.size = size
        self.records: list[bytes] = []
        self.fails: OSError | None = None
        self.refuses: OSError | None = None
        self.opened: list[bool] = []
        self.closed = 0
        self.before_read: Callable[[], None] = lambda: None

    def write(self, text: str, priority: int = 6, tag: str = "") -> None:
        number = len(self.records)
        self.records.append(f"{priority},{number},{number},-;{text}\n{tag}".encode())

    @property
    def oldest(self) -> int:
        return max(0, len(self.records) - self.size)


class Reader:
    def __init__(self, ring: Ring, *, oldest: bool) -> None:
        self.ring = ring
        self.next = ring.oldest if oldest else len(ring.records)

    def read(self, most: int) -> LogPart:
        self.ring.before_read()
        if self.ring.fails:
            raise self.ring.fails
        overruns = int(self.next < self.ring.oldest)
        begin = max(self.next, self.ring.oldest)
        found = tuple(self.ring.records[begin : begin + most])
        self.next = begin + len(found)
        return LogPart(found, overruns)

    def close(self) -> None:
        self.ring.closed += 1


PORT = "sys/devices/pci0000:3a/0000:3a:00.0"
FILES = {f"{PORT}/uevent": "DRIVER=pcieport\nPCI_SLOT_NAME=0000:3a:00.0\n"}
for number, address in enumerate((FIRST, SECOND)):
    for device in (f"infiniband/mlx5_{number}", f"net/eth{number}"):
        FILES[f"sys/class/{device}/device"] = f"-> ../../../{PORT.removeprefix('sys/')}/{address}"
    FILES[f"{PORT}/{address}/vendor"] = "0x15b3\n"


def follow(ring: Ring, *devices: DeviceReadings, files: dict[str, str] = FILES) -> KernelLogFollower:
    """A follower of the log of a host with these devices below a PCIe port."""

    def open_log(*, oldest: bool) -> Reader:
        ring.opened.append(oldest)
        if ring.refuses:
            raise ring.refuses
        return Reader(ring, oldest=oldest)

    kernel: Any = host(files)
    kernel.open_kernel_log = open_log
    made = KernelLogFollower(kernel, timeout=HUNG_SECONDS)
    made.follow(devices)
    return made


def card(number: int, name: str = "", driver: str = "mlx5_core", **more: Any) -> DeviceReadings:
    port = Port(1, "Ethernet", (Netdev(f"eth{number}", "port"),))
    pci = {"pci": (FIRST, SECOND)[number], "function": "pf"} | more
    return DeviceReadings(Device(name or f"mlx5_{number}", driver, "mlx5", ports=(port,), **pci), ())


PAIR = (card(0), card(1))


@pytest.fixture
def ring() -> Ring:
    return Ring()


@pytest.fixture
def follower(ring) -> KernelLogFollower:
    return follow(ring, *PAIR)


async def counts(follower: KernelLogFollower) -> dict[tuple[str, ...], Any]:
    """The events that were counted so far."""
    found = await follower.read()
    return {one.labels: value for one, value in found.items() if one.row is KERNEL_LOG_EVENTS and value}


def lost(found: Any) -> Any:
    return found[Series(KERNEL_LOG_LOST, ())]


async def test_a_message_counts_for_the_device_that_it_names(ring, follower) -> None:
    assert await counts(follower) == {}
    ring.write(f"mlx5_core {FIRST}: {UNPLUGGED}")
    ring.write(f"mlx5_core {SECOND} eth1: Link down")
    tag = f" SUBSYSTEM=pci\n DEVICE=+pci:{SECOND}\n"
    ring.write("mlx5_core mlx5_core.sf.9: TX timeout detected", tag=tag)
    ring.write("NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 1 timed out")
    expected = {
        ("mlx5_0", "module_unplugged"): 1,
        ("mlx5_1", "link_down"): 1,
        ("mlx5_1", "tx_timeout"): 1,
        ("mlx5_0", "tx_timeout"): 1,
    }
    assert await counts(follower) == expected
    assert await counts(follower) == expected, "each message counts once"
    ring.write(f"mlx5_core {FIRST}: {UNPLUGGED}")
    assert (await counts(follower))["mlx5_0", "module_unplugged"] == 2


async def test_old_messages_other_devices_and_what_processes_write_are_not_counted(ring, follower) -> None:
    ring.write(f"mlx5_core {FIRST}: {UNPLUGGED}")
    assert await counts(follower) == {}
    ring.write(f"mlx5_core 0000:99:00.0: {UNPLUGGED}")
    ring.write("mlx5_core 0000:99:00.0 eth9: Link down")
    ring.write(f"ahci {FIRST}: Link down")
    ring.write("eth0: a new sentence about it")
    ring.write(f"mlx5_core {FIRST}: {UNPLUGGED}", priority=8 + 6)
    assert await counts(follower) == {}
    assert lost(await follower.read()) == 0
    assert ring.opened == [False]


async def test_a_message_about_the_port_counts_for_each_card_in_it_but_not_for_vfs(ring) -> None:
    follower = follow(ring, card(0), card(1, function="vf"))
    await follower.read()
    ring.write("pcieport 0000:3a:00.0: pciehp: Slot(3): Card not present")
    assert await counts(follower) == {("mlx5_0", "device_removed"): 1}
    follower.follow(PAIR)
    await follower.read()
    ring.write("pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01")
    assert (await counts(follower))["mlx5_1", "pcie_contained"] == 1


async def test_a_message_with_the_number_of_a_device_is_about_that_device(ring) -> None:
    follower = follow(ring, *PAIR)
    await follower.read()
    ring.write("mlx5_mbx_cmd(1) mailbox timeout: fw not responding", priority=3)
    assert await counts(follower) == {("mlx5_1", "command_timeout"): 1}


async def test_a_network_device_of_another_function_has_a_driver_of_its_own(ring) -> None:
    """vmw_pvrdma beside vmxnet3: messages of both are the device's, those of a third driver are not."""
    files = FILES | {f"{PORT}/{SECOND}/driver": "-> ../../../../bus/pci/drivers/vmxnet3"}
    files["sys/class/net/eth0/device"] = f"-> ../../../{PORT.removeprefix('sys/')}/{SECOND}"
    follower = follow(ring, card(0, "vmw_pvrdma0", "vmw_pvrdma"), files=files)
    await follower.read()
    ring.write("NETDEV WATCHDOG: eth0 (vmxnet3): transmit queue 0 timed out", 4)
    ring.write(f"vmxnet3 {SECOND} eth0: tx hang", 3)
    ring.write("NETDEV WATCHDOG: eth0 (veth): transmit queue 0 timed out", 4)
    ring.write("nvme nvme0: I/O 2 timed out", 3)
    ring.write(f"vmxnet3 {SECOND} eth0: the queue hangs", 3)
    assert await counts(follower) == {("vmw_pvrdma0", "tx_timeout"): 2, ("vmw_pvrdma0", "driver_error"): 1}


async def test_an_error_that_names_only_the_module_is_of_its_device(ring) -> None:
    """Of several devices of one driver it is not known whose it is: each has an error, and none has what it means."""
    alone = follow(ring, DeviceReadings(Device("cxgb4_0", "cxgb4", "cxgb4", pci=FIRST), ()), PAIR[1])
    await alone.read()
    ring.write("iw_cxgb4: Unexpected cqe_status 0x1e for QPID=0x41b", 3)
    ring.write("iw_cxgb4: device recovery failed", 3)
    ring.write("iw_cxgb4: QP modified", 6)
    assert await counts(alone) == {("cxgb4_0", "unknown_error"): 1, ("cxgb4_0", "driver_error"): 1}
    several = follow(ring, *PAIR)
    await several.read()
    ring.write("mlx5_ib: device recovery failed", 3)
    ring.write("mlx5_ib: out of memory regions", 4)
    assert await counts(several) == {("mlx5_0", "unknown_error"): 1, ("mlx5_1", "unknown_error"): 1}


async def test_events_of_severity_failed_begin_at_zero(follower) -> None:
    """`increase()` sees the first of them; the others need no series until then."""
    found = await follower.read()
    events = [(one.labels[1], value) for one, value in found.items() if one.row is KERNEL_LOG_EVENTS]
    zeros = {event for event, value in events if value == 0}
    assert {"firmware_fatal", "module_unplugged", "command_timeout", "device_removed"} <= zeros
    assert not {"link_down", "link_up", "module_high_temperature", "memory_error"} & zeros
    assert found[Series(KERNEL_LOG_READABLE, ())] == 1


async def test_a_software_device_has_no_events_of_pcie(ring) -> None:
    found = await follow(ring, card(0, "rxe0", driver="", pci="", function="")).read()
    assert [series.labels for series in found if series.row is KERNEL_LOG_EVENTS] == [("rxe0", "tx_timeout")]


async def test_a_device_that_was_renamed_takes_its_address_with_it(ring, follower) -> None:
    await follower.read()
    follower.follow((card(0, "roce_a"), PAIR[1]))
    await follower.read()
    ring.write(f"mlx5_core {FIRST}: {UNPLUGGED}")
    assert await counts(follower) == {("roce_a", "module_unplugged"): 1}


async def test_the_number_of_remembered_devices_is_bounded(follower) -> None:
    for number in range(0, MOST_DEVICES + 40, 20):
        follower.follow([card(0, f"mlx5_{one}") for one in range(number, number + 20)])
        found = await follower.read()
    devices = {series.labels[0] for series in found if series.row is KERNEL_LOG_EVENTS}
    assert (len(devices), "mlx5_0" in devices) == (MOST_DEVICES, False)
    assert f"mlx5_{MOST_DEVICES + 40 - 1}" in devices


async def test_lost_messages_are_counted_by_their_numbers(ring, follower) -> None:
    await follower.read()
    ring.write("a message")
    assert lost(await follower.read()) == 0
    ring.size = 3
    for _ in range(10):
        ring.write("a message")
    assert lost(await follower.read()) == 7
    assert lost(await follower.read()) == 7


async def test_an_overrun_before_the_first_message_counts_as_one_loss(ring, follower) -> None:
    """How many were lost is unknown: the number of the first one is."""
    await follower.read()
    ring.size = 3
    for _ in range(10):
        ring.write("a message")
    assert lost(await follower.read()) == 1


async def test_a_part_that_was_left_out_is_not_lost() -> None:
    """The log of a recording has no other messages than those that are known."""
    records = [f"6,{number},1,-;eth0: NETDEV WATCHDOG: x\n DEVICE=n3\n" for number in (5, 90, 200)]
    kernel = host(*({"dev/kmsg": "".join(records[: 1 + moment])} for moment in range(3)))
    played = KernelLogFollower(kernel, timeout=HUNG_SECONDS)
    played.follow(PAIR)
    seen = []
    for _ in range(5):
        kernel.begin()
        seen.append((await counts(played)).get(("mlx5_0", "tx_timeout"), 0))
    assert seen == [0, 1, 2, 2, 2], "the first moment has old messages, and the recording is played in a loop"
    assert lost(await played.read()) == 0


async def test_a_flood_is_read_in_parts(ring, follower) -> None:
    await follower.read()
    for _ in range(MOST_RECORDS + 5):
        ring.write(f"mlx5_core {FIRST} eth0: TX timeout detected")
    assert await counts(follower) == {("mlx5_0", "tx_timeout"): MOST_RECORDS}
    assert await counts(follower) == {("mlx5_0", "tx_timeout"): MOST_RECORDS + 5}


def around(follower: KernelLogFollower, timeout: float = HUNG_SECONDS) -> HostSources:
    return HostSources([follower], lambda: 0.0, timeout)


def shown(sources: HostSources) -> dict[str, Any]:
    (samples,) = sources.samples()
    return {
        " ".join((series.row.name, *series.labels)): value
        for series, value in zip(samples.series, samples.values, strict=True)
    }


async def test_a_log_that_breaks_is_opened_again_and_nothing_counts_twice(ring, follower) -> None:
    sources = around(follower)
    await sources.read_once()
    ring.write(f"mlx5_core {FIRST}: {UNPLUGGED}")
    await sources.read_once()
    ring.fails = OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    await sources.read_once()
    (state,) = sources.states()
    assert (state.source, state.up, state.errors_total) == ("kernel_log", False, 1)
    broken = shown(sources)
    assert broken["roce_kernel_log_readable"] == 0
    assert broken["roce_kernel_log_events_total mlx5_0 module_unplugged"] == 1
    assert ring.closed == 1
    ring.write("mlx5_core 0000:3b:00.0 eth0: Link down")
    ring.fails = None
    await sources.read_once()
    assert [state.up for state in sources.states()] == [True]
    well = shown(sources)
    assert well["roce_kernel_log_events_total mlx5_0 module_unplugged"] == 1
    assert well["roce_kernel_log_events_total mlx5_0 link_down"] == 1, "written while the log was broken"
    assert well["roce_kernel_log_lost_total"] == 0
    assert ring.opened == [False, True]
    sources.close()
    assert ring.closed == 2


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOENT])
async def test_a_missing_privilege_is_said_once_and_is_no_fault(ring, follower, number, caplog) -> None:
    caplog.set_level(logging.INFO)
    ring.refuses = LogHiddenError(number, os.strerror(number), "/dev/kmsg")
    sources = around(follower)
    for _ in range(3):
        await sources.read_once()
    assert [(state.up, state.error) for state in sources.states()] == [(None, "")]
    assert shown(sources) == {"roce_kernel_log_readable": 0}
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert all(one in record.message for one in ("/dev/kmsg", "CAP_SYSLOG"))
    ring.refuses = None
    await sources.read_once()
    assert shown(sources)["roce_kernel_log_readable"] == 1


@pytest.mark.parametrize(
    ("error", "up", "series"),
    [
        (OSError(errno.EIO, "I/O error"), False, {"roce_kernel_log_readable": 0}),
        (Absent(errno.ENOENT, "not recorded"), None, {}),
    ],
)
async def test_a_log_that_cannot_be_opened_is_a_fault_and_one_that_is_absent_is_not(
    ring, follower, error, up, series
) -> None:
    ring.refuses = error
    sources = around(follower)
    await sources.read_once()
    assert [state.up for state in sources.states()] == [up]
    assert shown(sources) == series


async def test_a_read_that_hangs_is_given_up_and_its_messages_count_later(ring, follower) -> None:
    sources = around(follower)
    await sources.read_once()
    ring.write(f"mlx5_core {FIRST}: {UNPLUGGED}")
    ring.before_read = gate = Gate()
    hurried = around(follower, timeout=0.05)
    await hurried.read_once()
    assert [state.up for state in hurried.states()] == [False]
    await hurried.read_once()
    assert [state.errors_total for state in hurried.states()] == [2], (
        "no second call while the first has not returned"
    )
    returned = threading.Event()
    follower._call.when_idle(returned.set)
    gate.release()
    assert await asyncio.to_thread(returned.wait, HUNG_SECONDS)
    assert await counts(follower) == {("mlx5_0", "module_unplugged"): 1}


async def test_followers_are_read_more_often_than_neighbours(follower) -> None:
    slept: set[float] = set()

    async def sleep(seconds: float) -> None:
        slept.add(seconds)
        await asyncio.sleep(0)

    class Pods(HostSource):
        source = "pods"

        async def read(self) -> dict[Any, Any]:
            return {}

    sources = HostSources([Pods(), follower], lambda: 0.0, 20.0, sleep)
    running = asyncio.ensure_future(sources.run())
    await until(lambda: len(slept) > 1)
    running.cancel()
    assert slept == {60.0, 1.0}


def test_the_devices_of_a_round_without_changes_are_the_same_object(follower) -> None:
    """Names are read from sysfs again only after a change."""
    before = follower._devices
    follower.follow((card(0), card(1)))
    assert follower._devices is before


@pytest.mark.parametrize(
    ("message", "concerned"),
    [
        ("mlx5_core 0000:3b:00.0 eth0: Link down", ("mlx5_0",)),
        ("mlx5_core 0000:3b:00.0: Link down", ("mlx5_0",)),
        ("mlx5_core 0000:3b:00.2 eth0: Link down", ()),  # a VF in a pod
        (
            "mlx5_core 0000:3b:00.1 eth0: Link down",
            ("mlx5_1",),
        ),  # another namespace's name, this host's address
        ("NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out", ("mlx5_0",)),
        ("NETDEV WATCHDOG: eth0: transmit timed out", ("mlx5_0",)),
        ("NETDEV WATCHDOG: eth0 (veth): transmit queue 3 timed out", ()),
        ("NETDEV WATCHDOG: eth9 (virtio_net): transmit queue 3 timed out", ("rxe0",)),
        ("rdma_rxe: bad ICRC from 172.16.1.61", ("rxe0",)),  # the module's name, as it writes it
        ("siw: crc error. in: 1a2b3c4d, own 5e6f7081, op 3", ("siw0",)),
        ("mlx5_core: no device of that name", ()),
        ("AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:3b:00.1 domain=0x7]", ("mlx5_1",)),
    ],
)
def test_a_message_is_about_the_device_of_its_address_and_driver(message, concerned) -> None:
    devices = LogDevices()
    ports = [(Port(1, "Ethernet", (Netdev(name, "port"),)),) for name in ("eth0", "eth1", "eth9")]
    devices.update(
        host({"sys/class": ""}),
        [
            Device("mlx5_0", "mlx5_core", "mlx5", pci="0000:3b:00.0", ports=ports[0]),
            Device("mlx5_1", "mlx5_core", "mlx5", pci="0000:3b:00.1", ports=ports[1]),
            Device("rxe0", "", "rxe", ports=ports[2]),
            Device("siw0", "", "siw"),
        ],
    )
    record = decode_record(f"4,1,1,-;{message}\n".encode())
    assert record is not None
    line = read_line(record)
    assert line is not None
    assert devices.concerned(line.names) == concerned
