"""devlink: the kernel's replies, the text of the tool, instances of a device, and the series."""

from __future__ import annotations

import ast
import asyncio
import errno
import json
import struct
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from observed import exposition, observe, samples
from pyroute2.netlink.exceptions import NetlinkError

from roce_exporter.collect import Collector, Settings
from roce_exporter.exposition import Format
from roce_exporter.kernel import Absent, devlink_netlink
from roce_exporter.kernel.devlink_kernel import ComponentVersion, HealthReporter
from roce_exporter.kernel.devlink_messages import DevlinkMessage
from roce_exporter.kernel.devlink_netlink import (
    HEALTH_REPORTER_DIAGNOSE,
    HEALTH_REPORTER_GET,
    INFO_GET,
    MOST_REPORTERS,
    DevlinkNetlink,
)
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.kernel.netlink import Malformed, Message, encode_attribute, encode_message, encode_u32
from roce_exporter.recording.capture import capture
from roce_exporter.recording.devlink_text import (
    HEALTH,
    INFO,
    RecordedDevlink,
    print_numbers,
    print_reporters,
    print_versions,
)
from roce_exporter.recording.moment import Moment
from roce_exporter.recording.recorded import RecordedKernel, load_recording
from roce_exporter.recording.tree import Tree
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PF = "pci/0000:3b:00.0"
ETHERNET = "auxiliary/mlx5_core.eth.0"


