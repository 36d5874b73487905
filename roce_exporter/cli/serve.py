"""`roce-exporter serve`: metrics over HTTP until SIGTERM or SIGINT."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

from roce_exporter import __version__
from roce_exporter.assemble import assemble
from roce_exporter.background import background
from roce_exporter.cli.daemon import (
    READY,
    STOPPING,
    notify,
    report_alive,
    stop_event,
    watchdog_interval,
    web_config_of,
)
from roce_exporter.cli.flags import DEFAULT_PORT
from roce_exporter.cli.parts import parts_of
from roce_exporter.exposition import Format
from roce_exporter.web import Server
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages

if TYPE_CHECKING:
    import argparse

    from roce_exporter.exporter import Exporter
    from roce_exporter.host.kernel import Kernel

LOG = logging.getLogger(__name__)


async def serve(options: argparse.Namespace, kernel: Kernel) -> int:
    """Serve until SIGTERM or SIGINT."""
    stop = stop_event()
    web_config = web_config_of(options)
    exporter = assemble(kernel, parts_of(options))
    application = Application((HostPages(exporter),), telemetry_path=options.web_telemetry_path)
    server = Server(application, web_config, private=application.private)
    for address in await server.start(options.web_listen_address or [f":{DEFAULT_PORT}"]):
        LOG.info("roce_exporter %s listens on %s", __version__, address)
    try:
        async with background(
            _first_collection(exporter, application),
            server.accept(),
            *exporter.work(),
            report_alive(watchdog_interval()),
        ):
            await stop.wait()
            notify(STOPPING)
    finally:
        await server.close()
        exporter.close()
    return 0


async def _first_collection(exporter: Exporter, application: Application) -> None:
    observation = await exporter.observe()
    exporter.render(observation, Format.TEXT)
    application.ready = True
    gc.collect()
    gc.freeze()  # the plans are permanent, so later garbage collections can skip them
    LOG.info("ready: %d RDMA devices", len(observation.snapshot.devices))
    notify(READY)
