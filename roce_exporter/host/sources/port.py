"""State, speed and MTU of the ports, from sysfs.

Documentation/ABI/stable/sysfs-class-infiniband: `state` is `4: ACTIVE`, `phys_state` is `5: LinkUp`, `rate` is
`100 Gb/sec (4X EDR)`. The MTU is the network device's, in bytes; its `flags` are hexadecimal, and IFF_UP is the lowest bit
(include/uapi/linux/if.h, Documentation/ABI/testing/sysfs-class-net).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import entries_of
from roce_exporter.host.sources.files import ParsedFiles, ParsedReader
from roce_exporter.model.values import DERIVED, GARBAGE, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device

PORT = "port"

STATE, PHYSICAL_STATE, SPEED, MTU, FLAGS = "state", "phys_state", "rate", "mtu", "flags"
UP = "up"
"""Not a file: whether the state, which is read first, is ACTIVE."""

ACTIVE = 4
"""IB_PORT_ACTIVE of include/rdma/ib_verbs.h."""

_RATE = re.compile(rb"(\d{1,9})(?:\.(\d))? Gb/sec")


def parse_state(text: bytes) -> int | str:
    """The number of `4: ACTIVE`, or the reason why it is missing."""
    number, colon, _ = text.strip().partition(b":")
    if number.isdigit() and colon and len(number) < 3:  # noqa: PLR2004 - states are one digit; two leave room
        return int(number)
    return unreadable(text)


def parse_rate(text: bytes) -> int | str:
    """Bytes per second of `2.5 Gb/sec (1X SDR)`, or the reason why the number is missing."""
    match = _RATE.match(text.strip())
    if match is None or len(match[1]) > 6:  # noqa: PLR2004 - no NIC has a petabit per second
        return unreadable(text)
    tenths = int(match[1]) * 10 + int(match[2] or 0)
    return tenths * 10**8 // 8


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


def port_reader(kernel: Kernel, device: Device) -> ParsedReader:
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
                derived = {UP: _is_up} if STATE in files else {}
                yield ParsedFiles(kernel, files, port.number, derived=derived)

    return ParsedReader(PORT, device.name, open_files, missing="no ports in sysfs")


def _is_up(found: Sequence[int | str]) -> int | str:
    return int(found[0] == ACTIVE) if isinstance(found[0], int) else DERIVED
