"""Other information from RDMA netlink than counters: objects in use, and which optional counters are on.

RDMA_NLDEV_CMD_RES_GET (kernel 4.17) and RDMA_NLDEV_CMD_STAT_GET_STATUS (kernel 5.16), both unprivileged.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.values import check_netlink, make_reading, reason_of
from roce_exporter.model import WHOLE_DEVICE, Loss, Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device

RESOURCES = "resources"
OPTIONAL_COUNTERS = "optional_counters"


class Resources:
    """Queue pairs, completion queues, memory regions and the like that are in use on one device."""

    source = RESOURCES
    netdev = ""
    quarantined = 0

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device
        self._names: tuple[str, ...] = ()
        self._found: Mapping[str, int] | None = None
        self._readings: tuple[Reading, ...] = ()

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading for the whole device: object kind to number in use.

        Raises:
            Absent: netlink does not report them.
            OSError: netlink fails.
        """
        check_netlink(self._device)
        if self._device.netlink is None:
            raise Absent(errno.ENODEV, "not in RDMA netlink", self._device.name)
        found = self._kernel.rdma_resources(self._device.netlink)
        # The same object has the same content: see `kernel.netlink.remembered`.
        if found is not self._found:
            if self._names != tuple(found):
                self._names = tuple(found)
            self._found, values = found, tuple(found.values())
            self._readings = (make_reading(RESOURCES, self._device.name, WHOLE_DEVICE, self._names, values),)
        return self._readings

    def close(self) -> None:
        pass  # nothing is open


class OptionalCounters:
    """Which optional counters the ports of one device have, and whether each is on: 1 or 0."""

    source = OPTIONAL_COUNTERS
    netdev = ""
    quarantined = 0

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device
        self._reported: dict[int, tuple[Mapping[str, bool], Reading]] = {}

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading per port with optional counters. A failed port has a loss without a name.

        Raises:
            Absent: no port has optional counters, or the kernel is older than 5.16.
            OSError: netlink itself fails.
        """
        check_netlink(self._device)
        readings = tuple(reading for port in self._device.ports if (reading := self._port(port.number)))
        if not readings:
            raise Absent(errno.EOPNOTSUPP, "no optional counters", self._device.name)
        return readings

    def _port(self, port: int) -> Reading | None:
        if self._device.netlink is None:
            return None
        try:
            found = self._kernel.rdma_optional_counters(self._device.netlink, port)
        except Absent:
            return None
        except OSError as error:
            return Reading(OPTIONAL_COUNTERS, self._device.name, port, (), (), (Loss("", reason_of(error)),))
        before, reading = self._reported.get(port, (None, None))
        if found is not before and found:
            names = reading.names if reading and reading.names == tuple(found) else tuple(found)
            values = tuple(int(on) for on in found.values())
            reading = make_reading(OPTIONAL_COUNTERS, self._device.name, port, names, values)
            self._reported[port] = found, reading
        return reading if found else None

    def close(self) -> None:
        pass  # nothing is open
