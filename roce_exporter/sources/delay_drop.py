"""Delay drop of mlx5: queues that make the NIC wait for a receive request instead of dropping, from debugfs.

drivers/infiniband/hw/mlx5/main.c. debugfs is root's: without the privilege the interface is taken for absent, as it
is on every other NIC. What is lost without it stands in the README.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from roce_exporter.kernel import Absent
from roce_exporter.model import WHOLE_DEVICE
from roce_exporter.sources.files import CounterFiles

if TYPE_CHECKING:
    from roce_exporter.kernel import Kernel
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
        """Files that are left alone for a while."""
        return self._files.quarantined if self._files else 0

    def read(self, now: float) -> tuple[Reading, ...]:
        """One reading for the whole device.

        Raises:
            Absent: there is no such directory, or it may not be read.
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
            raise Absent(errno.ENOENT, "no delay drop, or no right to read debugfs", self._device.name)
        return CounterFiles(self._kernel, directory, [name for name in NAMES if name in present])

    def close(self) -> None:
        """Give the descriptors back."""
        if self._files:
            self._files.close()
