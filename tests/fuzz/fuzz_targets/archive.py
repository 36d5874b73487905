"""A recording as a tar archive, compressed or not."""

import io

from fuzz_targets.host import visit
from roce_exporter.host.recorded.recorded import play_recording
from roce_exporter.host.recorded.tree import RecordingError, unpack_tree

ALLOWED = (RecordingError,)
CORE = ("host/recorded/tree.py",)
WORDS = (
    b"ustar\x0000",
    b"ustar  \0",
    b"0000644\0",
    b"././@LongLink",
    b"sys/",
    b"rdma/dev.json",
    b"\x1f\x8b\x08",
    b"BZh9",
)


BLOCK = 512
MAGIC, CHECKSUM = slice(257, 262), slice(148, 156)


def decode(data: bytes) -> None:
    try:
        visit(play_recording(unpack_tree(io.BytesIO(checked(data))), "FILE"))
    except ALLOWED as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - the message is under test


def checked(data: bytes) -> bytes:
    """The input with corrected checksums of its tar headers: no mutation would find them, and the reader stops at a wrong one."""
    found = bytearray(data)
    for start in range(0, len(found) - BLOCK + 1, BLOCK):
        header = found[start : start + BLOCK]
        if header[MAGIC] == b"ustar":
            header[CHECKSUM] = b" " * 8
            header[CHECKSUM] = b"%06o\0 " % sum(header)
            found[start : start + BLOCK] = header
    return bytes(found)
