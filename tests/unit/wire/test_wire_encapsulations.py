"""The same packets in every encapsulation are the same counts; what is not decoded is named; copies and what a mirror lost are no faults."""

import gzip
import json
import re
import struct
from collections.abc import Iterable

import numpy as np
import pytest
from wire_frames import (
    ACK,
    BEGIN,
    CNP,
    WRITE,
    A,
    B,
    C,
    aeth,
    bth,
    enhanced,
    ethernet,
    frames_of,
    interface,
    ipv4,
    ipv6,
    packet_of,
    pcap,
    roce,
    section,
    tally_of,
    udp,
)

from roce_exporter.cli import main
from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.decode.invariant_crc import CORRECT, invariant_crc
from roce_exporter.wire.tally import incasts
from roce_exporter.wire.tally.pair_counts import LosslessMarks, PairCounts
from roce_exporter.wire.tally.tally import Tally
from roce_exporter.wire.wire_document import wire_document
from roce_exporter.wire.wire_summary import WireSummary, summarise
from roce_exporter.wire.wire_text import sentences
from roce_exporter.words import some

PLAIN = roce(bth(WRITE, psn=5), bytes(16), tags=[3 << 13 | 8])
PACKET = roce(bth(WRITE, psn=5), bytes(16))[14:]
FRAME = roce(bth(WRITE, psn=5), bytes(16))
MARKED = 26 << 2 | 3


def over_ip(protocol: int, payload: bytes) -> bytes:
    return ethernet(0x0800, ipv4("192.0.2.1", "192.0.2.9", payload, protocol=protocol))


def over_udp(port: int, payload: bytes) -> bytes:
    return over_ip(17, udp(payload, port))


def labels(*numbers: int) -> bytes:
    return b"".join(
        struct.pack(">I", number << 12 | (place == len(numbers) - 1) << 8 | 64)
        for place, number in enumerate(numbers)
    )


def extended(*headers: tuple[int, bytes]) -> bytes:
    """A RoCE packet over IPv6 behind extension headers, whose CRC is that without them (annex A17)."""
    body = udp(bth(WRITE, psn=5) + bytes(20))
    plain = ipv6(1, 2, body)
    body = body[:-4] + struct.pack("<I", invariant_crc(plain[:40], body[:-4], version=2))
    chain, following = b"", 17
    for kind, rest in reversed(headers):
        chain, following = bytes((following,)) + rest + chain, kind
    return ethernet(0x86DD, ipv6(1, 2, chain + body, protocol=following))


