"""The driver's own RDMA counters: from RDMA netlink, and for counters missing there from sysfs (`hw_counters`).

Netlink (RDMA_NLDEV_CMD_STAT_GET) returns all counters of a port in one snapshot; in sysfs, every file of mlx5 costs three
firmware commands. The directories are needed for kernels without netlink, if netlink fails, and for counters of the whole
device (mana, mlx5 in switchdev mode), which netlink never reports.
Both use the same names with the same meaning, so they are merged and never become two series.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache

from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.row import COUNTERS, HW_COUNTERS
from roce_exporter.host.kernel import Absent, Kernel
from roce_exporter.host.sources.files import CounterFiles, FileReader
from roce_exporter.host.sources.query_reader import NetlinkPorts, QueryReader, netlink_of
from roce_exporter.model import WHOLE_DEVICE, Device, RdmaDevice, Reading

SETTINGS = frozenset({"lifespan"})
"""Files among the counters that are settings: how long the kernel may serve a cached value, in milliseconds."""
STATISTICS = "rdma_netlink"


def statistics_reader(kernel: Kernel, device: Device) -> NetlinkPorts:
    """RDMA netlink's counters of all ports of one device."""
    return NetlinkPorts(
        STATISTICS,
        kernel.rdma_statistics,
        device,
        named=HW_COUNTERS,
        missing="no port statistics in RDMA netlink",
    )


class HardwareCounters:
    """The `hw_counters` directories of one device and its ports, without the counters that netlink has reported."""

    source = HW_COUNTERS
    netdev = ""

    def __init__(self, kernel: Kernel, device: Device, reported: Mapping[int, Collection[str]]) -> None:
        self._kernel = kernel
        self._device = device
        self._reported = reported
        self._names: dict[int, tuple[str, ...]] | None = None
        self._files: dict[int, CounterFiles] = {}
        """Per port, the files that netlink did not report in the last read."""

    @property
    def quarantined(self) -> int:
        return sum([files.quarantined for files in self._files.values()])

    def read(self, now: float) -> tuple[Reading, ...]:
        """One reading per directory with counters that netlink has not reported."""
        if self._names is None:
            self._names = self._list()
        if not self._names:
            raise Absent(errno.ENOENT, "no hw_counters directory", self._device.name)
        readings = []
        for port, names in self._names.items():
            reported = self._reported.get(port, ())
            rest = names if not reported else tuple(name for name in names if name not in reported)
            if files := self._current(port, rest):
                readings.append(files.read(self.source, self._device.name, now))
        return tuple(readings)

    def _list(self) -> dict[int, tuple[str, ...]]:
        listed = {}
        for port in (*(port.number for port in self._device.ports), WHOLE_DEVICE):
            try:
                entries = self._kernel.entries(self._directory(port))
            except Absent:
                continue
            listed[port] = tuple(name for name in entries if name not in SETTINGS)
        return listed

    def _current(self, port: int, names: tuple[str, ...]) -> CounterFiles | None:
        """The files of these names. A counter that netlink reports again is neither held open nor counted as quarantined."""
        files = self._files.get(port)
        if files is not None and files.names != names:
            self._files.pop(port).close()
            files = None
        if files is None and names:
            files = self._files[port] = CounterFiles(self._kernel, port, self._directory(port), names)
        return files

    def _directory(self, port: int) -> str:
        below = "hw_counters" if port == WHOLE_DEVICE else f"ports/{port}/hw_counters"
        return f"class/infiniband/{self._device.name}/{below}"

    def close(self) -> None:
        for files in self._files.values():
            files.close()


def counters_reader(kernel: Kernel, device: Device) -> FileReader:
    """The InfiniBand port counters (PMA) in `ports/N/counters`.

    Documentation/ABI/stable/sysfs-class-infiniband. Not in RDMA netlink; on mlx5 each file is one firmware command.
    """

    def open_files() -> Iterator[CounterFiles]:
        for port in () if family_of(device.dialect).stub_port_counters else device.ports:
            directory = f"class/infiniband/{device.name}/ports/{port.number}/counters"
            with suppress(Absent):
                yield CounterFiles(kernel, port.number, directory, kernel.entries(directory))

    return FileReader(COUNTERS, device.name, open_files, missing="no counters directory")


RESOURCES = "resources"
OPTIONAL_COUNTERS = "optional_counters"
LIMITS = "limits"


def resources_reader(kernel: Kernel, device: Device) -> QueryReader:
    """Queue pairs, completion queues, memory regions and the like that are in use on one device."""
    return QueryReader(
        RESOURCES, lambda: kernel.rdma_resources(netlink_of(device)), device.name, WHOLE_DEVICE
    )


def limits_reader(kernel: Kernel, device: Device) -> QueryReader:
    """How many objects of a kind a device can have at once, by the names of `ibv_devinfo`.

    Read until it succeeds once: limits do not change, and reading them opens a context on the device.
    """
    once = cache(lambda: kernel.object_limits(netlink_of(device)))
    return QueryReader(LIMITS, once, device.name, WHOLE_DEVICE)


def optional_counters_reader(kernel: Kernel, device: Device) -> NetlinkPorts:
    """Which optional counters the ports of one device have, and whether each is on: 1 or 0."""

    def states(netlink: RdmaDevice, port: int) -> Mapping[str, int]:
        found = kernel.rdma_optional_counters(netlink, port)
        if not found:
            raise Absent(errno.EOPNOTSUPP, "no optional counters", device.name)
        return {name: int(on) for name, on in found.items()}

    return NetlinkPorts(OPTIONAL_COUNTERS, states, device, missing="no optional counters")
