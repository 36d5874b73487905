"""Counter sets of queue pairs: any user may read them; the exporter switches none.

The messages are constructed as `fill_res_counter_entry` and `stat_get_doit_qp` of drivers/infiniband/core/nldev.c do it.
"""

import errno
import struct

import pytest
from netlink_dumps import DEVICES, DEVICES_WITHOUT_MLX5, DONE, LITTLE_ENDIAN, FakeKernel, refusal

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import (
    DUMP,
    MULTIPART,
    Malformed,
    Message,
    encode_attribute,
    encode_message,
    encode_u32,
)
from roce_exporter.host.kernel.object_netlink import read_counter_sets
from roce_exporter.host.kernel.rdma_netlink import STAT_GET, RdmaNetlink
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import CounterSet

pytestmark = LITTLE_ENDIAN

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
