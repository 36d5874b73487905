"""Files that are found by a device's PCI function: its link and errors, its temperatures, and delay drop of mlx5.

Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats, drivers/pci/pci-sysfs.c, Documentation/hwmon/sysfs-interface.rst,
drivers/infiniband/hw/mlx5/main.c. A VF does not report its link. Delay drop is in debugfs, which only root can read: without
this privilege the interface counts as absent, as on every other NIC. docs/troubleshooting.md lists the metrics that are lost without it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent, read_or
from roce_exporter.host.sources.files import FileReader, ParsedFiles, ParsedReader, Place
from roce_exporter.model import WHOLE_DEVICE
from roce_exporter.model.values import GARBAGE, NOT_AVAILABLE, parse_counter, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.host.sources.files import FileParser
    from roce_exporter.model import Device

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


def pcie_reader(kernel: Kernel, device: Device) -> ParsedReader:
    """Current and maximum link speed and width, and error counters, by the names of the files."""

    def files(below: str) -> dict[str, FileParser]:
        present = kernel.entries(below)
        return {name: (f"{below}/{name}", parse) for name, parse in PARSERS.items() if name in present}

    return _function_reader(PCIE, kernel, device, files, missing="no PCI function")


def _function_reader(
    source: str,
    kernel: Kernel,
    device: Device,
    list_files: Callable[[str], dict[str, FileParser]],
    *,
    missing: str,
) -> ParsedReader:
    """The files below the PCI function of a device."""

    def open_files() -> Iterator[ParsedFiles]:
        if files := list_files(f"class/infiniband/{device.name}/device"):
            yield ParsedFiles(kernel, files, size=AER_BYTES)

    return ParsedReader(source, device.name, open_files, missing=missing)


SENSORS = "sensors"

KINDS = {"input": "temperature", "crit": "critical"}

_FILE = re.compile(r"(temp\d+)_(input|crit)")
_NUMBER = re.compile(rb"-?\d{1,9}")


def sensors_reader(kernel: Kernel, device: Device) -> ParsedReader:
    """Temperatures of the NIC's chip and, for mlx5, the transceivers. Unprivileged, unlike the transceiver's own memory.

    `temperature_SENSOR` and `critical_SENSOR`, in thousandths of a degree Celsius.
    """

    def files(below: str) -> dict[str, FileParser]:
        found: dict[str, FileParser] = {}
        for folder in [f"{below}/hwmon/{monitor}" for monitor in kernel.entries(f"{below}/hwmon")]:
            for match in filter(None, map(_FILE.fullmatch, kernel.entries(folder))):
                label = read_or("", kernel.text, f"{folder}/{match[1]}_label") or match[1]
                found[f"{KINDS[match[2]]}_{label}"] = (f"{folder}/{match[0]}", parse_temperature)
        return found

    return _function_reader(SENSORS, kernel, device, files, missing="no temperature sensors")


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
