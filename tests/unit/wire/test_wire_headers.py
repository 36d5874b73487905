"""Each header as the standard defines it; scapy's contrib.roce is the oracle (its licence forbids more than tests)."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib import roce as oracle
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from wire_frames import (
    RECORDED_ACK,
    RECORDED_CNP,
    RECORDED_WRITE,
    bth,
    ethernet,
    frames_of,
    ipv4,
    ipv6,
    packet_of,
    roce,
    udp,
)

from roce_exporter.wire.decode import infiniband
from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.decode.infiniband import read_extensions
from roce_exporter.wire.decode.link_frames import read_lldp, read_mac_control

# The example of the note on the CNP format: recorded; only the transport part is given there.
EXAMPLE_CNP = bytes.fromhex("8100ffff400000d200000000") + bytes(16) + bytes.fromhex("e42dad81")


def test_the_example_cnp_of_the_note() -> None:
    packet = packet_of(ethernet(0x0800, ipv4("10.0.0.1", "10.0.0.2", udp(EXAMPLE_CNP))))
    assert packet
    found = packet["bth"]
    assert (found["opcode"], found["destination_qp"], found["psn"]) == (0x81, 210, 0)
    assert (found["becn"], found["fecn"], found["partition_key"]) == (True, False, 0xFFFF)
    assert packet["operation"] == "congestion notification"
    assert packet["icrc"] == 0x81AD2DE4  # sent with its least significant byte first


@pytest.mark.parametrize("frame", [RECORDED_WRITE, RECORDED_ACK, RECORDED_CNP], ids=["write", "ack", "cnp"])
def test_recorded_packets_have_correct_crcs_in_a_batch_too(frame) -> None:
    columns = decode_frames(frames_of([frame])).columns
    assert columns.icrc.tolist() == [1]
    broken = bytearray(frame)
    broken[-6] ^= 1
    assert decode_frames(frames_of([bytes(broken)])).columns.icrc.tolist() == [0]


def test_recorded_packets_of_version_1() -> None:
    write, ack = packet_of(RECORDED_WRITE), packet_of(RECORDED_ACK)
    assert write
    assert ack
    assert write["version"] == ack["version"] == 1
    assert write["icrc_valid"]
    assert ack["icrc_valid"]
    assert (write["reth"]["length"], write["reth"]["key"]) == (5, 0x47B3)
    assert write["bth"]["pad"] == 3
    assert ack["aeth"] == {"kind": 0, "value": 0, "msn": 5}
    assert (write["bth"]["psn"], ack["bth"]["psn"]) == (0xA788BC, 0xA788C0)
    assert write["source"] == "15.0.0.2"
    assert write["source_port"] is None


BTHS = st.builds(
    oracle.BTH,
    opcode=st.sampled_from([low | transport << 5 for transport in (0, 1, 3) for low in range(24)] + [0x81]),
    solicited=st.booleans(),
    migreq=st.booleans(),
    padcount=st.integers(0, 3),
    version=st.integers(0, 15),
    pkey=st.integers(0, 0xFFFF),
    fecn=st.booleans(),
    becn=st.booleans(),
    dqpn=st.integers(0, 0xFFFFFF),
    ackreq=st.booleans(),
    psn=st.integers(0, 0xFFFFFF),
)
BELOW = st.one_of(
    st.builds(
        lambda tos, ttl, tags: (
            Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
            / tags
            / IP(src="10.1.2.3", dst="10.3.2.1", tos=tos, ttl=ttl)
        ),
        st.integers(0, 255),
        st.integers(1, 255),
        st.sampled_from([Dot1Q(vlan=5, prio=3), Dot1Q(vlan=5, prio=3) / Dot1Q(vlan=6, prio=1)]),
    ),
    st.builds(
        lambda tos: (
            Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
            / IP(src="10.1.2.3", dst="10.3.2.1", tos=tos)
        ),
        st.integers(0, 255),
    ),
    st.builds(
        lambda tc, label: (
            Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
            / IPv6(src="fd00::1", dst="fd00::2", tc=tc, fl=label)
        ),
        st.integers(0, 255),
        st.integers(0, 0xFFFFF),
    ),
)


@given(BELOW, BTHS, st.binary(max_size=64).filter(lambda data: len(data) % 4 == 0))
def test_packets_that_scapy_encodes_are_decoded_field_by_field(below, base, payload) -> None:
    made = below / UDP(sport=0xC000, dport=4791) / base / payload
    frame = bytes(made)
    written = Ether(frame)
    expected = written[oracle.BTH]
    found = packet_of(frame)
    assert found
    assert found["bth"] == {
        "opcode": expected.opcode,
        "solicited": expected.solicited,
        "migration": expected.migreq,
        "pad": expected.padcount,
        "version": expected.version,
        "partition_key": expected.pkey,
        "fecn": expected.fecn,
        "becn": expected.becn,
        "destination_qp": expected.dqpn,
        "acknowledge_request": expected.ackreq,
        "psn": expected.psn,
    }
    assert found["icrc"] == struct.unpack("<I", struct.pack(">I", expected.icrc))[0]
    assert found["source_port"] == 0xC000
    tags = [layer for layer in (written.getlayer(Dot1Q, 1), written.getlayer(Dot1Q, 2)) if layer is not None]
    assert found["vlan_priority"] == [layer.prio for layer in tags]
    assert found["vlan"] == [layer.vlan for layer in tags]
    columns = decode_frames(frames_of([frame])).columns
    assert columns.opcodes.tolist() == [expected.opcode]
    assert columns.queues.tolist() == [expected.dqpn]
    assert columns.sequences.tolist() == [expected.psn]
    assert columns.becn.tolist() == [bool(expected.becn)]
    assert columns.ack_requests.tolist() == [bool(expected.ackreq)]
    assert columns.priorities.tolist() == [tags[0].prio if tags else -1]


@given(st.integers(0, 255), st.integers(0, 63), st.binary(max_size=40), st.booleans())
def test_the_crc_is_scapys(traffic_class, queue, payload, new) -> None:
    """The oracle computes the CRC of an IPv4 or IPv6 packet when it writes it."""
    network = (
        IPv6(src="fd00::1", dst="fd00::2", tc=traffic_class, fl=queue << 9, hlim=queue + 1)
        if new
        else IP(src="10.1.2.3", dst="10.3.2.1", tos=traffic_class, ttl=queue + 1)
    )
    made = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / network
    frame = bytes(made / UDP(sport=1, dport=4791) / oracle.BTH(opcode=4, dqpn=queue) / payload)
    found = packet_of(frame)
    assert found
    assert found["icrc_valid"]
    assert decode_frames(frames_of([frame])).columns.icrc.tolist() == [1]


def crc_of_the_standard(content: bytes) -> int:
    """CRC-32 bit by bit, from its polynomial: the register starts with ones, the lowest bit of a byte is first, the rest inverted."""
    register = 0xFFFFFFFF
    for byte in content:
        for place in range(8):
            differs = (register ^ byte >> place) & 1
            register = register >> 1 ^ (0xEDB88320 if differs else 0)
    return register ^ 0xFFFFFFFF


@given(st.binary(min_size=40, max_size=40), BTHS, st.binary(max_size=40))
def test_the_crc_of_version_1(grh, base, payload) -> None:
    """Which scapy does not compute: eight bytes of ones for the LRH, and ones for what routers change (A16.5.1)."""
    transport = bytes(base)[:12] + payload
    grh = b"\x6f" + grh[1:4] + struct.pack(">HB", len(transport) + 4, 0x1B) + grh[7:]
    ones = b"\xff" * 8 + b"\x6f\xff\xff\xff" + grh[4:7] + b"\xff" + grh[8:]
    crc = crc_of_the_standard(ones + transport[:4] + b"\xff" + transport[5:])
    frame = ethernet(0x8915, grh + transport + struct.pack("<I", crc))
    found = packet_of(frame)
    assert found
    assert found["icrc_valid"]
    assert decode_frames(frames_of([frame])).columns.icrc.tolist() == [1]
    written = Ether(frame)
    assert (written[oracle.BTH].psn, written[oracle.GRH].tclass) == (
        base.psn,
        found["dscp"] << 2 | found["ecn"],
    )
    assert found["bth"]["psn"] == base.psn


@pytest.mark.parametrize(
    ("syndrome", "words"),
    [
        (0x62, {"nak": "remote_access_error"}),
        (0x69, {"nak": "reserved"}),
        (0x2E, {"rnr_milliseconds": 1.28}),
        (0x1F, {}),
    ],
)
def test_syndromes_in_words(syndrome, words) -> None:
    packet = packet_of(roce(bth(0x11), struct.pack(">I", syndrome << 24 | 5)))
    assert packet
    assert packet["aeth"] == {"kind": syndrome >> 5, "value": syndrome & 31, "msn": 5, **words}


BODY = bytes(range(1, 65))


def number(first: int, after: int) -> int:
    return int.from_bytes(BODY[first:after])


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        (
            infiniband.XRC << 5 | infiniband.READ_REQUEST,
            {
                "xrceth": 0x020304,
                "reth": {"address": number(4, 12), "key": number(12, 16), "length": number(16, 20)},
            },
        ),
        (
            infiniband.UD << 5 | 0x05,
            {"deth": {"key": 0x01020304, "source_qp": 0x060708}, "immediate": 0x090A0B0C},
        ),
        (
            infiniband.COMPARE_SWAP,
            {
                "atomic": {
                    "address": number(0, 8),
                    "key": number(8, 12),
                    "swap": number(12, 20),
                    "compare": number(20, 28),
                }
            },
        ),
        (
            infiniband.ATOMIC_ACKNOWLEDGE,
            {"aeth": {"kind": 0, "value": 1, "msn": 0x020304}, "atomic_ack": number(4, 12)},
        ),
        (0x16, {"invalidate": 0x01020304}),
        (
            infiniband.RD << 5 | infiniband.READ_REQUEST,
            {
                "rdeth": 0x020304,
                "deth": {"key": number(4, 8), "source_qp": number(9, 12)},
                "reth": {"address": number(12, 20), "key": number(20, 24), "length": number(24, 28)},
            },
        ),
        (infiniband.UC << 5 | infiniband.READ_REQUEST, {}),  # no transport defines it
        (0x81, {}),
    ],
)
def test_extended_headers_by_opcode(opcode, expected) -> None:
    """Lengths and order by table 35 of the specification; the decoder of a batch finds the same places."""
    assert read_extensions(opcode, BODY) == expected
    assert list(read_extensions(opcode, BODY[:3])) == []
    columns = decode_frames(frames_of([roce(bth(opcode), BODY)])).columns
    aeth, reth = expected.get("aeth"), expected.get("reth")
    assert columns.syndromes.tolist() == [aeth["kind"] << 5 | aeth["value"] if aeth else -1]  # type: ignore[index] # of the table
    assert columns.read_lengths.tolist() == [reth["length"] if reth else -1]  # type: ignore[index] # of the table


FRAME = roce(bth(0x0A, psn=5), bytes(16))


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (17, 47),  # an IP packet that ends within its ICRC
        (17, 19),
        (14, 0x44),
        (14, 0x65),
        (20, 0x3F),  # a fragment
        (23, 6),
        (37, 0xB6),
        (39, 29),  # a datagram that ends behind its packet, and one that has no room for an ICRC
        (39, 23),
    ],
)
def test_headers_that_contradict_each_other(at, value) -> None:
    frame = bytearray(roce(bth(0x11, psn=9), bytes(4)))
    frame[at] = value
    columns = decode_frames(frames_of([bytes(frame)])).columns
    assert len(columns.times) == 0


@given(st.integers(0, 7), st.binary(max_size=24), st.integers(0, 400), st.data())
def test_a_broken_frame_changes_nothing_of_its_neighbours(kind, noise, cut, data) -> None:
    """Truncated frames, lying lengths, flipped bytes: what is found of them is as with the frame alone."""
    frame = bytearray(_valid(kind))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at] = data.draw(st.integers(0, 255))
    broken = bytes(frame[: max(0, len(frame) - cut)]) if cut < 200 else bytes(frame) + noise
    columns = decode_frames(frames_of([FRAME, broken, FRAME])).columns
    found = packet_of(broken)
    assert columns.sequences.tolist() == ([5, found["bth"]["psn"], 5] if found else [5, 5])
    assert columns.icrc.tolist()[:: len(columns.times) - 1] == [1, 1]
    alone = decode_frames(frames_of([broken])).columns
    for one, other in zip(alone, columns, strict=True):
        if one is not alone.times and found:
            assert np.array_equal(one[0], other[1])


def _valid(kind: int) -> bytes:
    plain = roce(bth(0x11, psn=9), struct.pack(">I", 0x60000001))
    network = plain[14:]
    return (
        plain,
        roce(bth(0x11, psn=9), struct.pack(">I", 0x1F000001), tags=[3 << 13, 5]),
        roce(bth(0x0A, psn=9), bytes(16), options=bytes(8)),
        ethernet(0x86DD, ipv6(1, 2, udp(bth(0x11) + bytes(8)))),
        RECORDED_ACK,
        ethernet(
            0x0800,
            ipv4(
                "1.1.1.1", "2.2.2.2", struct.pack(">HHI", 0x1000, 0x88BE, 9) + bytes(8) + plain, protocol=47
            ),
        ),
        ethernet(0x0800, ipv4("1.1.1.1", "2.2.2.2", udp(b"\x08" + bytes(7) + plain, 4789))),
        ethernet(0x0800, network[:6] + b"\x20\x00" + network[8:]),  # a fragment
    )[kind]


def test_pause_frames() -> None:
    source = bytes.fromhex("020000000002")
    head = bytes.fromhex("0180c2000001") + source + struct.pack(">H", 0x8808)
    pfc = head + struct.pack(">HH8H", 0x0101, 0b1000_1000, *(0, 0, 0, 65535, 0, 0, 0, 0)) + bytes(26)
    found = read_mac_control(pfc, 14)
    assert found
    assert found.source == "02:00:00:00:00:02"
    assert found.quanta == (None, None, None, 65535, None, None, None, 0)
    assert found.per_priority
    plain = read_mac_control(head + struct.pack(">HH", 1, 200), 14)
    assert plain
    assert (plain.quanta, plain.per_priority) == ((200,), False)
    assert read_mac_control(pfc[:30], 14) is None
    assert read_mac_control(head + struct.pack(">HH", 2, 200), 14) is None
    decoded = decode_frames(frames_of([pfc, FRAME]))
    assert [pause.quanta for _, pause in decoded.pauses] == [found.quanta]


def test_lldp_says_who_is_at_the_mirrored_link() -> None:
    def tlv(kind: int, value: bytes) -> bytes:
        return struct.pack(">H", kind << 9 | len(value)) + value

    body = (
        tlv(1, b"\x04" + bytes.fromhex("0a0b0c0d0e0f"))
        + tlv(2, b"\x05Ethernet4")
        + tlv(5, b"leaf1\x1b[2J")
        + tlv(0, b"")
    )
    frame = ethernet(0x88CC, body)
    found = read_lldp(frame, 14)
    assert found == ("02:00:00:00:00:02", "0a:0b:0c:0d:0e:0f", "Ethernet4", "leaf1?[2J")
    assert read_lldp(frame[:20], 14) is None
    end = frame.index(body) + len(body) - 2
    assert read_lldp(frame[:end] + tlv(0, b"") + tlv(5, b"x"), 14) == found, (
        "what is behind the end is no part"
    )
    assert read_lldp(frame[: end - 1], 14) == found._replace(name=""), "one that is cut is none"
    assert [one.name for one in decode_frames(frames_of([frame])).neighbours] == ["leaf1?[2J"]


def test_cooked_and_raw_captures() -> None:
    network = FRAME[14:]
    cooked = bytes(14) + b"\x08\x00" + network
    cooked_2 = b"\x08\x00" + bytes(18) + network
    for link, frame in ((113, cooked), (276, cooked_2), (101, network)):
        assert packet_of(frame, link)
        assert decode_frames(frames_of([frame], link=link)).columns.icrc.tolist() == [1]
