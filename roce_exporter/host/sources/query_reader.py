"""Sources that are one request to the kernel, or one per port, whose result is names and numbers."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from roce_exporter.host.kernel import Absent
from roce_exporter.model import Device, Loss, RdmaDevice, Reading
from roce_exporter.model.values import check_counter, check_counters, make_reading, reason_of


class OneRequest:
    """What a reader has that keeps no file open: nothing to close, nothing in quarantine."""

    quarantined = 0

    def __init__(self, source: str, device: str, netdev: str = "") -> None:
        self.source = source
        self.netdev = netdev
        self._device = device
        self._names: dict[tuple[int, str], tuple[str, ...]] = {}

    def close(self) -> None:
        pass  # nothing is open

    def _reading(
        self, source: str, port: int, found: Mapping[str, object], values: Sequence[int | str], netdev: str
    ) -> Reading:
        """A reading with the names of `found`: the same object for the same names, see `model.Reading`."""
        names = self._names.get((port, netdev), ())
        if names != tuple(found):
            names = self._names[port, netdev] = tuple(found)
        return make_reading(source, self._device, port, names, values, netdev=netdev)


class QueryReader(OneRequest):
    """One request for one port or network device, or for the whole device."""

    def __init__(
        self,
        source: str,
        query: Callable[[], Any],
        device: str,
        port: int,
        netdev: str = "",
        *,
        numbers: Callable[[Any], Mapping[str, int]] = dict,
    ) -> None:
        """`numbers` converts the result of `query` to numbers by name."""
        super().__init__(source, device, netdev)
        self._query = query
        self._numbers = numbers
        self._port = port
        self._answer: object = None
        self._readings: tuple[Reading, ...] = ()

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading, without values that the kernel leaves out."""
        answer = self._query()
        # The same object has the same content: see `kernel.netlink.remembered`.
        if answer is not self._answer:
            found = self._numbers(answer)
            values = check_counters(tuple(found.values()))
            self._answer = answer
            self._readings = (self._reading(self.source, self._port, found, values, self.netdev),)
        return self._readings


class SeveralReadings(OneRequest):
    """A query with a result per port and network device: a number by name, or the reason why it is missing."""

    def __init__(
        self,
        source: str,
        query: Callable[[], Mapping[tuple[int, str], Mapping[str, int | str]]],
        device: str,
        netdev: str = "",
        *,
        missing: str,
    ) -> None:
        """`missing` says what a device without any result lacks."""
        super().__init__(source, device, netdev)
        self._query = query
        self._missing = missing

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading per port and network device."""
        found = self._query()
        if not found:
            raise Absent(errno.ENOENT, self._missing, self.netdev or self._device)
        return tuple(
            self._reading(self.source, port, values, [*map(check_counter, values.values())], netdev)
            for (port, netdev), values in found.items()
        )


class NetlinkPorts(OneRequest):
    """One request to RDMA netlink for each port of a device."""

    def __init__(
        self,
        source: str,
        query: Callable[[RdmaDevice, int], Mapping[str, int]],
        device: Device,
        *,
        named: str = "",
        missing: str,
    ) -> None:
        """The readings are of the source `named`, if that is another; `missing` says what a device without any lacks."""
        super().__init__(source, device.name)
        self.reported: dict[int, Collection[str]] = {}
        """Per port, the names of the current collection."""
        self._query = query
        self._described = device
        self._named = named or source
        self._missing = missing

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading per port that has values. A failed port has a loss without a name."""
        self.reported.clear()
        check_netlink(self._described)
        readings = tuple(reading for port in self._described.ports if (reading := self._port(port.number)))
        if not readings:
            raise Absent(errno.EOPNOTSUPP, self._missing, self._device)
        return readings

    def _port(self, port: int) -> Reading | None:
        if self._described.netlink is None:
            return None
        try:
            found = self._query(self._described.netlink, port)
        except Absent:
            return None
        except OSError as error:
            return Reading(self._named, self._device, port, (), (), (Loss("", reason_of(error)),))
        self.reported[port] = found.keys()
        return self._reading(self._named, port, found, check_counters(tuple(found.values())), "")


def netlink_of(device: Device) -> RdmaDevice:
    """The device as RDMA netlink lists it.

    Raises:
        Absent: it is not in RDMA netlink.
        OSError: netlink failed when the device was described.
    """
    check_netlink(device)
    if device.netlink is None:
        raise Absent(errno.ENODEV, "not in RDMA netlink", device.name)
    return device.netlink


def check_netlink(device: Device) -> None:
    """Fail if RDMA netlink should work for this device and does not.

    OSError: with the errno of netlink's failure when the device was described.
    """
    if device.netlink_errno:
        raise OSError(device.netlink_errno, os.strerror(device.netlink_errno), "RDMA netlink")
