"""Which records of the kernel log are new, and how many were lost, by their sequence numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.model import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.host.kernel.kmsg import LogPart
    from roce_exporter.model import LogRecord


class LogPosition:
    """The place up to which a log has been read, which outlives its descriptor."""

    def __init__(self) -> None:
        self.next: int | None = None
        """The sequence number of the next record; None before the first one."""
        self.lost = 0
        """Records that were overwritten before they were read."""

    def accept(self, part: LogPart) -> Iterator[LogRecord]:
        """The records of this part that were not read before, and are from the kernel."""
        if self.next is None and not part.records:
            self.lost += part.overruns
        elif self.next is None:
            # The number of lost records is known from the next gap on.
            self.lost += min(part.overruns, 1)
        for raw in part.records:
            record = decode_record(raw)
            if record is None or (self.next is not None and record.sequence < self.next):
                continue
            if self.next is not None and not part.thinned:
                self.lost += record.sequence - self.next
            self.next = record.sequence + 1
            if record.text:
                yield record
