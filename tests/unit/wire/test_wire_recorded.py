"""Recorded packets, re-typed, whose facts are stated."""

import struct
from typing import NamedTuple

from wire_frames import RECORDED_ACK, RECORDED_CNP, RECORDED_WRITE, capture, frames_of, pcap

from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.tally.pair_counts import LosslessMarks
from roce_exporter.wire.tally.tally import Tally
from roce_exporter.wire.wire_document import wire_document
from roce_exporter.wire.wire_summary import summarise


class Record(NamedTuple):
    """One record of a capture."""

    time: str
    """Seconds since 1970, to the microsecond."""
    length: int
    """Bytes on the wire."""
    digits: str
    """What was captured, or its first bytes."""

    @property
    def content(self) -> bytes:
        return bytes.fromhex(self.digits)


# Recorded by this project, so under its own licence: Soft-RoCE of Linux 6.12 over veth, captured on the receiver's device,
# 256 bytes of each frame. The writes are typed up to their RETH. The kernel stamped the frames that it sent with the time since boot.
WRITE = Record(
    "1795230361.770598",
    4170,
    "72e9469f6e0bb2f5534b62d50800 4500103c297640004011ec9e0a4d00010a4d0002 c40012b710280000"
    "0a00ffff0000002080961939 000055bad22920000000130e00001000",
)
ACK = Record(
    "4597.036673",
    62,
    "b2f5534b62d572e9469f6e0b0800 45000030522640004011d3fa0a4d00020a4d0001 c40012b7001c0000"
    "1100ffff0000002000961939 1f000001 502affd9",
)
# The same with traffic class 106, which is DSCP 26 and ECT(0).
ECT_WRITE = Record(
    "1795230376.445488",
    4170,
    "72e9469f6e0bb2f5534b62d50800 456a103c353740004011e0730a4d00010a4d0002 c44112b710280000"
    "0a00ffff0000002180745f1e 000055ea976c60000000142f00001000",
)
ECT_ACK = Record(
    "4611.859710",
    62,
    "b2f5534b62d572e9469f6e0b0800 456a0030532040004011d2960a4d00020a4d0001 c44112b7001c0000"
    "1100ffff0000002100745f1e 1f000001 5ccde1bd",
)
# The same behind `netem loss 30% ecn`, which marked this one.
MARKED_WRITE = Record(
    "4740.897396",
    4170,
    "72e9469f6e0bb2f5534b62d50800 456b103c628140004011b3280a4d00010a4d0002 c51012b710280000"
    "0a00ffff0000002480a6768c 000055ec8b7a70000000178700001000",
)
RECORDS = (WRITE, ACK, ECT_WRITE, ECT_ACK, MARKED_WRITE)


def pcap_of(records: tuple[Record, ...]) -> bytes:
    """The records as tcpdump wrote them: cut off, with their length on the wire."""
    found = pcap([])
    for one in records:
        seconds, _, micro = one.time.partition(".")
        found += struct.pack("<IIII", int(seconds), int(micro), len(one.content), one.length) + one.content
    return found


def test_recorded_packets_as_columns_and_counts() -> None:
    (frames,) = capture(pcap_of(RECORDS))
    columns = decode_frames(frames).columns
    assert columns.lengths.tolist() == [4170, 62, 4170, 62, 4170]
    assert columns.ecn.tolist() == [0, 0, 2, 2, 3]
    assert columns.dscp.tolist() == [0, 0, 26, 26, 26]
    assert columns.icrc.tolist() == [-1, 1, -1, 1, -1]
    assert columns.syndromes.tolist() == [-1, 0x1F, -1, 0x1F, -1]
    tally = Tally()
    tally.add(decode_frames(frames))
    found = wire_document(summarise(tally, LosslessMarks()), 9)
    assert (tally.first // 1000, tally.last // 1000) == (1795230361770598, 1795230376445488)  # dates only
    forth, back = found["pairs"]
    assert (forth["packets"], forth["ect0"], forth["ce"], forth["outside_lossless"]) == (3, 1, 1, 1)
    assert (back["packets"], back["unverified_icrc"], back["bad_icrc"]) == (2, 0, 0)
    assert forth["round_trips"]["count"] == 0  # the two clocks cannot be compared


def test_counts_of_the_recorded_cnp_and_version_1() -> None:
    """One CNP, one write of five bytes in version 1, and its ACK; every CRC as the NIC wrote it."""
    tally = Tally()
    tally.add(decode_frames(frames_of([RECORDED_CNP, RECORDED_WRITE, RECORDED_ACK])))
    pairs = {
        (pair["source"], pair["destination"]): pair
        for pair in wire_document(summarise(tally, LosslessMarks()), 9)["pairs"]
    }
    cnp, own = pairs["10.0.17.1", "10.0.18.1"], pairs["15.0.0.2", "15.0.0.2"]
    assert (cnp["packets"], cnp["cnps"], cnp["ect0"], cnp["cnp_dscp"], cnp["dscp"]) == (
        1,
        1,
        1,
        {"48": 1},
        {},
    )
    assert own["operations"] == {
        "write": {"packets": 1, "bytes": 94},
        "acknowledge": {"packets": 1, "bytes": 74},
    }
    assert [cnp["bad_icrc"], own["bad_icrc"], own["unverified_icrc"]] == [0, 0, 0]
    assert sum(pair["packets"] for pair in pairs.values()) == 3
