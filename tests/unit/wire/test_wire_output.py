"""The document, the table and the sentences, and the samples of a scrape."""

import json
import struct
from os import terminal_size

from wire_frames import ACK, CNP, RECORDED_WRITE, WRITE, A, B, C, aeth, bth, roce, tally_of

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.exposition import Format, Renderer
from roce_exporter.normalise.series import NO_SAMPLES
from roce_exporter.wire.tally.pair_counts import LosslessMarks, PairCounts, PairTable
from roce_exporter.wire.wire_document import wire_document
from roce_exporter.wire.wire_samples import ShownPairs, wire_samples
from roce_exporter.wire.wire_summary import WireSummary, summarise
from roce_exporter.wire.wire_text import screen, sentences, text_table

MARKED = 26 << 2 | 3
LOSSY = 0


def congested() -> list[bytes]:
    """A writes to B, 17 % of it is marked, and B answers with CNPs; C writes to B outside the lossless priority."""
    frames = [
        roce(bth(WRITE, psn=psn), bytes(16), tos=MARKED if psn % 6 == 0 else 26 << 2 | 2)
        for psn in range(100)
    ]
    frames += [roce(bth(CNP, becn=True), bytes(16), source=B, destination=A, tos=48 << 2)] * 1204
    frames += [roce(bth(WRITE, psn=psn), bytes(16), source=C, tos=LOSSY) for psn in (0, 1, 1, 5)]
    return [
        *frames,
        roce(bth(ACK, psn=2), aeth(0x60), source=B, destination=C),
        roce(bth(ACK, psn=2), aeth(0x2E), source=B, destination=C),
    ]


def summary(frames: list[bytes] | None = None) -> WireSummary:
    return summarise(tally_of(congested() if frames is None else frames), LosslessMarks())


def test_the_document_counts_each_direction() -> None:
    document = json.loads(json.dumps(wire_document(summary(), 10, 7)))
    assert (document["version"], document["packets"], document["roce_packets"], document["dropped"]) == (
        1,
        1310,
        1310,
        7,
    )
    assert (document["from"], document["to"], document["captured_again"]) == (1.8e9, 1_800_000_000.001309, 0)
    pairs = {(one["source"], one["destination"]): one for one in document["pairs"]}
    assert next(iter(pairs)) == (A, B)
    there = pairs[A, B]
    assert (there["packets"], there["ce"], there["ect0"], there["ect1"], there["not_ect"]) == (
        100,
        17,
        83,
        0,
        0,
    )
    assert there["cnps"] == 0
    assert there["dscp"] == {"26": 100}
    assert there["operations"] == {"write": {"packets": 100, "bytes": there["bytes"]}}
    back = pairs[B, A]
    assert (back["cnps"], back["dscp"], back["cnp_dscp"]) == (1204, {}, {"48": 1204})
    refused = pairs[B, C]
    assert (refused["naks"], refused["rnr_naks"]) == ({"psn_sequence_error": 1}, 1)
    lossy = pairs[C, B]
    assert (lossy["outside_lossless"], lossy["retransmissions"], lossy["gaps"], lossy["missing"]) == (
        4,
        1,
        1,
        3,
    )
    assert document["pairs_left_out"] == 0
    assert wire_document(summary(), 1)["pairs_left_out"] == 3
    assert document["sentences"] == list(sentences(summary(), 10, 7))
    assert [one["what"][:7] for one in document["not_checked"]] == ["7 frame"]


def test_the_sentences_name_both_ends_and_the_counts() -> None:
    found = sentences(summary(), 10)
    assert found == (
        "10.0.0.1 congests 10.0.0.2: 1,204 CNPs in 1.3 ms, 17 % of its packets arrive marked",
        "10.0.0.3 retransmits to 10.0.0.2: 1 packet (25 %)",
        "10.0.0.3 to 10.0.0.2: 3 packets missing in 1 gap, lost or delayed before the capture",
        "10.0.0.2 refuses packets of 10.0.0.3: 1 NAK for lost packets",
        "10.0.0.2 has no receive buffers for 10.0.0.3: 1 RNR NAK",
        "10.0.0.3 to 10.0.0.2: 4 packets outside the lossless priority (100 %), DSCP 0",
    )


def test_the_sentence_names_only_the_dscps_outside_the_lossless_priority() -> None:
    frames = [roce(bth(WRITE, psn=psn), bytes(16), tos=tos << 2) for psn, tos in enumerate((26, 0, 8, 26))]
    (found,) = sentences(summary(frames), 10)
    assert found.endswith("2 packets outside the lossless priority (50 %), DSCP 0, 8")


