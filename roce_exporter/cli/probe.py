"""`roce-exporter probe`: active probes between RoCE ports, with metrics over HTTP, until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import logging
import shutil
import time
from collections import Counter
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path

from roce_exporter.assemble import Parts, assemble
from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.finding import NotChecked, Report, Status
from roce_exporter.checks.report import EXIT_CODES, JSON
from roce_exporter.cli.check import show
from roce_exporter.cli.check_host import asking, client_access
from roce_exporter.cli.flags import PROBE_PORT
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import complain, print_document, print_text, progress
from roce_exporter.cli.parts import collect_settings
from roce_exporter.cli.serve import ServedPart, serve_parts
from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.host.inventory import describe, list_devices
from roce_exporter.host.kernel import Kernel
from roce_exporter.net.http import Access
from roce_exporter.probe import bandwidth
from roce_exporter.probe.plan import Network, ProbeTarget, plan
from roce_exporter.probe.service import REFRESH, ProbeService, ProbeSettings
from roce_exporter.probe.target_source import TargetsError, is_remote, read_here, read_remote
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.view.host_view import timed_samples
from roce_exporter.web.application import SampledSection, json_page
from roce_exporter.words import counted, table

LOG = logging.getLogger(__name__)

SHORTEST_KEY, LONGEST_KEY = 16, 4096
TIMEOUT = 10.0  # seconds that a list of targets or the devices may take to read
ALL = "all"
LOAD_SECONDS = 1.0
"""Over which the traffic of the own ports is measured: some drivers refresh their counters once a second."""


async def probe(options: argparse.Namespace, kernel: Kernel) -> int:
    """Probe until stopped, or print a plan. Raises UserError: an option is invalid, or a list of targets cannot be read at the start."""
    in_flight: InFlight[str] = InFlight(time.monotonic)
    with asking("--http.config.file"):
        read = partial(_read_targets, options.probe_targets, await client_access(options), in_flight)
    targets = await read()
    if options.bandwidth:
        return await _measure_bandwidth(options, kernel, targets)
    if host := _planned(options):
        return _print_plan(host, targets, as_json=options.format == JSON)
    service = ProbeService(_settings(options), read, time.monotonic)

    async def follow() -> None:
        """Follow the ports of this host. While they cannot be read the last ones hold."""
        try:
            devices = await call_in_worker(
                in_flight,
                "devices",
                lambda: tuple(describe(kernel, one) for one in list_devices(kernel)),
                TIMEOUT,
            )
            service.follow(devices)
        except (TimeoutError, RuntimeError, OSError) as error:
            LOG.warning("probe: the RDMA devices cannot be read: %s", error)

    async def follow_on() -> None:
        while True:
            await asyncio.sleep(REFRESH)
            await follow()

    async def begin() -> None:
        await follow()
        await service.refresh()
        if service.own_ports:
            LOG.info("probe: %s", counted(len(service.targets), "target"))
        else:
            LOG.warning("probe: no RoCE port with an address yet, so nothing is sent and nothing is answered")

    title = "what is sent in each burst, as JSON"
    page = json_page("/debug/probe-plan", lambda: _plan_document(service), title)
    part = ServedPart(
        SampledSection("Active probes between RoCE ports", page, service.samples),
        lambda: (service.run(), follow_on()),
        begin,
    )
    async with AsyncExitStack() as stack:
        stack.callback(service.close)
        return await serve_parts(options, [part], OwnRegistry(), stack, PROBE_PORT)


def _planned(options: argparse.Namespace) -> str:
    """The host whose plan is printed; empty: none."""
    match options.plan:
        case []:
            return str(options.probe_plan or "")
        case ["plan", host]:
            return str(host)
    raise OptionError(f"probe {' '.join(options.plan)}: give `probe plan` one HOST, or no word to `probe`")


async def _measure_bandwidth(
    options: argparse.Namespace, kernel: Kernel, targets: tuple[ProbeTarget, ...]
) -> int:
    if not shutil.which(bandwidth.PROGRAM):
        raise OptionError(
            f"--bandwidth: {bandwidth.PROGRAM} is not installed; as root: apt-get install perftest, or dnf install perftest"
        )
    parts = Parts(
        collect_settings(options), profile=None, pace=None, owners=None, kernel_log=False, health=False
    )
    moments = []
    with closing(assemble(kernel, parts)) as exporter:
        for pause in (LOAD_SECONDS, 0.0):
            seen = await exporter.observe_complete()
            moments.append(timed_samples(seen.samples, time.monotonic()))
            await asyncio.sleep(pause)
    devices = [one.device for one in seen.snapshot.devices]
    pairing = bandwidth.pair_rails(devices, targets, options.bandwidth)
    if not pairing.peer:
        gap = NotChecked("this host: the number of hosts is odd, and it is the last of the list")
        return show(Report((), (gap,)), "Bandwidth of this host", as_json=options.format == JSON)
    loads = bandwidth.port_loads(pairing.rails, tuple(moments))
    async with progress(f"measuring to {pairing.peer}"):
        report = bandwidth.bandwidth_report(
            await bandwidth.measure(pairing, bandwidth.busy_rails(loads)), loads
        )
    return show(report, f"Bandwidth of this host to {pairing.peer}", as_json=options.format == JSON)


def _plan_document(service: ProbeService) -> object:
    return {
        str(own.address): [
            {"target": str(one.target.address), "host": one.target.name, "path": one.path, "scope": one.scope}
            for one in probes
        ]
        for own, probes in service.plans.items()
    }


async def _read_targets(
    sources: list[str], access: Access, in_flight: InFlight[str]
) -> tuple[ProbeTarget, ...]:
    found: dict[ProbeTarget, None] = {}
    for source in sources:
        if is_remote(source):
            found |= dict.fromkeys(await read_remote(source, access))
            continue
        try:
            read = partial(read_here, source)
            found |= dict.fromkeys(await call_in_worker(in_flight, source, read, TIMEOUT))
        except (TimeoutError, RuntimeError) as error:
            raise TargetsError(f"{source}: cannot be read: {error}") from None
    return tuple(found)


def _settings(options: argparse.Namespace) -> ProbeSettings:
    return ProbeSettings(
        key=_key(options.probe_key_file),
        allowed=_networks(options.probe_allow),
        roce_dscp=options.probe_roce_dscp,
        cnp_dscp=options.probe_cnp_dscp,
        whole=MetricSet(options.metrics_set) is MetricSet.FULL,
    )


def _key(path: str) -> bytes:
    if not path:
        return b""
    try:
        with Path(path).open("rb") as file:
            key = file.read(LONGEST_KEY + 1).strip()
    except OSError as error:
        raise OptionError(f"probe.key-file={path}: {error.strerror or error}") from None
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise OptionError(
            f"probe.key-file={path}: has {len(key)} characters; a key needs at least {SHORTEST_KEY} "
            f"and at most {LONGEST_KEY}, for example from `openssl rand -hex 32`"
        )
    return key


def _networks(texts: list[str]) -> tuple[Network, ...]:
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise OptionError(
                f"probe.allow={text}: is no network; write it as 10.0.0.0/16 or fd00::/64"
            ) from None
    return tuple(found)


def _print_plan(host: str, targets: tuple[ProbeTarget, ...], *, as_json: bool) -> int:
    """What a host of the list sends now. Every host computes the same plan from the same list."""
    if not targets:
        raise OptionError("probe plan needs --probe.targets=SOURCE, a list with ports")
    own = [one for one in targets if host in (ALL, one.host, str(one.address))]
    if not own:
        raise OptionError(
            f"probe plan {host}: is not in the list; use a host or an address of it, or `{ALL}`"
        )
    rows = Counter(
        (one.host, str(one.address), one.rail, sent.target.host, str(sent.target.address), sent.scope)
        for one in own
        for sent in plan(one, targets, time.time())
    )
    names = ("from", "from_address", "rail", "to", "to_address", "scope", "paths")
    alone = "" if rows else f"{host} sends nothing: no other port of its rail is in the list"
    if as_json:
        plans = [dict(zip(names, (*key, count), strict=True)) for key, count in rows.items()]
        unseen = [{"what": alone, "needed": True}] * bool(alone)
        print_document({"version": 1, "plan": plans, "not_checked": unseen})
    elif alone:
        complain(alone)
    else:
        shown = [[name.upper() for name in names], *((*key, str(count)) for key, count in rows.items())]
        print_text("\n".join(table(shown, right=(len(names) - 1,))) + "\n")
    return EXIT_CODES[Status.UNKNOWN] if alone else 0
