"""Delay drop of mlx5, from debugfs: queues for which the NIC waits for a receive request instead of dropping packets.

drivers/infiniband/hw/mlx5/main.c. Only root can read debugfs: without this privilege the interface counts as absent, as
on every other NIC. The README lists the metrics that are lost without it.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.files import CounterFiles
from roce_exporter.model import WHOLE_DEVICE

if TYPE_CHECKING:
    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading

DELAY_DROP = "delay_drop"

NAMES = ("num_timeout_events", "num_rqs", "timeout")


class DelayDrop:
    """The delay_drop directory of one device."""

    source = DELAY_DROP
    netdev = ""

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device
        self._files: CounterFiles | None = None

    @property
    def quarantined(self) -> int:
        return self._files.quarantined if self._files else 0

    def read(self, now: float) -> tuple[Reading, ...]:
        """One reading for the whole device.

        Raises:
            Absent: there is no such directory, or no permission to read it.
        """
        if self._files is None:
            self._files = self._open()
        return (self._files.read(DELAY_DROP, self._device.name, WHOLE_DEVICE, now),)

    def _open(self) -> CounterFiles:
        directory = f"kernel/debug/mlx5/{self._device.pci}/delay_drop"
        try:
            present = self._kernel.entries(directory) if self._device.pci else ()
        except PermissionError:
            present = ()
        if not present:
            raise Absent(errno.ENOENT, "no delay drop, or no permission to read debugfs", self._device.name)
        return CounterFiles(self._kernel, directory, [name for name in NAMES if name in present])

    def close(self) -> None:
        if self._files:
            self._files.close()
