"""Other information from RDMA netlink than counters: objects in use and their limits, and which optional counters are on.

RDMA_NLDEV_CMD_RES_GET (kernel 4.17) and RDMA_NLDEV_CMD_STAT_GET_STATUS (kernel 5.16), both unprivileged.
"""

from __future__ import annotations

import errno
from functools import cache
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.query_reader import NetlinkPorts, QueryReader, netlink_of
from roce_exporter.model import WHOLE_DEVICE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, RdmaDevice

RESOURCES = "resources"
OPTIONAL_COUNTERS = "optional_counters"
LIMITS = "limits"


def resources_reader(kernel: Kernel, device: Device) -> QueryReader[Mapping[str, int]]:
    """Queue pairs, completion queues, memory regions and the like that are in use on one device."""
    return QueryReader(
        RESOURCES, lambda: kernel.rdma_resources(netlink_of(device)), device.name, WHOLE_DEVICE, numbers=dict
    )


def limits_reader(kernel: Kernel, device: Device) -> QueryReader[Mapping[str, int]]:
    """How many objects of a kind a device can have at once, by the names of `ibv_devinfo`.

    Read until it succeeds once: limits do not change, and reading them opens a context on the device.
    """
    once = cache(lambda: kernel.object_limits(netlink_of(device)))
    return QueryReader(LIMITS, once, device.name, WHOLE_DEVICE, numbers=dict)


def optional_counters_reader(kernel: Kernel, device: Device) -> NetlinkPorts:
    """Which optional counters the ports of one device have, and whether each is on: 1 or 0."""

    def states(netlink: RdmaDevice, port: int) -> Mapping[str, int]:
        found = kernel.rdma_optional_counters(netlink, port)
        if not found:
            raise Absent(errno.EOPNOTSUPP, "no optional counters", device.name)
        return {name: int(on) for name, on in found.items()}

    return NetlinkPorts(OPTIONAL_COUNTERS, states, device, missing="no optional counters")