def text(kind: int, value: str) -> bytes:
    return encode_attribute(kind, value.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    return encode_attribute(kind, struct.pack("=Q", value))


def reply(instance: str, *attributes: bytes) -> bytes:
    """A message of devlink, constructed from include/uapi/linux/devlink.h."""
    bus, _, name = instance.partition("/")
    payload = struct.pack("=BBH", 0, 1, 0) + text(1, bus) + text(2, name) + b"".join(attributes)
    return encode_message(Message(0x15, 0, 1, 0, payload))


def reporter(
    name: str, *, state: int = 0, errors: int = 0, recoveries: int = 0, dumped: int | None = None
) -> bytes:
    """DEVLINK_ATTR_HEALTH_REPORTER."""
    part = text(115, name) + encode_attribute(116, bytes([state])) + number(117, errors)
    part += number(118, recoveries) + number(120, 500) + encode_attribute(121, b"\1")
    return encode_attribute(114, part + (b"" if dumped is None else number(119, 7) + number(137, dumped)))


def version(kind: int, component: str, value: str) -> bytes:
    return encode_attribute(kind, text(103, component) + text(104, value))


def pair(name: str, kind: int, data: bytes) -> bytes:
    """A name and its value in a diagnosis."""
    return (
        encode_attribute(108, b"")
        + text(111, name)
        + encode_attribute(112, bytes([kind]))
        + encode_attribute(113, data)
        + encode_attribute(110, b"")
    )


FMSG = 106

DIAGNOSIS = (
    encode_attribute(107, b"")
    + encode_attribute(108, b"")
    + text(111, "vNIC env counters")
    + encode_attribute(107, b"")
    + pair("cq_overrun", 3, struct.pack("=I", 4))
    + pair("nic_receive_steering_discard", 4, struct.pack("=Q", 1 << 40))
    + pair("level", 1, b"\7")
    + pair("mode", 10, b"fast\0")
    + pair("is_on", 6, b"\1")
    + encode_attribute(110, b"") * 3
)

Reply = bytes | Exception


class Socket:
    """A socket of pyroute2 with these replies, one list per request."""

    def __init__(self, *replies: Sequence[bytes] | Exception) -> None:
        self.replies = list(replies)
        self.sent: list[tuple[int, dict[str, Any], bool]] = []
        self.is_open = False

    def __enter__(self) -> Self:
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False

    def exchange(self, command: int, attributes: Sequence[tuple[str, Any]], *, dump: bool) -> list[Any]:
        self.sent.append(
            (command, {name.removeprefix("DEVLINK_ATTR_"): value for name, value in attributes}, dump)
        )
        found = self.replies.pop(0)
        if isinstance(found, Exception):
            raise found
        messages = [DevlinkMessage(one) for one in found]
        for message in messages:
            message.decode()
        return messages


def test_reporters_of_the_device_and_of_its_ports() -> None:
    port = encode_u32(3, 65535)
    socket = Socket(
        [
            reply(
                PF, reporter("fw_fatal", state=1, errors=3, recoveries=2, dumped=1_790_000_000_500_000_000)
            ),
            reply(PF, port, reporter("tx")),
        ]
    )
    assert DevlinkNetlink(lambda: socket).reporters(PF) == (
        HealthReporter("fw_fatal", False, 3, 2, 1_790_000_000.5),
        HealthReporter("tx", True, 0, 0, None),
    )
    assert socket.sent == [(HEALTH_REPORTER_GET, {"BUS_NAME": "pci", "DEV_NAME": "0000:3b:00.0"}, True)]
    assert not socket.is_open


def test_a_kernel_that_lists_all_instances_is_queried_by_name_from_then_on() -> None:
    """Before Linux 6.6 each list takes the lock of every instance, so one that hangs would stop all others."""
    port = encode_u32(3, 1)
    listed = [
        reply("pci/0000:5e:00.0", reporter("fw")),
        reply(PF, reporter("fw")),
        reply(PF, port, reporter("tx")),
    ]
    socket = Socket(listed, [listed[1]], [reply(PF, port, reporter("tx", state=1))])
    netlink = DevlinkNetlink(lambda: socket)
    assert [one.name for one in netlink.reporters(PF)] == ["fw", "tx"]
    assert [one.is_healthy for one in netlink.reporters(PF)] == [True, False]
    named = {"BUS_NAME": "pci", "DEV_NAME": "0000:3b:00.0"}
    assert socket.sent[1:] == [
        (HEALTH_REPORTER_GET, named | {"HEALTH_REPORTER_NAME": "fw"}, False),
        (HEALTH_REPORTER_GET, named | {"PORT_INDEX": 1, "HEALTH_REPORTER_NAME": "tx"}, False),
    ]


def test_a_reporter_that_is_gone_has_the_others_listed_again() -> None:
    listed = [reply("pci/0000:5e:00.0", reporter("fw")), reply(PF, reporter("fw")), reply(PF, reporter("tx"))]
    socket = Socket(listed, [listed[1]], NetlinkError(errno.EINVAL), listed[:2])
    netlink = DevlinkNetlink(lambda: socket)
    assert [one.name for one in netlink.reporters(PF)] == ["fw", "tx"]
    assert [one.name for one in netlink.reporters(PF)] == ["fw"]


def test_a_driver_that_fails_is_not_listed_again() -> None:
    listed = [reply("pci/0000:5e:00.0", reporter("fw")), reply(PF, reporter("fw"))]
    socket = Socket(listed, NetlinkError(errno.EIO))
    netlink = DevlinkNetlink(lambda: socket)
    netlink.reporters(PF)
    with pytest.raises(OSError, match="Input/output error"):
        netlink.reporters(PF)


def test_the_number_of_reporters_is_bounded() -> None:
    socket = Socket([reply(PF, reporter(f"r{position}")) for position in range(MOST_REPORTERS + 1)])
    assert len(DevlinkNetlink(lambda: socket).reporters(PF)) == MOST_REPORTERS


def test_versions_without_serial_numbers() -> None:
    socket = Socket(
        [
            reply(
                PF,
                text(98, "mlx5_core"),
                text(99, "MT2230X12345"),
                version(100, "fw.psid", "MT_0000000838"),
                version(101, "fw.version", "28.39.1002"),
                version(102, "fw.version", "28.43.2026"),
            )
        ]
    )
    assert DevlinkNetlink(lambda: socket).versions(PF) == (
        ComponentVersion("fixed", "fw.psid", "MT_0000000838"),
        ComponentVersion("running", "fw.version", "28.39.1002"),
        ComponentVersion("stored", "fw.version", "28.43.2026"),
    )
    assert [(command, dump) for command, _, dump in socket.sent] == [(INFO_GET, False)]


def test_a_diagnosis_in_several_messages() -> None:
    """The kernel splits it anywhere between two attributes. Texts and flags are no numbers."""
    middle = DIAGNOSIS.index(encode_attribute(112, b"\3")) + 8
    socket = Socket(
        [reply(PF, encode_attribute(FMSG, part)) for part in (DIAGNOSIS[:middle], DIAGNOSIS[middle:])]
    )
    assert DevlinkNetlink(lambda: socket).diagnosis(PF) == {
        "cq_overrun": 4,
        "nic_receive_steering_discard": 1 << 40,
        "level": 7,
    }
    (command, attributes, dump) = socket.sent[0]
    assert (command, attributes["HEALTH_REPORTER_NAME"], dump) == (HEALTH_REPORTER_DIAGNOSE, "vnic", False)


Read = "Callable[[DevlinkNetlink], object]"


@pytest.mark.parametrize(
    ("answer", "number_of_error", "kind"),
    [
        ([], errno.EOPNOTSUPP, Absent),
        (NetlinkError(errno.ENODEV), errno.ENODEV, Absent),
        (NetlinkError(errno.EOPNOTSUPP), errno.EOPNOTSUPP, Absent),
        (NetlinkError(errno.EIO), errno.EIO, OSError),
        (OSError(errno.EMFILE, "too many"), errno.EMFILE, OSError),
        (KeyError("attrs"), errno.EBADMSG, OSError),
        ([reply(PF)], errno.EBADMSG, OSError),
    ],
)
def test_absent_is_not_broken(answer: Any, number_of_error: int, kind: type[OSError]) -> None:
    socket = Socket(answer)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what is checked
        DevlinkNetlink(lambda: socket).reporters(PF)
    assert (caught.value.errno, isinstance(caught.value, Absent)) == (number_of_error, kind is Absent)
    assert not socket.is_open


def test_a_kernel_without_devlink_is_absent() -> None:
    def refused() -> Socket:
        raise NetlinkError(errno.ENOENT)

    for read in (DevlinkNetlink(refused).reporters, DevlinkNetlink(refused).versions):
        with pytest.raises(Absent):
            read(PF)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.EPERM, PermissionError), (errno.EINVAL, Absent), (errno.EIO, OSError)],
)
def test_a_diagnosis_that_is_refused(code: int, kind: type[OSError]) -> None:
    with pytest.raises(kind):
        DevlinkNetlink(lambda: Socket(NetlinkError(code))).diagnosis(PF)


