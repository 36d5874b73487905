"""RDMA netlink: replies of a real kernel are decoded, and the kinds of negative replies are distinguished."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import (
    DEVICES,
    DEVICES_WITHOUT_MLX5,
    LITTLE_ENDIAN,
    OBJECTS_RXE1,
    PORTS_GONE,
    PORTS_RXE0,
    REFUSED,
    STATISTICS_MLX5_0,
    STATISTICS_MLX5_0_OPTIONAL,
    STATISTICS_RENAMED,
    STATISTICS_RXE0,
    STATUS_MLX5_0,
    STATUS_RXE0,
    FakeKernel,
    payloads,
    refusal,
)

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.names import MOST_NAMES, keep
from roce_exporter.host.kernel.netlink import Malformed, Message, encode_attribute, encode_message, encode_u32
from roce_exporter.host.kernel.rdma_netlink import (
    COUNTERS,
    GET,
    OBJECTS,
    PORT_GET,
    RES_GET,
    STAT_GET,
    STAT_GET_STATUS,
    RdmaNetlink,
    decode_device,
    decode_numbers,
    decode_port,
    decode_table,
    learn_layout,
    read_by_layout,
)
from roce_exporter.model import RdmaDevice, RdmaPort

pytestmark = LITTLE_ENDIAN

RXE0 = RdmaDevice(0, "rxe0", "c8cc:58ff:fe1b:fe53", "roce", "")
RXE1 = RdmaDevice(1, "rxe1", "dc80:f1ff:fe7e:cc01", "roce", "")
MLX5_0 = RdmaDevice(2, "mlx5_0", "0002:c903:0000:00f0", "roce", "99.1.2")
MLX5_1 = RdmaDevice(3, "mlx5_1", "0002:c903:0000:00f1", "roce", "99.1.2")
SIW0 = RdmaDevice(4, "siw0", "c8cc:58ff:fe1b:fe53", "iw", "")

QUESTIONS = {
    "ports": lambda asked: asked.ports(MLX5_0),
    "statistics": lambda asked: asked.statistics(MLX5_0, 1),
    "optional_counters": lambda asked: asked.optional_counters(MLX5_0, 1),
    "resources": lambda asked: asked.resources(MLX5_0),
}


def rdma_that_says(answers):
    """RDMA netlink that replies from a table of message types, and refuses all others."""
    kernel = FakeKernel(lambda request: [answers.get(request.kind, REFUSED)])
    return RdmaNetlink(kernel), kernel


def an_answer(*rows, device=MLX5_0, table=COUNTERS):
    """A message with a table; a row is the bytes of its attributes, or its name and value."""
    contents = b"".join(encode_attribute(81, row if isinstance(row, bytes) else a_row(*row)) for row in rows)
    handle = encode_u32(1, device.index) + encode_attribute(2, device.name.encode() + b"\0")
    payload = handle + encode_u32(3, 1) + encode_attribute(table.whole, contents)
    return encode_message(Message(STAT_GET, 0, 0, 0, payload))


def a_row(name, value, *, table=COUNTERS):
    raw_name = name.encode() if isinstance(name, str) else name
    return encode_attribute(table.name, raw_name + b"\0") + encode_attribute(table.number, value)


def u64(value):
    return struct.pack("=Q", value)


# Replies of a real kernel


def test_every_device_and_the_ports_of_one_are_listed():
    asked, kernel = rdma_that_says({GET: DEVICES, PORT_GET: PORTS_RXE0})
    assert asked.devices() == (RXE0, RXE1, MLX5_0, MLX5_1, SIW0)
    assert kernel.sockets[0].family == 20
    assert asked.ports(RXE0) == (RdmaPort(1, "veth0"),)
    assert kernel.asked[1].payload == encode_u32(1, 0)


@pytest.mark.parametrize(
    ("dump", "device", "count", "values"),
    [
        (STATISTICS_RXE0, RXE0, 15, {"sent_pkts": 200, "rcvd_pkts": 200, "ack_deferred": 200}),
        (
            STATISTICS_MLX5_0,
            MLX5_0,
            28,
            {"out_of_sequence": 2**32, "packet_seq_err": 2**64 - 1, "np_cnp_sent": 555},
        ),
    ],
    ids=["rxe", "mlx5"],
)
def test_counters_of_a_port_are_in_the_kernels_order_and_read_completely(dump, device, count, values):
    asked, kernel = rdma_that_says({STAT_GET: dump})
    counters = asked.statistics(device, 1)
    assert len(counters) == count
    assert [(name, value) for name, value in counters.items() if value] == [*values.items()]
    assert kernel.asked[0].payload == encode_u32(1, device.index) + encode_u32(3, 1)


@pytest.mark.parametrize(
    ("dump", "device", "counters"),
    [(STATUS_MLX5_0, MLX5_0, {"cc_rx_ce_pkts": True, "cc_tx_cnp_pkts": False}), (STATUS_RXE0, RXE0, {})],
)
def test_only_optional_counters_are_listed_as_optional(dump, device, counters):
    asked, _ = rdma_that_says({STAT_GET_STATUS: dump})
    assert asked.optional_counters(device, 1) == counters


def test_objects_in_use_are_counted_by_kind():
    asked, _ = rdma_that_says({RES_GET: OBJECTS_RXE1})
    expected = {"pd": 2, "cq": 2, "qp": 2, "cm_id": 0, "mr": 1, "ctx": 1, "srq": 0}
    assert asked.resources(RXE1) == expected


# The layout that avoids decoding the same names again


def test_the_same_names_are_read_by_their_layout_and_ports_do_not_share_one():
    asked, _ = rdma_that_says({STAT_GET: STATISTICS_MLX5_0})
    first = asked.statistics(MLX5_0, 1)
    (learnt,) = asked._layouts.values()
    assert asked.statistics(MLX5_0, 1) == first
    assert list(asked._layouts.values()) == [learnt]
    asked.statistics(MLX5_0, 2)
    assert set(asked._layouts) == {("mlx5_0", 1), ("mlx5_0", 2)}


def test_a_counter_that_is_switched_on_or_off_is_noticed_at_once():
    answers = {}
    asked, _ = rdma_that_says(answers)
    for dump in (STATISTICS_MLX5_0, STATISTICS_MLX5_0_OPTIONAL, STATISTICS_MLX5_0):
        answers[STAT_GET] = dump
        assert ("cc_rx_ce_pkts" in asked.statistics(MLX5_0, 1)) is (dump is STATISTICS_MLX5_0_OPTIONAL)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=28, max_size=28))
def test_a_layout_reads_any_values(values):
    (answer,) = payloads(STATISTICS_MLX5_0)
    rows = decode_table(answer, COUNTERS, MLX5_0)
    changed = bytearray(answer)
    for (start, end), value in zip(rows.values(), values, strict=True):
        changed[start:end] = u64(value)
    layout = learn_layout(answer, rows)
    assert read_by_layout(bytes(changed), layout) == dict(zip(rows, values, strict=True))


@given(st.integers(0, len(payloads(STATISTICS_MLX5_0)[0]) - 1), st.integers(0, 255))
def test_a_layout_never_reads_what_decoding_would_read_differently(position, byte):
    (answer,) = payloads(STATISTICS_MLX5_0)
    layout = learn_layout(answer, decode_table(answer, COUNTERS, MLX5_0))
    changed = bytearray(answer)
    changed[position] = byte
    found = read_by_layout(bytes(changed), layout)
    if found is not None:
        assert found == decode_numbers(bytes(changed), decode_table(bytes(changed), COUNTERS, MLX5_0))


@pytest.mark.parametrize(
    ("rows", "counters", "layouts"),
    [
        ([], {}, 1),
        ([("a", struct.pack("=I", 7)), ("b", u64(8))], {"a": 7, "b": 8}, 0),
        ([("größe", u64(1)), ("x" * 60000, u64(2))], {"größe": 1, "x" * 60000: 2}, 1),
        ([(b"\xff", u64(1)), (b"\xfe", u64(2))], {"\\xff": 1, "\\xfe": 2}, 1),
    ],
    ids=["none", "narrower", "any name", "not UTF-8"],
)
def test_names_and_values_of_other_drivers(rows, counters, layouts):
    """A narrower value is decoded each time."""
    asked, _ = rdma_that_says({STAT_GET: an_answer(*rows)})
    assert asked.statistics(MLX5_0, 1) == counters
    assert asked.statistics(MLX5_0, 1) == counters
    assert len(asked._layouts) == layouts


# Absent, broken and removed devices


REMOVED = {GET: DEVICES_WITHOUT_MLX5, PORT_GET: PORTS_GONE}
REUSED = {
    GET: DEVICES,
    PORT_GET: PORTS_RXE0,
    STAT_GET: STATISTICS_RXE0,
    STAT_GET_STATUS: STATUS_RXE0,
    RES_GET: OBJECTS_RXE1,
}
"""Another device has the index now. Otherwise the counters of one device would be shown as another's."""


