"""`roce-exporter serve`: metrics over HTTP until SIGTERM or SIGINT."""

from __future__ import annotations

import gc
import logging
import time
from typing import TYPE_CHECKING

from roce_exporter import __version__
from roce_exporter.background import background, supervise
from roce_exporter.checks.health import HEALTH
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.checks.settings import Auditor, load_profile
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
from roce_exporter.cli.parts import (
    collect_settings,
    make_surroundings,
    make_surveyor,
    sampler_pace,
    served_series,
    storm_limits,
)
from roce_exporter.collect import Collector
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.fastloop import Sampler
from roce_exporter.web import Server
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages

if TYPE_CHECKING:
    import argparse

    from roce_exporter.host.kernel import Kernel

LOG = logging.getLogger(__name__)

SUPERVISION = 0.5
"""Seconds between two checks for a fast loop that is stuck on a device."""


async def serve(options: argparse.Namespace, kernel: Kernel) -> int:
    """Serve until SIGTERM or SIGINT."""
    stop = stop_event()
    web_config = web_config_of(options)
    auditor = Auditor(load_profile(options.audit_profile))
    collector = Collector(kernel, collect_settings(options), time.monotonic)
    sampler = Sampler(
        kernel.with_cached_names(), time.monotonic, time.time, sampler_pace(options), storm_limits(options)
    )
    surveyor = make_surveyor(options, kernel)
    surroundings = make_surroundings(options, kernel)
    health = None if HEALTH in options.source_disable else HealthWatch(time.monotonic, time.time)
    exporter = Exporter(
        collector, sampler, auditor, surveyor, surroundings, health=health, served=served_series(options)
    )
    application = Application((HostPages(exporter),), telemetry_path=options.web_telemetry_path)
    server = Server(application, web_config, private=application.private)
    for address in await server.start(options.web_listen_address or [f":{DEFAULT_PORT}"]):
        LOG.info("roce_exporter %s listens on %s", __version__, address)
    try:
        sampler.start()
        async with background(
            _first_collection(exporter, application),
            server.accept(),
            _supervise(sampler),
            exporter.follow(),
            *((surveyor.run(),) if surveyor else ()),
            surroundings.run(),
            *((health.run(exporter.observe),) if health else ()),
            report_alive(watchdog_interval()),
        ):
            await stop.wait()
            notify(STOPPING)
    finally:
        await server.close()
        sampler.close()
        collector.close()
        surroundings.close()
    return 0


async def _first_collection(exporter: Exporter, application: Application) -> None:
    observation = await exporter.observe()
    exporter.render(observation, Format.TEXT)
    application.ready = True
    gc.collect()
    gc.freeze()  # the plans are permanent, so later garbage collections can skip them
    LOG.info("ready: %d RDMA devices", len(observation.snapshot.devices))
    notify(READY)


async def _supervise(sampler: Sampler) -> None:
    await supervise(sampler, SUPERVISION)
