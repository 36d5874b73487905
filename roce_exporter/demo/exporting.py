"""The exporter itself, served on loopback for the time of the demo."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.background import background, supervise
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
"""Seconds between two checks whether the fast loop waits for a device."""


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
    try:
        sampler.start()
        async with background(server.accept(), supervise(sampler, SUPERVISION), exporter.follow()):
            await exporter.observe()
            endpoints.ready = True
            yield Exporting(address, exporter, sampler)
    finally:
        await server.close()
        sampler.close()
        collector.close()
