"""The netlink message layer: it decodes what it encodes, and arbitrary bytes do not break it."""

import errno
import gc
import itertools
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import Datagram, FakeKernel

from roce_exporter.host.kernel import netlink
from roce_exporter.host.kernel.names import decode_name
from roce_exporter.host.kernel.netlink import (
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
    Malformed,
    Message,
    Netlink,
    Refused,
    Reply,
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
NESTED, NETWORK_ORDER = 0x8000, 0x4000

byte_strings = st.binary(max_size=64)
attribute_lists = st.lists(st.tuples(st.integers(0, 0x3FFF), byte_strings), max_size=8)


def a_message(payload=b"", *, kind=KIND, flags=0, sequence=0, port_id=0):
    return encode_message(Message(kind, flags, sequence, port_id, payload))


def an_error(code, kind=ERROR, flags=0, **of):
    return a_message(struct.pack("=i", code), kind=kind, flags=flags, **of)


def take(message):
    Reply(sequence=0, port_id=0).take(message)


# Encoding and decoding


@given(attribute_lists)
def test_attributes_come_back_as_they_were_encoded(attributes):
    data = b"".join(encode_attribute(kind, value) for kind, value in attributes)
    assert [(kind, data[start:end]) for kind, start, end in decode_attributes(data)] == attributes


@given(st.lists(byte_strings.map(lambda payload: payload + bytes(-len(payload) % 4)), max_size=4))
def test_messages_come_back_as_they_were_encoded(contents):
    datagram = b"".join(a_message(payload) for payload in contents)
    assert [message.payload for message in decode_messages(datagram)] == contents


@pytest.mark.parametrize(
    ("data", "values"),
    [
        (
            encode_attribute(80 | NESTED, b"a") + encode_attribute(81 | NETWORK_ORDER, b"b"),
            {80: b"a", 81: b"b"},
        ),
        (encode_attribute(2, b"abcde")[:9], {2: b"abcde"}),
        (encode_u32(1, 5) + encode_u32(1, 6), {1: struct.pack("=I", 6)}),
    ],
    ids=["flags in a kind", "no padding at the end", "the last of a kind counts"],
)
def test_attributes_are_decoded_as_the_kernel_does(data, values):
    assert decode_values(data) == values


@pytest.mark.parametrize("length", [0, 3, 9, 0xFFFF])
def test_an_impossible_attribute_length_is_malformed(length):
    with pytest.raises(Malformed, match=f"attribute 2 of {length} bytes with 8 left") as caught:
        decode_values(struct.pack("=HHI", length, 2, 0))
    assert caught.value.errno == errno.EBADMSG


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        *((decode_values, encode_u32(1, 5) + bytes(stray)) for stray in (1, 2, 3)),
        *(
            (decode_messages, struct.pack("=IHHII", length, KIND, 0, 1, 1) + b"1234")
            for length in (0, 15, 21, 0xFFFFFFFF)
        ),
        (decode_messages, bytes(15)),
        *((decode_number, bytes(width)) for width in (0, 3, 5, 7, 9, 16)),
        *((take, an_error(code)) for code in (1, 2**31 - 1, -4096, -(2**31))),
        (take, a_message(b"ab", kind=ERROR)),
        (take, a_message(kind=15)),
    ],
)
def test_what_no_kernel_sends_is_malformed(decode, data):
    with pytest.raises(Malformed):
        list(decode(data) or ())


# Complete and incomplete replies


@pytest.mark.parametrize(
    ("datagrams", "whole", "payloads"),
    [
        ([a_message(b"1234")], [True], [b"1234"]),
        (
            [
                a_message(b"1234", flags=MULTIPART),
                a_message(b"5678", flags=MULTIPART) + an_error(0, DONE, MULTIPART),
            ],
            [False, True],
            [b"1234", b"5678"],
        ),
        ([a_message(b"1234", flags=MULTIPART) + a_message(kind=DONE, flags=MULTIPART)], [True], [b"1234"]),
        ([an_error(0)], [True], []),
        ([a_message(kind=NOOP)], [False], []),
        ([a_message(b"1234", sequence=1), an_error(-errno.EINVAL, sequence=1)], [False, False], []),
        ([a_message(b"1234", port_id=1), an_error(-errno.EINVAL, port_id=1)], [False, False], []),
    ],
    ids=[
        "single",
        "multipart",
        "end without a code",
        "acknowledgement",
        "noop",
        "another request",
        "another socket",
    ],
)
def test_the_messages_of_an_answer(datagrams, whole, payloads):
    answer = Reply(sequence=0, port_id=0)
    assert [answer.take(datagram) for datagram in datagrams] == whole
    assert answer.payloads == payloads


@pytest.mark.parametrize(
    ("message", "kind", "number"),
    [
        (an_error(-errno.EOPNOTSUPP, ERROR), Refused, errno.EOPNOTSUPP),
        (an_error(-errno.EOPNOTSUPP, DONE), Refused, errno.EOPNOTSUPP),
        (a_message(kind=OVERRUN), OSError, errno.ENOBUFS),
    ],
)
def test_a_refusal_has_the_kernels_errno_and_an_overrun_is_lost_data(message, kind, number):
    with pytest.raises(kind, match=r"lost|supported") as caught:
        take(message)
    assert caught.value.errno == number


# Queries


