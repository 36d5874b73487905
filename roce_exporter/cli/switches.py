"""`roce-exporter switches`: metrics of switches over HTTP until SIGTERM or SIGINT.

A process of its own, so that credentials of switches are on no host of the cluster.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from roce_exporter import __version__
from roce_exporter.background import background
from roce_exporter.cli.check_switches import make_prober
from roce_exporter.cli.daemon import (
    READY,
    STOPPING,
    notify,
    report_alive,
    stop_event,
    watchdog_interval,
    web_config_of,
)
from roce_exporter.cli.flags import SWITCHES_PORT
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.web import Server
from roce_exporter.web.application import Application
from roce_exporter.web.switch_pages import SwitchPages

if TYPE_CHECKING:
    import argparse

    from roce_exporter.switches.probe import Prober

LOG = logging.getLogger(__name__)


async def switches(options: argparse.Namespace) -> int:
    """Serve probes.

    Raises:
        UserError: the configuration file is missing or invalid, or a package is not installed.
    """
    prober = make_prober(options.config_file, everything=False)
    try:
        return await _serve(options, prober)
    finally:
        await prober.close()


async def _serve(options: argparse.Namespace, prober: Prober) -> int:
    stop = stop_event()
    registry = OwnRegistry()
    application = Application((SwitchPages(prober, registry),), registry)
    server = Server(application, web_config_of(options), private=application.private)
    try:
        for address in await server.start(options.web_listen_address or [f":{SWITCHES_PORT}"]):
            LOG.info("roce_exporter %s listens on %s for probes of switches", __version__, address)
        async with background(server.accept(), report_alive(watchdog_interval())):
            application.ready = True
            notify(READY)
            await stop.wait()
            notify(STOPPING)
    finally:
        await server.close()
    return 0
