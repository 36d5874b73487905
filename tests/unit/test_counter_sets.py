"""Counter sets of queue pairs: read by everyone, switched by `roce-exporter counters` only.

The messages are constructed as `fill_res_counter_entry` and `stat_get_doit_qp` of drivers/infiniband/core/nldev.c do it.
"""

from __future__ import annotations

import asyncio
import errno
import struct
import sys

import pytest
from netlink_dumps import DEVICES, DEVICES_WITHOUT_MLX5, DONE, PORTS_RXE0, FakeKernel, refusal

from roce_exporter.cli.counters import counters
from roce_exporter.cli.options import parse_options
from roce_exporter.cli.parser import OptionError
from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.counter_set_netlink import (
    BY_PID,
    BY_TYPE,
    CounterMode,
    read_counter_mode,
    read_counter_sets,
)
from roce_exporter.host.kernel.counter_switch import OFF, STAT_SET, switch_counter_sets
from roce_exporter.host.kernel.netlink import (
    DUMP,
    MULTIPART,
    Malformed,
    Message,
    decode_values,
    encode_attribute,
    encode_message,
    encode_u32,
)
from roce_exporter.host.kernel.rdma_netlink import GET, PORT_GET, STAT_GET, RdmaNetlink
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import CounterSet

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the dumps are from a little-endian machine"
)

MLX5_0 = RdmaDevice(2, "mlx5_0", "", "roce", "")
RXE0 = RdmaDevice(0, "rxe0", "", "roce", "")

NONE, AUTO, MANUAL = 0, 1, 2


def a_row(name, value):
    row = encode_attribute(82, name.encode() + b"\0") + encode_attribute(83, struct.pack("=Q", value))
    return encode_attribute(81, row)


def a_set(number, *, mode=AUTO, kind=None, pid=None, port=1, values=(), pairs=(17,)):
    """One counter set, its attributes in the kernel's order."""
    listed = b"".join(encode_attribute(20, encode_u32(21, pair)) for pair in pairs)
    return (
        encode_u32(3, port)
        + encode_u32(79, number)
        + encode_u32(74, mode)
        + (b"" if kind is None else encode_attribute(26, bytes([kind])))
        + (b"" if pid is None else encode_u32(28, pid))
        + encode_attribute(19, listed)
        + encode_attribute(80, b"".join(a_row(name, value) for name, value in dict(values).items()))
    )


def a_part(*sets, device=MLX5_0):
    rows = b"".join(encode_attribute(78, one) for one in sets)
    return encode_message(
        Message(STAT_GET, MULTIPART, 0, 0, a_handle(device)[:-8] + encode_attribute(77, rows))
    )


def a_handle(device, port=1):
    return (
        encode_u32(1, device.index) + encode_attribute(2, device.name.encode() + b"\0") + encode_u32(3, port)
    )


def a_mode(mode, mask=None, optional=None, device=MLX5_0, kind=STAT_GET):
    attributes = encode_u32(74, mode) + (b"" if mask is None else encode_u32(76, mask))
    attributes += b"" if optional is None else encode_attribute(104, bytes([optional]))
    return encode_message(Message(kind, 0, 0, 0, a_handle(device) + attributes))


def sets_of(*parts, devices=DEVICES):
    lists = FakeKernel(lambda _: parts)
    others = FakeKernel(lambda _: [devices])
    return read_counter_sets(lambda: RdmaNetlink(others), MLX5_0, 1, lists), lists


# Reading


def test_sets_are_read_with_process_type_and_values():
    values = {"rx_write_requests": 7, "np_cnp_sent": 1 << 40}
    found, lists = sets_of(
        a_part(a_set(3, kind=2, pid=4711, values=values), a_set(4, kind=4, pid=4711)),
        a_part(a_set(9, mode=MANUAL, values={"out_of_sequence": 0})),
        DONE,
    )
    assert found == (
        CounterSet(1, 3, 4711, "RC", values),
        CounterSet(1, 4, 4711, "UD", {}),
        CounterSet(1, 9, 0, "", {"out_of_sequence": 0}),
    )
    (asked,) = lists.asked
    assert (asked.kind, bool(asked.flags & DUMP)) == (STAT_GET, True)
    assert asked.payload == encode_u32(1, 2) + encode_u32(3, 1) + encode_u32(75, 19)
    assert [socket.closed for socket in lists.sockets] == [True]
    assert sets_of(DONE)[0] == ()
    assert sets_of(a_part(a_set(3, kind=2)), DONE)[0][0].pid == 0, "its process has ended"


@pytest.mark.parametrize(
    ("parts", "devices", "kind", "number"),
    [
        ([refusal(errno.EINVAL)], DEVICES, Absent, None),
        ([refusal(errno.EINVAL)], DEVICES_WITHOUT_MLX5, OSError, errno.ENODEV),
        ([a_part(a_set(3), device=RXE0), DONE], DEVICES, OSError, errno.ENODEV),
    ],
    ids=["a kernel without sets", "a removed device", "another device"],
)
def test_sets_that_cannot_be_read(parts, devices, kind, number):
    with pytest.raises(kind, match="removed" if number else None) as caught:
        sets_of(*parts, devices=devices)
    assert isinstance(caught.value, Absent) is (kind is Absent)
    assert number in (None, caught.value.errno)


