"""Capture files are read as dpkt reads them, in batches; damage is one line."""

import gzip
import io
import struct

import numpy as np
import pytest
from dpkt.pcap import Reader
from hypothesis import given
from hypothesis import strategies as st
from wire_frames import (
    A,
    B,
    block,
    bth,
    capture,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    pcap,
    pcapng_bytes,
    roce,
    section,
    udp,
)

from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.frames import InputError, window
from roce_exporter.wire.inputs import capture_file, pcap_records
from roce_exporter.wire.inputs.capture_file import CaptureFile, open_capture
from roce_exporter.wire.inputs.pcapng_blocks import PcapngBlocks, nanoseconds

FRAMES = [roce(bth(0x0A, psn=number), bytes(4 * number)) for number in range(20)]


def contents(source: CaptureFile) -> list[tuple[int, bytes]]:
    """Time and bytes of every frame."""
    found = []
    for frames in source:
        for start, size, time in zip(frames.starts, frames.captured, frames.times, strict=True):
            found.append((int(time), frames.data[start : start + size].tobytes()))
    return found


@given(st.lists(st.binary(max_size=90), max_size=12), st.sampled_from("<>"), st.booleans())
def test_pcap_as_dpkt_reads_it(frames, order, fine) -> None:
    content = pcap(frames, order=order, magic=0xA1B23C4D if fine else 0xA1B2C3D4)
    expected = [
        (1_800_000_000 * 10**9 + number * (1 if fine else 1000), bytes(frame))
        for number, (_, frame) in enumerate(Reader(io.BytesIO(content)))
    ]
    assert contents(capture(content)) == expected


def test_blocks_of_any_size_give_the_same_frames(monkeypatch) -> None:
    """A record that crosses the end of a block is kept for the next one."""
    whole = contents(capture(pcap(FRAMES)))
    assert [frame for _, frame in whole] == FRAMES
    for size in (40, 97, 1000):
        monkeypatch.setattr(capture_file, "BLOCK", size)
        assert contents(capture(pcap(FRAMES))) == whole
        assert contents(capture(pcapng_bytes(FRAMES))) == contents(capture(pcapng_bytes(FRAMES)))
        assert [frame for _, frame in contents(capture(pcapng_bytes(FRAMES)))] == FRAMES


def test_pcapng_with_sections_of_both_byte_orders_and_interfaces_of_different_clocks() -> None:
    content = (
        section() + interface() + interface(resolution=9) + interface(resolution=0x80 | 10, offset=100)
        + enhanced(FRAMES[1], 5_000_000) + enhanced(FRAMES[2], 7, 1) + enhanced(FRAMES[3], 3 << 9, 2)
        + block(0x0BAD, bytes(7))
        + section(">") + interface(order=">", resolution=3) + enhanced(FRAMES[4], 1234, order=">")
    )  # fmt: skip
    assert contents(capture(content)) == [
        (5_000_000_000, FRAMES[1]),
        (7, FRAMES[2]),
        (101_500_000_000, FRAMES[3]),
        (1_234_000_000, FRAMES[4]),
    ]


@pytest.mark.parametrize("lie", [0, 3, 1])
def test_chains_of_records_find_what_the_records_say_and_are_few_where_payloads_resemble_records(
    monkeypatch, lie
) -> None:
    """With `lie` 3 every third payload consists of records with the sizes and times of true ones; with 1 all do."""
    begun = []

    def counted(data, offsets, width):
        begun.append(len(offsets))
        return window(data, offsets, width)

    monkeypatch.setattr(pcap_records, "window", counted)
    monkeypatch.setattr(pcap_records, "CHAIN", 8)
    false = pcap([b"x" * 60])[24:] * 4
    frames = [
        false if lie and one % lie == 0 else bytes([one % 251]) * (one * 7 % 90 + 1) for one in range(3000)
    ]
    assert [frame for _, frame in contents(capture(pcap(frames)))] == frames
    assert 1 < len(begun) < 8  # the last time for the headers of all frames


def test_a_packet_of_pcapng_is_no_batch() -> None:
    content = section() + interface() + (enhanced(FRAMES[1], 5) + block(0x0BAD, bytes(4))) * 20
    own = section() + interface() * 2 + enhanced(FRAMES[1], 5, 1)
    for blocks in (content, content + interface() + enhanced(FRAMES[2], 5, 1) * 19, own * 20):
        _, (batch,) = PcapngBlocks().split(bytearray(blocks + bytes(256)), 0, len(blocks))
        assert len(batch.starts) == blocks.count(FRAMES[1]) + blocks.count(FRAMES[2])


@pytest.mark.parametrize("before", [b"", section() + interface() * 2 + enhanced(FRAMES[0], 5, 1)])
def test_a_packet_names_an_interface_described_before_it_in_its_section(before) -> None:
    source = capture(before + section() + interface() + enhanced(FRAMES[1], 5, 1) + interface())
    assert contents(source) == []
    assert "names an interface that is not described" in source.fault


def test_simple_packet_blocks() -> None:
    content = section() + interface() + block(3, struct.pack("<I", len(FRAMES[5])) + FRAMES[5])
    assert contents(capture(content)) == [(0, FRAMES[5])]


def test_interfaces_of_different_link_types() -> None:
    cooked = bytes(14) + FRAMES[0][12:]
    content = section() + interface() + interface(113) + enhanced(cooked, 1, 1) + enhanced(FRAMES[1], 2, 0)
    assert sum(len(decode_frames(frames).columns.times) for frames in capture(content)) == 2


