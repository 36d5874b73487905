"""The netlink message layer: it decodes what it encodes, and arbitrary bytes do not break it."""

from __future__ import annotations

import errno
import gc
import itertools
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import DEVICES, PORTS_GONE, REFUSED, STATISTICS_MLX5_0, Datagram, FakeKernel

from roce_exporter.kernel import netlink
from roce_exporter.kernel.names import decode_name
from roce_exporter.kernel.netlink import (
    BUFFER_BYTES,
    DONE,
    DUMP,
    DUMP_INTERRUPTED,
    DUMP_TRIES,
    ERROR,
    MULTIPART,
    NOOP,
    OVERRUN,
    REQUEST,
    Answer,
    Malformed,
    Message,
    Netlink,
    Refused,
    decode_attributes,
    decode_messages,
    decode_number,
    decode_values,
    encode_attribute,
    encode_message,
    encode_u32,
)

NETLINK_ROUTE = 0
RTM_GETLINK = 18
KIND = 0x1401

byte_strings = st.binary(max_size=64)
attribute_lists = st.lists(st.tuples(st.integers(0, 0x3FFF), byte_strings), max_size=8)


def a_message(payload=b"", *, kind=KIND, flags=0, sequence=0, port_id=0):
    return encode_message(Message(kind, flags, sequence, port_id, payload))


def an_error(code, kind=ERROR, flags=0):
    return a_message(struct.pack("=i", code), kind=kind, flags=flags)


# Encoding and decoding


def test_an_attribute_is_padded_to_four_bytes_and_its_length_is_not():
    assert encode_attribute(2, b"rxe0\0") == struct.pack("=HH", 9, 2) + b"rxe0\0\0\0\0"


def test_a_message_has_its_length_in_front():
    assert a_message(b"1234", flags=REQUEST, sequence=7) == struct.pack("=IHHII", 20, KIND, 1, 7, 0) + b"1234"


@given(attribute_lists)
def test_attributes_come_back_as_they_were_encoded(attributes):
    data = b"".join(encode_attribute(kind, value) for kind, value in attributes)
    assert [(kind, data[start:end]) for kind, start, end in decode_attributes(data)] == attributes


@given(st.lists(byte_strings.map(lambda payload: payload + bytes(-len(payload) % 4)), max_size=4))
def test_messages_come_back_as_they_were_encoded(contents):
    datagram = b"".join(a_message(payload) for payload in contents)
    assert [message.payload for message in decode_messages(datagram)] == contents


def test_the_flags_in_an_attribute_kind_are_left_out():
    nested, network_byte_order = 0x8000, 0x4000
    data = encode_attribute(80 | nested, b"") + encode_attribute(81 | network_byte_order, b"")
    assert [kind for kind, _, _ in decode_attributes(data)] == [80, 81]


def test_the_last_attribute_needs_no_padding():
    assert decode_values(encode_attribute(2, b"abcde")[:9]) == {2: b"abcde"}


def test_the_last_attribute_of_a_kind_counts_as_in_the_kernel():
    assert decode_values(encode_u32(1, 5) + encode_u32(1, 6)) == {1: encode_u32(1, 6)[4:]}


@pytest.mark.parametrize("length", [0, 3, 9, 0xFFFF])
def test_an_impossible_attribute_length_is_malformed(length):
    with pytest.raises(Malformed, match=f"attribute 2 of {length} bytes with 8 left") as caught:
        decode_values(struct.pack("=HHI", length, 2, 0))
    assert caught.value.errno == errno.EBADMSG


@pytest.mark.parametrize("stray", [1, 2, 3])
def test_stray_bytes_after_the_last_attribute_are_malformed(stray):
    with pytest.raises(Malformed):
        decode_values(encode_u32(1, 5) + bytes(stray))


@pytest.mark.parametrize("length", [0, 15, 21, 0xFFFFFFFF])
def test_an_impossible_message_length_is_malformed(length):
    with pytest.raises(Malformed):
        list(decode_messages(struct.pack("=IHHII", length, KIND, 0, 1, 1) + b"1234"))


def test_less_than_a_header_is_malformed():
    with pytest.raises(Malformed):
        list(decode_messages(bytes(15)))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_decoded_or_malformed(data):
    """No exception but Malformed is raised, and every span lies inside the data and after the one before."""
    position = 0
    try:
        for _, start, end in decode_attributes(data):
            assert position < start <= end <= len(data)
            position = start
        assert sum(len(message.payload) + 16 for message in decode_messages(data)) <= len(data)
    except Malformed:
        pass


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_a_number_of_every_width_is_read_whole(width):
    assert decode_number(b"\xff" * width) == 2 ** (8 * width) - 1


@pytest.mark.parametrize("width", [0, 3, 5, 7, 9, 16])
def test_a_number_of_another_width_is_malformed(width):
    with pytest.raises(Malformed):
        decode_number(bytes(width))


def test_text_ends_at_the_first_nul():
    assert decode_name(b"mlx5_0\0\0garbage") == "mlx5_0"


