"""What the tally counts, against counts by hand and against a plain loop over the packets."""

import struct
from collections import Counter
from dataclasses import asdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from wire_frames import (
    ACK,
    BEGIN,
    CNP,
    READ,
    WRITE,
    A,
    B,
    aeth,
    bth,
    ethernet,
    frames_of,
    packet_of,
    roce,
    tally_of,
)

from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.tally.pair_counts import (
    OTHER,
    UNNUMBERED,
    KeyTable,
    LosslessMarks,
    PairCounts,
    PairTable,
)
from roce_exporter.wire.tally.sequences import SequenceTrack
from roce_exporter.wire.tally.tally import Tally
from roce_exporter.wire.wire_samples import wire_samples
from roce_exporter.wire.wire_summary import PairSummary, summarise


def pair(tally: Tally, source: str = A, destination: str = B) -> PairSummary:
    (found,) = [
        one
        for one in summarise(tally, LosslessMarks()).pairs
        if (one.source, one.destination) == (source, destination)
    ]
    return found


def requests(*psns: int, **more: int) -> list[bytes]:
    return [roce(bth(0x07, psn=psn, **more), bytes(8)) for psn in psns]


def sequence_counts(*psns: int) -> dict[str, int]:
    counts = pair(tally_of(requests(*psns))).counts.sequences()
    return {name: count for name, count in counts.items() if count}


def test_go_back_n_before_the_capture() -> None:
    """3 is lost before the capture: a gap, one NAK of the receiver, and everything from 3 is sent again."""
    assert sequence_counts(0, 1, 2, 4, 5, 6, 3, 4, 5, 6, 7) == {
        "retransmissions": 4,
        "gaps": 1,
        "missing": 1,
        "out_of_sequence": 1,
        "go_back_n": 1,
    }


def test_selective_retransmission() -> None:
    assert sequence_counts(0, 1, 3, 4, 5, 2, 6, 7) == {
        "retransmissions": 1,
        "gaps": 1,
        "missing": 1,
        "out_of_sequence": 1,
        "selective": 1,
    }


def test_packets_duplicated_by_the_network() -> None:
    assert sequence_counts(0, 1, 1, 2, 3, 3, 3, 4) == {
        "retransmissions": 3,
        "duplicate_requests": 3,
        "go_back_n": 3,
    }


def test_a_new_connection_is_no_gap() -> None:
    assert sequence_counts(0, 1, 2, 5_000_000, 5_000_001) == {"restarts": 1}


def test_missing_packets_are_not_waited_for_for_ever() -> None:
    track = SequenceTrack(0, 0, 0, 0)
    track.advance(5, 1, 1)
    for psn in range(6, 10_000):
        track.advance(psn, 1, 1)
    assert track.settled
    assert track.counts.gaps == 1


def test_a_read_request_takes_the_psns_of_its_response() -> None:
    def read(psn: int, size: int) -> bytes:
        return roce(bth(READ, psn=psn), struct.pack(">QII", 0, 0, size))

    counts = pair(tally_of([read(0, 8192), read(2, 4096), *requests(3), read(4, 8192), *requests(12)])).counts
    assert not any(counts.sequences().values())  # an MTU of 4096 and of 1024 are both possible
    lost = pair(tally_of([read(0, 8192), *requests(40)])).counts.sequences()
    assert (lost["gaps"], lost["missing"]) == (1, 8)


def test_read_responses_continue_within_one_and_jump_between_two() -> None:
    def response(low: int, psn: int) -> bytes:
        return roce(bth(low, psn=psn), aeth() if low != 0x0E else b"")

    good = [response(0x0D, 5), response(0x0E, 6), response(0x0F, 7), response(0x10, 20)]
    assert not any(pair(tally_of(good)).counts.sequences().values())
    assert pair(tally_of([good[0], response(0x0F, 9)])).counts.sequences()["gaps"] == 1


def test_duplicate_acks_count_apart_and_naks_are_no_duplicates() -> None:
    def ack(psn: int, syndrome: int = 0x1F) -> bytes:
        return roce(bth(ACK, psn=psn), aeth(syndrome))

    counts = pair(tally_of([ack(1), ack(5), ack(5), ack(6, 0x60), ack(6, 0x2A), ack(6), ack(9)])).counts
    assert counts.one("duplicate_acks") == 1
    assert counts.one("retransmissions") == 0
    assert counts.named("naks")["psn_sequence_error"] == 1
    assert counts.one("rnr_naks") == 1


