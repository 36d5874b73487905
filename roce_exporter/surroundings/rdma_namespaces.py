"""Which RDMA devices other network namespaces hide from this process, and what the helper reports of them."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Protocol, TypeVar

from roce_exporter.catalog.namespaces import HIDDEN_DEVICES, NAMESPACE_OBJECTS, SHARED, UNVISITED
from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.kernel import Absent, Kernel
from roce_exporter.normalise.series import Series
from roce_exporter.surroundings.namespace_report import MOST_BYTES, decode_report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roce_exporter.normalise.series import Value
    from roce_exporter.surroundings.namespace_report import NamespaceReport

T = TypeVar("T")

FLAG = "--rdma.namespaces"

UVERBS = "class/infiniband_verbs"


class NamespaceKernel(Kernel, Protocol):
    """A host that has a mode of RDMA namespaces."""

    def rdma_namespaces_shared(self) -> bool:
        """Whether all network namespaces see all RDMA devices.

        Raises:
            Absent: the kernel does not report it.
        """


class RdmaNamespaces:
    """The mode of RDMA namespaces, and the devices of the others. `socket` is the helper's; empty without it."""

    source = "rdma_namespaces"

    def __init__(
        self, kernel: NamespaceKernel, socket: str, clock: Callable[[], float], patience: float = 5.0
    ) -> None:
        self._kernel = kernel
        self._socket = socket
        self._patience = patience
        self._in_flight: InFlight[str] = InFlight(clock)

    async def read(self) -> Mapping[Series, Value]:
        """The mode, the number of devices that are not seen, and the objects of those that the helper sees.

        Raises:
            Absent: the kernel does not report the mode.
            OSError: netlink fails, or the helper does not answer; one line with the remedy.
        """
        shared = await self._call(self._kernel.rdma_namespaces_shared)
        found: dict[Series, Value] = {Series(SHARED, ()): int(shared)}
        hidden = await self._call(lambda: hidden_devices(self._kernel))
        if self._socket and not shared:
            report = await self._report()
            found |= _objects(report, hidden)
            found[Series(UNVISITED, ())] = len(report.failed)
            hidden -= {device for _, device in report.devices}
        found[Series(HIDDEN_DEVICES, ())] = len(hidden)
        return found

    async def _call(self, work: Callable[[], T]) -> T:
        return await call_in_worker(self._in_flight, self.source, work, self._patience)

    async def _report(self) -> NamespaceReport:
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket)
        except OSError as error:
            why = f"{FLAG}={self._socket}: {os.strerror(error.errno or errno.EIO)}; is `roce-exporter namespaces` running?"
            raise OSError(error.errno or errno.EIO, why) from None
        try:
            return decode_report(await _read_document(reader))
        except ValueError as error:
            raise OSError(errno.EBADMSG, f"{FLAG}={self._socket}: {error}") from None
        finally:
            writer.close()


async def _read_document(reader: asyncio.StreamReader) -> bytes:
    document = bytearray()
    while len(document) <= MOST_BYTES and (part := await reader.read(65536)):
        document += part
    return bytes(document)


def hidden_devices(kernel: NamespaceKernel) -> set[str]:
    """RDMA devices with a uverbs device, which all namespaces show, that RDMA netlink does not list here.

    Raises:
        OSError: netlink fails.
    """
    try:
        nodes = kernel.entries(UVERBS)
    except Absent:
        return set()
    named = set()
    for node in nodes:
        try:
            named.add(kernel.text(f"{UVERBS}/{node}/ibdev"))
        except OSError:
            continue  # not a device (`abi_version`), or removed meanwhile
    return named - {device.name for device in kernel.rdma_devices()}


def _objects(report: NamespaceReport, hidden: set[str]) -> dict[Series, Value]:
    return {
        Series(NAMESPACE_OBJECTS, (namespace, device, kind)): number
        for (namespace, device), objects in sorted(report.devices.items())
        if device in hidden
        for kind, number in objects.items()
    }