def test_without_pyroute2_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "roce_exporter.kernel.devlink_messages", None)
    with pytest.raises(OSError, match=r"--source\.disable=devlink"):
        DevlinkNetlink().reporters(PF)


def test_no_byte_of_a_reply_can_do_more_than_fail() -> None:
    """pyroute2 decodes the messages; what it makes of damaged ones must stay an OSError or a result."""
    whole = reply(PF, reporter("tx", dumped=5), version(101, "fw", "1"), encode_attribute(FMSG, DIAGNOSIS))
    reads: tuple[Callable[[DevlinkNetlink], object], ...] = (
        lambda netlink: netlink.reporters(PF),
        lambda netlink: netlink.versions(PF),
        lambda netlink: netlink.diagnosis(PF),
    )
    for position in range(16, len(whole)):
        for flipped in (0xFF, 0x01):
            damaged = bytearray(whole)
            damaged[position] ^= flipped
            for read in reads:
                socket = Socket([bytes(damaged)])
                try:
                    read(DevlinkNetlink(lambda socket=socket: socket))  # type: ignore[misc]
                except OSError:
                    assert not socket.is_open


def test_only_requests_that_read_are_possible() -> None:
    """Every command in the modules of devlink, of those of include/uapi/linux/devlink.h."""
    source = Path(devlink_netlink.__file__).read_text()
    sent = {
        ast.unparse(call.args[0])
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "exchange"
    }
    assert sent == {"INFO_GET", "HEALTH_REPORTER_GET", "HEALTH_REPORTER_DIAGNOSE"}
    assert (INFO_GET, HEALTH_REPORTER_GET, HEALTH_REPORTER_DIAGNOSE) == (51, 52, 55)


