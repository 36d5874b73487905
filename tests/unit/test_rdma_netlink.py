"""RDMA netlink: replies of a real kernel are decoded, and the kinds of negative replies are distinguished."""

from __future__ import annotations

import errno
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import (
    DEVICES,
    DEVICES_WITHOUT_MLX5,
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
    damaged,
    payloads,
)

from roce_exporter.kernel import Absent
from roce_exporter.kernel.layout import decode_present_numbers, learn_layout, read_by_layout
from roce_exporter.kernel.netlink import Malformed, Message, encode_attribute, encode_message, encode_u32
from roce_exporter.kernel.rdma_netlink import (
    COUNTERS,
    COUNTERS_ON,
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
)
from roce_exporter.model import RdmaDevice, RdmaPort

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the dumps are from a little-endian machine"
)

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


def a_refusal(code):
    return encode_message(Message(2, 0, 0, 0, struct.pack("=i", -code)))


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


def test_every_device_is_listed():
    asked, kernel = rdma_that_says({GET: DEVICES})
    assert asked.devices() == (RXE0, RXE1, MLX5_0, MLX5_1, SIW0)
    assert kernel.sockets[0].family == 20


def test_the_ports_of_a_device_are_listed():
    asked, kernel = rdma_that_says({PORT_GET: PORTS_RXE0})
    assert asked.ports(RXE0) == (RdmaPort(1, "veth0"),)
    assert kernel.asked[0].payload == encode_u32(1, 0)


def test_counters_of_a_port_are_in_the_kernels_order():
    asked, kernel = rdma_that_says({STAT_GET: STATISTICS_RXE0})
    counters = asked.statistics(RXE0, 1)
    assert list(counters)[:3] == ["sent_pkts", "rcvd_pkts", "duplicate_request"]
    assert len(counters) == 15
    assert {name: value for name, value in counters.items() if value} == {
        "sent_pkts": 200,
        "rcvd_pkts": 200,
        "ack_deferred": 200,
    }
    assert kernel.asked[0].payload == encode_u32(1, 0) + encode_u32(3, 1)


def test_counters_of_64_bits_are_read_completely():
    asked, _ = rdma_that_says({STAT_GET: STATISTICS_MLX5_0})
    counters = asked.statistics(MLX5_0, 1)
    assert len(counters) == 28
    assert {name: value for name, value in counters.items() if value} == {
        "out_of_sequence": 2**32,
        "packet_seq_err": 2**64 - 1,
        "np_cnp_sent": 555,
    }


def test_only_optional_counters_are_listed_as_optional():
    asked, _ = rdma_that_says({STAT_GET_STATUS: STATUS_MLX5_0})
    assert asked.optional_counters(MLX5_0, 1) == {"cc_rx_ce_pkts": True, "cc_tx_cnp_pkts": False}


def test_a_driver_without_optional_counters_has_none():
    asked, _ = rdma_that_says({STAT_GET_STATUS: STATUS_RXE0})
    assert asked.optional_counters(RXE0, 1) == {}


def test_objects_in_use_are_counted_by_kind():
    asked, _ = rdma_that_says({RES_GET: OBJECTS_RXE1})
    expected = {"pd": 2, "cq": 2, "qp": 2, "cm_id": 0, "mr": 1, "ctx": 1, "srq": 0}
    assert asked.resources(RXE1) == expected


# The layout that avoids decoding the same names again


def test_the_same_names_are_read_by_their_layout_with_the_same_result():
    asked, _ = rdma_that_says({STAT_GET: STATISTICS_MLX5_0})
    first = asked.statistics(MLX5_0, 1)
    (learnt,) = asked._layouts.values()
    assert asked.statistics(MLX5_0, 1) == first
    assert list(asked._layouts.values()) == [learnt]


def test_a_counter_that_is_switched_on_or_off_is_noticed_at_once():
    answers = {STAT_GET: STATISTICS_MLX5_0}
    asked, _ = rdma_that_says(answers)
    for dump, told in (
        (STATISTICS_MLX5_0, False),
        (STATISTICS_MLX5_0_OPTIONAL, True),
        (STATISTICS_MLX5_0, False),
    ):
        answers[STAT_GET] = dump
        assert ("cc_rx_ce_pkts" in asked.statistics(MLX5_0, 1)) is told


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


def test_ports_do_not_share_a_layout():
    asked, _ = rdma_that_says({STAT_GET: STATISTICS_MLX5_0})
    asked.statistics(MLX5_0, 1)
    asked.statistics(MLX5_0, 2)
    assert set(asked._layouts) == {("mlx5_0", 1), ("mlx5_0", 2)}