OPTIONS = b"\0\1\4" + bytes(4)
VXLAN = struct.pack(">II", 1 << 27, 77 << 8)
ENCAPSULATED = {
    "vxlan": over_udp(4789, VXLAN + FRAME),
    "vxlan of linux": over_udp(8472, VXLAN + FRAME),
    "vxlan with a tag inside": over_udp(4789, VXLAN + PLAIN),
    "vxlan-gpe, ip": over_udp(4790, struct.pack(">BBHI", 0x0C, 0, 1, 0) + PACKET),
    "vxlan-gpe, ethernet": over_udp(4790, struct.pack(">BBHI", 0x0C, 0, 3, 0) + FRAME),
    "vxlan-gpe without a protocol": over_udp(4790, VXLAN + FRAME),
    "geneve": over_udp(6081, struct.pack(">BBHI", 0, 0, 0x6558, 0) + FRAME),
    "geneve with options": over_udp(6081, struct.pack(">BBHI", 3, 0, 0x6558, 0) + bytes(12) + FRAME),
    "geneve, ip": over_udp(6081, struct.pack(">BBHI", 0, 0, 0x0800, 0) + PACKET),
    "geneve over ipv6": ethernet(
        0x86DD, ipv6(1, 2, udp(struct.pack(">BBHI", 0, 0, 0x6558, 0) + FRAME, 6081))
    ),
    "mpls in udp": over_udp(6635, labels(5) + PACKET),
    "gre": over_ip(47, struct.pack(">HH", 0, 0x0800) + PACKET),
    "gre with key and sequence": over_ip(47, struct.pack(">HHII", 0x3000, 0x0800, 9, 1) + PACKET),
    "gre, ethernet": over_ip(47, struct.pack(">HH", 0, 0x6558) + FRAME),
    "gre, mpls": over_ip(47, struct.pack(">HH", 0, 0x8847) + labels(5) + PACKET),
    "erspan in vxlan": over_udp(4789, VXLAN + over_ip(47, struct.pack(">HH", 0, 0x88BE) + FRAME)),
    "erspan 2": over_ip(47, struct.pack(">HHI", 0x1000, 0x88BE, 9) + bytes(8) + FRAME),
    "erspan 3": over_ip(47, struct.pack(">HHI", 0x1000, 0x22EB, 9) + bytes(12) + FRAME),
    "erspan 3 with a subheader and a tag inside": over_ip(47, struct.pack(">HHI", 0x1000, 0x22EB, 9) + bytes(11) + b"\x01" + bytes(8) + PLAIN),
    "ip in ip": over_ip(4, PACKET),
    "ip in ip in ip": over_ip(4, ipv4(B, C, PACKET, protocol=4)),
    "etherip": over_ip(97, b"\x30\0" + FRAME),
    "two tags": roce(bth(WRITE, psn=5), bytes(16), tags=[9, 3 << 13 | 8]),
    "mpls in ip": over_ip(137, labels(5, 6) + PACKET),
    "mpls": ethernet(0x8847, labels(5) + PACKET),
    "mpls, three labels, tagged": ethernet(0x8847, labels(5, 6, 7) + PACKET, [9]),
    "pseudowire": ethernet(0x8847, labels(5) + FRAME),
    "pseudowire with a control word": ethernet(0x8847, labels(5) + bytes(4) + FRAME),
    "hop-by-hop": extended((0, OPTIONS)),
    "destination options": extended((60, OPTIONS)),
    "segment routing": extended((43, bytes((2, 4, 0, 0, 0, 0, 0)) + bytes(16))),
    "authentication": extended((51, bytes((4,)) + bytes(22))),
    "a whole packet with a fragment header": extended((44, bytes(7))),
    "four headers": extended((0, OPTIONS), (60, OPTIONS), (43, bytes((2, 4, 0, 0, 0, 0, 0)) + bytes(16)), (60, OPTIONS)),
}  # fmt: skip


@pytest.mark.parametrize("name", ENCAPSULATED)
def test_a_packet_is_found_with_its_crc(name) -> None:
    decoded = decode_frames(frames_of([ENCAPSULATED[name]]))
    columns = decoded.columns
    assert [part.tolist() for part in (columns.sequences, columns.queues, columns.dscp, columns.ecn)] == [
        *([5], [7], [26], [2])
    ]
    assert decoded.columns.icrc.tolist() == [CORRECT]
    assert decoded.columns.lengths.tolist() == [len(ENCAPSULATED[name])]
    packet = packet_of(ENCAPSULATED[name])
    assert packet
    if "tag inside" in name:
        assert (
            (packet["vlan"], packet["vlan_priority"])
            == ([8], decoded.columns.priorities.tolist())
            == ([8], [3])
        )
    assert not decoded.others


UNDECODED = {
    "sFlow samples (UDP 6343)": over_udp(6343, bytes(100)),
    "IPsec ESP (encrypted)": over_ip(50, bytes(60)),
    "MACsec (encrypted)": ethernet(0x88E5, bytes(60)),
    "PPPoE": ethernet(0x8864, bytes(60)),
    "IP fragments": ethernet(0x0800, FRAME[14:20] + b"\x20\0" + FRAME[22:]),
    "RoCE packets that are cut off": FRAME[:46],
    "too many headers": ethernet(0x8847, b"".join(labels(5) + ethernet(0x8847, b"") for _ in range(9))),
}


@pytest.mark.parametrize("name", UNDECODED)
def test_what_may_hide_packets_is_named_and_no_all_clear(name, tmp_path, capsys) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap([UNDECODED[name]]))
    assert main(["wire", str(tmp_path / "a.pcap")]) == 1
    assert (
        "No RoCE packet was seen. Left out, because they are not decoded: 1 "
        + some(1, name).removeprefix("1 ")
        in capsys.readouterr().out
    )


def test_a_fragment_of_ipv6_is_named() -> None:
    decoded = decode_frames(frames_of([extended((44, b"\0\0\1" + bytes(4)))]))
    assert (decoded.others, len(decoded.columns.times)) == ({"IP fragments": 1}, 0)