# The text of the tool: constructed, in the form that iproute2 6.1 prints for netdevsim, with the reporters of mlx5.
PRINTED_HEALTH = {
    "health": {
        PF: [
            {
                "reporter": "fw",
                "state": "healthy",
                "error": 0,
                "recover": 0,
                "grace_period": 0,
                "auto_recover": True,
                "auto_dump": True,
            },
            {
                "reporter": "fw_fatal",
                "state": "error",
                "error": 3,
                "recover": 2,
                "last_dump_date": "2026-09-21",
                "last_dump_time": "12:13:20",
            },
        ],
        f"{ETHERNET}/65535": [{"reporter": "tx", "state": "healthy", "error": 1, "recover": 1}],
        "pci/0000:3b:00.01": [{"reporter": "other", "state": "healthy", "error": 0, "recover": 0}],
    }
}
PRINTED_INFO = {
    "info": {
        PF: {
            "driver": "mlx5_core",
            "serial_number": "MT2230X12345",
            "versions": {
                "fixed": {"fw.psid": "MT_0000000838"},
                "running": {"fw.version": "28.39.1002"},
                "stored": {"fw.version": "28.43.2026"},
            },
        }
    }
}
PRINTED_VNIC = {"vNIC env counters": {"cq_overrun": 4, "invalid_command": 0, "mode": "fast", "is_on": True}}


def recorded(files: Mapping[str, object]) -> RecordedDevlink:
    def content(file: str) -> str:
        if file not in files:
            raise Absent(errno.EOPNOTSUPP, f"no {file} in this recording")
        return json.dumps(files[file])

    return RecordedDevlink(content)


def test_the_text_of_the_tool() -> None:
    devlink = recorded(
        {HEALTH: PRINTED_HEALTH, INFO: PRINTED_INFO, "devlink/pci_0000:3b:00.0.vnic.json": PRINTED_VNIC}
    )
    assert devlink.reporters(PF) == (
        HealthReporter("fw", True, 0, 0, None),
        HealthReporter("fw_fatal", False, 3, 2, 1_789_992_800.0),
    )
    assert devlink.reporters(ETHERNET) == (HealthReporter("tx", True, 1, 1, None),)
    assert [one.version for one in devlink.versions(PF)] == ["MT_0000000838", "28.39.1002", "28.43.2026"]
    assert devlink.vnic(PF) == {"cq_overrun": 4, "invalid_command": 0}
    for read in (devlink.versions, devlink.reporters):
        with pytest.raises(Absent):
            read("pci/0000:99:00.0")
    with pytest.raises(PermissionError):
        devlink.vnic(ETHERNET)


@pytest.mark.parametrize("document", [[], {"health": {PF: [{"reporter": "fw", "state": "?"}]}}, 3, None])
def test_other_text_names_the_command(document: object) -> None:
    with pytest.raises(Malformed, match="TZ=UTC devlink -j health show"):
        recorded({HEALTH: document}).reporters(PF)


def test_printed_text_reads_the_same() -> None:
    reporters = (HealthReporter("fw", False, 3, 2, 1_790_000_000.0), HealthReporter("tx", True, 0, 0))
    versions = (ComponentVersion("running", "fw.version", "1 2"), ComponentVersion("stored", "fw", "3"))
    devlink = RecordedDevlink(
        {
            HEALTH: print_reporters({PF: reporters}),
            INFO: print_versions({PF: versions}),
            "devlink/pci_0000:3b:00.0.vnic.json": print_numbers({"cq_overrun": 9}),
        }.__getitem__
    )
    assert (devlink.reporters(PF), devlink.versions(PF), devlink.vnic(PF)) == (
        reporters,
        versions,
        {"cq_overrun": 9},
    )


