"""DCB netlink: replies of a real kernel are decoded, and a missing attribute never becomes zero."""

from __future__ import annotations

import dataclasses
import errno
import struct
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from netlink_dumps import (
    ASKED_IEEE,
    LINUX_6_1,
    NO_DCB,
    NO_NETDEV,
    PFC_FAILED,
    PLAIN,
    RICH,
    SET,
    FakeKernel,
    damaged,
    payloads,
)

from roce_exporter.kernel import Absent
from roce_exporter.kernel.dcb_netlink import (
    APP_TABLE,
    BUFFER,
    DCBX,
    DCBX_HOST,
    DCBX_LLD_MANAGED,
    DCBX_STATIC,
    DCBX_VER_CEE,
    DCBX_VER_IEEE,
    ETS,
    IEEE,
    MAXRATE,
    PEER_APP,
    PEER_ETS,
    PEER_PFC,
    PFC,
    REWRITE_TABLE,
    SELECTOR_DSCP,
    SELECTOR_PCP,
    TRUST_TABLE,
    App,
    Buffer,
    Dcb,
    DcbNetlink,
    Ets,
    Pfc,
    decode_app_table,
    decode_buffer,
    decode_dcbx_mode,
    decode_ets,
    decode_ieee,
    decode_max_rate,
    decode_pfc,
    decode_trust_table,
)
from roce_exporter.kernel.netlink import (
    Malformed,
    Message,
    decode_messages,
    encode_attribute,
    encode_message,
)

pytestmark = pytest.mark.skipif(
    sys.byteorder != "little", reason="the dumps are from a little-endian machine"
)

RTM_GETDCB = 78
NESTED = 0x8000
NONE = (0,) * 8

ONLY_PRIORITY_3 = (False, False, False, True, False, False, False, False)

LABORATORY_ETS = Ets(
    willing=False,
    capacity=8,
    cbs=False,
    transmit_bandwidth=NONE,
    receive_bandwidth=NONE,
    algorithm=NONE,
    traffic_class=(0, 1, 2, 3, 4, 5, 6, 7),
)
LABORATORY_PFC = Pfc(capacity=8, enabled=ONLY_PRIORITY_3, mbc=False, delay=7, requests=NONE, indications=NONE)
LABORATORY_BUFFER = Buffer(
    of_priority=(0, 0, 0, 1, 0, 0, 0, 0), size=(262144, 131072, 0, 0, 0, 0, 0, 0), total=524160
)

PARTS = {
    ETS: ("ets", 59),
    PFC: ("pfc", 136),
    PEER_ETS: ("peer_ets", 59),
    PEER_PFC: ("peer_pfc", 136),
    MAXRATE: ("max_rate", 64),
    BUFFER: ("buffer", 44),
}
"""Per struct, the field of `Dcb` that holds it and its size in bytes."""

TABLES = {APP_TABLE: "app", PEER_APP: "peer_app", REWRITE_TABLE: "rewrite", TRUST_TABLE: "trust"}


def dcb_that_says(*replies):
    """DCB netlink that returns these replies to any request."""
    kernel = FakeKernel(lambda request: replies)
    return DcbNetlink(kernel), kernel


def read(dump):
    return dcb_that_says(dump)[0].ieee("roce0")


def an_answer(*attributes):
    """The payload of a reply to IEEE_GET with these attributes, given as (kind, value)."""
    nest = b"".join(encode_attribute(kind, value) for kind, value in attributes)
    return struct.pack("=BBH", 0, 21, 0) + encode_attribute(IEEE, nest)


def a_table(*rows):
    return b"".join(encode_attribute(kind, value) for kind, value in rows)


def a_refusal(code):
    return encode_message(Message(2, 0, 0, 0, struct.pack("=i", -code)))


# Replies of a real kernel


def test_everything_that_a_driver_reports_is_read():
    assert read(SET) == Dcb(
        pfc=Pfc(
            capacity=8,
            enabled=ONLY_PRIORITY_3,
            mbc=False,
            delay=7,
            requests=(2**64 - 1, 0, 0, 1234, 0, 0, 0, 0),
            indications=(0, 0, 0, 5678, 0, 0, 0, 2**32),
        ),
        ets=LABORATORY_ETS,
        app=(
            App(SELECTOR_PCP, 13, 2),
            App(1, 0, 1),
            App(2, 3260, 5),
            App(4, 4791, 4),
            App(1, 0x8915, 3),
            App(3, 4791, 3),
            App(SELECTOR_DSCP, 48, 6),
            App(SELECTOR_DSCP, 26, 3),
        ),
        rewrite=(App(SELECTOR_PCP, 3, 3), App(SELECTOR_DSCP, 26, 3)),
        buffer=LABORATORY_BUFFER,
        dcbx=DCBX_HOST | DCBX_VER_IEEE,
    )