def test_marks_without_cnps_and_bad_crcs() -> None:
    frames = [roce(bth(WRITE, psn=psn), bytes(16), tos=MARKED, bad=psn == 3) for psn in range(300)]
    found = sentences(summary(frames), 10)
    assert found[0] == "10.0.0.1 to 10.0.0.2: 300 packets marked CE (100 %), and no CNP was captured in reply"
    assert "10.0.0.1 to 10.0.0.2: 1 packet with a wrong ICRC, corrupted between the NICs" in found
    gap = sentences(summary([*frames[:100], *[roce(bth(WRITE, psn=99), bytes(16))], *frames[100:]]), 10)
    assert any("(0.332 %)" in one for one in gap)
    assert any("(99.7 %)" in one for one in gap)


def test_packets_of_version_1_are_outside_by_their_vlan_priority() -> None:
    """Untagged ones are: no switch knows their priority."""
    tagged = RECORDED_WRITE[:12] + b"\x81\0\x60\x08" + RECORDED_WRITE[12:]  # priority 3
    for frame, outside in ((RECORDED_WRITE, 1), (tagged, 0)):
        assert [one.outside for one in summary([frame]).pairs if one.counts.packets] == [outside]


def test_a_mirror_of_one_direction_names_the_other_end_too() -> None:
    cnps = [roce(bth(CNP), bytes(16), source=B, destination=A)] * 3
    found = summary(cnps)
    assert [(one.source, one.counts.packets) for one in found.pairs] == [(A, 0), (B, 3)]
    assert sentences(found, 5)[0].startswith("10.0.0.1 congests 10.0.0.2: 3 CNPs")


def test_pause_frames_have_sentences() -> None:
    pause = bytes.fromhex("0180c2000001 020000000002 8808 0101 0008") + struct.pack(
        ">8H", 0, 0, 0, 9, 0, 0, 0, 0
    )
    everything = bytes.fromhex("0180c2000001 020000000002 8808 0001 0008")
    assert sentences(summary([pause, everything, pause]), 10) == (
        "02:00:00:00:00:02 pauses priority 3 of its neighbor: 2 pause frames",
        "02:00:00:00:00:02 pauses all traffic of its neighbor: 1 pause frame",
    )
    document = wire_document(summary([pause]), 10)
    assert document["pfc"] == [
        {"source": "02:00:00:00:00:02", "priority": 3, "frames": 1, "pauses": 1, "quanta": 9}
    ]


def test_the_table() -> None:
    lines = text_table(summary(), 2, 0).splitlines()
    assert lines[0] == "1,310 frames, 1,310 RoCE packets, 4 pairs, 1.3 ms, 0 dropped by the ring"
    assert lines[2].split()[:4] == ["source", "destination", "packets", "bytes"]
    assert lines[3].split()[:3] + lines[3].split()[4:6] == [A, B, "100", "17", "1,204"]
    assert lines[5] == "... and 2 pairs that hurt less (--top)"
    assert "... and 1 pair that hurts less (--top)" in text_table(summary(), 3, 0)
    quiet = text_table(summary([roce(bth(WRITE), bytes(16))]), 5).splitlines()
    assert quiet[2].split() == ["source", "destination", "packets", "bytes"], (
        "columns without a count are left out"
    )
    assert quiet[0] == "1 frame, 1 RoCE packet, 1 pair, 0 s"
    assert len(text_table(summary([]), 5).splitlines()) == 3
    assert text_table(summary([]), 5).splitlines()[-1].startswith("No RoCE packet was seen.")
    quiet = text_table(summary([roce(bth(WRITE), bytes(16))]), 5)
    assert quiet.splitlines()[-1] == "Nothing wrong was seen in these packets."


def test_sentences_are_wrapped_at_words_on_a_terminal_alone() -> None:
    wide, narrow = (text_table(summary(), 2, width=width).rsplit("\n\n", 1)[1] for width in (None, 40))
    assert narrow.split() == wide.split()
    assert max(map(len, wide.splitlines())) > 40 >= max(map(len, narrow.splitlines()))


def test_the_live_table_fits_its_terminal() -> None:
    for size in ((40, 6), (80, 10), (130, 24)):
        lines = screen(summary(), 20, 3, terminal_size(size)).splitlines()
        assert len(lines) < size[1]
        assert max(map(len, lines)) <= size[0]
        assert any("10.0.0.1" in line for line in lines)