def host(
    *, vnic: bool = True, listed: bool = True, kind: type[RecordedKernel] = RecordedKernel
) -> RecordedKernel:
    """A LAG of mlx5: its RDMA device is on the first function, `eth1` on the second; reporters `tx` on auxiliary devices."""
    second = "pci/0000:3b:00.1"
    health = {
        PF: [
            {"reporter": "fw", "state": "healthy", "error": 1, "recover": 1},
            {"reporter": "vnic", "state": "healthy", "error": 0, "recover": 0},
        ],
        f"{ETHERNET}/65535": [{"reporter": "tx", "state": "healthy", "error": 2, "recover": 2}],
        second: [{"reporter": "fw", "state": "error", "error": 5, "recover": 4}],
        "auxiliary/mlx5_core.sf.3": [{"reporter": "fw", "state": "error", "error": 9, "recover": 9}],
    }
    tree = Tree()
    tree.files |= {
        "sys/class/infiniband/mlx5_bond_0/fw_ver": b"28.39.1002\n",
        "sys/class/infiniband/mlx5_bond_0/ports/1/link_layer": b"Ethernet\n",
        "sys/class/infiniband/mlx5_bond_0/ports/1/hw_counters/np_cnp_sent": b"5\n",
        "sys/class/net/bond0/bonding/slaves": b"eth0 eth1\n",
        "ethtool/eth0.driver": b"driver: mlx5_core\n",
        "rdma/link.json": b"",
    }
    if listed:
        tree.files[HEALTH] = json.dumps({"health": health}).encode()
        tree.files[INFO] = json.dumps(PRINTED_INFO).encode()
    if vnic:
        tree.files["devlink/pci_0000:3b:00.0.vnic.json"] = json.dumps(PRINTED_VNIC).encode()
    tree.links |= {
        "sys/class/infiniband/mlx5_bond_0/device": "../../../devices/0000:3b:00.0",
        "sys/class/net/eth1/device": "../../../devices/0000:3b:00.1",
        "sys/devices/0000:3b:00.0/driver": "../../bus/pci/drivers/mlx5_core",
        "sys/devices/0000:3b:00.0/subsystem": "../../bus/pci",
        "sys/devices/0000:3b:00.0/mlx5_core.eth.0/subsystem": "../../../bus/auxiliary",
        "sys/devices/0000:3b:00.0/mlx5_core.sf.3/subsystem": "../../../bus/auxiliary",
    }
    for path in (*tree.files, *tree.links):
        tree.add(path)
    link = ({"ifname": "mlx5_bond_0", "port": 1, "netdev": "bond0"},)
    return kind([Moment(tree, {"link": link})])


async def devlink_series(kernel: RecordedKernel) -> dict[str, str]:
    found = samples(await exposition(kernel))
    return {
        series.removeprefix("roce_"): value
        for series, value in found.items()
        if series.startswith("roce_devlink")
    }


async def test_a_lag_has_the_reporters_of_all_its_functions() -> None:
    """One name is one series: the worst state and the sum of the counts. A subfunction is another device."""
    found = await devlink_series(host())
    device = 'device="mlx5_bond_0"'
    expected = {}
    for name, state, errors, recoveries in (("fw", 1, 6, 5), ("vnic", 0, 0, 0), ("tx", 0, 2, 2)):
        labels = f'{{{device},reporter="{name}"}}'
        expected[f"devlink_health_state{labels}"] = str(state)
        expected[f"devlink_health_errors_total{labels}"] = str(errors)
        expected[f"devlink_health_recoveries_total{labels}"] = str(recoveries)
    for stage, component, one in (
        ("fixed", "fw.psid", "MT_0000000838"),
        ("running", "fw.version", "28.39.1002"),
        ("stored", "fw.version", "28.43.2026"),
    ):
        labels = f'{{{device},stage="{stage}",component="{component}",version="{one}"}}'
        expected[f"devlink_info{labels}"] = "1"
    expected[f"devlink_vnic_readable{{{device}}}"] = "1"
    expected[f"devlink_vnic_cq_overrun_total{{{device}}}"] = "4"
    expected[f"devlink_vnic_invalid_command_total{{{device}}}"] = "0"
    assert found == expected


async def test_without_the_privilege_one_series_says_so() -> None:
    """Not a failure, and no counters of 0."""
    kernel = host(vnic=False)
    found = await devlink_series(kernel)
    assert {series: value for series, value in found.items() if "vnic_" in series} == {
        'devlink_vnic_readable{device="mlx5_bond_0"}': "0"
    }
    everything = samples(await exposition(host(vnic=False)))
    assert everything['roce_exporter_source_up{source="devlink_vnic",device="mlx5_bond_0"}'] == "1"


async def test_a_host_without_devlink_has_no_series_and_no_failure() -> None:
    found = samples(await exposition(host(listed=False, vnic=False)))
    assert not [series for series in found if "devlink" in series]


class BrokenDevlink(RecordedKernel):
    """Its reporters can be listed, and its firmware fails."""

    def devlink_versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        raise OSError(errno.EIO, "Input/output error", instance)


async def test_firmware_that_fails_leaves_the_reporters() -> None:
    found = samples(await exposition(host(kind=BrokenDevlink)))
    up = {
        source: found[f'roce_exporter_source_up{{source="{source}",device="mlx5_bond_0"}}']
        for source in ("devlink", "devlink_info", "devlink_vnic")
    }
    assert up == {"devlink": "1", "devlink_info": "0", "devlink_vnic": "1"}
    assert found['roce_devlink_health_state{device="mlx5_bond_0",reporter="tx"}'] == "0"
    assert not [series for series in found if series.startswith("roce_devlink_info")]


