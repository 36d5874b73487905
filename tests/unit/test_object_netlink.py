"""RDMA objects: a real kernel's lists are decoded part by part, and failures are distinguished."""

from __future__ import annotations

import errno
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import (
    COMPLETION_QUEUES_RXE0,
    CONNECTION_RXE1,
    CONTEXTS_RXE1,
    DEVICES,
    DEVICES_WITHOUT_MLX5,
    DONE,
    LISTENING_RXE0,
    MEMORY_REGIONS_RXE0,
    OBJECTS_RXE1,
    QUEUE_PAIRS_RXE0,
    Datagram,
    FakeKernel,
)

from roce_exporter.kernel import Absent
from roce_exporter.kernel.entry_dump import MOST_EMPTY_PARTS
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.kernel.netlink import (
    DUMP,
    DUMP_INTERRUPTED,
    MULTIPART,
    REQUEST,
    Malformed,
    Message,
    encode_attribute,
    encode_message,
    encode_u32,
)
from roce_exporter.kernel.object_netlink import (
    CONNECTION_STATES,
    LISTINGS,
    PART_BYTES,
    QUEUE_PAIR_STATES,
    QUEUE_PAIR_TYPES,
    decode_address,
    open_object_dump,
    read_object_limits,
)
from roce_exporter.kernel.rdma_netlink import GET, NETLINK_RDMA, RES_GET, RdmaNetlink
from roce_exporter.model import RdmaDevice
from roce_exporter.owner_model import ObjectKind, RdmaObject

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the dumps are from a little-endian machine"
)

RXE0 = RdmaDevice(0, "rxe0", "", "roce", "")
RXE1 = RdmaDevice(1, "rxe1", "", "roce", "")
MLX5_0 = RdmaDevice(2, "mlx5_0", "", "roce", "")

CONTEXT, QUEUE, REGION, PAIR, CONNECTION = (
    ObjectKind.CONTEXT,
    ObjectKind.COMPLETION_QUEUE,
    ObjectKind.MEMORY_REGION,
    ObjectKind.QUEUE_PAIR,
    ObjectKind.CONNECTION,
)

RECORDED = {
    "contexts": (
        CONTEXTS_RXE1,
        RXE1,
        [RdmaObject(CONTEXT, 230), RdmaObject(CONTEXT, 235), RdmaObject(CONTEXT, 230)],
    ),
    "completion queues": (
        COMPLETION_QUEUES_RXE0,
        RXE0,
        [RdmaObject(QUEUE, kernel="ib_core"), RdmaObject(QUEUE, 201)],
    ),
    "memory regions": (MEMORY_REGIONS_RXE0, RXE0, [RdmaObject(REGION, 201, size=131072)]),
    "queue pairs": (
        QUEUE_PAIRS_RXE0,
        RXE0,
        [
            RdmaObject(PAIR, 201, port=1, number=17, remote=17, type="RC", state="RTS"),
            RdmaObject(PAIR, kernel="ib_core", port=1, number=1, type="GSI", state="RTS"),
        ],
    ),
    "a listener": (LISTENING_RXE0, RXE0, [RdmaObject(CONNECTION, 230, state="LISTEN")]),
    "a connection": (
        CONNECTION_RXE1,
        RXE1,
        [RdmaObject(CONNECTION, 235, port=1, number=18, type="RC", state="CONNECT", peer="10.77.0.2")],
    ),
}


class Host:
    """A kernel that sends `parts` for a list, and the socket of everything else."""

    def __init__(self, *parts, devices=DEVICES, summary=OBJECTS_RXE1):
        self.lists = FakeKernel(lambda _: parts)
        self.others = FakeKernel(lambda request: [{GET: devices, RES_GET: summary}[request.kind]])

    def open(self, device=MLX5_0, kind=PAIR):
        return open_object_dump(lambda: RdmaNetlink(self.others), device, kind, self.lists)

    @property
    def is_closed(self):
        return [socket.closed for socket in self.lists.sockets] == [True]


def a_part(*entries, kind=PAIR, device=MLX5_0, flags=MULTIPART):
    """One datagram of a list; an entry is the bytes of its attributes."""
    listing = LISTINGS[kind]
    rows = b"".join(encode_attribute(listing.entry, entry) for entry in entries)
    handle = encode_u32(1, device.index) + encode_attribute(2, device.name.encode() + b"\0")
    return encode_message(
        Message(listing.command, flags, 0, 0, handle + encode_attribute(listing.table, rows))
    )


def a_pair(number, *, kind=2, state=3):
    return encode_u32(21, number) + encode_attribute(26, bytes([kind])) + encode_attribute(27, bytes([state]))