def refused(code):
    return {GET: DEVICES, **dict.fromkeys((PORT_GET, STAT_GET, STAT_GET_STATUS, RES_GET), refusal(code))}


FAILURES = [
    ({GET: DEVICES}, Absent, None),
    (REMOVED, OSError, errno.ENODEV),
    (REUSED, OSError, errno.ENODEV),
    *((refused(code), OSError, code) for code in (errno.EMSGSIZE, errno.EPERM, errno.ENOMEM)),
]
UNSUPPORTED = [(refused(code), Absent, None) for code in (errno.EOPNOTSUPP, errno.ENOENT, errno.ENOSYS)]
"""Not of ports, which every kernel with RDMA netlink lists."""


@pytest.mark.parametrize(
    ("question", "answers", "kind", "number"),
    [
        (question, *failure)
        for question in QUESTIONS
        for failure in (FAILURES if question == "ports" else FAILURES + UNSUPPORTED)
    ],
)
def test_a_query_that_fails(question, answers, kind, number):
    """It is absent, broken, or about a device that is gone."""
    asked, _ = rdma_that_says(answers)
    with pytest.raises(kind, match="was removed" if number == errno.ENODEV else "Errno") as caught:
        QUESTIONS[question](asked)
    assert isinstance(caught.value, Absent) is (kind is Absent)
    assert number in (None, caught.value.errno)