def test_no_counters_at_all_are_no_counters():
    asked, _ = rdma_that_says({STAT_GET: an_answer()})
    assert asked.statistics(MLX5_0, 1) == {}
    assert asked.statistics(MLX5_0, 1) == {}


def test_a_narrower_value_is_read_each_time_without_a_layout():
    asked, _ = rdma_that_says({STAT_GET: an_answer(("a", struct.pack("=I", 7)), ("b", u64(8)))})
    assert asked.statistics(MLX5_0, 1) == {"a": 7, "b": 8}
    assert asked.statistics(MLX5_0, 1) == {"a": 7, "b": 8}
    assert asked._layouts == {}


@pytest.mark.parametrize("name", ["Nak Sequence Error", "größe", "x" * 60000])
def test_a_name_may_be_anything(name):
    asked, _ = rdma_that_says({STAT_GET: an_answer((name, u64(1)))})
    assert asked.statistics(MLX5_0, 1) == {name: 1}
    assert asked.statistics(MLX5_0, 1) == {name: 1}


def test_names_that_are_not_utf8_stay_distinct():
    asked, _ = rdma_that_says({STAT_GET: an_answer((b"\xff", u64(1)), (b"\xfe", u64(2)))})
    assert asked.statistics(MLX5_0, 1) == {"\\xff": 1, "\\xfe": 2}


# Absent, broken and removed devices


@pytest.mark.parametrize("question", QUESTIONS)
def test_unsupported_queries_of_a_listed_device_are_absent(question):
    asked, _ = rdma_that_says({GET: DEVICES})
    with pytest.raises(Absent):
        QUESTIONS[question](asked)


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.ENOENT, errno.ENOSYS])
@pytest.mark.parametrize("question", ["statistics", "optional_counters", "resources"])
def test_other_errnos_for_unsupported_are_absent_too(question, code):
    refusals = dict.fromkeys((STAT_GET, STAT_GET_STATUS, RES_GET), a_refusal(code))
    asked, _ = rdma_that_says({GET: DEVICES, **refusals})
    with pytest.raises(Absent):
        QUESTIONS[question](asked)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_device_that_is_no_longer_listed_is_removed(question):
    asked, _ = rdma_that_says({GET: DEVICES_WITHOUT_MLX5, PORT_GET: PORTS_GONE})
    with pytest.raises(OSError, match="was removed") as caught:
        QUESTIONS[question](asked)
    assert (type(caught.value), caught.value.errno) == (OSError, errno.ENODEV)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_device_whose_index_was_reused_is_removed(question):
    """Otherwise the counters of one device would be shown as another's."""
    answers = {
        PORT_GET: PORTS_RXE0,
        STAT_GET: STATISTICS_RXE0,
        STAT_GET_STATUS: STATUS_RXE0,
        RES_GET: OBJECTS_RXE1,
    }
    asked, _ = rdma_that_says({GET: DEVICES, **answers})
    with pytest.raises(OSError, match="was removed") as caught:
        QUESTIONS[question](asked)
    assert (type(caught.value), caught.value.errno) == (OSError, errno.ENODEV)


def test_a_renamed_device_is_removed_even_after_it_was_read():
    answers = {STAT_GET: STATISTICS_MLX5_0}
    asked, _ = rdma_that_says(answers)
    asked.statistics(MLX5_0, 1)
    answers[STAT_GET] = STATISTICS_RENAMED
    with pytest.raises(OSError, match="was removed") as caught:
        asked.statistics(MLX5_0, 1)
    assert caught.value.errno == errno.ENODEV


def test_a_driver_that_fails_is_broken_and_not_absent():
    """The kernel returns EINVAL in both cases; it returns the status only for a port that has statistics."""
    asked, _ = rdma_that_says({GET: DEVICES, STAT_GET: REFUSED, STAT_GET_STATUS: STATUS_MLX5_0})
    with pytest.raises(OSError, match="failed to read") as caught:
        asked.statistics(MLX5_0, 1)
    assert (type(caught.value), caught.value.errno) == (OSError, errno.EINVAL)


@pytest.mark.parametrize("code", [errno.EMSGSIZE, errno.EPERM, errno.ENOMEM, errno.EIO])
@pytest.mark.parametrize("question", QUESTIONS)
def test_any_other_errno_is_broken_and_not_absent(question, code):
    refusals = dict.fromkeys((PORT_GET, STAT_GET, STAT_GET_STATUS, RES_GET), a_refusal(code))
    asked, _ = rdma_that_says({GET: DEVICES, **refusals})
    with pytest.raises(OSError, match="Errno") as caught:
        QUESTIONS[question](asked)
    assert not isinstance(caught.value, Absent)
    assert caught.value.errno == code