def test_packets_with_a_wrong_crc_are_counted_and_not_believed() -> None:
    bad = roce(bth(0x07, psn=77), bytes(8), bad=True)
    nak = roce(bth(ACK, psn=1), aeth(0x60), bad=True)
    found = pair(tally_of([*requests(0, 1), bad, *requests(2, 3), nak])).counts
    assert found.named("icrc") == {"unverified": 0, "bad": 2, "valid": 4}
    assert not any(found.sequences().values())
    assert not any(found.named("naks").values())


PSNS = st.lists(st.integers(0, 30), min_size=1, max_size=60)


@given(PSNS, st.lists(st.integers(1, 12), min_size=1, max_size=8))
def test_batches_of_any_size_count_what_one_packet_at_a_time_counts(
    psns: list[int], sizes: list[int]
) -> None:
    """The path for ordered packets and the exact one agree, wherever a batch ends."""
    track = SequenceTrack(psns[0], psns[0], psns[0], psns[0])
    for psn in psns:
        track.advance(psn, 1, 1)
    batches, rest = [], requests(*psns)
    for size in [*sizes, len(psns)]:
        batches.append(rest[:size])
        rest = rest[size:]
    counts = pair(tally_of(*batches)).counts.sequences()
    assert counts == asdict(track.counts)


class GoBackN:
    """A responder of Soft-RoCE: `check_psn` in drivers/infiniband/sw/rxe/rxe_resp.c. It accepts PSNs from 0 on."""

    def __init__(self) -> None:
        self.expected = self.duplicates = self.errors = 0
        self.waiting = False

    def receive(self, psn: int) -> bool:
        """Whether it sends a NAK."""
        if psn == self.expected:
            self.expected, self.waiting = psn + 1, False
        elif psn < self.expected:
            self.duplicates += 1
        elif not self.waiting:
            self.errors, self.waiting = self.errors + 1, True
            return True
        return False


PACKETS = 40
LOST, DELAYED, TWICE = "lost", "delayed", "twice"


def transmit(fates: dict[int, str], latency: int) -> tuple[list[int], GoBackN]:
    """What arrives over a bad wire, in order, and who received it.

    `fates` is what happens to the n-th packet that is sent; a delayed one arrives after three others. A NAK takes as long
    as `latency` packets; without one the sender begins again at the first PSN that was not accepted.
    """
    receiver, wire, delayed, naks = GoBackN(), [], {}, {}
    psn = sent = 0
    while receiver.expected < PACKETS:
        if sent in naks or psn == PACKETS:
            psn = naks.get(sent, receiver.expected)
        fate = fates.get(sent, "")
        arrived = {LOST: [], DELAYED: [], TWICE: [psn, psn]}.get(fate, [psn]) + delayed.pop(sent, [])
        if fate == DELAYED:
            delayed.setdefault(sent + 3, []).append(psn)
        for one in arrived:
            wire.append(one)
            if receiver.receive(one):
                naks[sent + latency] = receiver.expected
        psn, sent = psn + 1, sent + 1
    return wire, receiver


@given(st.dictionaries(st.integers(1, 200), st.sampled_from([LOST, DELAYED, TWICE])), st.integers(1, 9))
def test_duplicates_and_sequence_errors_are_those_of_a_go_back_n_receiver(
    fates: dict[int, str], latency: int
) -> None:
    """Under loss, reordering and duplication in any combination, of retransmissions too."""
    wire, receiver = transmit(fates, latency)
    found = pair(tally_of(requests(*wire))).counts.sequences()
    assert (found["duplicate_requests"], found["out_of_sequence"]) == (receiver.duplicates, receiver.errors)
    assert len(wire) - found["retransmissions"] + found["missing"] == PACKETS


def test_a_receiver_that_keeps_packets_is_recognised_in_the_end() -> None:
    """After enough packets to which the sender does not return they count as kept, and later losses as their own."""
    track = SequenceTrack(0, 0, 0, 0)
    for psn in (1, 2, 0, *range(3, 10_000)):
        track.advance(psn, 1, 1)
    assert track.settled
    for psn in (10_002, 10_001, 10_000, 10_001, 10_002, 10_003):
        track.advance(psn, 1, 1)
    assert track.settled
    assert (track.counts.out_of_sequence, track.counts.duplicate_requests) == (2, 0)


