"""A capture: first byte even: any file, in batches; odd: one frame of a link type. A batch finds what each frame alone holds."""

import io

import numpy as np

from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.frames import (
    ETHERNET,
    LINUX_COOKED,
    LINUX_COOKED_2,
    NO_TAG,
    RAW_IP,
    Frames,
    InputError,
)
from roce_exporter.wire.inputs.capture_file import CaptureFile
from roce_exporter.wire.tally.pair_counts import LosslessMarks
from roce_exporter.wire.tally.tally import Tally
from roce_exporter.wire.wire_document import packets, wire_document
from roce_exporter.wire.wire_summary import summarise
from roce_exporter.wire.wire_text import text_table

LINKS = (ETHERNET, RAW_IP, LINUX_COOKED, LINUX_COOKED_2)
ALLOWED = (InputError,)
CORE = (
    "wire/decode/columns.py",
    "wire/decode/invariant_crc.py",
    "wire/decode/locate.py",
    "wire/inputs/capture_file.py",
    "wire/inputs/pcapng_blocks.py",
    "wire/inputs/pcap_records.py",
    "wire/tally/tally.py",
)
MOST_COMPARED = 64
"""Frames of a batch that are decoded alone, too."""
WORDS = (
    b"\x0a\x0d\x0d\x0a",
    b"\x4d\x3c\x2b\x1a",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\xc3\xd4",
    b"\x08\x00\x45",
    b"\x86\xdd\x60",
    b"\x89\x15\x60",
    b"\x88\x08\x01\x01",
    b"\x88\xcc",
    b"\x81\x00",
    b"\x12\xb7",
    b"\x12\xb5",
    b"\x88\xbe",
    b"\x22\xeb",
    b"\x81\x00\xff\xff",
    b"\x11\x40\xff\xff",
)


def decode(data: bytes) -> None:
    if not data:
        return
    if data[0] & 1:
        one_frame(data[1:], LINKS[data[0] >> 1 & 3])
    else:
        whole_file(data[1:])


def one_frame(frame: bytes, link: int) -> None:
    """A frame in memory of its own; what is behind it is no part of it."""
    alone, followed = batch(frame, link), batch(frame + b"\xff" * 64, link)
    followed = followed._replace(captured=alone.captured, lengths=alone.lengths)
    assert list(packets(alone)) == list(packets(followed))


def same_packets(frames: Frames) -> None:
    """What each frame holds, in the order of the batch."""
    places = zip(frames.starts.tolist(), frames.captured.tolist(), strict=True)
    alone = (batch(frames.data[at : at + size].tobytes(), frames.link) for at, size in places)
    found = [packet | {"time": 0} for one in alone for packet in packets(one)]
    assert found == [packet | {"time": 0} for packet in packets(frames)]


def batch(frame: bytes, link: int) -> Frames:
    size = np.array([len(frame)], np.int64)
    start, time, tag = np.array([16]), np.array([1_800_000_000_000_000_000]), np.array([NO_TAG])
    return Frames(np.frombuffer(bytearray(16) + frame, np.uint8), start, size, size, time, tag, link)


def whole_file(content: bytes) -> None:
    """Counted to the end or to one line; every count is at least 0 and no pair has more packets than there are."""
    tally = Tally()
    try:
        source = CaptureFile(io.BytesIO(content), "fuzzed")
    except ALLOWED:
        return
    for frames in source:
        for _ in packets(frames):
            pass
        if len(frames.starts) <= MOST_COMPARED:
            same_packets(frames)
        tally.add(decode_frames(frames))
    assert "\n" not in source.fault
    found = summarise(tally, LosslessMarks(), queues=True)
    assert (tally.pairs.counts >= 0).all()
    assert sum(pair.counts.packets for pair in found.pairs) == tally.roce <= tally.frames
    wire_document(found, 5)
    assert text_table(found, 5).isprintable() is False
