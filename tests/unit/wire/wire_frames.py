"""Frames for the tests of the wire view, made by hand, and captures of them."""

import io
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.decode.invariant_crc import invariant_crc
from roce_exporter.wire.frames import ETHERNET, NO_TAG, Frames
from roce_exporter.wire.inputs.capture_file import CaptureFile
from roce_exporter.wire.tally.tally import Tally
from roce_exporter.wire.wire_document import packets

BEGIN = 1_800_000_000_000_000_000
A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
WRITE, READ, ACK, CNP = 0x0A, 0x0C, 0x11, 0x81

# Recorded on a ConnectX-4 Lx: bytes that scapy's test/contrib/roce.uts (LGPL) prints; data values only.
RECORDED_CNP = bytes.fromhex(
    "e41d2dab2bc27cfe9064 3b32 0800 45c2003c718c40004011 9161 0a001101 0a001201 0000 12b7 0028 0000 8100ffff40000118 00000000"
    "00000000000000000000000000000000 82fd002a"
)
# RoCE v1, from the same place: a write of five bytes, and an ACK.
RECORDED_WRITE = bytes.fromhex(
    "7cfe90753cd87cfe90753cd8 8915 602000000028 1b40 00000000000000000000ffff0f000002 00000000000000000000ffff0f000002"
    "0a70ffff0000010a80a788bc 000055d4c0726000 000047b3 00000005 0000000001000000 e3d856bb"
)
RECORDED_ACK = bytes.fromhex(
    "7cfe90753cd87cfe90753cd8 8915 602000000014 1b40 00000000000000000000ffff0f000002 00000000000000000000ffff0f000002"
    "1140ffff0000010900a788c0 00000005 25f0c038"
)


def bth(opcode: int, *, queue: int = 7, psn: int = 0, ack: bool = False, becn: bool = False) -> bytes:
    return struct.pack(">BBHII", opcode, 0, 0xFFFF, becn << 30 | queue, ack << 31 | psn % (1 << 24))


def aeth(syndrome: int = 0x1F, msn: int = 1) -> bytes:
    return struct.pack(">I", syndrome << 24 | msn)


def ipv4(
    source: str,
    destination: str,
    payload: bytes,
    *,
    tos: int = 26 << 2 | 2,
    protocol: int = 17,
    options: bytes = b"",
) -> bytes:
    def packed(address: str) -> bytes:
        return bytes(int(part) for part in address.split("."))

    size = 20 + len(options)
    head = struct.pack(">BBHHHBBH", 0x40 | size // 4, tos, size + len(payload), 0, 0x4000, 64, protocol, 0)
    return head + packed(source) + packed(destination) + options + payload


def ipv6(
    source: int, destination: int, payload: bytes, *, traffic_class: int = 26 << 2 | 2, protocol: int = 17
) -> bytes:
    head = struct.pack(">IHBB", 6 << 28 | traffic_class << 20 | 0xABCDE, len(payload), protocol, 64)
    return head + source.to_bytes(16) + destination.to_bytes(16) + payload


def udp(payload: bytes, port: int = 4791) -> bytes:
    return struct.pack(">HHHH", 0xC001, port, 8 + len(payload), 0) + payload


def ethernet(kind: int, payload: bytes, tags: Sequence[int] = (), tag_type: int = 0x8100) -> bytes:
    inserted = b"".join(struct.pack(">HH", tag_type, tag) for tag in tags)
    return b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02" + inserted + struct.pack(">H", kind) + payload


def roce(
    header: bytes, rest: bytes = b"", *, source: str = A, destination: str = B, tos: int = 26 << 2 | 2, bad: bool = False,
    tags: Sequence[int] = (), options: bytes = b"",
) -> bytes:  # fmt: skip
    """A RoCE v2 frame over IPv4 with a correct CRC, or a bad one."""
    network = ipv4(source, destination, udp(header + rest + bytes(4)), tos=tos, options=options)
    size = 20 + len(options)
    crc = invariant_crc(network[:size], network[size:-4], version=2) ^ bad
    return ethernet(0x0800, network[:-4] + struct.pack("<I", crc), tags)


def frames_of(
    frames: Iterable[bytes], *, link: int = ETHERNET, step: int = 1000, begin: int = BEGIN
) -> Frames:
    """A batch of these frames, a microsecond apart."""
    listed = list(frames)
    lengths = np.array([len(one) for one in listed], np.int64)
    starts = 16 + np.cumsum(np.concatenate(([0], lengths[:-1]))) if listed else np.zeros(0, np.int64)
    return Frames(
        np.frombuffer(bytearray(16) + b"".join(listed), np.uint8),
        starts.astype(np.int64),
        lengths,
        lengths,
        begin + step * np.arange(len(listed)),
        np.full(len(listed), NO_TAG, np.int64),
        link,
    )


def packet_of(frame: bytes, link: int = ETHERNET) -> dict[str, Any] | None:
    """The packet of one frame with every header, as `--format=packets` prints it; None if it holds none."""
    return next(packets(frames_of([frame], link=link)), None)


def tally_of(*batches: Iterable[bytes]) -> Tally:
    """The tally of these frames."""
    tally, begin = Tally(), BEGIN
    for batch in batches:
        frames = frames_of(batch, begin=begin)
        begin += 1000 * len(frames.starts)
        tally.add(decode_frames(frames))
    return tally


def pcap(frames: Iterable[bytes], *, order: str = "<", magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    """A pcap file."""
    found = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)
    for number, one in enumerate(frames):
        found += struct.pack(order + "IIII", 1_800_000_000, number, len(one), len(one)) + one
    return found


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A block of pcapng."""
    body += bytes(-len(body) % 4)
    return struct.pack(order + "II", kind, 12 + len(body)) + body + struct.pack(order + "I", 12 + len(body))


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int = 1, resolution: int | None = None, order: str = "<", offset: int = 0) -> bytes:
    options = b"" if resolution is None else struct.pack(order + "HHB3x", 9, 1, resolution)
    options += struct.pack(order + "HHq", 14, 8, offset) if offset else b""
    return block(
        1, struct.pack(order + "HHI", link, 0, 65536) + options + (bytes(4) if options else b""), order
    )


def enhanced(frame: bytes, ticks: int, name: int = 0, order: str = "<") -> bytes:
    head = struct.pack(order + "IIIII", name, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(6, head + frame, order)


def capture(content: bytes) -> CaptureFile:
    return CaptureFile(io.BytesIO(content), "test")


def pcapng_bytes(frames: Iterable[bytes]) -> bytes:
    """A pcapng file with microseconds."""
    return section() + interface() + b"".join(enhanced(one, number) for number, one in enumerate(frames))
