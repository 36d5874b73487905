"""Files that are no plain counters: state of the ports; link and errors of the PCI function, temperatures, delay drop of mlx5.

Documentation/ABI/stable/sysfs-class-infiniband: `state` is `4: ACTIVE`, `phys_state` is `5: LinkUp`, `rate` is
`100 Gb/sec (4X EDR)`. The MTU is the network device's, in bytes; its `flags` are hexadecimal, and IFF_UP is the lowest bit
(include/uapi/linux/if.h, Documentation/ABI/testing/sysfs-class-net).

Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats, drivers/pci/pci-sysfs.c, Documentation/hwmon/sysfs-interface.rst,
drivers/infiniband/hw/mlx5/main.c. A VF does not report its link. Delay drop is in debugfs, which only root can read: without
this privilege the interface counts as absent, as on every other NIC. docs/troubleshooting.md lists the metrics that are lost without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from roce_exporter.host.kernel import Absent, Kernel, entries_of, read_or
from roce_exporter.host.sources.files import CounterFiles, FileParser, FileReader, ParsedFiles
from roce_exporter.model import WHOLE_DEVICE, Device
from roce_exporter.model.values import DERIVED, GARBAGE, NOT_AVAILABLE, parse_counter, unreadable

PORT = "port"
STATE, PHYSICAL_STATE, SPEED, MTU, FLAGS = "state", "phys_state", "rate", "mtu", "flags"
UP = "up"
"""Not a file: whether the state, which is read first, is ACTIVE."""
ACTIVE = 4  # IB_PORT_ACTIVE of include/rdma/ib_verbs.h
_RATE = re.compile(rb"(\d{1,6})(?:\.(\d))? Gb/sec")  # no NIC has a petabit per second


def parse_state(text: bytes) -> int | str:
    """The number of `4: ACTIVE`, or the reason why it is missing."""
    number, colon, _ = text.strip().partition(b":")
    if number.isdigit() and colon and len(number) < 3:  # noqa: PLR2004 - states are one digit; two leave room
        return int(number)
    return unreadable(text)


def parse_rate(text: bytes) -> int | str:
    """Bytes per second of `2.5 Gb/sec (1X SDR)`, or the reason why the number is missing."""
    match = _RATE.match(text.strip())
    return _tenths(match) * 10**8 // 8 if match else unreadable(text)


def _tenths(match: re.Match[bytes]) -> int:
    return int(match[1]) * 10 + int(match[2] or 0)


def parse_mtu(text: bytes) -> int | str:
    """Bytes, or the reason why the number is missing."""
    digits = text.strip()
    return int(digits) if digits.isdigit() and len(digits) < 8 else GARBAGE  # noqa: PLR2004 - the MTU is a u32


def parse_flags(text: bytes) -> int | str:
    """1 if `0x1003` has IFF_UP, 0 if the network device was set down, or the reason why the number is missing."""
    digits = text.strip()
    try:
        return int(digits, 16) & 1 if digits.startswith(b"0x") else GARBAGE
    except ValueError:
        return GARBAGE


_PARSERS: dict[str, Callable[[bytes], int | str]] = {
    STATE: parse_state,
    PHYSICAL_STATE: parse_state,
    SPEED: parse_rate,
    MTU: parse_mtu,
    FLAGS: parse_flags,
}


def port_reader(kernel: Kernel, device: Device) -> FileReader:
    """The state files of all ports of one device, one reading per port, with the names of this module."""

    def open_files() -> Iterator[ParsedFiles]:
        for port in device.ports:
            netdevs = [f"class/net/{one.name}" for one in port.netdevs[:1]]
            places = {f"class/infiniband/{device.name}/ports/{port.number}": (STATE, PHYSICAL_STATE, SPEED)}
            files = {
                name: (f"{directory}/{name}", _PARSERS[name])
                for directory, names in (places | dict.fromkeys(netdevs, (MTU, FLAGS))).items()
                for name in names
                if name in entries_of(kernel, directory)
            }
            if files:
                up = {UP: lambda found: int(found[0] == ACTIVE) if isinstance(found[0], int) else DERIVED}
                yield ParsedFiles(kernel, files, port.number, derived=up if STATE in files else {})

    return FileReader(PORT, device.name, open_files, missing="no ports in sysfs")


PCIE = "pcie"
_SPEED = re.compile(rb"(\d{1,9})(?:\.(\d))? GT/s")
_TOTAL = re.compile(rb"^TOTAL_ERR_\w+ (\d{1,20})\s*$", re.MULTILINE)


def parse_speed(text: bytes) -> int | str:
    """Transfers per second of `16.0 GT/s PCIe`, or the reason why the number is missing."""
    if match := _SPEED.match(text.strip()):
        return _tenths(match) * 10**8
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
    **dict.fromkeys(("current_link_speed", "max_link_speed"), parse_speed),
    **dict.fromkeys(("current_link_width", "max_link_width"), parse_width),
    **dict.fromkeys(("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"), parse_total),
}

# Size limit of an AER file, which has a line per kind of error and their sum in the last one.
AER_BYTES = 4096


def pcie_reader(kernel: Kernel, device: Device) -> FileReader:
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
) -> FileReader:
    """The files below the PCI function of a device."""

    def open_files() -> Iterator[ParsedFiles]:
        if files := list_files(f"class/infiniband/{device.name}/device"):
            yield ParsedFiles(kernel, files, size=AER_BYTES)

    return FileReader(source, device.name, open_files, missing=missing)


SENSORS = "sensors"
KINDS = {"input": "temperature", "crit": "critical"}
_FILE = re.compile(r"(temp\d+)_(input|crit)")
_NUMBER = re.compile(rb"-?\d{1,9}")


def sensors_reader(kernel: Kernel, device: Device) -> FileReader:
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

    def open_files() -> Iterator[CounterFiles]:
        directory = f"kernel/debug/mlx5/{device.pci}/delay_drop"
        with suppress(Absent, PermissionError):
            present = kernel.entries(directory) if device.pci else ()
            if present:
                names = [name for name in NAMES if name in present]
                yield CounterFiles(kernel, WHOLE_DEVICE, directory, names)

    missing = "no delay drop, or no permission to read debugfs"
    return FileReader(DELAY_DROP, device.name, open_files, missing=missing)