def test_rate_limits_trust_shares_and_the_peer_are_read():
    assert read(RICH) == Dcb(
        pfc=LABORATORY_PFC,
        ets=Ets(
            willing=True,
            capacity=6,
            cbs=True,
            transmit_bandwidth=(10, 0, 60, 30, 0, 0, 0, 0),
            receive_bandwidth=(20, 0, 50, 30, 0, 0, 0, 0),
            algorithm=(2, 0, 2, 2, 1, 255, 0, 0),
            traffic_class=(7, 6, 5, 4, 3, 2, 1, 0),
        ),
        # 100 Mbit/s, 400 Gbit/s and 12.345 Mbit/s.
        max_rate=(12_500_000, 0, 0, 50_000_000_000, 0, 0, 0, 1_543_125),
        app=(App(SELECTOR_PCP, 13, 2),),
        trust=(SELECTOR_DSCP, SELECTOR_PCP),
        rewrite=(App(SELECTOR_PCP, 3, 3), App(SELECTOR_DSCP, 26, 3)),
        buffer=LABORATORY_BUFFER,
        peer_ets=Ets(
            willing=False,
            capacity=3,
            cbs=False,
            transmit_bandwidth=(0, 100, 0, 0, 0, 0, 0, 0),
            receive_bandwidth=NONE,
            algorithm=(0, 2, 0, 0, 0, 0, 0, 0),
            traffic_class=(0, 0, 0, 1, 1, 1, 2, 2),
        ),
        peer_pfc=Pfc(
            capacity=4,
            enabled=(False, False, False, True, True, False, False, False),
            mbc=True,
            delay=0,
            requests=NONE,
            indications=NONE,
        ),
        peer_app=(App(1, 0x8915, 3), App(4, 4791, 4)),
        dcbx=DCBX_LLD_MANAGED | DCBX_VER_CEE | DCBX_VER_IEEE | DCBX_STATIC,
    )


def test_empty_tables_differ_from_absent_ones():
    """The kernel keeps the tables itself, so `app` exists even if the driver does not support it."""
    told = read(PLAIN)
    assert (told.app, told.rewrite) == ((), ())
    assert (told.trust, told.peer_app, told.max_rate) == (None, None, None)


def test_an_older_kernel_has_no_rewrite_table():
    told = read(LINUX_6_1)
    assert (told.app, told.rewrite, told.trust) == ((App(SELECTOR_DSCP, 26, 3),), None, None)
    assert (told.pfc, told.ets, told.buffer) == (LABORATORY_PFC, LABORATORY_ETS, LABORATORY_BUFFER)


def test_values_that_a_driver_failed_to_report_are_absent_and_not_zero():
    """The kernel omits it without an error."""
    told = read(PFC_FAILED)
    assert told.pfc is None
    assert (told.ets, told.peer_pfc) == (read(RICH).ets, read(RICH).peer_pfc)


def test_the_queries_are_the_recorded_ones():
    asked, kernel = dcb_that_says(SET)
    asked.ieee("roce0")
    assert kernel.asked == [*decode_messages(ASKED_IEEE)]
    assert kernel.sockets[0].family == 0
    assert len(kernel.sockets) == 1


# Negative replies


def test_a_driver_without_dcb_is_absent():
    asked, kernel = dcb_that_says(NO_DCB)
    with pytest.raises(Absent, match="the driver has no DCB: 'veth0'") as caught:
        asked.ieee("veth0")
    assert caught.value.errno == errno.EOPNOTSUPP
    assert not kernel.sockets[0].closed


@pytest.mark.parametrize(
    ("reply", "code"), [(NO_NETDEV, errno.ENODEV), (a_refusal(errno.EPERM), errno.EPERM)]
)
def test_any_other_refusal_is_the_kernels_and_names_the_network_device(reply, code):
    asked, _ = dcb_that_says(reply)
    with pytest.raises(OSError, match="'nosuch'") as caught:
        asked.ieee("nosuch")
    assert not isinstance(caught.value, Absent)
    assert caught.value.errno == code


@pytest.mark.parametrize("name", ["", "a" * 16, "ö" * 8, "roce0\0x"])
def test_an_impossible_name_is_not_queried(name):
    """The kernel would cut a name at its NUL and answer for another device."""
    asked, kernel = dcb_that_says(SET)
    with pytest.raises(OSError, match="No such device") as caught:
        asked.ieee(name)
    assert caught.value.errno == errno.ENODEV
    assert kernel.asked == []


def test_the_longest_name_is_queried():
    asked, kernel = dcb_that_says(SET)
    asked.ieee("a" * 15)
    assert kernel.asked[0].payload.endswith(b"a" * 15 + b"\0")


