"""The setup of this host: privileges, clock, and whether anything scrapes it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.checks.finding import NotChecked
from roce_exporter.checks.setup import (
    check_clock,
    check_local,
    check_privileges,
    check_samples_arrive,
    check_targets,
    instance_of,
)
from roce_exporter.cli.check_host import client_access, exporter_place
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.parts import open_kernel
from roce_exporter.host.kernel.privileges import read_clock_state, read_privileges
from roce_exporter.net import NetError
from roce_exporter.net.http import parse_server
from roce_exporter.net.prometheus_api import LOGIN_REMEDY, get
from roce_exporter.view.from_exporter import parse_scrapes, read_metrics
from roce_exporter.view.from_prometheus import escaped

if TYPE_CHECKING:
    import argparse

    from roce_exporter.checks.finding import Finding
    from roce_exporter.host.kernel import Kernel

PATIENCE = 30.0
"""Seconds that one request may take."""


async def check_access(options: argparse.Namespace) -> list[Finding | NotChecked]:
    """Privileges and clock of this host, and whether anything scrapes the host.

    Raises:
        OptionError: Prometheus cannot be queried.
    """
    here = not (options.host_recording or options.host_simulate)
    found: list[Finding | NotChecked] = [*check_privileges(read_privileges()), _clock()] if here else []
    if options.prometheus:
        found += await _in_prometheus(options, open_kernel(options))
    elif here:
        found.append(await _local(options))
    return found


def _clock() -> Finding | NotChecked:
    try:
        return check_clock(read_clock_state())
    except OSError as error:
        return check_clock(None, error.strerror or str(error))


async def _local(options: argparse.Namespace) -> Finding | NotChecked:
    place = exporter_place(options)
    try:
        text = await read_metrics(place, await client_access(options), PATIENCE)
    except NetError as error:
        if place.server.tls:
            return NotChecked(f"scrapes: the exporter at {place.text}: {error}")
        return check_local(None, place.text, time.time(), str(error))
    return check_local(parse_scrapes(text), place.text, time.time())


async def _in_prometheus(options: argparse.Namespace, kernel: Kernel) -> tuple[Finding | NotChecked, ...]:
    try:
        server = parse_server(options.prometheus, LOGIN_REMEDY)
    except NetError as error:
        raise OptionError(f"--prometheus: {error}") from None
    try:
        ask = partial(get, server, await client_access(options))
        targets = await ask("targets", {"state": "active"}, PATIENCE)
        hostname = _hostname(kernel)
        items = tuple(check_targets(targets, options.target, hostname, server.text))
        if not (instance := instance_of(targets, options.target, hostname)):
            return items
        query = {"query": f'roce_exporter_devices{{instance="{escaped(instance)}"}}'}
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
