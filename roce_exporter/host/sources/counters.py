"""The InfiniBand port counters (PMA) in `ports/N/counters`.

Documentation/ABI/stable/sysfs-class-infiniband. Not in RDMA netlink; on mlx5 each file is one firmware command.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.row import COUNTERS
from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.files import CounterFiles

if TYPE_CHECKING:
    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading


class Counters:
    """All `counters` directories of one device."""

    source = COUNTERS
    netdev = ""

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device
        self._ports: dict[int, CounterFiles] = {}

    @property
    def quarantined(self) -> int:
        return sum([files.quarantined for files in self._ports.values()])

    def read(self, now: float) -> tuple[Reading, ...]:
        """One reading per port that has the directory.

        Raises:
            Absent: no port has it.
        """
        if not self._ports:
            self._open()
        # Lists instead of generators here and in the other readers: for one or two items a generator takes longer than all of them.
        return tuple(
            [files.read(self.source, self._device.name, port, now) for port, files in self._ports.items()]
        )

    def _open(self) -> None:
        if not family_of(self._device.dialect).stub_port_counters:
            for port in self._device.ports:
                directory = f"class/infiniband/{self._device.name}/ports/{port.number}/counters"
                try:
                    self._ports[port.number] = CounterFiles(
                        self._kernel, directory, self._kernel.entries(directory)
                    )
                except Absent:
                    continue
        if not self._ports:
            raise Absent(errno.ENOENT, "no counters directory", self._device.name)

    def close(self) -> None:
        for files in self._ports.values():
            files.close()
