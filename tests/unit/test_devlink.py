"""devlink: the kernel's replies, the text of the tool, instances of a device, and the series."""

import ast
import errno
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from clock import Clock
from hypothesis import given
from hypothesis import strategies as st
from kernel import host
from netlink_dumps import FakeKernel, refusal
from observed import exposition, samples
from pyroute2.netlink import genlmsg, nla

from roce_exporter.host.kernel import Absent, ComponentVersion, HealthReporter, devlink_netlink
from roce_exporter.host.kernel.devlink_netlink import (
    HEALTH_REPORTER_DIAGNOSE,
    HEALTH_REPORTER_GET,
    INFO_GET,
    MOST_REPORTERS,
    DevlinkNetlink,
)
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.netlink import (
    DUMP,
    Malformed,
    Message,
    decode_values,
    encode_attribute,
    encode_message,
    encode_u32,
)
from roce_exporter.host.recorded.devlink_text import (
    HEALTH,
    INFO,
    RecordedDevlink,
    print_reporter,
    print_versions,
)
from roce_exporter.host.recorded.recorded import RecordedKernel
from roce_exporter.host.simulated.kernel import simulate

PF = "pci/0000:3b:00.0"
ETHERNET = "auxiliary/mlx5_core.eth.0"
FAMILY = 0x15


