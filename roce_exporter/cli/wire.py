"""`roce-exporter wire`: RoCE packets from a capture or a network device, as a table, JSON or metrics."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from roce_exporter import __version__
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
from roce_exporter.cli.flags import JSON, PACKETS, WIRE_PORT
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import print_text
from roce_exporter.collect.workers import CallThread, run_in_thread
from roce_exporter.words import terminal_width

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from roce_exporter.wire.inputs.capture_file import CaptureFile
    from roce_exporter.wire.inputs.packet_socket import PacketSocket
    from roce_exporter.wire.wire_session import WireSession

LOG = logging.getLogger(__name__)

PACKAGES = ("numpy", "dpkt")
REFRESH = 0.5
"""Seconds between two updates of the live table."""
DRAIN = 60.0
"""Seconds to count what the ring still holds, which a slow processor needs for a full one."""
START = 60.0
"""Seconds for the reading thread to run; on a busy machine a new thread waits."""
DAMAGED = 1


async def wire(options: argparse.Namespace) -> int:
    """Read, then print or serve. Exit code 1: the input ended early, and what was read is shown.

    Raises:
        OptionError: a package is missing, or the input cannot be opened.
    """
    _check(options)
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise OptionError(
            f"wire needs the package {missing[0]}; install the extra wire, in a clone: pip install '.[wire]'"
        )
    from roce_exporter.wire.frames import InputError  # noqa: PLC0415 - no other command needs the modules of wire

    try:
        if options.format == PACKETS:
            return _print_packets(options)
        return await _run(options)
    except InputError as error:
        raise OptionError(str(error)) from None


def _check(options: argparse.Namespace) -> None:
    """Refuse contradictions: no input or two, or a format that cannot be served."""
    if bool(options.file) == bool(options.interface):
        raise OptionError("wire needs one input: a FILE, - for standard input, or --interface=DEV")
    if options.format == PACKETS and (options.interface or options.serve or options.duration):
        raise OptionError(
            "--format=packets prints the packets of a file or of standard input, without other modes"
        )
    if options.serve and options.duration:
        raise OptionError("--serve runs until it is stopped; leave --duration out")


def _print_packets(options: argparse.Namespace) -> int:
    """One JSON object per RoCE packet, with every header."""
    from roce_exporter.wire.inputs.capture_file import open_capture  # noqa: PLC0415 - as above
    from roce_exporter.wire.packet_lines import packet_lines  # noqa: PLC0415 - as above

    capture = open_capture(options.file)
    for frames in capture:
        for line in packet_lines(frames):
            print_text(line + "\n")
    return _fault(capture.fault)


async def _run(options: argparse.Namespace) -> int:
    from roce_exporter.wire.tally.pair_counts import LosslessMarks  # noqa: PLC0415 - as above
    from roce_exporter.wire.wire_session import WireSession  # noqa: PLC0415 - as above

    stop = stop_event()  # before the capture begins, so that a signal at any time prints what was counted
    source = _open(options)
    session = WireSession(
        source, LosslessMarks(options.lossless_dscp, options.lossless_priority), options.top
    )
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def end() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(ended.set)

    thread = CallThread()
    try:
        # A thread that has answered once does not die at its start.
        await run_in_thread(lambda: None, START, thread)
        thread.submit(partial(session.read, end))
        if options.serve:
            return await _serve(options, session, ended, stop)
        await _show(options, session, ended, stop)
        session.finish()
        if options.interface:
            await _either(ended, asyncio.Event(), limit=DRAIN)
    finally:
        session.stop()
    return _print_summary(options, session)


def _open(options: argparse.Namespace) -> CaptureFile | PacketSocket:
    if options.interface:
        from roce_exporter.wire.inputs.packet_socket import PacketSocket  # noqa: PLC0415 - as above

        return PacketSocket(options.interface)
    from roce_exporter.wire.inputs.capture_file import open_capture  # noqa: PLC0415 - as above

    return open_capture(options.file)


async def _show(
    options: argparse.Namespace, session: WireSession, ended: asyncio.Event, stop: asyncio.Event
) -> None:
    """Wait for the end of the input, of --duration, or a signal; meanwhile show the table on a terminal."""
    if options.duration:
        asyncio.get_running_loop().call_later(options.duration, stop.set)
    waiting = asyncio.ensure_future(_either(ended, stop))
    with _screen(options) as show:
        while not (await asyncio.wait((waiting,), timeout=REFRESH))[0]:
            show(session)


@contextlib.contextmanager
def _screen(options: argparse.Namespace) -> Iterator[Callable[[WireSession], None]]:
    """Shows the table where there is a terminal and rich is installed."""
    if options.format == JSON or not sys.stdout.isatty() or find_spec("rich") is None:
        yield _show_nothing
        return
    from rich.live import Live  # noqa: PLC0415 - the daemon does not install it

    from roce_exporter.wire.wire_text import wire_screen  # noqa: PLC0415 - imports rich

    with Live(transient=True, auto_refresh=False) as live:

        def show(session: WireSession) -> None:
            height = live.console.height
            live.update(wire_screen(session.summary(), options.top, height, session.dropped), refresh=True)

        yield show


def _show_nothing(_: WireSession) -> None:
    pass


async def _serve(
    options: argparse.Namespace, session: WireSession, ended: asyncio.Event, stop: asyncio.Event
) -> int:
    """Serve metrics. A file is served on when it has ended; a stream or a device that ends is an error."""
    from roce_exporter.web import Server  # noqa: PLC0415 - as above
    from roce_exporter.web.application import Application  # noqa: PLC0415 - as above
    from roce_exporter.web.wire_pages import WirePages  # noqa: PLC0415 - as above

    application = Application((WirePages(session),), telemetry_path=options.web_telemetry_path)
    server = Server(application, web_config_of(options), private=application.private)
    try:
        for address in await server.start(options.web_listen_address or [f":{WIRE_PORT}"]):
            LOG.info("roce_exporter %s listens on %s for metrics of the wire", __version__, address)
        async with background(server.accept(), report_alive(watchdog_interval())):
            application.ready = True
            notify(READY)
            await _either(ended, stop)
            if not session.fault and options.file not in ("", "-"):
                LOG.info("%s is read; its counts are served until the process is stopped", options.file)
                await stop.wait()
            notify(STOPPING)
    finally:
        await server.close()
    session.check()
    return _fault(session.fault or ("" if stop.is_set() else "the input has ended"))


async def _either(first: asyncio.Event, second: asyncio.Event, limit: float | None = None) -> None:
    """Wait for one of two events, or `limit` seconds."""
    tasks = [asyncio.ensure_future(one.wait()) for one in (first, second)]
    try:
        await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _print_summary(options: argparse.Namespace, session: WireSession) -> int:
    from roce_exporter.wire.wire_document import wire_document  # noqa: PLC0415 - as above
    from roce_exporter.wire.wire_text import text_table  # noqa: PLC0415 - as above

    session.check()
    summary = session.summary(queues=options.queue_pairs)
    if options.format == JSON:
        print_text(json.dumps(wire_document(summary, options.top, session.dropped), indent=1) + "\n")
    else:
        print_text(text_table(summary, options.top, session.dropped, terminal_width(sys.stdout)))
    return _fault(session.fault)


def _fault(fault: str) -> int:
    if not fault:
        return 0
    sys.stderr.write(f"roce-exporter: {fault}\n")
    return DAMAGED
