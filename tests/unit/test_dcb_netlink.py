"""DCB netlink: replies of a real kernel are decoded, and a missing attribute never becomes zero. tests/fuzz has any other bytes."""

import errno
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import DUMPS, FakeKernel, payloads, refusal

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.dcb_netlink import (
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
    App,
    Buffer,
    Dcb,
    DcbNetlink,
    Ets,
    Pfc,
    decode_buffer,
    decode_ets,
    decode_ieee,
    decode_max_rate,
    decode_pfc,
)
from roce_exporter.host.kernel.netlink import (
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
SET = DUMPS["SET"]

ONLY_PRIORITY_3 = (False, False, False, True, False, False, False, False)
DSCP_26 = App(SELECTOR_DSCP, 26, 3)
PCP_13 = App(SELECTOR_PCP, 13, 2)

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
RICH_ETS = Ets(
    willing=True,
    capacity=6,
    cbs=True,
    transmit_bandwidth=(10, 0, 60, 30, 0, 0, 0, 0),
    receive_bandwidth=(20, 0, 50, 30, 0, 0, 0, 0),
    algorithm=(2, 0, 2, 2, 1, 255, 0, 0),
    traffic_class=(7, 6, 5, 4, 3, 2, 1, 0),
)
PEER = {
    "peer_ets": Ets(
        willing=False,
        capacity=3,
        cbs=False,
        transmit_bandwidth=(0, 100, 0, 0, 0, 0, 0, 0),
        receive_bandwidth=NONE,
        algorithm=(0, 2, 0, 0, 0, 0, 0, 0),
        traffic_class=(0, 0, 0, 1, 1, 1, 2, 2),
    ),
    "peer_pfc": Pfc(
        capacity=4,
        enabled=(False, False, False, True, True, False, False, False),
        mbc=True,
        delay=0,
        requests=NONE,
        indications=NONE,
    ),
    "peer_app": (App(1, 0x8915, 3), App(4, 4791, 4)),
}
RICH = {
    "ets": RICH_ETS,
    # 100 Mbit/s, 400 Gbit/s and 12.345 Mbit/s.
    "max_rate": (12_500_000, 0, 0, 50_000_000_000, 0, 0, 0, 1_543_125),
    "trust": (SELECTOR_DSCP, SELECTOR_PCP),
    "dcbx": DCBX_LLD_MANAGED | DCBX_VER_CEE | DCBX_VER_IEEE | DCBX_STATIC,
}
REPLIES = {
    "SET": Dcb(
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
            PCP_13,
            App(1, 0, 1),
            App(2, 3260, 5),
            App(4, 4791, 4),
            App(1, 0x8915, 3),
            App(3, 4791, 3),
            App(SELECTOR_DSCP, 48, 6),
            DSCP_26,
        ),
        rewrite=(App(SELECTOR_PCP, 3, 3), DSCP_26),
        buffer=LABORATORY_BUFFER,
        dcbx=DCBX_HOST | DCBX_VER_IEEE,
    ),
    "RICH": Dcb(
        pfc=LABORATORY_PFC,
        app=(PCP_13,),
        rewrite=(App(SELECTOR_PCP, 3, 3), DSCP_26),
        buffer=LABORATORY_BUFFER,
        **RICH,
        **PEER,
    ),
    # The kernel keeps the tables itself, so `app` exists even if the driver does not support it.
    "PLAIN": Dcb(
        pfc=LABORATORY_PFC,
        ets=LABORATORY_ETS,
        app=(),
        rewrite=(),
        buffer=LABORATORY_BUFFER,
        dcbx=DCBX_HOST | DCBX_VER_IEEE,
    ),
    "LINUX_6_1": Dcb(
        pfc=LABORATORY_PFC,
        ets=LABORATORY_ETS,
        app=(DSCP_26,),
        buffer=LABORATORY_BUFFER,
        dcbx=DCBX_HOST | DCBX_VER_IEEE,
    ),
    # What a driver fails to report is absent and not zero: the kernel omits it without an error.
    "PFC_FAILED": Dcb(app=(), rewrite=(), buffer=LABORATORY_BUFFER, **RICH, **PEER),
}


def dcb_that_says(*replies):
    """DCB netlink that returns these replies to any request."""
    kernel = FakeKernel(lambda request: replies)
    return DcbNetlink(kernel), kernel


def an_answer(*attributes):
    """The payload of a reply to IEEE_GET with these attributes, given as (kind, value)."""
    nest = b"".join(encode_attribute(kind, value) for kind, value in attributes)
    return struct.pack("=BBH", 0, 21, 0) + encode_attribute(IEEE, nest)


def a_table(*rows):
    return b"".join(encode_attribute(kind, value) for kind, value in rows)


def message(payload, *, flags=0, kind=RTM_GETDCB):
    return encode_message(Message(kind, flags, 0, 0, payload))


# Replies of a real kernel


@pytest.mark.parametrize("name", REPLIES)
def test_a_recorded_reply_is_read(name):
    asked, kernel = dcb_that_says(DUMPS[name])
    assert asked.ieee("roce0") == REPLIES[name]
    assert kernel.asked == [*decode_messages(DUMPS["ASKED_IEEE"])]
    assert [socket.family for socket in kernel.sockets] == [0]