def an_end(code, kind=3):
    """DONE or an error with this errno."""
    return encode_message(Message(kind, MULTIPART if kind == 3 else 0, 0, 0, struct.pack("=i", -code)))


def all_parts(objects):
    found = []
    while (part := objects.next_part()) is not None:
        found += part
    return found


def a_sockaddr(family, port, rest):
    return struct.pack("=H", family) + struct.pack("!H", port) + rest.ljust(124, b"\0")


# Decoding


@pytest.mark.parametrize(("datagram", "device", "expected"), RECORDED.values(), ids=RECORDED)
def test_a_recorded_list_is_decoded(datagram, device, expected):
    host = Host(datagram, DONE)
    assert all_parts(host.open(device, expected[0].kind)) == expected


@pytest.mark.parametrize("kind", ObjectKind)
def test_a_list_is_requested_for_one_device(kind):
    host = Host(DONE)
    host.open(kind=kind)
    (asked,) = host.lists.asked
    assert (asked.kind, asked.flags, asked.payload) == (
        LISTINGS[kind].command,
        REQUEST | DUMP,
        encode_u32(1, 2),
    )
    assert host.lists.sockets[0].family == NETLINK_RDMA


def test_the_commands_are_the_kernels():
    numbers = {kind.value: (listing.command & 0x3FF, *listing[1:]) for kind, listing in LISTINGS.items()}
    assert numbers == {
        "qp": (10, 19, 20),
        "cm_id": (11, 30, 31),
        "cq": (12, 35, 36),
        "mr": (13, 40, 41),
        "ctx": (22, 86, 87),
    }


@pytest.mark.parametrize(("number", "name"), [*enumerate(QUEUE_PAIR_TYPES), (255, "DRIVER"), (11, "UNKNOWN")])
def test_a_type_has_the_name_that_rdma_prints(number, name):
    (found,) = all_parts(Host(a_part(a_pair(5, kind=number)), DONE).open())
    assert found.type == name


@pytest.mark.parametrize(("number", "name"), [*enumerate(QUEUE_PAIR_STATES), (7, "UNKNOWN")])
def test_a_state_of_a_queue_pair_has_the_name_that_rdma_prints(number, name):
    (found,) = all_parts(Host(a_part(a_pair(5, state=number)), DONE).open())
    assert found.state == name


@pytest.mark.parametrize(("number", "name"), [*enumerate(CONNECTION_STATES), (11, "UNKNOWN")])
def test_a_state_of_a_connection_has_the_name_that_rdma_prints(number, name):
    entry = encode_attribute(27, bytes([number]))
    (found,) = all_parts(Host(a_part(entry, kind=CONNECTION), DONE).open(kind=CONNECTION))
    assert found.state == name


def test_the_length_of_a_memory_region_has_64_bits():
    entry = encode_attribute(45, struct.pack("=Q", 3 << 40))
    (found,) = all_parts(Host(a_part(entry, kind=REGION), DONE).open(kind=REGION))
    assert found.size == 3 << 40


def test_an_object_of_an_ended_process_has_no_owner():
    (found,) = all_parts(Host(a_part(a_pair(5)), DONE).open())
    assert (found.pid, found.kernel) == (0, "")


ADDRESSES = {
    "IPv4": (a_sockaddr(2, 4791, bytes([192, 0, 2, 7])), "192.0.2.7"),
    "IPv6": (a_sockaddr(10, 4791, bytes(4) + bytes.fromhex("20010db8") + bytes(11) + b"\x09"), "2001:db8::9"),
    "mapped": (a_sockaddr(10, 4791, bytes(14) + b"\xff\xff" + bytes([192, 0, 2, 7])), "192.0.2.7"),
    "unspecified IPv4": (a_sockaddr(2, 4791, b""), ""),
    "unspecified IPv6": (a_sockaddr(10, 4791, b""), ""),
    "InfiniBand": (a_sockaddr(27, 0, bytes(range(1, 60))), ""),
    "none": (b"", ""),
}


@pytest.mark.parametrize(("raw", "text"), ADDRESSES.values(), ids=ADDRESSES)
def test_an_address_is_written_without_its_port(raw, text):
    assert decode_address(raw) == text


@pytest.mark.parametrize("raw", [b"\x02\0\0\0", bytes([2, 0, 0, 0, 192]), bytes([10, 0]) + bytes(20)])
def test_a_short_address_is_malformed(raw):
    with pytest.raises(Malformed, match="address"):
        decode_address(raw)


# Parts