@pytest.mark.parametrize(
    ("resolution", "ticks", "expected"),
    [
        (0, 5, 5_000_000_000),
        (6, 5, 5000),
        (9, 5, 5),
        (12, 5999, 5),
        (0x80, 5, 5_000_000_000),
        (0x81, 5, 2_500_000_000),
    ],
)
def test_time_resolutions(resolution, ticks, expected) -> None:
    assert nanoseconds(np.array([ticks], np.int64), resolution).tolist() == [expected]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty or shorter"),
        (b"\xd4\xc3\xb2\xa1", "is empty or shorter"),
        (b"root:x:0:0:root:/root:/bin/bash\n", "is neither pcap nor pcapng; write it with `tcpdump -w`"),
        (gzip.compress(b"text", mtime=0), "is empty or shorter"),
        (b"\x1f\x8b\x08" + bytes(30), "the gzip file is damaged"),
    ],
)
def test_what_is_no_capture_is_refused_in_one_line(content, message) -> None:
    with pytest.raises(InputError, match=message) as caught:
        capture(content)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("test: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pcap(FRAMES)[:-3], "ends within a record"),
        (pcap(FRAMES) + struct.pack("<IIII", 1, 1, 1 << 30, 1 << 30), "claims 1073741824 bytes"),
        (section() + interface() + enhanced(FRAMES[0], 1, 5), "names an interface that is not described"),
        (section() + interface() + enhanced(FRAMES[0], 1) + struct.pack("<III", 6, 13, 0), "claims 13 bytes"),
        (section() + interface(resolution=0x80 | 60), "time resolution 0xbc"),
        (section() + block(1, b""), "description of an interface is damaged"),
        (section() + interface() + block(6, struct.pack("<IIIII", 0, 0, 0, 500, 500) + bytes(8)), "longer than its block"),
        (section() + struct.pack("<III", 0x0A0D0D0A, 28, 5) + bytes(16), "no byte order"),
    ],
)  # fmt: skip
def test_damage_ends_the_capture_with_one_line_and_keeps_what_was_read(content, message) -> None:
    source = capture(content)
    contents(source)
    assert message in source.fault
    assert source.fault.startswith("test: ")
    assert source.fault.endswith("the counts are those up to there")
    assert "\n" not in source.fault


def test_a_file_that_is_missing() -> None:
    with pytest.raises(InputError, match="No such file or directory; name a pcap"):
        open_capture("/nonexistent/file.pcap")


KINDS = st.sampled_from(("plain", "tagged", "options", "ipv6", "tunnel", "trailer", "cut", "short", "other"))


def a_frame(kind: str, size: int, bad: bool) -> tuple[bytes, int]:
    """A frame of a kind, and its length on the wire."""
    plain = roce(bth(0x0A, psn=size), bytes(size), bad=bad)
    frame = {
        "tagged": roce(bth(0x0A, psn=size), bytes(size), bad=bad, tags=[3 << 13]),
        "options": roce(bth(0x0A, psn=size), bytes(size), bad=bad, options=bytes(8)),
        "ipv6": ethernet(0x86DD, ipv6(1, 2, udp(bth(0x0A) + bytes(size + 4)))),
        "tunnel": ethernet(0x0800, ipv4("1.1.1.1", "2.2.2.2", udp(b"\x08" + bytes(7) + plain, 4789))),
        "trailer": plain + bytes(6),
        "cut": plain[:-3],
        "short": plain[:20],
        "other": ethernet(0x0800, ipv4(A, B, bytes(size), protocol=6)),
    }.get(kind, plain)
    return frame, len(plain) if kind in ("cut", "short") else len(frame)


@given(
    st.lists(st.tuples(KINDS, st.sampled_from((0, 4, 64, 1024)), st.booleans()), max_size=60), st.booleans()
)
def test_crcs_of_files_are_checked_in_blocks_of_any_size(kinds, piecewise) -> None:
    content, expected, found = pcap([]), [], []
    for kind, size, bad in kinds:
        frame, length = a_frame(kind, size, bad)
        content += struct.pack("<IIII", 1_800_000_000, 1, len(frame), length) + frame
        if kind not in ("short", "other"):
            # No CRC was written behind IPv6: four zeros.
            expected.append(-1 if kind == "cut" else 0 if bad or kind == "ipv6" else 1)
    with pytest.MonkeyPatch.context() as patch:
        if piecewise:
            patch.setattr(capture_file, "BLOCK", 700)
        for frames in capture(content):
            found += decode_frames(frames).columns.icrc.tolist()
    assert found == expected


def test_frames_before_a_damaged_record_are_counted() -> None:
    """Up to the record itself, not up to the batch before it."""
    for content in (
        pcap(FRAMES) + struct.pack("<IIII", 1, 1, 1 << 30, 1 << 30) + bytes(99),
        pcapng_bytes(FRAMES) + struct.pack("<III", 6, 13, 0) + bytes(99),
    ):
        source = capture(content)
        assert [frame for _, frame in contents(source)] == FRAMES
        assert "claims" in source.fault


def test_a_cut_off_packet_is_counted_and_its_crc_is_unknown() -> None:
    frame = roce(bth(0x0A), bytes(1000), source=A, destination=B)
    cut = struct.pack("<IIII", 1, 1, 96, len(frame)) + frame[:96]
    (frames,) = list(capture(pcap([]) + cut))
    columns = decode_frames(frames).columns
    assert columns.lengths.tolist() == [len(frame)]
    assert columns.icrc.tolist() == [-1]