def test_a_renamed_device_is_removed_even_after_it_was_read():
    answers = {STAT_GET: STATISTICS_MLX5_0}
    asked, _ = rdma_that_says(answers)
    asked.statistics(MLX5_0, 1)
    answers[STAT_GET] = STATISTICS_RENAMED
    with pytest.raises(OSError, match="was removed") as caught:
        asked.statistics(MLX5_0, 1)
    assert caught.value.errno == errno.ENODEV


@pytest.mark.parametrize(
    ("status", "number", "text"),
    [(STATUS_MLX5_0, errno.EINVAL, "failed to read"), (refusal(errno.ENOMEM), errno.ENOMEM, "Errno")],
)
def test_a_driver_that_fails_is_broken_and_not_absent(status, number, text):
    """The kernel returns EINVAL in both cases; it returns the status only for a port that has statistics."""
    asked, _ = rdma_that_says({GET: DEVICES, STAT_GET: REFUSED, STAT_GET_STATUS: status})
    with pytest.raises(OSError, match=text) as caught:
        asked.statistics(MLX5_0, 1)
    assert (isinstance(caught.value, Absent), caught.value.errno) == (False, number)


@pytest.mark.parametrize(
    ("reply", "absent"),
    [
        (REFUSED, True),
        (refusal(errno.ENOMEM), False),
        (OSError(errno.ECONNREFUSED, "Connection refused"), True),
        (None, False),
    ],
    ids=["refused", "no memory", "another network namespace", "lost"],
)
def test_a_list_of_devices_that_fails(reply, absent):
    with pytest.raises(OSError, match=r"Errno|lost") as caught:
        RdmaNetlink(FakeKernel(lambda _: [reply] if reply else [])).devices()
    assert isinstance(caught.value, Absent) is absent


def test_a_kernel_without_rdma_netlink_is_absent_until_it_has_it():
    kernel = FakeKernel(lambda _: [DEVICES])
    loaded = False

    def open_socket(family):
        if not loaded:
            raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")
        return kernel(family)

    asked = RdmaNetlink(open_socket)
    with pytest.raises(Absent) as caught:
        asked.devices()
    assert caught.value.errno == errno.EPROTONOSUPPORT
    loaded = True
    assert len(asked.devices()) == 5