def test_each_call_receives_one_datagram_and_the_first_one_at_the_start():
    host = Host(a_part(a_pair(1), a_pair(2)), a_part(a_pair(3)), a_part(a_pair(4)), DONE)
    objects = host.open()
    (socket,) = host.lists.sockets
    unread, numbers = [socket.unread], []
    while (part := objects.next_part()) is not None:
        numbers.append([one.number for one in part])
        unread.append(socket.unread)
    assert (numbers, unread) == ([[1, 2], [3], [4]], [3, 3, 2, 1])
    assert host.is_closed


def test_after_the_end_there_is_nothing_more():
    objects = Host(DONE).open()
    assert [objects.next_part(), objects.next_part()] == [None, None]


def test_a_list_that_changed_meanwhile_is_no_failure():
    objects = Host(a_part(a_pair(1), flags=MULTIPART | DUMP_INTERRUPTED), DONE).open()
    assert [one.number for one in all_parts(objects)] == [1]


def test_parts_of_others_are_passed_over():
    foreign = Datagram(a_part(a_pair(9)), sender=4712)
    stale = Datagram(a_part(a_pair(8)), stamped=True)
    objects = Host(foreign, a_part(a_pair(1)), stale, a_part(a_pair(2)), DONE).open()
    assert [one.number for one in all_parts(objects)] == [1, 2]


def test_giving_up_closes_the_socket_and_may_be_repeated():
    host = Host(a_part(a_pair(1)), a_part(a_pair(2)), DONE)
    objects = host.open()
    objects.close()
    objects.close()
    assert host.is_closed
    assert objects.next_part() is None


def test_a_list_that_is_dropped_closes_its_socket():
    host = Host(a_part(a_pair(1)), DONE)
    objects = host.open()
    del objects
    assert host.is_closed


# Limits


def a_summary(*rows, device=MLX5_0):
    """A count of objects; a row has a name, a number and a limit (0: none)."""
    contents = b"".join(encode_attribute(16, a_count(*row)) for row in rows)
    handle = encode_u32(1, device.index) + encode_attribute(2, device.name.encode() + b"\0")
    return encode_message(Message(RES_GET, 0, 0, 0, handle + encode_attribute(15, contents)))


def a_count(name, number, most):
    row = encode_attribute(17, name.encode() + b"\0") + encode_attribute(18, struct.pack("=Q", number))
    return row + encode_attribute(118, struct.pack("=Q", most)) if most else row


def limits_of(summary, devices=DEVICES, device=MLX5_0):
    return read_object_limits(RdmaNetlink(Host(summary=summary, devices=devices).others), device)


def test_a_newer_kernel_reports_the_limits_without_a_context():
    rows = [("pd", 2, 1024), ("cq", 3, 1 << 24), ("qp", 2, 262144), ("cm_id", 0, 0), ("mr", 1, 1 << 40)]
    expected = {"max_qp": 262144, "max_cq": 1 << 24, "max_mr": 1 << 40}
    assert limits_of(a_summary(*rows)) == expected


def test_a_limit_that_the_driver_does_not_report_is_missing():
    assert limits_of(a_summary(("qp", 2, 100), ("cq", 3, 0))) == {"max_qp": 100}


def test_an_older_kernel_reports_no_limits():
    with pytest.raises(Absent, match="limits"):
        limits_of(OBJECTS_RXE1, device=RXE1)


def test_a_kernel_that_does_not_count_objects_reports_no_limits():
    with pytest.raises(Absent, match="limits"):
        limits_of(an_end(errno.EINVAL, 2))


def test_limits_of_a_removed_device_are_gone():
    with pytest.raises(OSError, match="removed") as caught:
        limits_of(an_end(errno.EINVAL, 2), DEVICES_WITHOUT_MLX5)
    assert caught.value.errno == errno.ENODEV


def test_limits_of_another_device_are_not_taken_for_these():
    with pytest.raises(OSError, match="removed"):
        limits_of(a_summary(("qp", 2, 100), device=RXE1))


# Failures


@pytest.mark.parametrize("kind", [kind for kind in ObjectKind if kind is not PAIR])
@pytest.mark.parametrize("end", [2, 3])
def test_a_kernel_without_the_list_has_none(kind, end):
    host = Host(an_end(errno.EINVAL, end))
    with pytest.raises(Absent):
        host.open(kind=kind)
    assert host.is_closed


def test_a_kernel_without_queue_pairs_does_not_count_them_either():
    host = Host(an_end(errno.EINVAL), summary=an_end(errno.EINVAL, 2))
    with pytest.raises(Absent):
        host.open()


