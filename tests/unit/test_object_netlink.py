"""RDMA objects: a real kernel's lists are decoded part by part, and failures are distinguished."""

import errno
import struct

import pytest
from netlink_dumps import (
    COMPLETION_QUEUES_RXE0,
    CONNECTION_RXE1,
    CONTEXTS_RXE1,
    DEVICES,
    DEVICES_WITHOUT_MLX5,
    DONE,
    LISTENING_RXE0,
    LITTLE_ENDIAN,
    MEMORY_REGIONS_RXE0,
    OBJECTS_RXE1,
    QUEUE_PAIRS_RXE0,
    Datagram,
    FakeKernel,
    refusal,
)

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.netlink import (
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
from roce_exporter.host.kernel.object_netlink import (
    CONNECTION_STATES,
    LISTINGS,
    MOST_EMPTY_PARTS,
    PART_BYTES,
    QUEUE_PAIR_STATES,
    QUEUE_PAIR_TYPES,
    decode_address,
    open_object_dump,
    read_object_limits,
)
from roce_exporter.host.kernel.rdma_netlink import GET, NETLINK_RDMA, RES_GET, RdmaNetlink
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import ObjectKind, RdmaObject

pytestmark = LITTLE_ENDIAN

RXE0 = RdmaDevice(0, "rxe0", "", "roce", "")
RXE1 = RdmaDevice(1, "rxe1", "", "roce", "")
MLX5_0 = RdmaDevice(2, "mlx5_0", "", "roce", "")
RENAMED = RdmaDevice(2, "mlx5_9", "", "", "")

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


@pytest.mark.parametrize(
    ("field", "attribute", "kind", "number", "name"),
    [
        *(
            ("type", 26, PAIR, *one)
            for one in (*enumerate(QUEUE_PAIR_TYPES), (255, "DRIVER"), (11, "UNKNOWN"))
        ),
        *(("state", 27, PAIR, *one) for one in (*enumerate(QUEUE_PAIR_STATES), (7, "UNKNOWN"))),
        *(("state", 27, CONNECTION, *one) for one in (*enumerate(CONNECTION_STATES), (11, "UNKNOWN"))),
    ],
)
def test_types_and_states_have_the_names_that_rdma_prints(field, attribute, kind, number, name):
    entry = encode_u32(21, 5) + encode_attribute(attribute, bytes([number]))
    (found,) = all_parts(Host(a_part(entry, kind=kind), DONE).open(kind=kind))
    assert getattr(found, field) == name


def test_a_length_has_64_bits_and_an_object_of_an_ended_process_no_owner():
    entry = encode_attribute(45, struct.pack("=Q", 3 << 40))
    (found,) = all_parts(Host(a_part(entry, kind=REGION), DONE).open(kind=REGION))
    assert (found.size, found.pid, found.kernel) == (3 << 40, 0, "")


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


@pytest.mark.parametrize(
    ("parts", "numbers"),
    [
        ([], []),
        ([{"flags": MULTIPART | DUMP_INTERRUPTED}], [1]),
        ([{}, {"sender": 4712}, {"stamped": True}, {}], [1, 4]),
        ([None, {}] * MOST_EMPTY_PARTS, range(2, 2 * MOST_EMPTY_PARTS + 1, 2)),
    ],
    ids=["none", "a list that changed meanwhile", "parts of others", "single empty parts"],
)
def test_parts_that_are_passed_over(parts, numbers):
    sent = []
    for number, part in enumerate(parts, 1):
        more = dict(part or {})
        data = a_part(*[a_pair(number)] * (part is not None), flags=more.pop("flags", MULTIPART))
        sent.append(Datagram(data, **more) if more else data)
    objects = Host(*sent, DONE).open()
    assert [one.number for one in all_parts(objects)] == [*numbers]
    assert objects.next_part() is None


@pytest.mark.parametrize("drop", [False, True])
def test_giving_up_closes_the_socket_and_may_be_repeated(drop):
    host = Host(a_part(a_pair(1)), a_part(a_pair(2)), DONE)
    objects = host.open()
    if drop:
        del objects
    else:
        objects.close()
        objects.close()
        assert objects.next_part() is None
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
    """A limit that the driver does not report is missing."""
    rows = [("pd", 2, 1024), ("cq", 3, 0), ("qp", 2, 262144), ("cm_id", 0, 0), ("mr", 1, 1 << 40)]
    assert limits_of(a_summary(*rows)) == {"max_qp": 262144, "max_mr": 1 << 40}


@pytest.mark.parametrize(
    ("summary", "devices", "device", "kind", "text"),
    [
        (OBJECTS_RXE1, DEVICES, RXE1, Absent, "limits"),
        (refusal(errno.EINVAL), DEVICES, MLX5_0, Absent, "limits"),
        (refusal(errno.EINVAL), DEVICES_WITHOUT_MLX5, MLX5_0, OSError, "removed"),
        (a_summary(("qp", 2, 100), device=RXE1), DEVICES, MLX5_0, OSError, "removed"),
    ],
    ids=["an older kernel", "no objects", "removed", "another device"],
)
def test_limits_that_are_not_reported(summary, devices, device, kind, text):
    with pytest.raises(kind, match=text) as caught:
        limits_of(summary, devices, device)
    assert isinstance(caught.value, Absent) is (kind is Absent)
    assert kind is Absent or caught.value.errno == errno.ENODEV


# Failures


FIRST = a_part(a_pair(1))
INVALID = refusal(errno.EINVAL, 3)
GONE = {"devices": DEVICES_WITHOUT_MLX5}
FAILURES = {
    "no queue pairs, no count of them": ([INVALID], {"summary": refusal(errno.EINVAL)}, Absent, None),
    "a driver without queries": ([refusal(errno.EOPNOTSUPP, 3)], {}, Absent, None),
    "fails at its first": ([INVALID], {"summary": a_summary(("qp", 2, 0))}, "driver failed", errno.EINVAL),
    "fails later": ([FIRST, INVALID], {}, "driver failed", errno.EINVAL),
    "another error": ([FIRST, refusal(errno.EIO, 3)], {}, "Input/output", errno.EIO),
    "unsupported later": ([FIRST, refusal(errno.EOPNOTSUPP, 3)], {}, "driver failed", errno.EOPNOTSUPP),
    "removed": ([INVALID], GONE, "removed", errno.ENODEV),
    "removed later": ([FIRST, INVALID], GONE, "removed", errno.ENODEV),
    "index reused": ([FIRST, a_part(a_pair(2), device=RXE1)], {}, "removed", errno.ENODEV),
    "renamed": ([FIRST, a_part(a_pair(2), device=RENAMED)], {}, "removed", errno.ENODEV),
    "lost": ([FIRST], {}, "lost", errno.ENOBUFS),
    "fits into no part": ([a_part()] * (MOST_EMPTY_PARTS + 5), {}, "larger than a part", errno.EMSGSIZE),
}


@pytest.mark.parametrize(("parts", "options", "error", "number"), FAILURES.values(), ids=FAILURES)
def test_a_list_that_fails_is_absent_or_broken_and_closed(parts, options, error, number):
    host = Host(*parts, **options)
    with pytest.raises(OSError, match=None if error is Absent else error) as caught:
        all_parts(host.open())
    assert isinstance(caught.value, Absent) is (error is Absent)
    assert number in (None, caught.value.errno)
    assert host.is_closed


@pytest.mark.parametrize("kind", [kind for kind in ObjectKind if kind is not PAIR])
@pytest.mark.parametrize("end", [2, 3])
def test_a_kernel_without_the_list_has_none(kind, end):
    host = Host(refusal(errno.EINVAL, end))
    with pytest.raises(Absent):
        host.open(kind=kind)
    assert host.is_closed


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
