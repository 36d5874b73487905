"""Where values are. A source defines the location and the format of its values, but not their meaning.

A `Reader` is one source bound to one device. It is read from one worker thread at a time, opens its files on the first
read and keeps them open. Each value can fail independently.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from roce_exporter.host.kernel import Kernel
from roce_exporter.host.sources import hw_counters, netdev, state_files
from roce_exporter.host.sources.configuration import AGE, CONFIGURATION, configuration_reader
from roce_exporter.host.sources.devlink import devlink_readers
from roce_exporter.host.sources.ip_side import addresses_reader
from roce_exporter.model import IWARP, Device, Reading
from roce_exporter.words import word_list

NAMES = word_list(
    """
    port rdma_netlink hw_counters counters resources optional_counters pcie sensors delay_drop netdev ethtool dcb pause settings
    link fec ethernet transceiver mac_address virtual_functions addresses limits devlink devlink_info devlink_vnic configuration
    """
)
"""Every source, in the order in which a device's sources are read."""

SLOW = frozenset(
    word_list(
        """
        settings transceiver mac_address virtual_functions addresses limits configuration devlink devlink_info devlink_vnic
        """
    )
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
    statistics = hw_counters.statistics_reader(kernel, device)
    readers: tuple[Reader, ...] = (
        state_files.port_reader(kernel, device),
        statistics,
        hw_counters.HardwareCounters(kernel, device, statistics.reported),
        hw_counters.counters_reader(kernel, device),
        hw_counters.resources_reader(kernel, device),
        hw_counters.optional_counters_reader(kernel, device),
        state_files.pcie_reader(kernel, device),
        state_files.sensors_reader(kernel, device),
        state_files.delay_drop_reader(kernel, device),
        *netdev.netdev_readers(kernel, device),
        *(
            addresses_reader(kernel, device.name, port)
            for port in device.ports
            if port.netdevs and device.protocol in ("roce", IWARP, "") and port.link_layer in ("Ethernet", "")
        ),
        hw_counters.limits_reader(kernel, device),
        *devlink_readers(kernel, device),
        configuration_reader(kernel, device),
    )
    return tuple(reader for reader in readers if reader.source not in disabled)