def test_text_that_is_not_utf8_stays_distinct_and_printable():
    assert (decode_name(b"a\xff\0"), decode_name(b"a\xfe\0")) == ("a\\xff", "a\\xfe")


def test_text_may_be_any_utf8_and_long():
    assert decode_name(("ß" * 30000).encode() + b"\0") == "ß" * 30000


# Complete and incomplete replies


def an_answer():
    return Answer(sequence=0, port_id=0)


def test_a_single_message_is_a_whole_answer():
    answer = an_answer()
    assert answer.take(a_message(b"1234"))
    assert answer.payloads == [b"1234"]


def test_a_multipart_answer_ends_with_done():
    answer = an_answer()
    assert not answer.take(a_message(b"1234", flags=MULTIPART))
    assert answer.take(a_message(b"5678", flags=MULTIPART) + an_error(0, DONE, MULTIPART))
    assert answer.payloads == [b"1234", b"5678"]


@pytest.mark.parametrize("kind", [ERROR, DONE])
def test_an_error_code_is_a_refusal_with_the_kernels_errno(kind):
    with pytest.raises(Refused) as caught:
        an_answer().take(an_error(-errno.EOPNOTSUPP, kind))
    assert caught.value.errno == errno.EOPNOTSUPP


def test_an_acknowledgement_is_an_answer_without_messages():
    answer = an_answer()
    assert answer.take(an_error(0))
    assert answer.payloads == []


@pytest.mark.parametrize("code", [1, 2**31 - 1, -4096, -(2**31)])
def test_an_error_code_that_is_no_errno_is_malformed(code):
    with pytest.raises(Malformed):
        an_answer().take(an_error(code))


def test_an_error_without_a_code_is_malformed():
    with pytest.raises(Malformed):
        an_answer().take(a_message(b"ab", kind=ERROR))


def test_an_unknown_message_of_netlink_itself_is_malformed():
    with pytest.raises(Malformed):
        an_answer().take(a_message(kind=15))


def test_a_noop_is_ignored():
    answer = an_answer()
    assert not answer.take(a_message(kind=NOOP))
    assert answer.payloads == []


def test_an_overrun_is_lost_data():
    with pytest.raises(OSError, match="lost") as caught:
        an_answer().take(a_message(kind=OVERRUN))
    assert caught.value.errno == errno.ENOBUFS


@pytest.mark.parametrize("other", [{"sequence": 1}, {"port_id": 1}])
def test_messages_of_another_request_are_passed_over(other):
    answer = an_answer()
    assert not answer.take(a_message(b"1234", **other))
    assert not answer.take(a_message(struct.pack("=i", -errno.EINVAL), kind=ERROR, **other))
    assert answer.payloads == []


@pytest.mark.parametrize("dump", [DEVICES, PORTS_GONE, STATISTICS_MLX5_0, REFUSED])
@given(data=st.data())
def test_a_truncated_or_changed_dump_is_an_answer_or_one_clear_error(dump, data):
    sequence, port_id = struct.unpack_from("=II", dump, 8)
    changed = bytearray(dump[: data.draw(st.integers(0, len(dump)))])
    for position in data.draw(st.lists(st.integers(0, len(dump) - 1), max_size=4)):
        if position < len(changed):
            changed[position] = data.draw(st.integers(0, 255))
    try:
        assert Answer(sequence, port_id).take(bytes(changed)) in (True, False)
    except OSError as error:
        assert isinstance(error, (Malformed, Refused)) or error.errno == errno.ENOBUFS  # noqa: PT017 - one of three


# Queries


def test_the_first_question_opens_the_socket_and_later_ones_use_it():
    kernel = FakeKernel(lambda _: [a_message(b"1234")])
    conversation = Netlink(20, kernel)
    assert kernel.sockets == []
    assert [conversation.ask(KIND, b"") for _ in range(3)] == [[b"1234"]] * 3
    assert [opened.family for opened in kernel.sockets] == [20]


def test_a_request_carries_kind_payload_flags_and_a_new_sequence_number():
    kernel = FakeKernel(lambda _: [a_message()])
    conversation = Netlink(20, kernel)
    conversation.ask(KIND, b"1234")
    conversation.ask(KIND, b"", dump=True)
    assert kernel.asked == [Message(KIND, REQUEST, 1, 0, b"1234"), Message(KIND, REQUEST | DUMP, 2, 0, b"")]


def test_sequence_numbers_go_round_without_zero():
    kernel = FakeKernel(lambda _: [a_message()])
    conversation = Netlink(20, kernel)
    conversation._sequence = 0xFFFFFFFE
    for _ in range(2):
        conversation.ask(KIND, b"")
    assert [request.sequence for request in kernel.asked] == [0xFFFFFFFF, 1]


def test_a_list_that_changed_during_the_read_is_read_again():
    replies = iter([DUMP_INTERRUPTED, DUMP_INTERRUPTED, 0])
    kernel = FakeKernel(lambda _: [a_message(b"1234", flags=next(replies) | MULTIPART), an_error(0, DONE)])
    assert Netlink(20, kernel).ask(KIND, b"", dump=True) == [b"1234"]
    assert len(kernel.asked) == 3