def exposition(tally: object, shown: ShownPairs) -> dict[str, float]:
    found = wire_samples(tally, shown.choose(tally.pairs), LosslessMarks(), 5)  # type: ignore[arg-type,attr-defined]
    text = Renderer(CATALOG).render([NO_SAMPLES.replace(found)], Format.TEXT).decode()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line[0] != "#"
    }


def test_the_samples_are_rows_of_the_catalogue() -> None:
    found = exposition(tally_of(congested()), ShownPairs(10))
    pair = 'source="10.0.0.1",destination="10.0.0.2"'
    assert found[f'roce_wire_packets_total{{{pair},operation="write"}}'] == 100
    assert found[f'roce_wire_ecn_packets_total{{{pair},codepoint="ce"}}'] == 17
    assert found['roce_wire_cnps_total{source="10.0.0.2",destination="10.0.0.1"}'] == 1204
    assert (
        found['roce_wire_naks_total{source="10.0.0.2",destination="10.0.0.3",reason="psn_sequence_error"}']
        == 1
    )
    assert found['roce_wire_outside_lossless_packets_total{source="10.0.0.3",destination="10.0.0.2"}'] == 4
    assert found["roce_wire_capture_dropped_frames_total"] == 5
    assert found["roce_wire_capture_frames_total"] == 1310
    exported = {name.partition("{")[0] for name in found}
    assert exported <= INDEX.named.keys() | {
        "roce_wire_acknowledge_seconds" + end for end in ("_bucket", "_sum", "_count")
    }


def test_round_trips_are_a_histogram() -> None:
    frames = [
        roce(bth(WRITE, psn=1, ack=True), bytes(16)),
        roce(bth(ACK, psn=1), aeth(), source=B, destination=A),
    ]
    (there, _) = wire_document(summary(frames), 10)["pairs"]
    assert there["round_trips"] == {"count": 1, "seconds": 1e-6, "buckets": {"2e-06": 1}}
    found = exposition(tally_of(frames), ShownPairs(10))
    pair = 'source="10.0.0.1",destination="10.0.0.2"'
    assert found[f'roce_wire_acknowledge_seconds_bucket{{{pair},le="2e-06"}}'] == 1
    assert found[f'roce_wire_acknowledge_seconds_bucket{{{pair},le="+Inf"}}'] == 1
    assert found[f"roce_wire_acknowledge_seconds_sum{{{pair}}}"] == 1e-6
    assert found[f"roce_wire_acknowledge_seconds_count{{{pair}}}"] == 1


def key(host: int) -> bytes:
    return bytes(31) + bytes([host])


def sent(table: PairTable, host: int, packets: int) -> None:
    row = table.number(key(host))
    table.counts[row, 0] += packets


def shown(choice: ShownPairs, table: PairTable) -> dict[bytes, int]:
    return {one.key: PairCounts(one.counts).packets for one in choice.choose(table)}


def test_pairs_without_a_place_count_as_other_and_no_counter_falls() -> None:
    table, choice = PairTable(), ShownPairs(2)
    for host, packets in ((1, 100), (2, 50), (3, 10)):
        sent(table, host, packets)
    assert shown(choice, table) == {key(1): 100, key(2): 50, b"": 10}
    sent(table, 3, 30)  # not twice as active as the least of the two
    assert shown(choice, table) == {key(1): 100, key(2): 50, b"": 40}
    sent(table, 3, 500)
    found = shown(choice, table)
    assert found == {key(1): 100, key(3): 0, b"": 540}
    sent(table, 3, 5)
    sent(table, 2, 7)
    assert shown(choice, table) == {key(1): 100, key(3): 5, b"": 547}


def test_a_shown_pair_that_the_table_forgets_does_not_come_back_in_other() -> None:
    table, choice = PairTable(most=7), ShownPairs(2)
    for host in (1, 2, 3):
        sent(table, host, 10 * host)
    assert shown(choice, table) == {key(3): 30, key(2): 20, b"": 10}
    table._active[:] = 0
    table._active[table.number(key(1))] = 9
    table.forget_half()
    assert 0 not in table.reverse[1:].tolist(), "both directions of a pair are kept"
    after = shown(choice, table)
    assert after[b""] + sum(count for name, count in after.items() if name) + 50 >= 60
    assert after[b""] >= 10
