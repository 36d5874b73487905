"""The helper `roce-exporter tool namespaces`: visits network namespaces and reports their RDMA devices on a Unix socket.

It is the only part of the exporter that needs CAP_SYS_ADMIN, so it is a process of its own and as small as possible. It
reads nothing from a client: each connection gets one document and is closed. It visits at most once per `REST` seconds,
whatever the number of clients, and changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.host.kernel.network_namespace import list_namespaces, visit
from roce_exporter.host.sources.values import reason_of
from roce_exporter.surroundings.namespace_report import NamespaceReport, encode_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.host.kernel.network_namespace import Objects

LOG = logging.getLogger(__name__)

REST = 10.0
"""Least seconds between two rounds of visits."""
TIMEOUT = 2.0
"""Seconds after which a visit is given up."""
SEND_SECONDS = 5.0
"""Seconds that a client may take to read its document."""


class NamespaceHelper:
    """Reports the namespaces of one folder. Used from one event loop; `clock` returns monotonic seconds."""

    def __init__(
        self,
        folder: str,
        clock: Callable[[], float],
        visit_one: Callable[[str, str], Objects] = visit,
        timeout: float = TIMEOUT,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._visit = visit_one
        self._timeout = timeout
        self._in_flight: InFlight[str] = InFlight(clock)
        self._turn = asyncio.Lock()
        self._visited = -float("inf")
        self._document = b""

    async def document(self) -> bytes:
        """The document of the last round, or of a new one if that is `REST` seconds old."""
        async with self._turn:
            if self._clock() - self._visited >= REST:
                self._document = encode_report(await self._round())
                self._visited = self._clock()
            return self._document

    async def answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the document to a client and close the connection."""
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(SEND_SECONDS):
                writer.write(await self.document())
                await writer.drain()
        writer.close()

    async def _round(self) -> NamespaceReport:
        report = NamespaceReport({}, {})
        # One after another: namespaces come and go, and no round is urgent.
        for name in list_namespaces(self._folder):
            # A thread of its own, which ends after the visit: it cannot return to the first namespace.
            work = partial(self._visit, name, self._folder)
            try:
                devices = await call_in_worker(self._in_flight, name, work, self._timeout)
            except OSError as error:
                report.failed[name] = reason_of(error)
                continue
            report.devices.update({(name, device): objects for device, objects in devices.items()})
        return report


async def open_helper(helper: NamespaceHelper, path: str, group: int = -1) -> asyncio.Server:
    """Listen on a Unix socket that its owner and one group may use, and no other user.

    Raises:
        OSError: the socket cannot be made.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(helper.answer, path)
    finally:
        os.umask(before)
    if group >= 0:
        os.chown(path, -1, group)
        os.chmod(path, 0o660)
    return server
