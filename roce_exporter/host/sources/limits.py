"""The limits of a device: how many objects of a kind it can have at once, by the names of `ibv_devinfo`."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.values import check_netlink, make_reading
from roce_exporter.model import WHOLE_DEVICE

if TYPE_CHECKING:
    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device, Reading


class Limits:
    """Read until it succeeds once: limits do not change, and reading them opens a context on the device."""

    source = "limits"
    netdev = ""
    quarantined = 0

    def __init__(self, kernel: Kernel, device: Device) -> None:
        self._kernel = kernel
        self._device = device
        self._readings: tuple[Reading, ...] = ()

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading for the whole device.

        Raises:
            Absent: nothing here reports them, or the option that permits it is not set.
            OSError: the device cannot be opened, or its driver refuses.
        """
        if not self._readings:
            check_netlink(self._device)
            if self._device.netlink is None:
                raise Absent(errno.ENODEV, "not in RDMA netlink", self._device.name)
            found = self._kernel.object_limits(self._device.netlink)
            values = tuple(found.values())
            self._readings = (
                make_reading(self.source, self._device.name, WHOLE_DEVICE, tuple(found), values),
            )
        return self._readings

    def close(self) -> None:
        pass  # nothing is open
