"""Temperatures from the kernel's hardware monitoring: the NIC's chip and, for mlx5, the transceivers.

Documentation/hwmon/sysfs-interface.rst. Unprivileged, unlike the transceiver's own memory.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.files import ParsedFiles
from roce_exporter.host.sources.values import EMPTY, GARBAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading

SENSORS = "sensors"

KINDS = {"input": "temperature", "crit": "critical"}

_FILE = re.compile(r"(temp\d+)_(input|crit)")
_NUMBER = re.compile(rb"-?\d{1,9}")


class Sensors:
    """The hwmon directory below one device's PCI function."""

    source = SENSORS
    netdev = ""
    quarantined = 0

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device.name
        self._files: ParsedFiles | None = None

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading for the whole device: `temperature_SENSOR` and `critical_SENSOR`, thousandths of a degree Celsius.

        Raises:
            Absent: the driver has no sensors.
        """
        if self._files is None:
            self._files = self._open()
        return (self._files.read(SENSORS, self._device),)

    def _open(self) -> ParsedFiles:
        paths = dict(self._paths(f"class/infiniband/{self._device}/device/hwmon"))
        if not paths:
            raise Absent(errno.ENOENT, "no temperature sensors", self._device)
        return ParsedFiles(self._kernel, {name: (path, parse_temperature) for name, path in paths.items()})

    def _paths(self, below: str) -> Iterator[tuple[str, str]]:
        for monitor in self._kernel.entries(below):
            for name in self._kernel.entries(f"{below}/{monitor}"):
                if match := _FILE.fullmatch(name):
                    yield (
                        f"{KINDS[match[2]]}_{self._label(f'{below}/{monitor}', match[1])}",
                        f"{below}/{monitor}/{name}",
                    )

    def _label(self, monitor: str, channel: str) -> str:
        try:
            return self._kernel.text(f"{monitor}/{channel}_label") or channel
        except OSError:
            return channel

    def close(self) -> None:
        if self._files:
            self._files.close()


def parse_temperature(content: bytes) -> int | str:
    """Thousandths of a degree Celsius, or the reason why the number is missing."""
    text = content.strip()
    if not text:
        return EMPTY
    return int(text) if _NUMBER.fullmatch(text) else GARBAGE