def test_a_driver_that_fails_at_its_first_queue_pair_is_broken_and_not_absent():
    host = Host(an_end(errno.EINVAL), summary=OBJECTS_RXE1)
    with pytest.raises(OSError, match="driver failed") as caught:
        host.open(RXE1)
    assert (type(caught.value), caught.value.errno, caught.value.filename) == (OSError, errno.EINVAL, "rxe1")
    assert host.is_closed


def test_a_driver_without_queries_of_queue_pairs_has_no_list():
    with pytest.raises(Absent):
        Host(an_end(errno.EOPNOTSUPP)).open()


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO, errno.EOPNOTSUPP])
def test_a_driver_that_fails_later_is_broken(code):
    host = Host(a_part(a_pair(1)), an_end(code))
    objects = host.open()
    assert len(objects.next_part()) == 1
    with pytest.raises(OSError, match=r"driver failed|Input/output") as caught:
        objects.next_part()
    assert (isinstance(caught.value, Absent), caught.value.errno) == (False, code)
    assert host.is_closed


@pytest.mark.parametrize("parts", [[an_end(errno.EINVAL)], [a_part(a_pair(1)), an_end(errno.EINVAL)]])
def test_a_removed_device_is_gone(parts):
    host = Host(*parts, devices=DEVICES_WITHOUT_MLX5)
    with pytest.raises(OSError, match="removed") as caught:
        all_parts(host.open())
    assert (type(caught.value), caught.value.errno) == (OSError, errno.ENODEV)


@pytest.mark.parametrize("other", [RXE1, RdmaDevice(2, "mlx5_9", "", "", "")])
def test_another_device_of_this_index_is_not_listed_as_this_one(other):
    host = Host(a_part(a_pair(1)), a_part(a_pair(2), device=other), DONE)
    objects = host.open()
    objects.next_part()
    with pytest.raises(OSError, match="removed") as caught:
        objects.next_part()
    assert caught.value.errno == errno.ENODEV
    assert host.is_closed


def test_a_lost_part_is_an_error():
    host = Host(a_part(a_pair(1)))
    objects = host.open()
    objects.next_part()
    with pytest.raises(OSError, match="lost") as caught:
        objects.next_part()
    assert caught.value.errno == errno.ENOBUFS
    assert host.is_closed


def test_an_object_that_fits_into_no_part_does_not_repeat_forever():
    host = Host(*[a_part()] * (MOST_EMPTY_PARTS + 5))
    objects = host.open()
    with pytest.raises(OSError, match="larger than a part") as caught:
        all_parts(objects)
    assert (caught.value.errno, host.is_closed) == (errno.EMSGSIZE, True)


def test_single_empty_parts_are_passed_over():
    parts = [a_part(), a_part(a_pair(1))] * MOST_EMPTY_PARTS
    assert len(all_parts(Host(*parts, DONE).open())) == MOST_EMPTY_PARTS


def test_a_part_that_exceeds_the_buffer_is_malformed():
    long = a_part(*[a_pair(number) for number in range(PART_BYTES // 24)])
    assert len(long) > PART_BYTES
    with pytest.raises(Malformed):
        Host(Datagram(long, flags=0x20)).open()


def test_without_rdma_netlink_there_is_no_list():
    def refuse(_):
        raise OSError(errno.EPROTONOSUPPORT, "no such protocol")

    with pytest.raises(Absent, match="ib_core"):
        open_object_dump(RdmaNetlink, MLX5_0, PAIR, refuse)


def test_a_request_that_cannot_be_sent_closes_the_socket():
    host = Host()
    host.lists.answer = lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        host.open()
    assert host.is_closed


@given(st.sampled_from([datagram for datagram, _, _ in RECORDED.values()]), st.data())
def test_a_truncated_or_changed_list_is_a_list_or_one_clear_error(datagram, data):
    broken = bytearray(datagram[: data.draw(st.integers(0, len(datagram)))])
    for position in data.draw(st.lists(st.integers(0, len(datagram) - 1), max_size=4)):
        if position < len(broken):
            broken[position] ^= data.draw(st.integers(1, 255))
    for kind in ObjectKind:
        try:
            found = all_parts(Host(bytes(broken), DONE).open(RXE0, kind))
        except OSError:
            continue
        assert all(one.kind is kind and one.pid >= 0 and one.size >= 0 for one in found)


# The live host


@pytest.mark.parametrize(
    "question",
    [
        lambda kernel: kernel.open_objects(MLX5_0, PAIR),
        lambda kernel: kernel.counter_sets(MLX5_0, 1),
        lambda kernel: kernel.object_limits(MLX5_0),
    ],
)
def test_without_netlink_the_live_host_has_no_objects(question):
    with pytest.raises(Absent):
        question(LiveKernel(netlink=False))
