"""The virtual functions (VFs) of each network device with SR-IOV: traffic, settings, and which device each of them is.

A VF's own counters are on the VF, which may be in a pod's network namespace or in a virtual machine. The physical function
counts each VF's packets and drops as well, and it is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.sources.values import make_reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.host.kernel.rtnetlink import VirtualFunction
    from roce_exporter.model import Reading


class VirtualFunctions:
    """The VFs of one network device. Names are `VF NAME`; which device a VF is, is a name with the value 1."""

    source = "virtual_functions"
    quarantined = 0

    def __init__(self, kernel: Kernel, device: str, port: int, netdev: str) -> None:
        self.netdev = netdev
        self._kernel = kernel
        self._device = device
        self._port = port
        self._names: tuple[str, ...] = ()
        self._counts = False
        """Whether the driver counts. The kernel reports 0 for a driver that does not."""

    def read(self, now: float) -> tuple[Reading, ...]:  # noqa: ARG002 - a reader's signature; nothing here waits
        """One reading.

        Raises:
            Absent: the network device has no VFs.
            OSError: as raised by the kernel.
        """
        found = self._kernel.virtual_functions(self.netdev)
        self._counts = self._counts or any(any(one.counts.values()) for one in found)
        numbers = dict(self._numbers(found))
        if self._names != tuple(numbers):
            self._names = tuple(numbers)
        values = tuple(numbers.values())
        return (make_reading(self.source, self._device, self._port, self._names, values, netdev=self.netdev),)

    def _numbers(self, found: Sequence[VirtualFunction]) -> Iterator[tuple[str, int]]:
        for one in found:
            yield f"{one.number} {one.mac} {self._identity(one.number)}", 1
            values: Mapping[str, int] = {**one.settings, **(one.counts if self._counts else {})}
            for name, value in values.items():
                yield f"{one.number} {name}", value

    def _identity(self, number: int) -> str:
        """PCI address and RDMA device of a VF; each is empty if it is not visible here."""
        function = f"class/net/{self.netdev}/device/virtfn{number}"
        try:
            pci = self._kernel.link(function)
        except OSError:
            return " "
        try:
            devices = self._kernel.entries(f"{function}/infiniband")
        except OSError:
            devices = ()
        return f"{pci} {devices[0] if len(devices) == 1 else ''}"

    def close(self) -> None:
        pass  # nothing is open
