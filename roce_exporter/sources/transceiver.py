"""What the transceiver of a network device measures of itself.

A module answers over a slow bus, tens of milliseconds for all of it, and the kernel holds the network configuration
lock meanwhile. Light and temperature change slowly: they are read once a minute, and served from that in between.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from roce_exporter.model import Reading

if TYPE_CHECKING:
    from roce_exporter.kernel import Kernel

TRANSCEIVER = "transceiver"

SECONDS_BETWEEN = 60.0


class Transceiver:
    """The transceiver of one network device."""

    source = TRANSCEIVER
    quarantined = 0

    def __init__(self, kernel: Kernel, device: str, port: int, netdev: str) -> None:
        self.netdev = netdev
        self._kernel = kernel
        self._device = device
        self._port = port
        self._read_at = -math.inf
        self._names: tuple[str, ...] = ()
        self._last: Reading | OSError = OSError()

    def read(self, now: float) -> tuple[Reading, ...]:
        """One reading, at most a minute old. A failure is as old as that, too: a bus that hangs is not asked more often.

        Raises:
            Absent: no module, one that measures nothing, or no right to ask (CAP_NET_ADMIN).
            OSError: as the kernel says it.
        """
        if now - self._read_at >= SECONDS_BETWEEN:
            self._read_at = now
            self._last = self._ask()
        if isinstance(self._last, OSError):
            raise self._last
        return (self._last,)

    def _ask(self) -> Reading | OSError:
        try:
            found = self._kernel.transceiver(self.netdev)
        except OSError as error:
            return error
        if self._names != tuple(found):
            self._names = tuple(found)
        values = tuple(found.values())
        return Reading(TRANSCEIVER, self._device, self._port, self._names, values, (), self.netdev)

    def close(self) -> None:
        """Nothing is held."""