def test_other_traffic_is_named_and_hides_nothing(tmp_path, capsys) -> None:
    others = [
        over_ip(6, bytes(20)),
        over_ip(6, bytes(20)),
        ethernet(0x0806, bytes(46)),
        over_udp(53, bytes(9)),
        *[over_ip(99, bytes(20))] * 2,
    ]
    (tmp_path / "a.pcap").write_bytes(pcap(others))
    assert main(["wire", str(tmp_path / "a.pcap")]) == 1
    assert (
        "(2 TCP, 2 other IP protocols, 1 UDP of other ports, 1 ARP). NICs bypass the kernel"
        in capsys.readouterr().out
    )
    (tmp_path / "b.pcap").write_bytes(pcap([*others, FRAME]))
    assert main(["wire", str(tmp_path / "b.pcap"), "--format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["other_frames"]["TCP"] == 2


def test_an_interface_of_an_unknown_link_type_is_left_out(tmp_path, capsys) -> None:
    content = (
        section() + interface(127) + interface() + enhanced(bytes(40), 1) + enhanced(FRAME + bytes(2), 2, 1)
    )
    (tmp_path / "a.pcapng").write_bytes(content)
    assert main(["wire", str(tmp_path / "a.pcapng")]) == 1
    said = capsys.readouterr().out
    assert "1 RoCE packet" in said
    assert "1 frame of link type 127 (802.11 radiotap)" in said


def test_compressed_files(tmp_path, capsys) -> None:
    content = pcap([FRAME] * 31)
    for name, packed in {
        "one member": gzip.compress(content),
        "two members": gzip.compress(content[:700]) + gzip.compress(content[700:]),
    }.items():
        (tmp_path / "a.gz").write_bytes(packed)
        assert main(["wire", str(tmp_path / "a.gz"), "--format=json"]) == 0, name
        assert json.loads(capsys.readouterr().out)["packets"] == 31
    (tmp_path / "a.gz").write_bytes(gzip.compress(content)[:-12])
    assert main(["wire", str(tmp_path / "a.gz")]) == 1
    assert "a.gz: the gzip file is cut off" in capsys.readouterr().err


def test_zstd_names_the_remedy_or_is_read(tmp_path, capsys) -> None:
    content = pcap([FRAME] * 31)
    # A frame of one raw block (RFC 8878, 3.1.1), which needs no compressor: window of 1 KB, no checksum.
    block = (len(content) << 3 | 1).to_bytes(3, "little")
    head = b"\x28\xb5\x2f\xfd\x60" + (len(content) - 256).to_bytes(2, "little")
    (tmp_path / "a.zst").write_bytes(head + block + content)
    code = main(["wire", str(tmp_path / "a.zst"), "--format=json"])
    output = capsys.readouterr()
    if code:
        assert "zstdcat FILE | roce-exporter wire -" in output.err
    else:
        assert json.loads(output.out)["packets"] == 31


def ping_pong(count: int) -> list[bytes]:
    """Writes, each with its ACK; two CNPs."""
    found = []
    for psn in range(count):
        found.append(roce(bth(WRITE, psn=psn, ack=True, queue=7), bytes(16)))
        found.append(roce(bth(ACK, psn=psn, queue=9), aeth(), source=B, destination=A))
        if psn in (2, 5):
            found.append(roce(bth(CNP, queue=9), bytes(16), source=B, destination=A))
    return found


def routed(frame: bytes) -> bytes:
    """The same packet behind a router: other MAC addresses, one hop less."""
    return frame[6:12] + frame[:6] + frame[12:22] + bytes((frame[22] - 1,)) + frame[23:]


def timed_tally(frames: Iterable[tuple[int, bytes]], batch: int = 1 << 20) -> Tally:
    """The tally of frames at these nanoseconds."""
    ordered = sorted(frames, key=lambda one: one[0])
    tally = Tally()
    for at in range(0, len(ordered), batch):
        part = ordered[at : at + batch]
        made = frames_of([frame for _, frame in part])
        tally.add(decode_frames(made._replace(times=BEGIN + np.array([time for time, _ in part]))))
    return tally


def total(tally: Tally) -> PairCounts:
    return PairCounts(tally.pairs.counts.sum(axis=0))


@pytest.mark.parametrize(
    "copy", [lambda frame: frame, routed, lambda frame: over_ip(47, b"\0\0\x65\x58" + frame)]
)
@pytest.mark.parametrize("delay", [3, 30_000, 700_000])
@pytest.mark.parametrize("times", [2, 3])
def test_a_mirror_that_doubles_is_counted_once(copy, delay, times) -> None:
    plain = [(20_000 * at, frame) for at, frame in enumerate(ping_pong(40))]
    copies = [(time + delay * one, copy(frame)) for time, frame in plain for one in range(1, times)]
    once, again = timed_tally(plain), timed_tally(plain + copies)
    assert again.roce == once.roce == 82
    assert again.copies == 82 * (times - 1)
    assert (again.pairs.counts[:, :8] == once.pairs.counts[:, :8]).all()
    assert total(again).cnps == 2
    assert total(again).one("retransmissions") == 0
    assert any("captured twice" in one for one in said(again))


def test_what_is_sent_again_is_no_copy() -> None:
    """Go-back-N after a NAK: more than half of the packets are there twice, the ACKs are not."""
    first = [roce(bth(WRITE, psn=psn), bytes(16)) for psn in range(20)]
    acks = [roce(bth(ACK, psn=psn, queue=9), aeth(), source=B, destination=A) for psn in range(20)]
    tally = timed_tally((1000 * at, frame) for at, frame in enumerate(first + first[1:] + acks))
    assert tally.copies == 0
    assert total(tally).one("retransmissions") == 19


def test_identical_cnps_alone_are_no_copies() -> None:
    cnp = roce(bth(CNP), bytes(16), source=B, destination=A)
    tally = timed_tally((50_000 * at, cnp) for at in range(200))
    assert (tally.copies, total(tally).cnps) == (0, 200)


def psn_of(frame: bytes) -> int:
    return int.from_bytes(frame[51:54])


def without(frames: list[bytes], *psns: int) -> list[bytes]:
    """The frames but the requests with these PSNs."""
    return [frame for frame in frames if frame[42] != WRITE or psn_of(frame) not in psns]


def said(tally: Tally) -> tuple[str, ...]:
    return sentences(summary_of(tally), 10)


def summary_of(tally: Tally) -> WireSummary:
    return summarise(tally, LosslessMarks())


def test_what_the_receiver_acknowledged_was_not_lost() -> None:
    tally = tally_of(without(ping_pong(30), 3, 14, 15))
    counts = total(tally)
    assert (counts.one("not_captured"), counts.one("missing"), counts.one("gaps")) == (3, 0, 0)
    assert counts.one("out_of_sequence") == 0
    assert any("3 packets not captured" in one for one in said(tally))


def test_what_was_counted_as_missing_in_an_earlier_batch_stays_so() -> None:
    """A counter must not fall."""
    requests = [roce(bth(WRITE, psn=psn, ack=True, queue=7), bytes(16)) for psn in range(8) if psn != 3]
    acks = [roce(bth(ACK, psn=psn, queue=9), aeth(), source=B, destination=A) for psn in range(8)]
    more = [roce(bth(WRITE, psn=8, ack=True, queue=7), bytes(16)), *acks]
    for batches, missing in (((requests, more), 1), (([*requests, *more],), 0)):
        counts = total(tally_of(*batches))
        assert (counts.one("missing"), counts.one("not_captured")) == (missing, 1 - missing)


def test_without_acks_or_with_a_gap_that_none_covers_it_is_missing() -> None:
    frames = without(ping_pong(30), 3, 20)
    assert total(tally_of(frame for frame in frames if frame[42] != ACK)).one("not_captured") == 0
    silent = [frame for frame in frames if frame[42] != ACK or psn_of(frame) < 20]
    counts = total(tally_of(silent))
    assert (counts.one("missing"), counts.one("not_captured"), counts.one("gaps")) == (2, 0, 2)


def test_a_retransmission_is_no_loss_of_the_mirror() -> None:
    """PSN 3 is lost behind the mirror's place, refused and sent again; no later PSN is acknowledged before."""
    requests = [roce(bth(WRITE, psn=psn, ack=True, queue=7), bytes(16)) for psn in range(6)]
    acks = [roce(bth(ACK, psn=psn, queue=9), aeth(), source=B, destination=A) for psn in range(6)]
    counts = total(tally_of([*requests[:3], acks[2], *requests[4:], *requests[3:], *acks[3:]]))
    assert (counts.one("retransmissions"), counts.one("not_captured")) == (3, 0)


def test_an_ack_of_another_queue_pair_excuses_nothing() -> None:
    """Two queue pairs between the same addresses at the same PSNs: whose ACK it is cannot be told."""
    both = [roce(bth(WRITE, psn=psn, queue=queue), bytes(16)) for psn in range(20) for queue in (7, 8)]
    acks = [roce(bth(ACK, psn=psn, queue=9), aeth(), source=B, destination=A) for psn in range(20)]
    assert total(tally_of([*both[:10], *both[12:], *acks])).one("not_captured") == 0


def incast(senders: int, *, tos: int = MARKED, packets: int = 10) -> list[bytes]:
    return [
        roce(bth(WRITE, psn=psn, queue=sender), bytes(16), source=f"10.0.1.{sender}", tos=tos)
        for psn in range(packets)
        for sender in range(senders)
    ]


def test_an_incast_is_one_sentence() -> None:
    begin = [(10_000 * at, frame) for at, frame in enumerate(incast(8))]
    again = [(800_000 + 10_000 * at, frame) for at, frame in enumerate(incast(2))]
    later = [(90_000_000 + 10_000 * at, frame) for at, frame in enumerate(incast(4))]
    tally = timed_tally([*begin, *again, *later], batch=50)
    found = [one for one in said(tally) if one.startswith("incast")]
    assert len(found) == 2
    assert re.match(
        r"incast to 10.0.0.2 at 08:00:00.000 UTC for \S+ m?s: 8 senders \(10.0.1.\d, .+ and 5 more\), ",
        found[0],
    )
    assert not [one for one in said(tally) if "no CNP" in one or "congests" in one], (
        "the incast says it of all of its senders"
    )
    assert [len(one.senders) for one in summary_of(tally).incasts] == [8, 4]
    assert [one.retransmissions for one in summary_of(tally).incasts] == [20, 40]
    (first, _) = wire_document(summary_of(tally), 10)["incasts"]
    keys = ("receiver", "senders", "from", "to", "packets", "ce", "retransmissions")
    senders = [f"10.0.1.{sender}" for sender in range(8)]
    assert first == dict(zip(keys, (B, senders, 1.8e9, 1_800_000_000.00099, 100, 100, 20), strict=True))


def test_invented_receivers_and_senders_are_followed_up_to_a_bound(monkeypatch) -> None:
    monkeypatch.setattr(incasts, "MOST_INCASTS", 4)
    monkeypatch.setattr(incasts, "MOST_PAIRS", 5)
    groups = [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (6, 2)]  # receiver, senders
    ends = [(f"10.0.2.{to}", f"10.0.{by}.{sender}") for to, by in groups for sender in range(4)]
    frames = [roce(bth(WRITE), bytes(16), source=by, destination=to, tos=MARKED) for to, by in ends]
    tally = timed_tally(enumerate(frames), batch=4)
    assert len(tally.incasts._open) == len({one.receiver for one in tally.incasts.found[:4]}) == 4
    assert max(len(one.senders) for one in tally.incasts._open.values()) == 5


def test_counts_over_time(tmp_path, capsys) -> None:
    (tmp_path / "a.pcap").write_bytes(pcap(ping_pong(20)))  # 42 packets, a microsecond apart
    assert main(["wire", str(tmp_path / "a.pcap"), "--interval=0.00001", "--format=json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = document["intervals"]
    assert [row["packets"] for row in rows] == [10, 10, 10, 10, 2]
    assert sum(row["cnps"] for row in rows) == 2
    assert sum(row["bytes"] for row in rows) == sum(pair["bytes"] for pair in document["pairs"])
    assert [row["start"] for row in rows] == [1.8e9 + at / 1e5 for at in range(5)]
    assert main(["wire", str(tmp_path / "a.pcap"), "--interval=0.00001"]) == 0
    assert "from (UTC)" in capsys.readouterr().out


def test_filters(tmp_path, capsys) -> None:
    others = [roce(bth(WRITE, psn=psn, queue=5), bytes(16), source=C) for psn in range(3)]
    (tmp_path / "a.pcap").write_bytes(pcap([*ping_pong(5), *others]))
    for words, packets in (([A], 11), ([C], 3), ([B, C], 3), (["qp=7"], 5), ([A, "qp=0x9"], 6), (["::1"], 0)):
        code = main(["wire", str(tmp_path / "a.pcap"), *words, "--format=json"])
        assert code == (0 if packets else 1)
        assert json.loads(capsys.readouterr().out)["roce_packets"] == packets
    assert main(["wire", str(tmp_path / "a.pcap"), "::1"]) == 1
    assert "No RoCE packet passes the filter, which left out 14" in capsys.readouterr().out
    assert main(["wire", str(tmp_path / "a.pcap"), "qp=x"]) == 2
    assert "qp=x: neither an address nor a queue pair such as qp=0x12" in capsys.readouterr().err
