"""The sources of each network device behind a port: `ethtool -S`, pause, link, FEC, identity, the kernel's own counters.

Every network device has its own readers: if one fails or hangs, only that source on that device is lost. Of a RoCE LAG the
member ports are read, not the bond, which has no hardware.
"""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from roce_exporter.catalog.row import ETHTOOL
from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.dcb import DCB, flatten
from roce_exporter.host.sources.fec import fec_numbers
from roce_exporter.host.sources.files import CounterFiles
from roce_exporter.host.sources.netdev_identity import read_netdev_identity
from roce_exporter.host.sources.values import check_counters, make_reading
from roce_exporter.host.sources.virtual_functions import VirtualFunctions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading

T = TypeVar("T")
PAUSE = "pause"
LINK = "link"
FEC = "fec"
STANDARD = "ethernet"
NETDEV = "netdev"
SETTINGS = "settings"
TRANSCEIVER = "transceiver"
MAC_ADDRESS = "mac_address"

COUNTER_FILES = ("carrier_changes", "carrier_up_count", "carrier_down_count")
STATISTICS_FILES = ("rx_dropped", "rx_missed_errors")


def hardware_netdevs(device: Device) -> Iterator[tuple[int, str]]:
    """Port number and name of every network device with hardware behind it."""
    for port in device.ports:
        for netdev in port.netdevs:
            if netdev.role != "bond":
                yield port.number, netdev.name


class EthtoolStatistics:
    """The driver's private counters, `ethtool -S`. The set of names may change from one read to the next."""

    source = ETHTOOL
    quarantined = 0

    def __init__(self, kernel: Kernel, device: str, port: int, netdev: str) -> None:
        self.netdev = netdev
        self._kernel = kernel
        self._device = device
        self._port = port

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading.

        Raises:
            Absent: the driver has no private counters.
            OSError: as raised by the kernel.
        """
        names, values = self._kernel.ethtool_statistics(self.netdev)
        found = check_counters(values)
        return (make_reading(ETHTOOL, self._device, self._port, names, found, netdev=self.netdev),)

    def close(self) -> None:
        pass  # nothing is open


class NetdevQuery(Generic[T]):
    """One request to the kernel per network device, whose result is names and numbers."""

    quarantined = 0

    def __init__(
        self,
        source: str,
        query: Callable[[str], T],
        device: str,
        port: int,
        netdev: str,
        *,
        numbers: Callable[[T], Mapping[str, int]],
    ) -> None:
        """`numbers` converts the result of `query` to numbers by name."""
        self.source = source
        self.netdev = netdev
        self._query = query
        self._numbers = numbers
        self._device = device
        self._port = port
        self._names: tuple[str, ...] = ()
        self._answer: T | None = None
        self._readings: tuple[Reading, ...] = ()

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading, without values that the kernel leaves out.

        Raises:
            Absent: not supported by the driver.
            OSError: as raised by the kernel.
        """
        answer = self._query(self.netdev)
        # The same object has the same content: see `kernel.netlink.remembered`.
        if answer is not self._answer:
            found = self._numbers(answer)
            if self._names != tuple(found):
                self._names = tuple(found)
            self._answer, values = answer, check_counters(tuple(found.values()))
            self._readings = (
                make_reading(self.source, self._device, self._port, self._names, values, netdev=self.netdev),
            )
        return self._readings

    def close(self) -> None:
        pass  # nothing is open


class NetdevFiles:
    """The kernel's own counters of one network device (Documentation/ABI/testing/sysfs-class-net*)."""

    source = NETDEV

    def __init__(self, kernel: Kernel, device: str, port: int, netdev: str) -> None:
        self.netdev = netdev
        self._kernel = kernel
        self._device = device
        self._port = port
        self._files: tuple[CounterFiles, ...] = ()

    @property
    def quarantined(self) -> int:
        return sum([files.quarantined for files in self._files])

    def read(self, now: float) -> tuple[Reading, ...]:
        """One reading per directory.

        Raises:
            Absent: the network device is not in sysfs (it is in another network namespace), or has no such files.
        """
        if not self._files:
            self._files = tuple(self._open())
        if not self._files:
            raise Absent(errno.ENOENT, "no counters of the kernel", self.netdev)
        return tuple(
            [files.read(NETDEV, self._device, self._port, now, netdev=self.netdev) for files in self._files]
        )

    def _open(self) -> Iterator[CounterFiles]:
        below = f"class/net/{self.netdev}"
        present = self._kernel.entries(below)
        if names := [name for name in COUNTER_FILES if name in present]:
            yield CounterFiles(self._kernel, below, names)
        try:
            present = self._kernel.entries(f"{below}/statistics")
        except Absent:
            return
        if names := [name for name in STATISTICS_FILES if name in present]:
            yield CounterFiles(self._kernel, f"{below}/statistics", names)

    def close(self) -> None:
        for files in self._files:
            files.close()


def netdev_readers(
    kernel: Kernel, device: Device
) -> Iterator[EthtoolStatistics | NetdevQuery[Any] | NetdevFiles | VirtualFunctions]:
    """The readers of every network device of one RDMA device."""
    for port, netdev in hardware_netdevs(device):
        where = (device.name, port, netdev)
        yield NetdevFiles(kernel, *where)
        yield EthtoolStatistics(kernel, *where)
        yield NetdevQuery(DCB, kernel.dcb, *where, numbers=flatten)
        yield NetdevQuery(PAUSE, kernel.ethtool_pause, *where, numbers=dict)
        yield NetdevQuery(SETTINGS, kernel.ethtool_settings, *where, numbers=dict)
        yield NetdevQuery(LINK, kernel.ethtool_link, *where, numbers=dict)
        yield NetdevQuery(FEC, kernel.ethtool_fec, *where, numbers=fec_numbers)
        yield NetdevQuery(STANDARD, kernel.ethtool_standard, *where, numbers=dict)
        yield NetdevQuery(TRANSCEIVER, kernel.transceiver, *where, numbers=dict)
        yield NetdevQuery(MAC_ADDRESS, partial(read_netdev_identity, kernel), *where, numbers=dict)
        yield VirtualFunctions(kernel, *where)
