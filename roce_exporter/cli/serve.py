"""`roce-exporter serve`: metrics over HTTP until SIGTERM or SIGINT.

One daemon and one web server for the parts that the options select: this host, switches, packets on the wire. Credentials of switches need
not be on a host of the cluster: with `--no-host` the daemon runs anywhere.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter import __version__
from roce_exporter.catalog.named import TLS
from roce_exporter.cli import daemon
from roce_exporter.cli.flags import DEFAULT_PORT
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import complain
from roce_exporter.collect.rounds import background
from roce_exporter.errors import UserError
from roce_exporter.exposition import Format
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.web import Server
from roce_exporter.web.application import LEAST_INTERVAL, Application, SampledSection, Section, json_page
from roce_exporter.words import counted

if TYPE_CHECKING:
    import argparse

    from roce_exporter.wire.wire_session import WireSession

MOST_PAIRS_SHOWN = 1000  # pairs at /debug/wire
LOG = logging.getLogger(__name__)

ENDED = 1  # exit code of a daemon that serves packets only, when no more will come


class ServedPart(NamedTuple):
    """One part of the daemon."""

    section: Section
    work: Callable[[], Iterable[Coroutine[object, object, None]]] = tuple
    """What runs as long as the daemon."""
    begin: Callable[[], Awaitable[None]] | None = None
    """What must be done before the part is ready."""


class InputEndedError(Exception):
    """The only part has ended: one line that says why."""


async def serve(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT. Raises UserError: a part cannot be opened, or an address is not free."""
    registry = OwnRegistry()
    async with AsyncExitStack() as stack:
        parts: list[ServedPart] = []
        if not options.no_host:
            parts.append(_host(options, stack))
        if options.switches_config:
            parts.append(_switches(options, registry, stack))
        if options.wire_interface or options.wire_file:
            parts.append(await _wire(options, stack, is_alone=not parts))
        if not parts:
            raise OptionError(
                "--no-host leaves nothing to serve; add --switches.config=FILE or --wire.interface=DEV"
            )
        return await serve_parts(options, parts, registry, stack)


async def serve_parts(
    options: argparse.Namespace,
    parts: list[ServedPart],
    registry: OwnRegistry,
    stack: AsyncExitStack,
    port: int = DEFAULT_PORT,
) -> int:
    """Serve the pages of these parts until SIGTERM or SIGINT; `stack` closes the server before the parts.

    Raises:
        UserError: the web config file is invalid, or an address is not free.
    """
    stop = daemon.stop_event()

    async def begin() -> None:
        for part in parts:
            if part.begin:
                await part.begin()
        application.ready = True
        daemon.notify(daemon.READY)

    application = Application(
        [part.section for part in parts], registry, telemetry_path=options.web_telemetry_path
    )
    web_config = daemon.web_config_of(options)
    if web_config and (await web_config.current()).tls:
        registry.gauge(TLS, lambda: 1)
    server = Server(application, web_config, private=application.private)
    stack.push_async_callback(server.close)
    for address in await server.start(options.web_listen_address or [f":{port}"]):
        LOG.info("roce_exporter %s listens on %s", __version__, address)
    try:
        async with background(
            begin(),
            server.accept(),
            *(work for part in parts for work in part.work()),
            daemon.report_alive(daemon.watchdog_interval()),
        ):
            await stop.wait()
            daemon.notify(daemon.STOPPING)
    except InputEndedError as error:
        complain(str(error))
        return ENDED
    return 0


def _host(options: argparse.Namespace, stack: AsyncExitStack) -> ServedPart:
    # A daemon without a host needs none of these modules.
    from roce_exporter.assemble import assemble  # noqa: PLC0415
    from roce_exporter.cli.parts import open_kernel, parts_of  # noqa: PLC0415
    from roce_exporter.web.host_pages import HostPages  # noqa: PLC0415

    exporter = assemble(open_kernel(options), parts_of(options))
    stack.callback(exporter.close)

    async def begin() -> None:
        observation = await exporter.observe()
        exporter.render(observation, Format.TEXT)
        gc.collect()
        gc.freeze()  # the plans are permanent, so later garbage collections can skip them
        if devices := observation.snapshot.devices:
            LOG.info("ready: %s", counted(len(devices), "RDMA device"))
        else:
            LOG.warning(
                "ready: no RDMA device yet; new ones are found as they appear, and `roce-exporter check setup` says why"
            )

    return ServedPart(HostPages(exporter, options.collect_min_interval), exporter.work, begin)


def _switches(options: argparse.Namespace, registry: OwnRegistry, stack: AsyncExitStack) -> ServedPart:
    # A host without switches needs none of these modules.
    from roce_exporter.switches.probe import Prober  # noqa: PLC0415
    from roce_exporter.switches.targets import read_switches_file  # noqa: PLC0415
    from roce_exporter.web.switch_pages import SwitchPages  # noqa: PLC0415

    prober = Prober(read_switches_file(options.switches_config))
    stack.push_async_callback(prober.close)
    # A collection of the million objects of a large switch would hold every thread, and find nothing: none is in a cycle.
    stack.callback(gc.set_threshold, *gc.get_threshold())
    gc.set_threshold(*gc.get_threshold()[:2], 1000)

    def reload() -> None:
        try:
            prober.reload(read_switches_file(options.switches_config))
        except UserError as error:
            LOG.error("SIGHUP: nothing has changed, because %s", error)  # noqa: TRY400 - it has its line
        else:
            LOG.info("SIGHUP: %s was read again", options.switches_config)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)
    return ServedPart(SwitchPages(prober, registry))


async def _wire(options: argparse.Namespace, stack: AsyncExitStack, *, is_alone: bool) -> ServedPart:
    # A daemon without packets needs none of these modules.
    from roce_exporter.cli.wire import STANDARD_INPUT, begin_session  # noqa: PLC0415

    file = options.wire_file
    session, ended = await begin_session(options, options.wire_interface, file, options.wire_top)
    stack.callback(session.stop)

    async def watch() -> None:
        await ended.wait()
        session.check()
        if file not in ("", STANDARD_INPUT) and not session.fault:
            LOG.info("%s is read; its counts are served until the process is stopped", file)
            return
        fault = session.fault or "the input has ended"
        if is_alone:
            raise InputEndedError(fault)
        LOG.error("no more packets are counted: %s", fault)

    return ServedPart(wire_section(session, options.collect_min_interval), lambda: (watch(),))


def wire_section(session: WireSession, least: float = LEAST_INTERVAL) -> Section:
    """The pages of a capture; /debug/wire shows all addresses. Each sample of the counts holds up the thread that reads packets."""
    from roce_exporter.wire.wire_document import wire_document  # noqa: PLC0415 - as above

    page = json_page(
        "/debug/wire",
        lambda: wire_document(session.summary(), MOST_PAIRS_SHOWN, session.dropped),
        "pairs of addresses and sentences as JSON",
    )
    return SampledSection("RoCE packets on the wire", page, session.samples, least)