@pytest.mark.parametrize(
    "entry",
    [
        encode_u32(3, 1),
        encode_u32(79, 1),
        a_set(3)[:-4] + b"\0",
        a_set(3) + encode_attribute(80, a_row("x", 1)[:-12]),
    ],
)
def test_an_incomplete_set_is_malformed(entry):
    with pytest.raises(Malformed):
        sets_of(a_part(entry), DONE)


MODES = {
    "none": (a_mode(NONE), CounterMode(NONE, 0)),
    "by type": (a_mode(AUTO, BY_TYPE), CounterMode(AUTO, BY_TYPE)),
    "by type and process": (a_mode(AUTO, 3), CounterMode(AUTO, 3)),
    "without optional counters": (a_mode(AUTO, 3, 0), CounterMode(AUTO, 3)),
    "with optional counters": (a_mode(AUTO, 3, 1), CounterMode(AUTO, 3, optional=True)),
    "by hand": (a_mode(MANUAL), CounterMode(MANUAL, 0)),
}


@pytest.mark.parametrize(("answer", "mode"), MODES.values(), ids=MODES)
def test_the_mode_of_a_port_is_read(answer, mode):
    kernel = FakeKernel(lambda _: [answer])
    assert read_counter_mode(RdmaNetlink(kernel), MLX5_0, 1) == mode
    (asked,) = kernel.asked
    assert (asked.kind, asked.flags & DUMP) == (STAT_GET, 0)
    assert decode_values(asked.payload).keys() == {1, 3, 74, 75}


# Switching


@pytest.mark.parametrize("mask", [OFF.mask, BY_TYPE, BY_PID, BY_TYPE | BY_PID])
@pytest.mark.parametrize("optional", [False, True])
def test_a_change_names_the_port_and_the_criteria(mask, optional):
    kernel = FakeKernel(lambda _: [a_mode(AUTO, kind=STAT_SET)])
    switch_counter_sets(RdmaNetlink(kernel), MLX5_0, 1, CounterMode(AUTO, mask, optional=optional))
    (asked,) = kernel.asked
    assert asked.kind == (5 << 10) | 16
    numbers = {
        kind: struct.pack("=I", value) for kind, value in {1: 2, 3: 1, 74: AUTO, 75: 19, 76: mask}.items()
    }
    assert decode_values(asked.payload) == numbers | ({104: b"\x01"} if optional else {})


@pytest.mark.parametrize(
    "call",
    [
        lambda netlink: read_counter_mode(netlink, MLX5_0, 1),
        lambda netlink: switch_counter_sets(netlink, MLX5_0, 1, CounterMode(AUTO, 3)),
    ],
)
def test_another_device_is_not_taken_for_this_one(call):
    netlink = RdmaNetlink(FakeKernel(lambda request: [a_mode(NONE, device=RXE0, kind=request.kind)]))
    with pytest.raises(OSError, match="removed") as caught:
        call(netlink)
    assert caught.value.errno == errno.ENODEV


# The command


class Ports:
    """A kernel with port 1 of rxe0 and mlx5_0, which behaves as counters.c does."""

    def __init__(self, *, refusals=(), modes=(), sets=0, binds_optional=True):
        self.modes = {"rxe0": (NONE, 0), "mlx5_0": (NONE, 0), **dict(modes)}
        self.refusals = dict(refusals)
        self.sets = sets
        self.binds_optional = binds_optional
        self.changes = []

    def __call__(self, family):
        return FakeKernel(self.answer)(family)

    def answer(self, request):
        if request.kind == GET:
            return [self.refusals.get(GET, DEVICES)]
        values = {
            kind: int.from_bytes(value, "little") for kind, value in decode_values(request.payload).items()
        }
        device = {0: RXE0, 2: MLX5_0}.get(values[1])
        if request.kind == PORT_GET:
            return [self.ports(device)]
        if request.kind == STAT_SET:
            return [self.change(device, values)]
        if request.flags & DUMP:
            numbers = range(self.sets if device is MLX5_0 else 0)
            return [a_part(*map(a_set, numbers), device=device)] * bool(numbers) + [DONE]
        return [self.refusals.get(STAT_GET, a_mode(*self.modes[device.name], device=device))]

    def ports(self, device):
        if device is None:
            return DONE
        port = encode_message(Message(PORT_GET, MULTIPART, 0, 0, a_handle(device)))
        return PORTS_RXE0 if device is RXE0 else port + DONE

    def change(self, device, values):
        self.changes.append((device.name, values[3], values[76]))
        if code := self.refusals.get(device.name):
            return refusal(code)
        optional = values.get(104, 0) if self.binds_optional else None
        self.modes[device.name] = (AUTO, values[76], optional) if values[76] else (NONE, 0)
        return a_mode(AUTO, device=device, kind=STAT_SET)