async def test_a_captured_host_replays_to_the_same_series(tmp_path: Path) -> None:
    """No serial number is in the recording, and subfunctions are not either."""
    output = tmp_path / "captured"
    await capture(host(), str(output), 1, 0)
    assert await devlink_series(load_recording(str(output))) == await devlink_series(host())
    content = "".join(path.read_text() for path in (output / "devlink").iterdir())
    assert "MT2230X12345" not in content
    assert "sf.3" not in content


async def test_a_simulated_host_with_failing_firmware() -> None:
    """The first port's card reports an error and then a recovery; the others stay healthy."""
    now = [0.0]
    kernel = simulate("firmware", clock=lambda: now[0], vendors=("mlx5", "mlx5", "bnxt"))
    states: dict[str, set[str]] = {}
    while now[0] < 300:
        exporter, (observation,) = await observe(kernel)
        found = samples(exporter.render(observation, Format.TEXT))
        for series, value in found.items():
            if series.startswith("roce_devlink_health_") and "fw_fatal" in series:
                states.setdefault(series.removeprefix("roce_devlink_health_"), set()).add(value)
        now[0] += 10
    first, second = '{device="mlx5_0",reporter="fw_fatal"}', '{device="mlx5_1",reporter="fw_fatal"}'
    assert states == {
        f"state{first}": {"0", "1"},
        f"errors_total{first}": {"0", "1", "2"},
        f"recoveries_total{first}": {"0", "1"},
        f"state{second}": {"0"},
        f"errors_total{second}": {"0"},
        f"recoveries_total{second}": {"0"},
    }


def test_another_sysfs_root_is_another_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devlink would describe this host's device of the same address."""
    monkeypatch.setattr(DevlinkNetlink, "_call", lambda *_: pytest.fail("queried"))
    (tmp_path / "bus/pci/devices/0000:3b:00.0").mkdir(parents=True)
    kernel = LiveKernel(str(tmp_path))
    for read in (kernel.devlink_reporters, kernel.devlink_versions, kernel.devlink_vnic):
        with pytest.raises(Absent):
            read(PF)


async def until(ready: Callable[[], object]) -> None:
    """Let the worker threads go on; a test that fails ends by its timeout."""
    while not ready():  # noqa: ASYNC110 - a worker thread has no event to wait for
        await asyncio.sleep(0.005)


async def test_a_device_whose_devlink_hangs_costs_only_itself() -> None:
    """Its own devlink is down after the deadline; its counters and the other device go on; afterwards all is as before."""
    now = [1000.0]
    kernel = simulate("quiet", clock=lambda: now[0], vendors=("mlx5", "mlx5"))
    collector = Collector(kernel, Settings(timeout=0.3, patience=0.02, refresh=60.0), lambda: now[0])
    answer, hangs, begun, released = (
        kernel.devlink_reporters,
        threading.Event(),
        threading.Event(),
        threading.Event(),
    )

    def hanging(instance: str) -> tuple[HealthReporter, ...]:
        if hangs.is_set() and instance == "pci/0000:11:00.0":
            begun.set()
            assert released.wait(60)
        return answer(instance)

    async def failed(seconds: float) -> set[tuple[str, str]]:
        now[0] += seconds
        snapshot = await collector.collect()
        return {(one.source, one.device) for one in snapshot.states if one.up is False}

    async def settled() -> None:
        await until(lambda: collector._slow._batch is None or collector._slow._batch.is_over)

    kernel.devlink_reporters = hanging  # type: ignore[method-assign]
    try:
        assert await failed(0.0) == set()
        hangs.set()
        await failed(60.0)
        assert await asyncio.to_thread(begun.wait, 60)
        found: set[tuple[str, str]] = set()
        for _ in range(3):
            found = await failed(1.0)
        assert ("devlink", "mlx5_0") in found
        assert found <= {("devlink", "mlx5_0"), ("devlink_vnic", "mlx5_0")}
        released.set()
        await until(lambda: not collector._in_flight)
        await failed(60.0)
        await settled()
        assert await failed(0.0) == set()
    finally:
        released.set()
        collector.close()
