"""DCB netlink: replies of a real kernel are decoded, and a missing attribute never becomes zero. tests/fuzz has any other bytes."""

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netlink_dumps import DUMPS, LITTLE_ENDIAN, FakeKernel, payloads, refusal

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.dcb_netlink import (
    DCBX,
    IEEE,
    DcbNetlink,
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

pytestmark = LITTLE_ENDIAN

RTM_GETDCB = 78
NESTED = 0x8000
NONE = (0,) * 8
SET = DUMPS["SET"]

ETS, PFC, APP_TABLE, PEER_ETS, PEER_PFC, PEER_APP, MAXRATE, BUFFER = 1, 2, 3, 4, 5, 6, 7, 10
DSCP_26 = {"dscp_prio": ((26, 3),)}


def pfc(mask, *frames, cap=8, mbc=False, delay=7):
    """The document of a struct ieee_pfc; `frames` are the requests and indications, by default none."""
    requests, indications = frames or (NONE, NONE)
    return {
        "pfc_cap": cap,
        "macsec_bypass": mbc,
        "delay": delay,
        "prio_pfc": tuple(bool(mask >> priority & 1) for priority in range(8)),
        "requests": requests,
        "indications": indications,
    }


def ets(willing, cap, cbs, *tables):
    return {
        "willing": willing,
        "ets_cap": cap,
        "cbs": cbs,
        **dict(zip(("tc_bw", "pg_bw", "tc_tsa", "prio_tc"), tables, strict=True)),
    }


STRICT = ("strict",) * 8
LABORATORY = {
    "pfc": pfc(8),
    "ets": ets(False, 8, False, NONE, NONE, STRICT, (0, 1, 2, 3, 4, 5, 6, 7)),
    "buffer": {
        "prio_buffer": (0, 0, 0, 1, 0, 0, 0, 0),
        "buffer_size": (262144, 131072, 0, 0, 0, 0, 0, 0),
        "total_size": 524160,
    },
    "dcbx": {"host": True, "ieee": True},
}
RICH = {
    "ets": ets(
        *(True, 6, True, (10, 0, 60, 30, 0, 0, 0, 0), (20, 0, 50, 30, 0, 0, 0, 0)),
        ("ets", "strict", "ets", "ets", "cbs", "vendor", "strict", "strict"),
        (7, 6, 5, 4, 3, 2, 1, 0),
    ),
    # 100 Mbit/s, 400 Gbit/s and 12.345 Mbit/s.
    "max_rate": (12_500_000, 0, 0, 50_000_000_000, 0, 0, 0, 1_543_125),
    "trust": (5, 255),
    "buffer": LABORATORY["buffer"],
    "dcbx": {"lld_managed": True, "cee": True, "ieee": True, "static": True},
    "peer_ets": ets(
        *(False, 3, False, (0, 100, 0, 0, 0, 0, 0, 0), NONE),
        ("strict", "ets", *["strict"] * 6),
        (0, 0, 0, 1, 1, 1, 2, 2),
    ),
    "peer_pfc": pfc(24, cap=4, mbc=True, delay=0),
    "peer_app": {"ethtype_prio": ((0x8915, 3),), "port_prio": ((4791, 4),)},
}
REPLIES = {
    "SET": {
        **LABORATORY,
        "pfc": pfc(8, (2**64 - 1, 0, 0, 1234, 0, 0, 0, 0), (0, 0, 0, 5678, 0, 0, 0, 2**32)),
        "app": {
            "pcp_prio": ((13, 2),),
            "default_prio": (1,),
            "stream_port_prio": ((3260, 5),),
            "port_prio": ((4791, 4),),
            "ethtype_prio": ((0x8915, 3),),
            "dgram_port_prio": ((4791, 3),),
            "dscp_prio": ((48, 6), (26, 3)),
        },
    },
    "RICH": {**RICH, "pfc": pfc(8), "app": {"pcp_prio": ((13, 2),)}},
    # The kernel keeps the tables itself, so `app` exists even if the driver does not support it.
    "PLAIN": {**LABORATORY, "app": {}},
    "LINUX_6_1": {**LABORATORY, "app": DSCP_26},
    # What a driver fails to report is absent and not zero: the kernel omits it without an error.
    "PFC_FAILED": {**RICH, "app": {}},
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
    assert "pfc" in asked.ieee("roce0")
    asked.close()
    assert [socket.closed for socket in kernel.sockets] == [True, True]
    replies.append([SET])
    assert "pfc" in asked.ieee("roce0")


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
    assert [*known] == [field]
    assert decode_ieee(an_answer((kind, bytes(range(size)) + b"\xff" * 9))) == known
    with pytest.raises(Malformed, match=f"of {size - 1} bytes instead of {size}"):
        decode_ieee(an_answer((kind, bytes(range(size - 1)))))


@pytest.mark.parametrize(("kind", "field"), [(APP_TABLE, "app"), (PEER_APP, "peer_app")])
def test_a_row_may_be_longer_than_known_and_not_shorter(kind, field):
    """Attributes of a newer kernel are passed over."""
    row = struct.pack("=BBH", 5, 3, 26)
    longer = decode_ieee(
        an_answer((63, b"new"), (kind, a_table((7, b"new"), (1, row + b"\xff\xff"), (2, row))))
    )
    assert longer == {field: {"dscp_prio": ((26, 3), (26, 3))}}
    with pytest.raises(Malformed, match="a struct dcb_app of 3 bytes"):
        decode_ieee(an_answer((kind, a_table((1, row[:3])))))


def test_a_nest_means_the_same_with_and_without_its_flag():
    """The kernel omits NLA_F_NESTED from the nests that are older than the flag, and newer nests have it."""
    (answer,) = payloads(SET)
    flagged = bytearray(answer)
    for start in (16, 272):
        assert struct.unpack_from("=H", flagged, start + 2)[0] & ~NESTED in (IEEE, APP_TABLE)
        flagged[start + 3] ^= NESTED >> 8
    assert flagged != answer
    assert decode_ieee(bytes(flagged)) == decode_ieee(answer)


def test_the_attributes_of_one_answer_need_no_order():
    """A peer's PFC is not decoded as the port's own."""
    own, peer = (struct.pack("=BBBxHxx16Q", 8, mask, 0, 0, *[0] * 16) for mask in (1, 2))
    for parts in ([(PFC, own), (PEER_PFC, peer)], [(PEER_PFC, peer), (PFC, own)]):
        told = decode_ieee(an_answer(*parts))
        assert [told[kind]["prio_pfc"].index(True) for kind in ("pfc", "peer_pfc")] == [0, 1]
    assert decode_ieee(an_answer()) == {}


u8, u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))