def test_a_name_that_is_not_utf_8_is_queried_unchanged():
    asked, kernel = dcb_that_says(SET)
    asked.ieee(b"roce\xff".decode("utf-8", "surrogateescape"))
    assert kernel.asked[0].payload.endswith(encode_attribute(1, b"roce\xff\0"))


def test_a_lost_answer_is_an_error():
    with pytest.raises(OSError, match="lost"):
        dcb_that_says()[0].ieee("roce0")


# Malformed replies


def message(payload, *, flags=0, kind=RTM_GETDCB):
    return encode_message(Message(kind, flags, 0, 0, payload))


MALFORMED = {
    "no attribute 13": message(struct.pack("=BBH", 0, 21, 0)),
    "no attribute 13 ": message(b""),
    "bytes where an attribute should be": message(bytes(4) + encode_attribute(IEEE, b"abc")),
    "0 messages instead of one": message(bytes(4), kind=3),
    "2 messages instead of one": message(an_answer(), flags=2) * 2 + message(bytes(4), kind=3),
    "a number of 3 bytes": message(an_answer() + encode_attribute(DCBX, bytes(3))),
}


@pytest.mark.parametrize(("why", "reply"), MALFORMED.items())
def test_a_malformed_answer_has_a_reason_and_the_next_query_opens_another_socket(why, reply):
    replies = [[reply], [SET]]
    kernel = FakeKernel(lambda request: replies.pop(0))
    asked = DcbNetlink(kernel)
    with pytest.raises(Malformed, match=why.strip()):
        asked.ieee("roce0")
    assert kernel.sockets[0].closed
    assert asked.ieee("roce0").pfc is not None
    assert len(kernel.sockets) == 2


@pytest.mark.parametrize(("kind", "field", "size"), [(kind, *part) for kind, part in PARTS.items()])
def test_a_struct_may_be_longer_than_known_and_not_shorter(kind, field, size):
    known = decode_ieee(an_answer((kind, bytes(range(size)))))
    assert getattr(known, field) is not None
    assert decode_ieee(an_answer((kind, bytes(range(size)) + b"\xff" * 9))) == known
    with pytest.raises(Malformed, match=f"of {size - 1} bytes instead of {size}"):
        decode_ieee(an_answer((kind, bytes(range(size - 1)))))


@pytest.mark.parametrize("kind", [APP_TABLE, PEER_APP, REWRITE_TABLE])
def test_a_row_may_be_longer_than_known_and_not_shorter(kind):
    row = struct.pack("=BBH", 5, 3, 26)
    longer = decode_ieee(an_answer((kind, a_table((1, row + b"\xff\xff")))))
    assert getattr(longer, TABLES[kind]) == (App(5, 26, 3),)
    with pytest.raises(Malformed, match="a struct dcb_app of 3 bytes"):
        decode_ieee(an_answer((kind, a_table((1, row[:3])))))


def test_attributes_of_a_newer_kernel_are_passed_over():
    row = struct.pack("=BBH", 5, 3, 26)
    told = decode_ieee(an_answer((63, b"new"), (APP_TABLE, a_table((7, b"new"), (1, row), (2, row)))))
    assert told == Dcb(app=(App(5, 26, 3), App(5, 26, 3)))


def test_a_nest_means_the_same_with_and_without_its_flag():
    """The kernel omits NLA_F_NESTED from the nests that are older than the flag, and newer nests have it."""
    (answer,) = payloads(SET)
    flagged = bytearray(answer)
    for start in (16, 272, 340):
        assert struct.unpack_from("=H", flagged, start + 2)[0] & ~NESTED in (IEEE, APP_TABLE, REWRITE_TABLE)
        flagged[start + 3] ^= NESTED >> 8
    assert flagged != answer
    assert decode_ieee(bytes(flagged)) == decode_ieee(answer)


def test_the_attributes_of_one_answer_need_no_order():
    """A peer's PFC is not decoded as the port's own."""
    own, peer = (struct.pack("=BBBxHxx16Q", 8, mask, 0, 0, *[0] * 16) for mask in (1, 2))
    for parts in ([(PFC, own), (PEER_PFC, peer)], [(PEER_PFC, peer), (PFC, own)]):
        told = decode_ieee(an_answer(*parts))
        assert (told.pfc.enabled.index(True), told.peer_pfc.enabled.index(True)) == (0, 1)


def test_an_empty_reply_is_empty():
    told = decode_ieee(an_answer())
    assert {field.name: getattr(told, field.name) for field in dataclasses.fields(told)} == dict.fromkeys(
        (field.name for field in dataclasses.fields(Dcb)), None
    )


# Any values, any bytes


u8, u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))