def text(kind: int, value: str) -> bytes:
    return encode_attribute(kind, value.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    return encode_attribute(kind, struct.pack("=Q", value))


def reply(instance: str, *attributes: bytes) -> bytes:
    """A message of devlink, constructed from include/uapi/linux/devlink.h."""
    bus, _, name = instance.partition("/")
    payload = struct.pack("=BBH", 0, 1, 0) + text(1, bus) + text(2, name) + b"".join(attributes)
    return encode_message(Message(FAMILY, 2, 0, 0, payload))


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

BUS_NAME, DEV_NAME, PORT_INDEX, REPORTER_NAME = 1, 2, 3, 115
NAMED = {BUS_NAME: b"pci\0", DEV_NAME: b"0000:3b:00.0\0"}


class Kernel(FakeKernel):
    """devlink with these replies, one list of messages per request; an OSError instead of a list is the kernel's refusal."""

    def __init__(
        self, *replies: Sequence[bytes] | OSError, family: bytes = struct.pack("=HHH", 6, 1, FAMILY)
    ) -> None:
        super().__init__(self.reply)
        self.replies = list(replies)
        self.family = family

    def reply(self, request: Message) -> list[bytes]:
        if request.kind != FAMILY:
            return [
                encode_message(Message(16, 0, 0, 0, bytes(4) + self.family))
                if self.family
                else refusal(errno.ENOENT)
            ]
        found = self.replies.pop(0)
        return (
            [refusal(found.errno or 0)] if isinstance(found, OSError) else [b"".join(found) + refusal(0, 3)]
        )

    @property
    def sent(self) -> list[tuple[int, dict[int, bytes], bool]]:
        """Command, attributes, and whether a list was requested."""
        return [
            (one.payload[0], decode_values(one.payload, 4), one.flags & DUMP == DUMP)
            for one in self.asked
            if one.kind == FAMILY
        ]

    @property
    def is_open(self) -> bool:
        return not all(one.closed for one in self.sockets)


def refused(code: int) -> OSError:
    return OSError(code, "")


def names(netlink: DevlinkNetlink) -> list[str]:
    return [one.name for one in netlink.reporters(PF)]


FW, TX = reply(PF, reporter("fw")), reply(PF, encode_u32(3, 1), reporter("tx"))
OTHER = reply("pci/0000:5e:00.0", reporter("fw"))


def test_reporters_of_the_device_and_of_its_ports() -> None:
    first = reporter("fw_fatal", state=1, errors=3, recoveries=2, dumped=1_790_000_000_500_000_000)
    socket = Kernel([reply(PF, first), TX])
    assert DevlinkNetlink(socket).reporters(PF) == (
        HealthReporter("fw_fatal", False, 3, 2, 1_790_000_000.5),
        HealthReporter("tx", True, 0, 0, None),
    )
    assert socket.sent == [(HEALTH_REPORTER_GET, NAMED, True)]
    assert not socket.is_open


def test_a_kernel_that_lists_all_instances_is_queried_by_name_from_then_on() -> None:
    """Before Linux 6.6 each list takes the lock of every instance, so one that hangs would stop all others."""
    socket = Kernel([OTHER, FW, TX], [FW], [reply(PF, encode_u32(3, 1), reporter("tx", state=1))])
    netlink = DevlinkNetlink(socket)
    assert names(netlink) == ["fw", "tx"]
    assert [one.is_healthy for one in netlink.reporters(PF)] == [True, False]
    assert socket.sent[1:] == [
        (HEALTH_REPORTER_GET, NAMED | {REPORTER_NAME: b"fw\0"}, False),
        (HEALTH_REPORTER_GET, NAMED | {PORT_INDEX: struct.pack("=I", 1), REPORTER_NAME: b"tx\0"}, False),
    ]


def test_a_reporter_that_is_gone_has_the_others_listed_again_and_a_driver_that_fails_not() -> None:
    gone = DevlinkNetlink(Kernel([OTHER, FW, TX], [FW], refused(errno.EINVAL), [OTHER, FW]))
    assert (names(gone), names(gone)) == (["fw", "tx"], ["fw"])
    failing = DevlinkNetlink(Kernel([OTHER, FW], refused(errno.EIO)))
    assert names(failing) == ["fw"]
    with pytest.raises(OSError, match="Input/output error"):
        names(failing)


def test_the_number_of_reporters_is_bounded() -> None:
    many = [reply(PF, reporter(f"r{position}")) for position in range(MOST_REPORTERS + 1)]
    assert len(names(DevlinkNetlink(Kernel(many)))) == MOST_REPORTERS


def test_versions_without_serial_numbers() -> None:
    socket = Kernel(
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
    assert DevlinkNetlink(socket).versions(PF) == (
        ComponentVersion("fixed", "fw.psid", "MT_0000000838"),
        ComponentVersion("running", "fw.version", "28.39.1002"),
        ComponentVersion("stored", "fw.version", "28.43.2026"),
    )
    assert [(command, dump) for command, _, dump in socket.sent] == [(INFO_GET, False)]


def test_a_diagnosis_in_several_messages() -> None:
    """The kernel splits it anywhere between two attributes. Texts and flags are no numbers."""
    middle = DIAGNOSIS.index(encode_attribute(112, b"\3")) + 8
    socket = Kernel(
        [reply(PF, encode_attribute(FMSG, part)) for part in (DIAGNOSIS[:middle], DIAGNOSIS[middle:])]
    )
    assert DevlinkNetlink(socket).diagnosis(PF) == {
        "cq_overrun": 4,
        "nic_receive_steering_discard": 1 << 40,
        "level": 7,
    }
    (command, attributes, dump) = socket.sent[0]
    assert (command, attributes[REPORTER_NAME], dump) == (HEALTH_REPORTER_DIAGNOSE, b"vnic\0", False)


@pytest.mark.parametrize(
    ("read", "answer", "number_of_error", "absent"),
    [
        ("reporters", [], errno.EOPNOTSUPP, True),
        ("reporters", refused(errno.ENODEV), errno.ENODEV, True),
        ("reporters", refused(errno.EOPNOTSUPP), errno.EOPNOTSUPP, True),
        ("reporters", refused(errno.EIO), errno.EIO, False),
        ("reporters", [b"torn"], errno.EBADMSG, False),
        ("reporters", [encode_message(Message(FAMILY, 2, 0, 0, b"abc"))], errno.EBADMSG, False),
        ("reporters", [reply(PF)], errno.EBADMSG, False),
        ("diagnosis", refused(errno.EPERM), errno.EPERM, False),
        ("diagnosis", refused(errno.EINVAL), errno.EOPNOTSUPP, True),
        ("diagnosis", refused(errno.EIO), errno.EIO, False),
    ],
)
def test_absent_is_not_broken(read, answer, number_of_error, absent) -> None:
    socket = Kernel(answer)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what is checked
        getattr(DevlinkNetlink(socket), read)(PF)
    assert (caught.value.errno, isinstance(caught.value, Absent)) == (number_of_error, absent)
    assert not socket.is_open


def test_a_kernel_without_devlink_is_absent() -> None:
    for read in ("reporters", "versions"):
        with pytest.raises(Absent):
            getattr(DevlinkNetlink(Kernel(family=b"")), read)(PF)


class Part(nla):  # type: ignore[misc]
    """A reporter or a version as pyroute2 encodes it."""

    prefix = "DEVLINK_ATTR_"
    nla_map = (
        (103, "DEVLINK_ATTR_INFO_VERSION_NAME", "asciiz"),
        (104, "DEVLINK_ATTR_INFO_VERSION_VALUE", "asciiz"),
        (115, "DEVLINK_ATTR_HEALTH_REPORTER_NAME", "asciiz"),
        (116, "DEVLINK_ATTR_HEALTH_REPORTER_STATE", "uint8"),
        (117, "DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT", "uint64"),
        (118, "DEVLINK_ATTR_HEALTH_REPORTER_RECOVER_COUNT", "uint64"),
        (137, "DEVLINK_ATTR_HEALTH_REPORTER_DUMP_TS_NS", "uint64"),
    )


class Encoded(genlmsg):  # type: ignore[misc]
    """A reply as pyroute2 encodes it."""

    prefix = "DEVLINK_ATTR_"
    nla_map = (
        (1, "DEVLINK_ATTR_BUS_NAME", "asciiz"),
        (2, "DEVLINK_ATTR_DEV_NAME", "asciiz"),
        (3, "DEVLINK_ATTR_PORT_INDEX", "uint32"),
        (100, "DEVLINK_ATTR_INFO_VERSION_FIXED", "Part"),
        (101, "DEVLINK_ATTR_INFO_VERSION_RUNNING", "Part"),
        (102, "DEVLINK_ATTR_INFO_VERSION_STORED", "Part"),
        (114, "DEVLINK_ATTR_HEALTH_REPORTER", "Part"),
    )
    Part = Part


def encoded(*attributes: tuple[str, Any]) -> bytes:
    message = Encoded()
    message["header"]["type"], message["header"]["flags"] = FAMILY, 2
    message["attrs"] = [
        [f"DEVLINK_ATTR_{name}", value]
        for name, value in (("BUS_NAME", "pci"), ("DEV_NAME", "0000:3b:00.0"), *attributes)
    ]
    message.encode()
    return bytes(message.data)


words = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\\"), min_size=1, max_size=40
)
counts = st.integers(0, 2**64 - 1)


@given(words, st.integers(0, 1), counts, counts, st.none() | counts)
def test_a_reporter_as_another_library_writes_it(name, state, errors, recoveries, dumped) -> None:
    part = [("NAME", name), ("STATE", state), ("ERR_COUNT", errors), ("RECOVER_COUNT", recoveries)]
    part += [] if dumped is None else [("DUMP_TS_NS", dumped)]
    attributes = [[f"DEVLINK_ATTR_HEALTH_REPORTER_{kind}", value] for kind, value in part]
    message = encoded(("PORT_INDEX", 3), ("HEALTH_REPORTER", {"attrs": attributes}))
    found = HealthReporter(name, state == 0, errors, recoveries, None if dumped is None else dumped / 10**9)
    assert DevlinkNetlink(Kernel([message])).reporters(PF) == (found,)


@given(
    st.lists(st.tuples(st.sampled_from(("fixed", "running", "stored")), words, words), min_size=1, max_size=9)
)
def test_versions_as_another_library_writes_them(found) -> None:
    parts = [
        (
            f"INFO_VERSION_{stage.upper()}",
            {"attrs": [["DEVLINK_ATTR_INFO_VERSION_NAME", name], ["DEVLINK_ATTR_INFO_VERSION_VALUE", value]]},
        )
        for stage, name, value in found
    ]
    assert DevlinkNetlink(Kernel([encoded(*parts)])).versions(PF) == tuple(
        ComponentVersion(*one) for one in sorted(found, key=lambda one: one[0])
    )


def test_no_byte_of_a_reply_can_do_more_than_fail() -> None:
    whole = reply(PF, reporter("tx", dumped=5), version(101, "fw", "1"), encode_attribute(FMSG, DIAGNOSIS))
    for position in range(16, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF if position % 2 else 0x01
        for read in ("reporters", "versions", "diagnosis"):
            socket = Kernel([bytes(damaged)])
            try:
                getattr(DevlinkNetlink(socket), read)(PF)
            except OSError:
                assert not socket.is_open


def test_only_requests_that_read_are_possible() -> None:
    """Every command in the module of devlink, of those of include/uapi/linux/devlink.h."""
    source = Path(devlink_netlink.__file__).read_text()
    sent = {
        ast.unparse(call.args[0])
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "query.request"
    }
    assert sent == {"INFO_GET", "HEALTH_REPORTER_GET", "HEALTH_REPORTER_DIAGNOSE"}
    assert (INFO_GET, HEALTH_REPORTER_GET, HEALTH_REPORTER_DIAGNOSE) == (51, 52, 55)


def printed(name: str, errors: int = 0, state: str = "healthy", **more: str) -> dict[str, object]:
    """One reporter in the text of the tool: constructed, in the form that iproute2 6.1 prints for netdevsim."""
    return {"reporter": name, "state": state, "error": errors, "recover": max(errors - 1, 0), **more}


PRINTED_HEALTH = {
    "health": {
        PF: [
            printed("fw"),
            printed("fw_fatal", 3, "error", last_dump_date="2026-09-21", last_dump_time="12:13:20"),
        ],
        f"{ETHERNET}/65535": [printed("tx", 1)],
        "pci/0000:3b:00.01": [printed("other")],
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
VNIC = "devlink/pci_0000:3b:00.0.vnic.json"


def recorded(files: Mapping[str, object]) -> RecordedDevlink:
    def content(file: str) -> str:
        if file not in files:
            raise Absent(errno.EOPNOTSUPP, f"no {file} in this recording")
        return json.dumps(files[file])

    return RecordedDevlink(content)


def test_the_text_of_the_tool() -> None:
    devlink = recorded({HEALTH: PRINTED_HEALTH, INFO: PRINTED_INFO, VNIC: PRINTED_VNIC})
    assert devlink.reporters(PF) == (
        HealthReporter("fw", True, 0, 0, None),
        HealthReporter("fw_fatal", False, 3, 2, 1_789_992_800.0),
    )
    assert devlink.reporters(ETHERNET) == (HealthReporter("tx", True, 1, 0, None),)
    assert [one.version for one in devlink.versions(PF)] == ["MT_0000000838", "28.39.1002", "28.43.2026"]
    assert devlink.vnic(PF) == {"cq_overrun": 4, "invalid_command": 0}
    for read in (devlink.versions, devlink.reporters):
        with pytest.raises(Absent):
            read("pci/0000:99:00.0")
    with pytest.raises(PermissionError):
        devlink.vnic(ETHERNET)


def broken(errors: object) -> dict[str, object]:
    return {"health": {PF: [{"reporter": "fw", "state": "error", "error": errors, "recover": 0}]}}


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"health": {PF: [{"reporter": "fw", "state": "?"}]}},
        3,
        None,
        broken(-1),
        broken(10**400),
        broken(float("inf")),
    ],
)
def test_other_text_names_the_command(document) -> None:
    with pytest.raises(Malformed, match="TZ=UTC devlink -j health show"):
        recorded({HEALTH: document}).reporters(PF)


def test_printed_text_reads_the_same() -> None:
    reporters = (HealthReporter("fw", False, 3, 2, 1_790_000_000.0), HealthReporter("tx", True, 0, 0))
    versions = (ComponentVersion("running", "fw.version", "1 2"), ComponentVersion("stored", "fw", "3"))
    devlink = recorded(
        {
            HEALTH: {"health": {PF: list(map(print_reporter, reporters))}},
            INFO: {"info": {PF: print_versions(versions)}},
            VNIC: {"vNIC env counters": {"cq_overrun": 9}},
        }
    )
    assert (devlink.reporters(PF), devlink.versions(PF), devlink.vnic(PF)) == (
        reporters,
        versions,
        {"cq_overrun": 9},
    )


def files(*, vnic: bool = True) -> dict[str, object]:
    """A LAG of mlx5: its RDMA device is on the first function, `eth1` on the second; reporters `tx` on auxiliary devices."""
    health = {
        PF: [printed("fw", 1), printed("vnic")],
        f"{ETHERNET}/65535": [printed("tx", 2)],
        "pci/0000:3b:00.1": [printed("fw", 5, "error")],
        "auxiliary/mlx5_core.sf.3": [printed("fw", 9, "error")],
    }
    device = "sys/devices/0000:3b:00.0"
    return {
        "sys/class/infiniband/mlx5_bond_0/fw_ver": "28.39.1002\n",
        "sys/class/infiniband/mlx5_bond_0/ports/1/link_layer": "Ethernet\n",
        "sys/class/infiniband/mlx5_bond_0/ports/1/hw_counters/np_cnp_sent": "5\n",
        "sys/class/infiniband/mlx5_bond_0/device": "-> ../../../devices/0000:3b:00.0",
        "sys/class/net/bond0/bonding/slaves": "eth0 eth1\n",
        "sys/class/net/eth1/device": "-> ../../../devices/0000:3b:00.1",
        f"{device}/driver": "-> ../../bus/pci/drivers/mlx5_core",
        f"{device}/subsystem": "-> ../../bus/pci",
        f"{device}/mlx5_core.eth.0/subsystem": "-> ../../../bus/auxiliary",
        f"{device}/mlx5_core.sf.3/subsystem": "-> ../../../bus/auxiliary",
        "ethtool/eth0.driver": "driver: mlx5_core\n",
        "rdma/link.json": [{"ifname": "mlx5_bond_0", "port": 1, "netdev": "bond0"}],
        HEALTH: {"health": health},
        INFO: PRINTED_INFO,
    } | ({VNIC: PRINTED_VNIC} if vnic else {})


async def devlink_series(kernel: RecordedKernel) -> dict[str, str]:
    return {
        series.removeprefix("roce_").replace('device="mlx5_bond_0"', "").replace("{,", "{"): value
        for series, value in samples(await exposition(kernel)).items()
        if series.startswith("roce_devlink")
    }


async def test_a_lag_has_the_reporters_of_all_its_functions() -> None:
    """One name is one series: the worst state and the sum of the counts. A subfunction is another device."""
    expected = {}
    for name, state, errors, recoveries in (("fw", 1, 6, 4), ("vnic", 0, 0, 0), ("tx", 0, 2, 1)):
        expected[f'devlink_health_state{{reporter="{name}"}}'] = str(state)
        expected[f'devlink_health_errors_total{{reporter="{name}"}}'] = str(errors)
        expected[f'devlink_health_recoveries_total{{reporter="{name}"}}'] = str(recoveries)
    for stage, component, one in (
        ("fixed", "fw.psid", "MT_0000000838"),
        ("running", "fw.version", "28.39.1002"),
        ("stored", "fw.version", "28.43.2026"),
    ):
        expected[f'devlink_info{{stage="{stage}",component="{component}",version="{one}"}}'] = "1"
    expected["devlink_vnic_readable{}"] = "1"
    expected["devlink_vnic_cq_overrun_total{}"] = "4"
    expected["devlink_vnic_invalid_command_total{}"] = "0"
    assert await devlink_series(host(files())) == expected


async def test_without_the_privilege_one_series_says_so() -> None:
    """Not a failure, and no counters of 0."""
    kernel = host(files(vnic=False))
    found = await devlink_series(kernel)
    assert {series: value for series, value in found.items() if "vnic_" in series} == {
        "devlink_vnic_readable{}": "0"
    }
    everything = samples(await exposition(kernel))
    assert everything['roce_exporter_source_up{source="devlink_vnic",device="mlx5_bond_0"}'] == "1"


async def test_a_simulated_host_with_failing_firmware() -> None:
    """The first port's card reports an error and then a recovery; the others stay healthy."""
    clock = Clock(0.0)
    kernel = simulate("firmware", clock=clock, vendors=("mlx5", "mlx5"))
    states: dict[str, set[object]] = {}
    for clock.now in range(0, 300, 10):
        for card, instance in (("first", "pci/0000:11:00.0"), ("second", "pci/0000:12:00.0")):
            (fatal,) = (one for one in kernel.devlink_reporters(instance) if one.name == "fw_fatal")
            states.setdefault(card, set()).add((fatal.is_healthy, fatal.errors, fatal.recoveries))
    assert states["second"] == {(True, 0, 0)}
    assert {healthy for healthy, _, _ in states["first"]} == {True, False}
    assert {errors for _, errors, _ in states["first"]} == {0, 1, 2}
    assert {recoveries for _, _, recoveries in states["first"]} == {0, 1}


def test_another_sysfs_root_is_another_host(tmp_path, monkeypatch) -> None:
    """Devlink would describe this host's device of the same address."""
    monkeypatch.setattr(DevlinkNetlink, "_call", lambda *_: pytest.fail("queried"))
    (tmp_path / "bus/pci/devices/0000:3b:00.0").mkdir(parents=True)
    kernel = LiveKernel(str(tmp_path))
    for read in (kernel.devlink_reporters, kernel.devlink_versions, kernel.devlink_vnic):
        with pytest.raises(Absent):
            read(PF)