def test_a_request_carries_kind_payload_flags_and_a_new_sequence_number():
    kernel = FakeKernel(lambda _: [a_message(b"5678")])
    conversation = Netlink(20, kernel)
    assert kernel.sockets == [], "the first request opens the socket, and later ones use it"
    assert conversation.request(KIND, b"1234") == [b"5678"]
    conversation.request(KIND, b"", dump=True)
    assert kernel.asked == [Message(KIND, REQUEST, 1, 0, b"1234"), Message(KIND, REQUEST | DUMP, 2, 0, b"")]
    assert [opened.family for opened in kernel.sockets] == [20]


def test_sequence_numbers_go_round_without_zero():
    kernel = FakeKernel(lambda _: [a_message()])
    conversation = Netlink(20, kernel)
    conversation._sequence = 0xFFFFFFFE
    for _ in range(2):
        conversation.request(KIND, b"")
    assert [request.sequence for request in kernel.asked] == [0xFFFFFFFF, 1]


def test_a_list_that_changed_during_the_read_is_read_again():
    replies = iter([DUMP_INTERRUPTED, DUMP_INTERRUPTED, 0])
    kernel = FakeKernel(lambda _: [a_message(b"1234", flags=next(replies) | MULTIPART), an_error(0, DONE)])
    assert Netlink(20, kernel).request(KIND, b"", dump=True) == [b"1234"]
    assert len(kernel.asked) == 3


def test_a_list_that_always_changes_is_an_error():
    kernel = FakeKernel(lambda _: [an_error(0, DONE, DUMP_INTERRUPTED)])
    with pytest.raises(OSError, match="changed") as caught:
        Netlink(20, kernel).request(KIND, b"", dump=True)
    assert caught.value.errno == errno.EAGAIN
    assert len(kernel.asked) == DUMP_TRIES


def test_a_late_answer_is_never_taken_for_a_new_one():
    """Not even by a new socket with the port id of the old one."""

    def answer(request):
        late = a_message(b"late", sequence=request.sequence - 1, port_id=4711)
        return [] if request.sequence == 1 else [Datagram(late, stamped=True), a_message(b"1234")]

    conversation = Netlink(20, FakeKernel(answer))
    with pytest.raises(OSError, match="lost"):
        conversation.request(KIND, b"")
    assert conversation.request(KIND, b"") == [b"1234"]


def test_only_messages_of_the_kernel_are_received():
    kernel = FakeKernel(lambda _: [Datagram(a_message(b"evil"), sender=1234), a_message(b"1234")])
    assert Netlink(20, kernel).request(KIND, b"") == [b"1234"]


def test_unrelated_messages_are_not_received_without_limit(monkeypatch):
    monkeypatch.setattr(netlink, "MOST_DATAGRAMS", 3)
    kernel = FakeKernel(lambda _: itertools.repeat(Datagram(a_message(sequence=99), stamped=True), 50))
    with pytest.raises(OSError, match="lost"):
        Netlink(20, kernel).request(KIND, b"")
    assert kernel.sockets[0].unread == 47


@pytest.mark.parametrize(
    ("reply", "code", "closed"),
    [
        (Datagram(a_message(), flags=socket.MSG_TRUNC), errno.EBADMSG, [True, False]),
        (a_message()[:-1], errno.EBADMSG, [True, False]),
        (OSError(errno.ENOBUFS, "No buffer space available"), errno.ENOBUFS, [True, False]),
        (a_message(kind=OVERRUN), errno.ENOBUFS, [True, False]),
        (None, errno.ENOBUFS, [True, False]),
        (an_error(-errno.EINVAL), errno.EINVAL, [False]),
    ],
    ids=["truncated", "cut off", "error", "overrun", "nothing", "refusal"],
)
def test_after_a_broken_answer_a_new_socket_is_used_and_a_refusal_leaves_it_open(reply, code, closed):
    replies = iter([[reply] if reply else [], [a_message(b"1234")]])
    kernel = FakeKernel(lambda _: next(replies))
    conversation = Netlink(20, kernel)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is compared below
        conversation.request(KIND, b"")
    assert caught.value.errno == code
    assert conversation.request(KIND, b"") == [b"1234"]
    assert [opened.closed for opened in kernel.sockets] == closed


def test_the_largest_answer_of_the_kernel_fits():
    payload = bytes(32 * 1024 - 16)
    assert Netlink(20, FakeKernel(lambda _: [a_message(payload)])).request(KIND, b"") == [payload]
    assert BUFFER_BYTES >= 32 * 1024


def test_closing_twice_and_querying_again_is_allowed_and_what_is_dropped_is_closed():
    kernel = FakeKernel(lambda _: [a_message()])
    conversation = Netlink(20, kernel)
    conversation.request(KIND, b"")
    conversation.close()
    conversation.close()
    conversation.request(KIND, b"")
    assert [opened.closed for opened in kernel.sockets] == [True, False]
    del conversation
    gc.collect()
    assert [opened.closed for opened in kernel.sockets] == [True, True]


# This machine's own kernel: every Linux has route netlink.


def test_the_real_kernel_lists_its_links():
    conversation = Netlink(NETLINK_ROUTE)
    links = conversation.request(RTM_GETLINK, bytes(16), dump=True)
    names = [decode_name(decode_values(link, 16)[3]) for link in links]
    conversation.close()
    assert set(names) == {name for _, name in socket.if_nameindex()}
