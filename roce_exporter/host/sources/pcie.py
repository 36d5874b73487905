"""The PCIe function below an RDMA device: current and maximum link speed and width, and error counters.

Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats and drivers/pci/pci-sysfs.c. A VF does not report its link.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.files import ParsedFiles
from roce_exporter.host.sources.values import EMPTY, GARBAGE, NOT_AVAILABLE, parse_counter

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading

PCIE = "pcie"

_SPEED = re.compile(rb"(\d{1,9})(?:\.(\d))? GT/s")
_TOTAL = re.compile(rb"^TOTAL_ERR_\w+ (\d{1,20})\s*$", re.MULTILINE)


def parse_speed(text: bytes) -> int | str:
    """Transfers per second of `16.0 GT/s PCIe`, or the reason why the number is missing."""
    if match := _SPEED.match(text.strip()):
        return (int(match[1]) * 10 + int(match[2] or 0)) * 10**8
    if text.strip().startswith(b"Unknown"):
        return NOT_AVAILABLE
    return GARBAGE if text.strip() else EMPTY


def parse_total(text: bytes) -> int | str:
    """The sum in the last line of an AER file (`TOTAL_ERR_COR 3`), or the reason why it is missing."""
    match = _TOTAL.search(text)
    return parse_counter(match[1]) if match else GARBAGE


def parse_width(text: bytes) -> int | str:
    """Lanes; a function that does not report them has 0 or 255 here."""
    lanes = parse_counter(text)
    return NOT_AVAILABLE if lanes in (0, 255) else lanes


PARSERS: dict[str, Callable[[bytes], int | str]] = {
    "current_link_speed": parse_speed,
    "current_link_width": parse_width,
    "max_link_speed": parse_speed,
    "max_link_width": parse_width,
    "aer_dev_correctable": parse_total,
    "aer_dev_nonfatal": parse_total,
    "aer_dev_fatal": parse_total,
}

# Size limit of an AER file, which has a line per kind of error and their sum in the last one.
AER_BYTES = 4096


class Pcie:
    """The PCI files of one device."""

    source = PCIE
    netdev = ""
    quarantined = 0

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device.name
        self._files: ParsedFiles | None = None

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading for the whole device, with the file names as names.

        Raises:
            Absent: the device is not on a PCI bus, or not in sysfs.
        """
        if self._files is None:
            self._files = self._open()
        return (self._files.read(PCIE, self._device),)

    def _open(self) -> ParsedFiles:
        below = f"class/infiniband/{self._device}/device"
        present = self._kernel.entries(below)
        files = {name: (f"{below}/{name}", parse) for name, parse in PARSERS.items() if name in present}
        if not files:
            raise Absent(errno.ENOENT, "no PCI function", self._device)
        return ParsedFiles(self._kernel, files, AER_BYTES)

    def close(self) -> None:
        if self._files:
            self._files.close()