def run(capsys, host, *arguments):
    status = asyncio.run(counters(parse_options(["counters", *arguments]), host))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_show_prints_the_mode_and_the_sets_of_every_port(capsys):
    host = Ports(modes={"rxe0": (MANUAL, None), "mlx5_0": (AUTO, 3)}, sets=1)
    expected = "rxe0/1: mode manual, 0 counter sets\nmlx5_0/1: mode auto type,pid, 1 counter set\n"
    assert run(capsys, host, "show") == (0, expected, "")
    assert host.changes == []


@pytest.mark.parametrize(
    ("flags", "mask"),
    [
        ((), 3),
        (("--auto=type,pid",), 3),
        (("--auto=pid",), 2),
        (("--auto", "type"), 1),
        (("--auto=pid,pid",), 2),
        (("--optional-counters",), 3),
    ],
)
def test_enable_switches_every_port_and_prints_the_new_mode(capsys, flags, mask):
    host = Ports()
    status, out, err = run(capsys, host, "enable", *flags)
    assert (status, err) == (0, "")
    assert host.changes == [("rxe0", 1, mask), ("mlx5_0", 1, mask)]
    names = {1: "type", 2: "pid", 3: "type,pid"}
    bound = " optional-counters on" if "--optional-counters" in flags else ""
    assert f"mlx5_0/1: mode auto {names[mask]}{bound}, 0 counter sets\n" in out


def test_a_kernel_that_binds_no_optional_counters_is_one_line_per_port(capsys):
    status, out, err = run(capsys, Ports(binds_optional=False), "enable", "--optional-counters")
    assert (status, out) == (1, "")
    expected = (
        "mode auto type,pid, but this kernel binds no optional counters to sets (Linux 6.15 and newer do)"
    )
    assert [line.split("/1: ") for line in err.splitlines()] == [
        [f"roce-exporter: {device}", expected] for device in ("rxe0", "mlx5_0")
    ]


def test_disable_undoes_it(capsys):
    host = Ports(modes={"mlx5_0": (AUTO, 3)})
    status, out, _ = run(capsys, host, "disable")
    assert (status, host.changes) == (0, [("rxe0", 1, 0), ("mlx5_0", 1, 0)])
    assert "mlx5_0/1: mode none, 0 counter sets\n" in out


@pytest.mark.parametrize(
    ("flag", "changed"),
    [
        ("--device.include=mlx5_.*", ["mlx5_0"]),
        ("--device.include=mlx5", []),
        ("--device.exclude=rxe.", ["mlx5_0"]),
    ],
)
def test_only_selected_devices_are_changed(capsys, flag, changed):
    host = Ports()
    status, _, err = run(capsys, host, "enable", flag)
    assert [name for name, _, _ in host.changes] == changed
    assert (status, err) == (0, "") if changed else (1, err)
    assert ("no RDMA device matches" in err) is not bool(changed)


REFUSALS = {
    errno.EBUSY: "counter sets of another mode exist",
    errno.EINVAL: "try --auto=type",
    errno.EIO: "Input/output error",
}


@pytest.mark.parametrize(("code", "words"), REFUSALS.items())
def test_a_port_that_is_refused_is_one_line_and_the_others_are_changed(capsys, code, words):
    status, out, err = run(capsys, Ports(refusals={"rxe0": code}), "enable")
    assert status == 1
    assert err.startswith("roce-exporter: rxe0/1: ")
    assert (err.count("\n"), words in err) == (1, True)
    assert out == "mlx5_0/1: mode auto type,pid, 0 counter sets\n"


def unsupported(_):
    raise OSError(errno.EPROTONOSUPPORT, "no such protocol")


DENIED = {"rxe0": errno.EPERM, "mlx5_0": errno.EPERM}


@pytest.mark.parametrize(
    ("host", "command", "lines", "words"),
    [
        (Ports(refusals=DENIED), "enable", 1, ("CAP_NET_ADMIN", "roce-exporter-counters@.service")),
        (unsupported, "show", 1, ("ib_core",)),
        (Ports(refusals={STAT_GET: refusal(errno.EINVAL)}), "show", 2, ()),
    ],
    ids=["no privilege", "no netlink", "an old kernel"],
)
def test_what_does_not_work_is_a_line_with_the_remedy(capsys, host, command, lines, words):
    status, out, err = run(capsys, host, command)
    assert (status, out, err.count("\n")) == (1, "", lines)
    assert all(word in err for word in words)


def test_a_driver_without_counters_per_port_is_skipped(capsys):
    status, out, err = run(capsys, Ports(refusals={"rxe0": errno.EOPNOTSUPP}), "enable")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "rxe0/1: skipped: its driver has no counters per port"


@pytest.mark.parametrize(
    "arguments", [[], ["on"], ["enable", "--auto=uid"], ["enable", "--auto="], ["show", "--device.include=("]]
)
def test_invalid_flags_are_one_line(arguments):
    with pytest.raises(OptionError, match="roce-exporter counters --help"):
        parse_options(["counters", *arguments])
