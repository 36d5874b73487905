"""State, speed and MTU of the ports, from sysfs.

Documentation/ABI/stable/sysfs-class-infiniband: `state` is `4: ACTIVE`, `phys_state` is `5: LinkUp`, `rate` is
`100 Gb/sec (4X EDR)`. The MTU is the network device's, in bytes; its `flags` are hexadecimal, and IFF_UP is the lowest bit
(include/uapi/linux/if.h, Documentation/ABI/testing/sysfs-class-net).
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.model.values import DERIVED, GARBAGE, make_reading, reason_of, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.host.kernel import Files, Kernel
    from roce_exporter.model import Device, Port, Reading

PORT = "port"

STATE, PHYSICAL_STATE, SPEED, MTU, FLAGS = "state", "phys_state", "rate", "mtu", "flags"
UP = "up"
"""Not a file: whether the state, which is read first, is ACTIVE."""

ACTIVE = 4
"""IB_PORT_ACTIVE of include/rdma/ib_verbs.h."""

_RATE = re.compile(rb"(\d{1,9})(?:\.(\d))? Gb/sec")


class PortState:
    """The state files of all ports of one device."""

    source = PORT
    netdev = ""
    quarantined = 0

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device
        self._ports: dict[int, tuple[tuple[str, ...], Files]] = {}
        self._last: dict[int, tuple[list[bytes | OSError | None], Reading]] = {}
        """Per port, the content of its files and the reading that this led to."""

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading per port, with the names of this module."""
        if not self._ports:
            self._ports = {port.number: opened for port in self._device.ports if (opened := self._open(port))}
        if not self._ports:
            raise Absent(errno.ENOENT, "no ports in sysfs", self._device.name)
        return tuple([self._read(number) for number in self._ports])

    def _open(self, port: Port) -> tuple[tuple[str, ...], Files] | None:
        directory = f"class/infiniband/{self._device.name}/ports/{port.number}"
        files = dict.fromkeys(_listed(self._kernel, directory, (STATE, PHYSICAL_STATE, SPEED)), directory)
        for netdev in port.netdevs[:1]:
            directory = f"class/net/{netdev.name}"
            files |= dict.fromkeys(_listed(self._kernel, directory, (MTU, FLAGS)), directory)
        if not files:
            return None
        names = (*files, UP) if STATE in files else tuple(files)
        return names, self._kernel.open_files([f"{folder}/{name}" for name, folder in files.items()])

    def _read(self, number: int) -> Reading:
        names, files = self._ports[number]
        texts = files.read()
        if (last := self._last.get(number)) is not None and last[0] == texts:
            return last[1]
        found = [
            _PARSERS[name](content) if isinstance(content, bytes) else reason_of(content or OSError())
            for name, content in zip(names, texts, strict=False)
        ]
        if names[-1] == UP:
            state = found[0]
            found.append(int(state == ACTIVE) if isinstance(state, int) else DERIVED)
        reading = make_reading(PORT, self._device.name, number, names, found)
        self._last[number] = (texts, reading)
        return reading

    def close(self) -> None:
        for _, files in self._ports.values():
            files.close()


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


def _listed(kernel: Kernel, directory: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
    try:
        entries = kernel.entries(directory)
    except Absent:
        return ()
    return tuple(name for name in wanted if name in entries)
