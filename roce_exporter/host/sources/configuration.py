"""Settings of no other source: ToS, RoCE version, congestion control.

Most of them cost a firmware command per file, so this is a source of the slow chain. `configuration_files` lists the
files.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.configuration_files import read_settings
from roce_exporter.host.sources.values import make_reading

if TYPE_CHECKING:
    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading

CONFIGURATION = "configuration"

AGE = ("age",)
"""The name of the whole seconds since the values were read."""


class Configuration:
    """The settings of one device."""

    source = CONFIGURATION
    netdev = ""
    quarantined = 0

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device
        self._names: tuple[tuple[str, ...], ...] = ()

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading per port and network device.

        Raises:
            Absent: the host has none of these settings for the device.
            OSError: as raised by the kernel.
        """
        found = read_settings(self._kernel, self._device)
        if not found:
            raise Absent(errno.ENOENT, "no settings in sysfs", self._device.name)
        # The same object for the same names: see `model.Reading`.
        known = {names: names for names in self._names}
        self._names = tuple(known.get(tuple(values), tuple(values)) for values in found.values())
        return tuple(
            make_reading(CONFIGURATION, self._device.name, port, names, tuple(values.values()), netdev=netdev)
            for names, ((port, netdev), values) in zip(self._names, found.items(), strict=True)
        )

    def close(self) -> None:
        pass  # nothing is open
