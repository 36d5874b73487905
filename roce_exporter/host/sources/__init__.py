"""Where values are. A source defines the location and the format of its values, but not their meaning.

A `Reader` is one source bound to one device. It is read from one worker thread at a time, opens its files on the first
read and keeps them open. Each value can fail independently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from roce_exporter.catalog.row import COUNTERS, HW_COUNTERS
from roce_exporter.host.sources.configuration import AGE, CONFIGURATION, Configuration
from roce_exporter.host.sources.dcb import DCB
from roce_exporter.host.sources.devlink import DEVLINK, DEVLINK_INFO, DEVLINK_VNIC, devlink_readers
from roce_exporter.host.sources.hw_counters import (
    STATISTICS,
    HardwareCounters,
    counters_reader,
    statistics_reader,
)
from roce_exporter.host.sources.ip_side import ADDRESSES, Addresses
from roce_exporter.host.sources.netdev import (
    FEC,
    LINK,
    MAC_ADDRESS,
    NETDEV,
    PAUSE,
    SETTINGS,
    STANDARD,
    TRANSCEIVER,
    VIRTUAL_FUNCTIONS,
    EthtoolStatistics,
    netdev_readers,
)
from roce_exporter.host.sources.pci_device import (
    DELAY_DROP,
    PCIE,
    SENSORS,
    delay_drop_reader,
    pcie_reader,
    sensors_reader,
)
from roce_exporter.host.sources.port import PORT, PortState
from roce_exporter.host.sources.rdma_objects import (
    LIMITS,
    OPTIONAL_COUNTERS,
    RESOURCES,
    limits_reader,
    optional_counters_reader,
    resources_reader,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading

NAMES = (
    PORT,
    STATISTICS,
    HW_COUNTERS,
    COUNTERS,
    RESOURCES,
    OPTIONAL_COUNTERS,
    PCIE,
    SENSORS,
    DELAY_DROP,
    NETDEV,
    EthtoolStatistics.source,
    DCB,
    PAUSE,
    SETTINGS,
    LINK,
    FEC,
    STANDARD,
    TRANSCEIVER,
    MAC_ADDRESS,
    VIRTUAL_FUNCTIONS,
    ADDRESSES,
    LIMITS,
    DEVLINK,
    DEVLINK_INFO,
    DEVLINK_VNIC,
    CONFIGURATION,
)
"""Every source, in the order in which a device's sources are read."""

SLOW = frozenset(
    {SETTINGS, TRANSCEIVER, MAC_ADDRESS, VIRTUAL_FUNCTIONS, ADDRESSES, LIMITS, CONFIGURATION}
    | {DEVLINK, DEVLINK_INFO, DEVLINK_VNIC}
)
"""Sources whose values hardly ever change, or change slowly, and are expensive to read: see `collect.collector`."""

AGED = {CONFIGURATION: AGE}
"""Slow sources that export the age of their values, and the name of that value: whole seconds."""


class Reader(Protocol):
    """One source of one device."""

    @property
    def source(self) -> str:
        """The source's name."""

    @property
    def netdev(self) -> str:
        """The network device that it reads; empty for a source of the whole device."""

    @property
    def quarantined(self) -> int:
        """Number of files that are not read for a while because they kept failing."""

    def read(self, now: float) -> tuple[Reading, ...]:
        """The readings of the source at `now` (monotonic seconds).

        Raises:
            Absent: the device does not have this interface.
            OSError: the whole interface is broken.
        """

    def close(self) -> None:
        """Close all open files."""


def open_readers(kernel: Kernel, device: Device, disabled: Collection[str] = ()) -> tuple[Reader, ...]:
    """The readers of one device, in reading order, without the sources in `disabled`."""
    statistics = statistics_reader(kernel, device)
    readers: tuple[Reader, ...] = (
        PortState(kernel, device),
        statistics,
        HardwareCounters(kernel, device, statistics.reported),
        counters_reader(kernel, device),
        resources_reader(kernel, device),
        optional_counters_reader(kernel, device),
        pcie_reader(kernel, device),
        sensors_reader(kernel, device),
        delay_drop_reader(kernel, device),
        *netdev_readers(kernel, device),
        *(
            Addresses(kernel, device.name, port)
            for port in device.ports
            if port.netdevs and device.protocol in ("roce", "") and port.link_layer in ("Ethernet", "")
        ),
        limits_reader(kernel, device),
        *devlink_readers(kernel, device),
        Configuration(kernel, device),
    )
    return tuple(reader for reader in readers if reader.source not in disabled)