@pytest.mark.parametrize(
    ("reply", "kind", "code", "text"),
    [
        (DUMPS["NO_DCB"], Absent, errno.EOPNOTSUPP, "the driver has no DCB: 'nosuch'"),
        (DUMPS["NO_NETDEV"], OSError, errno.ENODEV, "'nosuch'"),
        (refusal(errno.EPERM), OSError, errno.EPERM, "'nosuch'"),
        (None, OSError, errno.ENOBUFS, "lost"),
    ],
)
def test_a_refusal_is_the_kernels_and_names_the_network_device(reply, kind, code, text):
    """A driver without DCB is absent."""
    asked, kernel = dcb_that_says(*[reply] * bool(reply))
    with pytest.raises(kind, match=text) as caught:
        asked.ieee("nosuch")
    assert (isinstance(caught.value, Absent), caught.value.errno) == (kind is Absent, code)
    assert kernel.sockets[0].closed is (reply is None)


@pytest.mark.parametrize("name", ["", "a" * 16, "ö" * 8, "roce0\0x"])
def test_an_impossible_name_is_not_queried(name):
    """The kernel would cut a name at its NUL and answer for another device."""
    asked, kernel = dcb_that_says(SET)
    with pytest.raises(OSError, match="No such device") as caught:
        asked.ieee(name)
    assert caught.value.errno == errno.ENODEV
    assert kernel.asked == []


@pytest.mark.parametrize("raw", [b"a" * 15, b"roce\xff"])
def test_a_name_is_queried_with_its_own_bytes(raw):
    asked, kernel = dcb_that_says(SET)
    asked.ieee(raw.decode("utf-8", "surrogateescape"))
    assert kernel.asked[0].payload.endswith(encode_attribute(1, raw + b"\0"))


# Malformed replies

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
    asked.close()
    assert [socket.closed for socket in kernel.sockets] == [True, True]
    replies.append([SET])
    assert asked.ieee("roce0").pfc is not None


@pytest.mark.parametrize(
    ("kind", "field", "size"),
    [
        (ETS, "ets", 59),
        (PFC, "pfc", 136),
        (PEER_ETS, "peer_ets", 59),
        (PEER_PFC, "peer_pfc", 136),
        (MAXRATE, "max_rate", 64),
        (BUFFER, "buffer", 44),
    ],
)
def test_a_struct_may_be_longer_than_known_and_not_shorter(kind, field, size):
    known = decode_ieee(an_answer((kind, bytes(range(size)))))
    assert getattr(known, field) is not None
    assert decode_ieee(an_answer((kind, bytes(range(size)) + b"\xff" * 9))) == known
    with pytest.raises(Malformed, match=f"of {size - 1} bytes instead of {size}"):
        decode_ieee(an_answer((kind, bytes(range(size - 1)))))


@pytest.mark.parametrize(
    ("kind", "field"), [(APP_TABLE, "app"), (PEER_APP, "peer_app"), (REWRITE_TABLE, "rewrite")]
)
def test_a_row_may_be_longer_than_known_and_not_shorter(kind, field):
    """Attributes of a newer kernel are passed over."""
    row = struct.pack("=BBH", 5, 3, 26)
    longer = decode_ieee(
        an_answer((63, b"new"), (kind, a_table((7, b"new"), (1, row + b"\xff\xff"), (2, row))))
    )
    assert longer == Dcb(**{field: (DSCP_26, DSCP_26)})
    with pytest.raises(Malformed, match="a struct dcb_app of 3 bytes"):
        decode_ieee(an_answer((kind, a_table((1, row[:3])))))


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
    assert decode_ieee(an_answer()) == Dcb()


u8, u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))


def eight(numbers):
    return st.tuples(*[numbers] * 8)


@given(st.tuples(u8, u8, u8, u16), eight(u64), eight(u64), st.tuples(*[eight(u8)] * 7), eight(u32))
def test_any_values_come_back(head, requests, indications, tables, size):
    first, mask, third, delay = head
    enabled = tuple(digit == "1" for digit in reversed(f"{mask:08b}"))
    raw = struct.pack("=BBBxHxx8Q8Q", *head, *requests, *indications)
    assert decode_pfc(raw) == Pfc(first, enabled, third != 0, delay, requests, indications)
    raw = bytes([first, mask, third, *(number for table in tables for number in table)])
    assert decode_ets(raw) == Ets(first != 0, mask, third != 0, *tables[:4])
    assert decode_max_rate(struct.pack("=8Q", *requests)) == tuple(1000 * rate // 8 for rate in requests)
    buffer = Buffer(tables[0], size, delay)
    assert decode_buffer(struct.pack("=8B8II", *tables[0], *size, delay)) == buffer


@given(st.integers(0, len(SET)))
def test_a_datagram_cut_short_is_never_half_an_answer(length):
    """A reply is decoded completely or not at all: a PFC mask without the frames after it would be wrong."""
    asked, _ = dcb_that_says(SET[:length])
    if length == len(SET):
        assert asked.ieee("roce0") == REPLIES["SET"]
    else:
        with pytest.raises(OSError):  # noqa: PT011 - Malformed, or TimeoutError if no reply is left
            asked.ieee("roce0")
