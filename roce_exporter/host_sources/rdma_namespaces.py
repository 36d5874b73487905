"""Which RDMA devices other network namespaces hide from this process, and what the helper reports of them."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import HIDDEN_DEVICES, NAMESPACE_OBJECTS, SHARED, UNVISITED
from roce_exporter.collect.rounds import Calls
from roce_exporter.host.kernel import Absent, Kernel
from roce_exporter.host_sources import HostSource
from roce_exporter.host_sources.namespace_helper import MOST_BYTES, NamespaceReport, decode_report
from roce_exporter.normalise.series import Series, Value

if TYPE_CHECKING:
    from roce_exporter.host.kernel.live import LiveKernel

FLAG = "--rdma.namespaces"
UVERBS = "class/infiniband_verbs"


class RdmaNamespaces(HostSource):
    """The mode of RDMA namespaces, and the devices of the others. `socket` is the helper's; empty without it."""

    source = "rdma_namespaces"

    def __init__(self, kernel: LiveKernel, socket: str, timeout: float = 5.0) -> None:
        self._kernel = kernel
        self._socket = socket
        self._call = Calls(timeout)

    async def read(self) -> Mapping[Series, Value]:
        """The mode, the number of devices that are not seen, and the objects of those that the helper sees.

        Raises:
            Absent: the kernel does not report the mode.
            OSError: netlink fails, or the helper does not answer; one line with the remedy.
        """
        shared = await self._call(self._kernel.rdma_namespaces_shared)
        found: dict[Series, Value] = {Series(SHARED, ()): int(shared)}
        if shared:
            return found | {Series(HIDDEN_DEVICES, ()): 0}
        everywhere = await self._call(lambda: devices_of_all_namespaces(self._kernel))
        visible = await self._call(lambda: {device.name for device in self._kernel.rdma_devices()})
        reported: set[str] = set()
        if self._socket:
            report = await self._report()
            reported = {device for _, device in report.devices}
            found |= {
                Series(NAMESPACE_OBJECTS, (namespace, device, kind)): number
                for (namespace, device), objects in sorted(report.devices.items())
                if device not in visible
                for kind, number in objects.items()
            }
            found[Series(UNVISITED, ())] = len(report.failed)
        if everywhere is not None:
            found[Series(HIDDEN_DEVICES, ())] = len(everywhere - visible - reported)
        return found

    async def _report(self) -> NamespaceReport:
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket)
        except OSError as error:
            why = f"{FLAG}={self._socket}: {os.strerror(error.errno or errno.EIO)}; is `roce-exporter tool namespaces` running?"
            raise OSError(error.errno or errno.EIO, why) from None
        try:
            document = bytearray()
            while len(document) <= MOST_BYTES and (part := await reader.read(65536)):
                document += part
            return decode_report(bytes(document))
        except ValueError as error:
            raise OSError(errno.EBADMSG, f"{FLAG}={self._socket}: {error}") from None
        finally:
            writer.close()


def devices_of_all_namespaces(kernel: Kernel) -> set[str] | None:
    """RDMA devices with a uverbs device, which the sysfs of every network namespace shows; None without ib_uverbs. OSError: sysfs fails."""
    try:
        nodes = kernel.entries(UVERBS)
    except Absent:
        return None
    named = set()
    for node in nodes:
        # `abi_version` is not a device, and a device may be removed meanwhile.
        with suppress(OSError):
            named.add(kernel.text(f"{UVERBS}/{node}/ibdev"))
    return named