MIXED = st.lists(
    st.builds(
        lambda source, destination, opcode, tos, tag, syndrome: roce(
            bth(opcode, queue=source), aeth(syndrome) + bytes(12), source=f"10.0.0.{source}", destination=f"10.0.0.{destination}", tos=tos, tags=tag
        ),
        st.integers(1, 4),
        st.integers(1, 4),
        st.sampled_from([0x04, WRITE, READ, ACK, CNP, 0x10, 0x13, 0x64, 0xC0]),
        st.integers(0, 255),
        st.sampled_from([(), (3 << 13,), (5 << 13 | 100,)]),
        st.sampled_from([0x1F, 0x00, 0x60, 0x61, 0x64, 0x65, 0x7F, 0x20, 0x3F]),
    ),
    max_size=40,
)  # fmt: skip


@given(MIXED, st.integers(0, 40))
def test_all_plain_counts_are_those_of_a_loop_over_the_packets(frames: list[bytes], cut: int) -> None:
    tally = tally_of(frames[:cut], frames[cut:])
    expected: dict[tuple[str, str], Counter[str]] = {}
    for frame in frames:
        packet = packet_of(frame)
        assert packet
        counts = expected.setdefault((packet["source"], packet["destination"]), Counter())
        cnp, kind = packet["bth"]["opcode"] == CNP, packet.get("aeth", {}).get("kind")
        counts["packets"] += 1
        counts["bytes"] += len(frame)
        counts[("not_ect", "ect1", "ect0", "ce")[packet["ecn"]]] += 1
        counts["cnps"] += cnp
        counts["rnr"] += kind == 1
        counts["naks"] += kind == 3
        counts["outside"] += not cnp and not 24 <= packet["dscp"] < 32
        counts["tagged 3"] += packet["vlan_priority"] == [3]
    found = {}
    for one in summarise(tally, LosslessMarks()).pairs:
        counts = one.counts
        if not counts.packets:
            continue
        found[one.source, one.destination] = Counter(
            counts.named("ecn")
            | {
                "packets": counts.packets,
                "bytes": counts.wire_bytes,
                "cnps": counts.cnps,
                "rnr": counts.one("rnr_naks"),
                "naks": sum(counts.named("naks").values()),
                "outside": one.outside,
                "tagged 3": counts.vlan_priorities().get("3", 0),
            }
        )
    assert {key: +counts for key, counts in found.items()} == {
        key: +counts for key, counts in expected.items()
    }
    assert tally.roce == tally.frames == len(frames)


def test_a_read_is_answered_by_its_first_response() -> None:
    frames = [
        roce(bth(READ, psn=8), struct.pack(">QII", 0, 0, 9000)),
        roce(bth(0x0D, psn=8, queue=9), aeth(), source=B, destination=A),
        roce(bth(0x0F, psn=9, queue=9), aeth(), source=B, destination=A),
    ]
    assert pair(tally_of(frames)).counts.one("round_trip_nanoseconds") == 1000


def test_two_queue_pairs_at_one_psn_are_not_timed() -> None:
    frames = [roce(bth(WRITE, psn=1, ack=True, queue=queue), bytes(16)) for queue in (1, 2)] + [
        roce(bth(ACK, psn=1), aeth(), source=B, destination=A)
    ]
    assert sum(pair(tally_of(frames)).counts.block("round_trips")) == 0


def test_times_since_boot_are_no_dates() -> None:
    """The kernel stamps packets that Soft-RoCE sends with the time since boot: seen in captures of rxe over veth."""
    tally = Tally()
    tally.add(decode_frames(frames_of(requests(1, 2), begin=4_597_036_673_000)))
    assert tally.first == 0
    tally.add(decode_frames(frames_of(requests(3, 4))))
    assert (tally.first, tally.last) == (BEGIN, BEGIN + 1000)