def test_a_list_that_always_changes_is_an_error():
    kernel = FakeKernel(lambda _: [an_error(0, DONE, DUMP_INTERRUPTED)])
    with pytest.raises(OSError, match="changed") as caught:
        Netlink(20, kernel).ask(KIND, b"", dump=True)
    assert caught.value.errno == errno.EAGAIN
    assert len(kernel.asked) == DUMP_TRIES


def test_a_lost_answer_is_an_error_at_once_and_gets_a_new_socket():
    replies = iter([[], [a_message(b"1234")]])
    kernel = FakeKernel(lambda _: next(replies))
    conversation = Netlink(20, kernel)
    with pytest.raises(OSError, match="lost") as caught:
        conversation.ask(KIND, b"")
    assert caught.value.errno == errno.ENOBUFS
    assert conversation.ask(KIND, b"") == [b"1234"]
    assert [opened.closed for opened in kernel.sockets] == [True, False]


def test_a_late_answer_is_never_taken_for_a_new_one():
    """Not even by a new socket with the port id of the old one."""

    def answer(request):
        late = a_message(b"late", sequence=request.sequence - 1, port_id=4711)
        return [] if request.sequence == 1 else [Datagram(late, stamped=True), a_message(b"1234")]

    conversation = Netlink(20, FakeKernel(answer))
    with pytest.raises(OSError, match="lost"):
        conversation.ask(KIND, b"")
    assert conversation.ask(KIND, b"") == [b"1234"]


def test_only_messages_of_the_kernel_are_received():
    kernel = FakeKernel(lambda _: [Datagram(a_message(b"evil"), sender=1234), a_message(b"1234")])
    assert Netlink(20, kernel).ask(KIND, b"") == [b"1234"]


def test_unrelated_messages_are_not_received_without_limit(monkeypatch):
    monkeypatch.setattr(netlink, "MOST_DATAGRAMS", 3)
    kernel = FakeKernel(lambda _: itertools.repeat(Datagram(a_message(sequence=99), stamped=True), 50))
    with pytest.raises(OSError, match="lost"):
        Netlink(20, kernel).ask(KIND, b"")
    assert kernel.sockets[0].unread == 47


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Datagram(a_message(), flags=socket.MSG_TRUNC), errno.EBADMSG),
        (a_message()[:-1], errno.EBADMSG),
        (OSError(errno.ENOBUFS, "No buffer space available"), errno.ENOBUFS),
        (a_message(kind=OVERRUN), errno.ENOBUFS),
    ],
)
def test_after_a_broken_answer_a_new_socket_is_used(reply, code):
    replies = iter([[reply], [a_message(b"1234")]])
    kernel = FakeKernel(lambda _: next(replies))
    conversation = Netlink(20, kernel)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is compared below
        conversation.ask(KIND, b"")
    assert caught.value.errno == code
    assert conversation.ask(KIND, b"") == [b"1234"]
    assert [opened.closed for opened in kernel.sockets] == [True, False]


def test_a_refusal_leaves_the_socket_open():
    replies = iter([[an_error(-errno.EINVAL)], [a_message()]])
    kernel = FakeKernel(lambda _: next(replies))
    conversation = Netlink(20, kernel)
    with pytest.raises(Refused):
        conversation.ask(KIND, b"")
    conversation.ask(KIND, b"")
    assert [opened.closed for opened in kernel.sockets] == [False]


def test_the_largest_answer_of_the_kernel_fits():
    payload = bytes(32 * 1024 - 16)
    assert Netlink(20, FakeKernel(lambda _: [a_message(payload)])).ask(KIND, b"") == [payload]
    assert BUFFER_BYTES >= 32 * 1024


def test_closing_twice_and_querying_again_is_allowed():
    kernel = FakeKernel(lambda _: [a_message()])
    conversation = Netlink(20, kernel)
    conversation.ask(KIND, b"")
    conversation.close()
    conversation.close()
    conversation.ask(KIND, b"")
    assert [opened.closed for opened in kernel.sockets] == [True, False]


def test_a_conversation_that_is_dropped_closes_its_socket():
    kernel = FakeKernel(lambda _: [a_message()])
    Netlink(20, kernel).ask(KIND, b"")
    gc.collect()
    assert [opened.closed for opened in kernel.sockets] == [True]


# This machine's own kernel: every Linux has route netlink.


def test_the_real_kernel_lists_its_links():
    conversation = Netlink(NETLINK_ROUTE)
    links = conversation.ask(RTM_GETLINK, bytes(16), dump=True)
    names = [decode_name(decode_values(link, 16)[3]) for link in links]
    conversation.close()
    assert set(names) == {name for _, name in socket.if_nameindex()}


def test_the_real_kernel_refuses_a_missing_link():
    conversation = Netlink(NETLINK_ROUTE)
    with pytest.raises(Refused) as caught:
        conversation.ask(RTM_GETLINK, struct.pack("=BxHiII", 0, 0, 2**31 - 1, 0, 0))
    conversation.close()
    assert caught.value.errno == errno.ENODEV
