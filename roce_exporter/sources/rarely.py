"""A source that is asked once a minute and served from that in between.

A transceiver answers over a slow bus, tens of milliseconds for all of it, and the kernel holds the lock of all network
configuration meanwhile; a driver's settings hardly ever change. Light and temperature change slowly, too.
"""

from __future__ import annotations

import errno
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roce_exporter.model import Reading
    from roce_exporter.sources import Reader

SECONDS_BETWEEN = 60.0


class Rarely:
    """A reader that asks another one."""

    def __init__(self, reader: Reader) -> None:
        self.source = reader.source
        self.netdev = reader.netdev
        self._reader = reader
        self._read_at = -math.inf
        self._last: tuple[Reading, ...] | OSError = ()

    @property
    def quarantined(self) -> int:
        """As the other says."""
        return self._reader.quarantined

    def read(self, now: float) -> tuple[Reading, ...]:
        """Readings that are at most a minute old. A failure is as old as that, too: what hangs is not asked more often.

        Raises:
            Absent: as the other says, or said.
            OSError: the same.
        """
        if now - self._read_at >= SECONDS_BETWEEN:
            self._read_at = now
            # For as long as nothing better is known: a fault that is no OSError must not leave old values standing.
            self._last = OSError(errno.EIO, "the last read was not finished", self.netdev)
            try:
                self._last = self._reader.read(now)
            except OSError as error:
                self._last = error
        if isinstance(self._last, OSError):
            raise self._last.with_traceback(None)
        return self._last

    def close(self) -> None:
        """As the other does."""
        self._reader.close()
