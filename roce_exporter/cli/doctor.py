"""`roce-exporter doctor`: on a new host, what is found, what is missing, and whether anything watches it."""

from __future__ import annotations

import platform
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.assemble import assemble
from roce_exporter.checks.setup.access_checkup import check_clock, check_privileges
from roce_exporter.checks.setup.checkup_item import CheckupItem, Status, Topic, is_fit
from roce_exporter.checks.setup.checkup_report import JSON, checkup_json, checkup_text
from roce_exporter.checks.setup.host_checkup import check_samples
from roce_exporter.checks.setup.scrape_checkup import (
    check_local,
    check_samples_arrive,
    check_targets,
    instance_of,
)
from roce_exporter.cli.diagnose import check_prometheus_options, prometheus_access
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import print_text
from roce_exporter.cli.parts import open_kernel, parts_of
from roce_exporter.host.kernel.clock_state import read_clock_state
from roce_exporter.host.kernel.privileges import read_privileges
from roce_exporter.net import NetError
from roce_exporter.net.http import parse_server
from roce_exporter.net.local_exporter import read_local_scrapes
from roce_exporter.net.prometheus_api import LOGIN_REMEDY, get
from roce_exporter.view.history import timed_samples

if TYPE_CHECKING:
    import argparse

    from roce_exporter.host.kernel import Kernel

ATTENTION = 1
"""Exit code if something needs attention."""

PATIENCE = 30.0
"""Seconds that one request may take."""


async def check_host(options: argparse.Namespace) -> int:
    """Print the page; returns 1 if something needs attention.

    Raises:
        OptionError: there is no such host, or Prometheus cannot be queried.
    """
    check_prometheus_options(options)
    kernel = open_kernel(options)
    items = await _of_samples(options, kernel)
    if _is_here(options):
        items += (*check_privileges(read_privileges()), _clock())
    items += await _scraping(options, kernel)
    source = _source(options)
    print_text((checkup_json if options.format == JSON else checkup_text)(items, source))
    return 0 if is_fit(items) else ATTENTION


def _is_here(options: argparse.Namespace) -> bool:
    return not (options.host_recording or options.host_simulate)


def _source(options: argparse.Namespace) -> str:
    if options.host_recording:
        return f"Recording {options.host_recording}"
    if options.host_simulate:
        return f"Simulated host {options.host_simulate}"
    return f"This host, Linux {platform.release()}"


async def _of_samples(options: argparse.Namespace, kernel: Kernel) -> tuple[CheckupItem, ...]:
    with closing(
        assemble(kernel, replace(parts_of(options), pace=None, owners=None, health=False))
    ) as exporter:
        observation = await exporter.observe_complete()
    devices = [found.device for found in observation.snapshot.devices]
    return check_samples(timed_samples(observation.samples, time.time()), devices)


def _clock() -> CheckupItem:
    try:
        return check_clock(read_clock_state())
    except OSError as error:
        return check_clock(None, error.strerror or str(error))


async def _scraping(options: argparse.Namespace, kernel: Kernel) -> tuple[CheckupItem, ...]:
    if options.prometheus:
        return await _in_prometheus(options, kernel)
    return (await _local(options),) if _is_here(options) else ()


async def _local(options: argparse.Namespace) -> CheckupItem:
    try:
        server = parse_server(options.exporter, "remove them")
    except NetError as error:
        raise OptionError(f"--exporter: {error}") from None
    if server.tls:
        text = f"The exporter at {server.text} uses TLS, so whether it was scraped is not checked."
        return CheckupItem(Topic.SCRAPING, Status.UNKNOWN, text, "--prometheus=URL")
    try:
        found = await read_local_scrapes(server, PATIENCE)
    except NetError as error:
        return check_local(None, server.text, time.time(), str(error))
    return check_local(found, server.text, time.time())


async def _in_prometheus(options: argparse.Namespace, kernel: Kernel) -> tuple[CheckupItem, ...]:
    try:
        server = parse_server(options.prometheus, LOGIN_REMEDY)
    except NetError as error:
        raise OptionError(f"--prometheus: {error}") from None
    try:
        ask = partial(get, server, await prometheus_access(options))
        targets = await ask("targets", {"state": "active"}, PATIENCE)
        hostname = _hostname(kernel)
        items = tuple(check_targets(targets, options.instance, hostname, server.text))
        if not (instance := instance_of(targets, options.instance, hostname)):
            return items
        query = {"query": f'roce_exporter_devices{{instance="{_escaped(instance)}"}}'}
        found = await ask("query", query, PATIENCE)
        return (*items, check_samples_arrive(found, instance))
    except NetError as error:
        raise OptionError(f"Prometheus at {server.text}: {error}") from None
    except TimeoutError:
        raise OptionError(f"Prometheus at {server.text}: no answer in {PATIENCE:g} s") from None


def _hostname(kernel: Kernel) -> str:
    try:
        return kernel.hostname()
    except OSError:
        return ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
