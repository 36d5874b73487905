"""The packets of STAMP: what one end packs the other reads, scapy reads it as well, and nothing else is accepted."""

import subprocess
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.stamp import (
    ErrorEstimate,
    STAMPSessionReflectorTestUnauthenticated,
    STAMPSessionSenderTestUnauthenticated,
)
from tools import need

from roce_exporter.probe.stamp import (
    CLASS_OF_SERVICE,
    DIGEST,
    EXTENSIONS,
    FOLLOW_UP,
    KEYED_REPLY,
    KEYED_REQUEST,
    LARGEST,
    OPEN_REPLY,
    OPEN_REQUEST,
    TLV,
    UNRECOGNIZED,
    FollowUp,
    StampError,
    StampReply,
    StampRequest,
    pack_reply,
    pack_request,
    read_reply,
    read_request,
)

OPEN_BYTES = OPEN_REQUEST.size + EXTENSIONS
KEYED_BYTES = KEYED_REQUEST.size + DIGEST + EXTENSIONS + TLV.size + DIGEST
KEY = b"0123456789abcdef"
KEYS = [pytest.param(b"", id="open"), pytest.param(KEY, id="keyed")]
REQUEST = StampRequest(7, 1_700_000_000_123_456_789, 99, dscp=26)
FILLED = {"received": 5_000_000_001, "sent": 6_000_000_002, "ttl": 63, "tos": 26 << 2 | 3}
EARLIER = FollowUp(6, 4_000_000_003, 2)


def reply_to(packet: bytes, key: bytes = b"", **changed: object) -> bytes:
    filled = FILLED | {"follow_up": EARLIER} | changed
    return pack_reply(packet, read_request(packet, key), key=key, **filled)


@pytest.mark.parametrize("key", KEYS)
def test_a_request_and_its_reply_say_what_was_packed_and_have_one_length(key) -> None:
    packet = pack_request(REQUEST, key)
    reply = reply_to(packet, key)
    assert read_request(packet, key) == REQUEST
    assert len(packet) == len(reply) == (KEYED_BYTES if key else OPEN_BYTES)
    assert read_reply(reply, key) == StampReply(7, 99, 5_000_000_001, 26 << 2 | 3, EARLIER)
    form = KEYED_REPLY if key else OPEN_REPLY
    _, *sent, _, _, _, _, _, one, two, _, ttl = form.unpack(reply[: form.size])
    assert (sent, one, two, ttl) == ([6, 2], 1_700_000_000, 123_456_789, 63)


def test_scapy_reads_our_packets() -> None:
    packet = pack_request(REQUEST)
    seen = STAMPSessionSenderTestUnauthenticated(packet)
    assert (seen.seq, seen.ssid, seen.err_estimate.Z, seen.err_estimate.S) == (7, 99, 1, 0)
    assert [(one.type, one.len) for one in seen.tlv_objects] == [(CLASS_OF_SERVICE, 4), (FOLLOW_UP, 16)]
    answer = STAMPSessionReflectorTestUnauthenticated(reply_to(packet))
    assert (answer.seq, answer.seq_sender, answer.ssid, answer.ttl_sender) == (7, 7, 99, 63)
    assert [str(one.flags) for one in answer.tlv_objects] == ["", ""]


def test_a_sender_without_extensions_is_answered_in_as_many_octets() -> None:
    packet = bytes(
        STAMPSessionSenderTestUnauthenticated(seq=3, err_estimate=ErrorEstimate(Z=1, multiplier=1), ssid=0)
    )
    assert len(packet) == OPEN_REQUEST.size
    reply = reply_to(packet)
    assert len(reply) == len(packet)
    assert read_reply(reply).sequence == 3


def test_an_unknown_extension_comes_back_marked_and_padding_as_it_was() -> None:
    packet = pack_request(REQUEST) + b"\x80\x63\x00\x02ab" + b"\x80\x01\x00\x03\x00\x01\x02"
    reply = reply_to(packet)
    assert reply.endswith(bytes((UNRECOGNIZED, 0x63, 0, 2)) + b"ab" + b"\x00\x01\x00\x03\x00\x01\x02")
    assert len(reply) == len(packet)


@pytest.mark.parametrize(
    ("packet", "key", "reason"),
    [
        (b"", b"", "short"),
        (pack_request(REQUEST)[:43], b"", "short"),
        (pack_request(REQUEST, KEY)[:111], KEY, "short"),
        (bytes(LARGEST + 1), b"", "long"),
        (pack_request(REQUEST)[:-1], b"", "malformed"),
        (pack_request(REQUEST) + b"\x80\x01", b"", "malformed"),
        (pack_request(REQUEST), KEY, "short"),
        (pack_request(REQUEST) + bytes(KEYED_BYTES), KEY, "authentication"),
        (pack_request(REQUEST, b"another key 1234"), KEY, "authentication"),
        (reply_to(pack_request(REQUEST)), b"", "no_request"),
        (reply_to(pack_request(REQUEST, KEY), KEY), KEY, "no_request"),
    ],
)
def test_what_is_no_request_is_refused_with_one_word(packet, key, reason) -> None:
    with pytest.raises(StampError, match=f"^{reason}$"):
        read_request(packet, key)


@pytest.mark.parametrize("place", [0, 100, 112, 115, KEYED_BYTES - EXTENSIONS, KEYED_BYTES - 1])
def test_each_octet_of_a_keyed_packet_is_protected(place) -> None:
    packet = bytearray(pack_request(REQUEST, KEY))
    packet[place] ^= 1
    with pytest.raises(StampError):
        read_request(bytes(packet), KEY)


@given(st.binary(max_size=200), st.sampled_from([b"", KEY]))
def test_any_packet_is_read_or_refused(packet, key) -> None:
    for read in (read_request, read_reply):
        with suppress(StampError):
            read(packet, key)


@given(st.binary(max_size=64))
def test_whatever_follows_a_request_the_reply_is_as_long(rest) -> None:
    packet = pack_request(REQUEST) + rest
    with suppress(StampError):
        assert len(reply_to(packet)) == len(packet)


@pytest.mark.parametrize("is_reply", [False, True], ids=["request", "reply"])
def test_openssl_computes_the_same_signatures(is_reply) -> None:
    """RFC 8762 section 4.4: the first 96 octets; RFC 8972 section 4.8: the sequence number and the extensions before the HMAC's own."""
    need("openssl")
    key = b"a key of the test"
    packet = pack_request(StampRequest(7, 1_700_000_000_123_456_789, 5, 26), key)
    if is_reply:
        request = read_request(packet, key)
        packet = pack_reply(
            packet, request, received=2, sent=3, ttl=64, tos=106, follow_up=FollowUp(6, 4, 2), key=key
        )

    def signature(content: bytes) -> bytes:
        command = ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{key.hex()}", "-binary"]
        return subprocess.run(command, input=content, capture_output=True, check=True).stdout[:16]

    assert packet[96:112] == signature(packet[:96])
    # The last extension: its head of 4 octets has type 8 and length 16.
    assert packet[-20:-16] == b"\x00\x08\x00\x10"
    assert packet[-16:] == signature(packet[:4] + packet[112:-20])
