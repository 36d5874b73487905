"""The exporter itself, served on loopback for the time of the demo."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.collect import Collector
from roce_exporter.demo.monitoring import LOOPBACK
from roce_exporter.exporter import Exporter
from roce_exporter.sampler import Sampler
from roce_exporter.web import Server
from roce_exporter.web.endpoints import Endpoints

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from roce_exporter.audit import Auditor
    from roce_exporter.collect import Settings
    from roce_exporter.kernel import Kernel

SUPERVISION = 0.5
"""Seconds between two questions whether the fast loop is held up by a device."""


class Exporting(NamedTuple):
    """An exporter that is being served."""

    address: str
    exporter: Exporter
    sampler: Sampler


@contextlib.asynccontextmanager
async def exporting(
    kernel: Kernel, settings: Settings, auditor: Auditor | None = None
) -> AsyncIterator[Exporting]:
    """An exporter of this host on a free port of loopback; at the end of the block it is closed."""
    collector = Collector(kernel, settings, time.monotonic)
    sampler = Sampler(kernel, time.monotonic, time.time)
    exporter = Exporter(collector, sampler, auditor)
    endpoints = Endpoints(exporter, "/metrics")
    server = Server(endpoints, None)
    (address,) = await server.start([f"{LOOPBACK}:0"])
    watching = asyncio.create_task(_supervise(sampler))
    sampler.start()
    try:
        await exporter.observe(settings.timeout)
        endpoints.ready = True
        yield Exporting(address, exporter, sampler)
    finally:
        watching.cancel()
        await server.close()
        sampler.close()
        collector.close()


async def _supervise(sampler: Sampler) -> None:
    while True:
        await asyncio.sleep(SUPERVISION)
        sampler.supervise()
