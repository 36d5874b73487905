"""The kernel log of a recorded host: `dev/kmsg` of each moment has the records as /dev/kmsg returns them, one after another.

A moment may repeat the records of the one before; new are those with higher sequence numbers. A capture writes only messages
about RDMA devices that the table knows, so numbers are missing between them: they were left out, and not lost. Words that are not
ordinary are replaced in them; names of devices and PCI addresses stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent, Kernel
from roce_exporter.host.kernel.kmsg import KernelLog, LogPart
from roce_exporter.model import decode_record
from roce_exporter.normalise.log_lines import UNKNOWN_ERROR, event_of, read_line

if TYPE_CHECKING:
    from roce_exporter.host.recorded.scrub import Scrubber

PATH = "dev/kmsg"


class RecordedLog:
    """A position in the log of a recorded host; `content` returns `dev/kmsg` of the present moment."""

    def __init__(self, content: Callable[[], bytes], *, oldest: bool) -> None:
        self._content = content
        self._passed = -1 if oldest else max((number for number, _ in numbered(content())), default=-1)

    def read(self, most: int) -> LogPart:
        found: list[bytes] = []
        for number, record in numbered(self._content()):
            if number > self._passed and len(found) < most:
                self._passed = number
                found.append(record)
        return LogPart(tuple(found), 0, thinned=True)

    def close(self) -> None:
        pass  # nothing is open


def numbered(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Each record with its sequence number. Lines that are no record and belong to none are skipped."""
    record: list[bytes] = []
    for line in content.splitlines(keepends=True):
        if not line.startswith(b" "):
            yield from _one(record)
            record = []
        record.append(line)
    yield from _one(record)


def _one(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    raw = b"".join(lines)
    if lines and (record := decode_record(raw)):
        yield record.sequence, raw


PART = 1024
MOST_PARTS = 256  # parts of a log that are read; the largest buffers hold as many messages
MOST_KEPT = 1000  # messages that are kept, the newest


def kernel_log(kernel: Kernel) -> dict[str, str]:
    """The file of the log; no file where the host has no log, an empty one where no message matches. OSError: the log cannot be read."""
    try:
        log = kernel.open_kernel_log(oldest=True)
    except Absent:
        return {}
    try:
        kept = [raw for raw in _records(log) if _event(raw)]
    finally:
        log.close()
    # The kernel has escaped everything outside ASCII.
    return {PATH: b"".join(kept[-MOST_KEPT:]).decode("ascii", "replace")}


def scrub_log(text: str, scrub: Scrubber) -> str:
    """The text of `dev/kmsg`, scrubbed; a message that would mean something else then is left out."""
    return "".join(
        changed
        for _, raw in numbered(text.encode())
        for head, semicolon, message in [raw.decode().partition(";")]
        if _event((changed := head + semicolon + scrub.free(message)).encode()) == _event(raw)
    )


def _records(log: KernelLog) -> Iterator[bytes]:
    for _ in range(MOST_PARTS):
        records = log.read(PART).records
        yield from records
        if not records:
            return


def _event(raw: bytes) -> str:
    """The event of a record that the table knows; empty for others."""
    record = decode_record(raw)
    line = read_line(record) if record else None
    event = event_of(line) if line else ""
    return "" if event == UNKNOWN_ERROR else event
