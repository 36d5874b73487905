"""A recording as a tar archive, compressed or not."""

from __future__ import annotations

from fuzz_targets.host import visit
from roce_exporter.kernel.recorded import play_recording
from roce_exporter.kernel.tree import RecordingError, unpack_tree

ALLOWED = (RecordingError,)
CORE = ("kernel/tree.py",)
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


def decode(data: bytes) -> None:
    try:
        visit(play_recording(unpack_tree(data), "FILE"))
    except ALLOWED as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - the message is under test
