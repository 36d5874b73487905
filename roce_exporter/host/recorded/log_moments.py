"""The kernel log of a recorded host: `dev/kmsg` of each moment has the records as /dev/kmsg returns them, one after another.

A moment may repeat the records of the one before; new are those with higher sequence numbers. `capture` writes only records
that the table of messages knows, so numbers are missing between them: they were left out, and not lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel.kmsg import LogPart
from roce_exporter.model import decode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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


def print_records(records: Iterable[bytes]) -> str:
    """The text of `dev/kmsg`. The kernel has escaped everything outside ASCII."""
    return b"".join(records).decode("ascii", "replace")


def _one(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    raw = b"".join(lines)
    if lines and (record := decode_record(raw)):
        yield record.sequence, raw