def eight(numbers):
    return st.tuples(*[numbers] * 8)


@given(st.tuples(u8, u8, u8, u16), eight(u64), eight(u64))
def test_any_pfc_comes_back(head, requests, indications):
    capacity, mask, mbc, delay = head
    enabled = tuple(digit == "1" for digit in reversed(f"{mask:08b}"))
    raw = struct.pack("=BBBxHxx8Q8Q", *head, *requests, *indications)
    assert decode_pfc(raw) == Pfc(capacity, enabled, mbc != 0, delay, requests, indications)


@given(st.tuples(u8, u8, u8), st.tuples(*[eight(u8)] * 7))
def test_any_ets_comes_back(head, tables):
    willing, capacity, cbs = head
    raw = bytes([*head, *(number for table in tables for number in table)])
    assert decode_ets(raw) == Ets(willing != 0, capacity, cbs != 0, *tables[:4])


@given(eight(u64))
def test_any_rate_limit_comes_back_in_bytes_per_second(kilobits):
    raw = struct.pack("=8Q", *kilobits)
    assert decode_max_rate(raw) == tuple(1000 * rate // 8 for rate in kilobits)


@given(eight(u8), eight(u32), u32)
def test_any_buffer_comes_back(of_priority, size, total):
    assert decode_buffer(struct.pack("=8B8II", *of_priority, *size, total)) == Buffer(
        of_priority, size, total
    )


@given(st.lists(st.tuples(u8, u16, u8), max_size=70), st.sampled_from([1, 2]))
def test_any_app_table_comes_back_in_order(rows, kind):
    raw = a_table(*((kind, struct.pack("=BBH", row[0], row[2], row[1])) for row in rows))
    assert decode_app_table(raw) == tuple(rows)


@given(st.lists(u8, max_size=8), st.sampled_from([1, 2]))
def test_any_trust_order_comes_back(selectors, kind):
    raw = a_table(*((kind, bytes([selector])) for selector in selectors))
    assert decode_trust_table(raw) == tuple(selectors)


@given(st.sampled_from([SET, RICH, PFC_FAILED]), st.data())
def test_a_truncated_or_changed_answer_is_read_or_malformed(dump, data):
    (answer,) = payloads(dump)
    read_or_malformed(damaged(answer, data))


@given(st.binary(max_size=300))
@example(b"")
def test_arbitrary_bytes_are_read_or_malformed(data):
    (answer,) = payloads(SET)
    for changed in (data, answer + data, data + answer):
        read_or_malformed(changed)


@given(st.lists(st.tuples(st.integers(0, 15), st.binary(max_size=150)), max_size=6))
def test_attributes_of_any_content_are_read_or_malformed(attributes):
    read_or_malformed(an_answer(*attributes))


def read_or_malformed(answer):
    """Every decoded value is complete: eight entries each, and every number within its width."""
    try:
        told, mode = decode_ieee(answer), decode_dcbx_mode(answer)
    except Malformed:
        return
    assert told.dcbx == mode
    for pfc in filter(None, (told.pfc, told.peer_pfc)):
        assert [len(table) for table in (pfc.enabled, pfc.requests, pfc.indications)] == [8, 8, 8]
    for ets in filter(None, (told.ets, told.peer_ets)):
        assert {len(ets.transmit_bandwidth), len(ets.algorithm), len(ets.traffic_class)} == {8}
    assert told.max_rate is None or all(rate % 125 == 0 for rate in told.max_rate)


@given(st.lists(st.one_of(st.binary(max_size=120), st.sampled_from([SET, NO_DCB, NO_NETDEV])), max_size=3))
def test_arbitrary_datagrams_are_an_answer_a_refusal_or_an_oserror(replies):
    asked, _ = dcb_that_says(*replies)
    try:
        assert isinstance(asked.ieee("roce0"), Dcb)
    except OSError as error:
        assert error.errno  # noqa: PT017 - which one depends on the bytes


@given(st.integers(0, len(SET)))
def test_a_datagram_cut_short_is_never_half_an_answer(length):
    """A reply is decoded completely or not at all: a PFC mask without the frames after it would be wrong."""
    asked, _ = dcb_that_says(SET[:length])
    if length == len(SET):
        assert asked.ieee("roce0") == read(SET)
    else:
        with pytest.raises(OSError):  # noqa: PT011 - Malformed, or TimeoutError if no reply is left
            asked.ieee("roce0")


def test_close_releases_the_socket_and_the_next_query_opens_another():
    asked, kernel = dcb_that_says(SET)
    asked.close()
    assert kernel.sockets == []
    asked.ieee("roce0")
    asked.close()
    assert kernel.sockets[0].closed
    asked.ieee("roce0")
    assert len(kernel.sockets) == 2