def test_a_status_that_fails_otherwise_does_not_make_statistics_absent():
    asked, _ = rdma_that_says({GET: DEVICES, STAT_GET: REFUSED, STAT_GET_STATUS: a_refusal(errno.ENOMEM)})
    with pytest.raises(OSError, match="Errno") as caught:
        asked.statistics(MLX5_0, 1)
    assert caught.value.errno == errno.ENOMEM


def test_a_kernel_that_cannot_list_devices_is_absent():
    asked, _ = rdma_that_says({})
    with pytest.raises(Absent):
        asked.devices()


def test_a_list_of_devices_that_fails_is_broken_and_not_absent():
    asked, _ = rdma_that_says({GET: a_refusal(errno.ENOMEM)})
    with pytest.raises(OSError, match="Errno") as caught:
        asked.devices()
    assert (isinstance(caught.value, Absent), caught.value.errno) == (False, errno.ENOMEM)


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


def test_a_network_namespace_without_rdma_netlink_is_absent():
    kernel = FakeKernel(lambda _: [OSError(errno.ECONNREFUSED, "Connection refused")])
    with pytest.raises(Absent):
        RdmaNetlink(kernel).devices()


def test_a_forbidden_socket_is_broken_and_not_absent():
    def open_socket(_):
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    with pytest.raises(OSError, match="family") as caught:
        RdmaNetlink(open_socket).devices()
    assert not isinstance(caught.value, Absent)


def test_a_lost_answer_is_an_error():
    with pytest.raises(OSError, match="lost"):
        RdmaNetlink(FakeKernel(lambda _: [])).devices()


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
    ids=[
        "twice",
        "no-value",
        "no-name",
        "3-bytes",
        "0-bytes",
        "too-long",
        "stray",
        "no-table",
        "empty",
        "ack",
    ],
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


@pytest.mark.parametrize("missing", [1, 2])
def test_a_device_without_index_or_name_is_malformed(missing):
    attributes = {1: encode_u32(1, 0), 2: encode_attribute(2, b"rxe0\0")}
    with pytest.raises(Malformed):
        decode_device(b"".join(value for kind, value in attributes.items() if kind != missing))


def test_a_device_of_an_old_kernel_has_fewer_attributes():
    answer = encode_u32(1, 3) + encode_attribute(2, b"mlx5_0\0")
    assert decode_device(answer) == RdmaDevice(3, "mlx5_0", "", "", "")


def test_a_port_without_number_is_malformed():
    with pytest.raises(Malformed):
        decode_port(encode_u32(1, 0) + encode_attribute(2, b"rxe0\0"), RXE0)


def test_a_port_in_another_network_namespace_has_no_netdev():
    answer = encode_u32(1, 0) + encode_attribute(2, b"rxe0\0") + encode_u32(3, 1)
    assert decode_port(answer, RXE0) == RdmaPort(1, "")


DECODERS = [
    (payloads(DEVICES)[2], decode_device),
    (payloads(PORTS_RXE0)[0], lambda answer: decode_port(answer, RXE0)),
    (
        payloads(STATISTICS_MLX5_0)[0],
        lambda answer: decode_numbers(answer, decode_table(answer, COUNTERS, MLX5_0)),
    ),
    (
        payloads(STATUS_MLX5_0)[0],
        lambda answer: decode_present_numbers(answer, decode_table(answer, COUNTERS_ON, MLX5_0)),
    ),
    (payloads(OBJECTS_RXE1)[0], lambda answer: decode_numbers(answer, decode_table(answer, OBJECTS, RXE1))),
]


@pytest.mark.parametrize(("answer", "decode"), DECODERS)
@given(data=st.data())
def test_a_truncated_or_changed_answer_is_read_malformed_or_anothers(answer, decode, data):
    try:
        decode(damaged(answer, data))
    except OSError as error:
        assert error.errno in (errno.EBADMSG, errno.ENODEV)  # noqa: PT017 - most changes are read


@pytest.mark.parametrize(("answer", "decode"), DECODERS)
@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_are_read_malformed_or_anothers(answer, decode, data):
    for changed in (data, answer + data, data + answer):
        try:
            decode(changed)
        except OSError as error:
            assert error.errno in (errno.EBADMSG, errno.ENODEV)  # noqa: PT017 - some are read