def test_a_forbidden_socket_is_broken_and_not_absent():
    def open_socket(_):
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    with pytest.raises(OSError, match="family") as caught:
        RdmaNetlink(open_socket).devices()
    assert not isinstance(caught.value, Absent)


# Malformed replies

NAME_ONLY = encode_attribute(82, b"a\0")
VALUE_ONLY = encode_attribute(83, u64(1))


@pytest.mark.parametrize(
    "answer",
    [
        an_answer(("a", u64(1)), ("a", u64(2))),
        an_answer(NAME_ONLY),
        an_answer(VALUE_ONLY),
        an_answer(("a", b"abc")),
        an_answer(("a", b"")),
        an_answer(b"\xff\xff\x52\x00"),
        an_answer(b"\x00"),
        an_answer(table=OBJECTS),
        encode_message(Message(STAT_GET, 0, 0, 0, b"")),
        encode_message(Message(2, 0, 0, 0, bytes(4))),
    ],
    ids=range(10),
)
def test_a_malformed_answer_is_reported_and_the_next_query_uses_a_new_socket(answer):
    answers = {STAT_GET: answer}
    asked, kernel = rdma_that_says(answers)
    with pytest.raises(Malformed) as caught:
        asked.statistics(MLX5_0, 1)
    assert caught.value.errno == errno.EBADMSG
    answers[STAT_GET] = STATISTICS_MLX5_0
    assert asked.statistics(MLX5_0, 1)["np_cnp_sent"] == 555
    assert [opened.closed for opened in kernel.sockets] == [True, False]


@pytest.mark.parametrize(
    ("decode", "attributes"),
    [
        (decode_device, encode_u32(1, 0)),
        (decode_device, encode_attribute(2, b"rxe0\0")),
        (lambda answer: decode_port(answer, RXE0), encode_u32(1, 0) + encode_attribute(2, b"rxe0\0")),
    ],
)
def test_a_device_or_port_without_index_or_name_is_malformed(decode, attributes):
    with pytest.raises(Malformed):
        decode(attributes)


def test_attributes_that_a_kernel_may_leave_out():
    """Old ones have fewer, and a port in another network namespace has no network device."""
    handle = encode_u32(1, 0) + encode_attribute(2, b"rxe0\0")
    assert decode_device(handle) == RdmaDevice(0, "rxe0", "", "", "")
    assert decode_port(handle + encode_u32(3, 1), RXE0) == RdmaPort(1, "")


def mode_in(answer: bytes | OSError) -> bool:
    kernel = FakeKernel(lambda _: [answer])
    try:
        return RdmaNetlink(kernel).is_shared()
    finally:
        assert [(asked.kind, asked.payload) for asked in kernel.asked] == [(5 << 10 | 6, b"")]


@pytest.mark.parametrize("number", [0, 1])
def test_the_mode_of_namespaces(number) -> None:
    """A reply to SYS_GET (constructed from rdma_netlink.h): 66 is the mode, one byte; 93 is copy on fork."""
    payload = encode_attribute(66, struct.pack("=B", number)) + encode_attribute(93, b"\1")
    assert mode_in(encode_message(Message(5 << 10 | 6, 0, 0, 0, payload))) is bool(number)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EPROTONOSUPPORT, errno.ECONNREFUSED])
def test_a_kernel_without_the_mode_is_absent(number) -> None:
    with pytest.raises(Absent):
        mode_in(refusal(number) if number == errno.EINVAL else OSError(number, "no"))


def test_a_reply_without_the_mode_is_malformed() -> None:
    with pytest.raises(OSError, match="no attribute 66"):
        mode_in(encode_message(Message(5 << 10 | 6, 0, 0, 0, encode_attribute(93, b"\1"))))


def test_names_that_come_and_go_are_not_kept_for_ever():
    kept = {}
    for number in range(3 * MOST_NAMES):
        keep(kept, f"eth{number}", number)
        keep(kept, "eth0", number)
    assert len(kept) == MOST_NAMES
    assert (kept[f"eth{number}"], kept["eth0"]) == (number, number)
    asked, _ = rdma_that_says({STAT_GET: STATISTICS_MLX5_0})
    asked._layouts |= dict.fromkeys(range(MOST_NAMES))
    asked.statistics(MLX5_0, 1)
    assert len(asked._layouts) == MOST_NAMES