def test_pause_frames_per_sender_and_priority() -> None:
    frame = bytes.fromhex("0180c2000001 020000000002 8808 0101 0018") + struct.pack(
        ">8H", 0, 0, 0, 100, 0, 0, 0, 0
    )
    whole = bytes.fromhex("0180c2000001 020000000002 8808 0001 0064") + bytes(
        28
    )  # of the link, not of a priority
    tally = tally_of([frame, frame, ethernet(0x0800, b"")])
    samples = wire_samples(tally_of([frame, frame, whole]), [], LosslessMarks(), None)
    sender = "02:00:00:00:00:02"
    assert {(one[0].row.name, *one[0].labels): one[1] for one in samples if one[0].labels} == {
        ("roce_wire_pfc_frames_total", sender, "3"): 2,
        ("roce_wire_pfc_frames_total", sender, "4"): 0,
        ("roce_wire_global_pause_frames_total", sender): 1,
    }
    found = summarise(tally, LosslessMarks()).pauses
    assert [
        (one.sender, one.priority, one.counts.frames, one.counts.xoff, one.counts.quanta) for one in found
    ] == [("02:00:00:00:00:02", 3, 2, 2, 200), ("02:00:00:00:00:02", 4, 2, 0, 0)]


def test_pairs_beyond_the_limit_are_other_and_no_packet_is_lost() -> None:
    tally = Tally(pairs=PairTable(most=9))
    for host in range(30):
        tally.add(
            decode_frames(frames_of([roce(bth(WRITE), bytes(16), source=f"10.1.0.{host}"), *requests(host)]))
        )
    pairs = summarise(tally, LosslessMarks()).pairs
    assert len(pairs) <= 9
    assert sum(one.counts.packets for one in pairs) == 60
    assert pair(tally).counts.packets == 30  # always active, so never forgotten
    assert pair(tally, "other", "other").counts.packets > 0
    assert len(tally.pairs.counts) <= 32


def test_a_pair_in_the_place_of_a_forgotten_one_answers_none_of_its_requests() -> None:
    tally, begin = Tally(pairs=PairTable(most=5)), BEGIN
    batches = [[roce(bth(WRITE, psn=1, ack=True), bytes(16))]]
    for host in range(2, 12):
        source = f"10.0.1.{host}"
        batches.append([roce(bth(WRITE, psn=7), bytes(16), source=source)])
        batches.append([roce(bth(ACK, psn=1), aeth(), source=B, destination=source)])
    for batch in batches:
        tally.add(decode_frames(frames_of(batch, begin=begin)))
        begin += 1000
    assert sum(PairCounts(tally.pairs.counts.sum(axis=0)).block("round_trips")) == 0


def test_flows_beyond_the_limit_are_forgotten_and_their_packets_stay_counted() -> None:
    tally = Tally(most_flows=16)
    for batch in range(20):
        tally.add(
            decode_frames(frames_of([roce(bth(WRITE, queue=batch * 4 + one), bytes(16)) for one in range(4)]))
        )
    assert pair(tally).counts.packets == 80
    assert len(tally.queue_pairs()) <= 16
    many = Tally(most_flows=16)
    many.add(decode_frames(frames_of([roce(bth(WRITE, queue=one), bytes(16)) for one in range(80)])))
    assert sum(one.counts.packets for one in summarise(many, LosslessMarks()).pairs) == 80


def test_queue_pairs_on_demand() -> None:
    tally = tally_of([*requests(1, 2, queue=5), *requests(9, 9, queue=6)])
    found = summarise(tally, LosslessMarks(), queues=True).queues[A, B]
    assert {queue: counts[0] for queue, counts in found.items()} == {5: 2, 6: 2}
    assert found[6][2] == 1


def test_keys_keep_their_numbers_and_are_bounded() -> None:
    table = KeyTable(2, 3)
    rows = np.array([[1, 1], [2, 2], [1, 1], [3, 3], [4, 4]], np.uint64)
    assert table.number(rows).tolist() == [1, 2, 1, 3, UNNUMBERED]
    assert table.number(rows[::-1]).tolist() == [UNNUMBERED, 3, 1, 2, 1]
    renamed = table.retain(np.array([2, 3]))
    assert renamed.tolist() == [UNNUMBERED, UNNUMBERED, 1, 2]
    assert table.number(rows).tolist() == [3, 1, 3, 2, UNNUMBERED]


def test_keys_with_one_hash_are_never_mixed(monkeypatch: object) -> None:
    table = KeyTable(1, 9)
    table._hash = lambda rows: np.zeros(len(rows), np.uint64)  # type: ignore[method-assign]
    numbers = table.number(np.array([[5], [6], [5]], np.uint64))
    assert numbers.tolist() == [1, UNNUMBERED, 1]


def test_the_row_of_others_is_its_own_reverse() -> None:
    assert PairTable().reverse[OTHER] == OTHER
    assert PairCounts(PairTable().counts[OTHER]).packets == 0
