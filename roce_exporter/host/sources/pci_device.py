"""Files that are found by a device's PCI function: its link and errors, its temperatures, and delay drop of mlx5.

Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats, drivers/pci/pci-sysfs.c, Documentation/hwmon/sysfs-interface.rst,
drivers/infiniband/hw/mlx5/main.c. A VF does not report its link. Delay drop is in debugfs, which only root can read: without
this privilege the interface counts as absent, as on every other NIC. docs/troubleshooting.md lists the metrics that are lost without it.
"""

from __future__ import annotations

import errno
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent, read_or
from roce_exporter.host.sources.files import FileReader, ParsedFiles, Place
from roce_exporter.model import WHOLE_DEVICE
from roce_exporter.model.values import GARBAGE, NOT_AVAILABLE, parse_counter, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading


FileParser = tuple[str, "Callable[[bytes], int | str]"]
"""The path of a file, and what parses its content."""

FileParsers = dict[str, FileParser]

PCIE = "pcie"

_SPEED = re.compile(rb"(\d{1,9})(?:\.(\d))? GT/s")
_TOTAL = re.compile(rb"^TOTAL_ERR_\w+ (\d{1,20})\s*$", re.MULTILINE)


def parse_speed(text: bytes) -> int | str:
    """Transfers per second of `16.0 GT/s PCIe`, or the reason why the number is missing."""
    if match := _SPEED.match(text.strip()):
        return (int(match[1]) * 10 + int(match[2] or 0)) * 10**8
    if text.strip().startswith(b"Unknown"):
        return NOT_AVAILABLE
    return unreadable(text)


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


class FunctionFiles:
    """Files below the PCI function of one device; `list_files` maps names to paths and parsers."""

    netdev = ""
    quarantined = 0

    def __init__(
        self,
        source: str,
        kernel: Kernel,
        device: str,
        list_files: Callable[[Kernel, str], FileParsers],
        *,
        missing: str,
    ) -> None:
        """`missing` says what a device without such files lacks."""
        self.source = source
        self._missing = missing
        self._kernel = kernel
        self._device = device
        self._list = list_files
        self._files: ParsedFiles | None = None

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading for the whole device."""
        if self._files is None:
            files = self._list(self._kernel, f"class/infiniband/{self._device}/device")
            if not files:
                raise Absent(errno.ENOENT, self._missing, self._device)
            self._files = ParsedFiles(self._kernel, files, AER_BYTES)
        return (self._files.read(self.source, self._device),)

    def close(self) -> None:
        if self._files:
            self._files.close()


def pcie_reader(kernel: Kernel, device: Device) -> FunctionFiles:
    """Current and maximum link speed and width, and error counters, by the names of the files."""
    return FunctionFiles(PCIE, kernel, device.name, pcie_files, missing="no PCI function")


def pcie_files(kernel: Kernel, below: str) -> FileParsers:
    """The files of the function at a path."""
    present = kernel.entries(below)
    return {name: (f"{below}/{name}", parse) for name, parse in PARSERS.items() if name in present}


SENSORS = "sensors"

KINDS = {"input": "temperature", "crit": "critical"}

_FILE = re.compile(r"(temp\d+)_(input|crit)")
_NUMBER = re.compile(rb"-?\d{1,9}")


def sensors_reader(kernel: Kernel, device: Device) -> FunctionFiles:
    """Temperatures of the NIC's chip and, for mlx5, the transceivers. Unprivileged, unlike the transceiver's own memory.

    `temperature_SENSOR` and `critical_SENSOR`, in thousandths of a degree Celsius.
    """
    return FunctionFiles(
        SENSORS,
        kernel,
        device.name,
        lambda *where: dict(_sensor_files(*where)),
        missing="no temperature sensors",
    )


def _sensor_files(kernel: Kernel, below: str) -> Iterator[tuple[str, FileParser]]:
    for monitor in kernel.entries(f"{below}/hwmon"):
        folder = f"{below}/hwmon/{monitor}"
        for name in kernel.entries(folder):
            if match := _FILE.fullmatch(name):
                label = read_or("", kernel.text, f"{folder}/{match[1]}_label") or match[1]
                yield f"{KINDS[match[2]]}_{label}", (f"{folder}/{name}", parse_temperature)


def parse_temperature(content: bytes) -> int | str:
    """Thousandths of a degree Celsius, or the reason why the number is missing."""
    text = content.strip()
    return int(text) if _NUMBER.fullmatch(text) else unreadable(text)


DELAY_DROP = "delay_drop"

NAMES = ("num_timeout_events", "num_rqs", "timeout")


def delay_drop_reader(kernel: Kernel, device: Device) -> FileReader:
    """The delay_drop directory of mlx5: queues for which the NIC waits for a receive request instead of dropping packets."""

    def places() -> Iterator[Place]:
        directory = f"kernel/debug/mlx5/{device.pci}/delay_drop"
        with suppress(Absent, PermissionError):
            present = kernel.entries(directory) if device.pci else ()
            if present:
                yield Place(WHOLE_DEVICE, directory, [name for name in NAMES if name in present])

    missing = "no delay drop, or no permission to read debugfs"
    return FileReader(DELAY_DROP, kernel, places, device.name, missing=missing)
