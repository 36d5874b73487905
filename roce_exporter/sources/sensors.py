"""Temperatures from the kernel's hardware monitoring: the NIC's chip and, for mlx5, the transceivers.

Documentation/hwmon/sysfs-interface.rst. Unprivileged, unlike the transceiver's own memory.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from roce_exporter.kernel import Absent
from roce_exporter.model import WHOLE_DEVICE
from roce_exporter.sources.values import EMPTY, GARBAGE, make_reading, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.kernel import Files, Kernel
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
        self._names: tuple[str, ...] = ()
        self._files: Files | None = None

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading for the whole device: `temperature_SENSOR` and `critical_SENSOR`, thousandths of a degree Celsius.

        Raises:
            Absent: the driver has no sensors.
        """
        if self._files is None:
            self._open()
        found = self._files.read() if self._files else []
        return (
            make_reading(SENSORS, self._device, WHOLE_DEVICE, self._names, [_value(one) for one in found]),
        )

    def _open(self) -> None:
        places = dict(self._places(f"class/infiniband/{self._device}/device/hwmon"))
        if not places:
            raise Absent(errno.ENOENT, "no temperature sensors", self._device)
        self._names = tuple(places)
        self._files = self._kernel.open_files(tuple(places.values()))

    def _places(self, below: str) -> Iterator[tuple[str, str]]:
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


def _value(content: bytes | OSError | None) -> int | str:
    if not isinstance(content, bytes):
        return reason_of(content or OSError())
    text = content.strip()
    if not text:
        return EMPTY
    return int(text) if _NUMBER.fullmatch(text) else GARBAGE