def eight(numbers):
    return st.tuples(*[numbers] * 8)


@given(st.tuples(u8, u8, u8, u16), eight(u64), eight(u64), st.tuples(*[eight(u8)] * 7), eight(u32))
def test_any_values_come_back(head, requests, indications, tables, size):
    first, mask, third, delay = head
    raw = struct.pack("=BBBxHxx8Q8Q", *head, *requests, *indications)
    assert decode_pfc(raw) == pfc(mask, requests, indications, cap=first, mbc=third != 0, delay=delay)
    raw = bytes([first, mask, third, *(number for table in tables for number in table)])
    names = {0: "strict", 1: "cbs", 2: "ets", 255: "vendor"}
    algorithms = tuple(names.get(number, number) for number in tables[2])
    assert decode_ets(raw) == ets(first != 0, mask, third != 0, *tables[:2], algorithms, tables[3])
    assert decode_max_rate(struct.pack("=8Q", *requests)) == tuple(1000 * rate // 8 for rate in requests)
    found = decode_buffer(struct.pack("=8B8II", *tables[0], *size, delay))
    assert found == {"prio_buffer": tables[0], "buffer_size": size, "total_size": delay}


@given(st.integers(0, len(SET)))
def test_a_datagram_cut_short_is_never_half_an_answer(length):
    """A reply is decoded completely or not at all: a PFC mask without the frames after it would be wrong."""
    asked, _ = dcb_that_says(SET[:length])
    if length == len(SET):
        assert asked.ieee("roce0") == REPLIES["SET"]
    else:
        with pytest.raises(OSError):  # noqa: PT011 - Malformed, or TimeoutError if no reply is left
            asked.ieee("roce0")
