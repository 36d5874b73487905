"""`roce-exporter wire`: RoCE packets from a capture or a network device, as a table or JSON."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial

from roce_exporter.cli.daemon import stop_event
from roce_exporter.cli.flags import JSON, PACKETS
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import complain, print_document, print_text, progress
from roce_exporter.collect.workers import CallThread, run_in_thread
from roce_exporter.wire.inputs.capture_file import open_capture
from roce_exporter.wire.tally.pair_counts import LosslessMarks
from roce_exporter.wire.wire_document import packets, wire_document
from roce_exporter.wire.wire_session import PacketFilter, WireSession
from roce_exporter.wire.wire_text import screen, text_table, unseen
from roce_exporter.words import terminal_width

LOG = logging.getLogger(__name__)

STANDARD_INPUT = "-"
REFRESH = 0.5  # seconds between two updates of the live table
DRAIN = 60.0
"""Seconds to count what the ring still holds, which a slow processor needs for a full one."""
START = 60.0  # seconds for the reading thread to run; on a busy machine a new thread waits
INCOMPLETE = 1  # the input ended early, no RoCE packet was seen, or frames were left out that may hold some


async def wire(options: argparse.Namespace) -> int:
    """Read, then print. Exit code 1: the input ended early, no RoCE packet was in it, or frames were not decoded; what was read is shown.

    Raises:
        OptionError: a package is missing, or the input cannot be opened.
    """
    if options.wire_interface and options.file:
        options.filter, options.file = [options.file, *options.filter], ""
    if bool(options.file) == bool(options.wire_interface):
        raise OptionError("wire needs one input: a FILE, - for standard input, or --wire.interface=DEV")
    if options.format == PACKETS and (options.wire_interface or options.duration):
        raise OptionError(
            "--format=packets prints the packets of a file or of standard input, without other modes"
        )
    if options.format != PACKETS:
        return await _run(options)
    capture = open_capture(options.file)
    for frames in capture:
        for packet in packets(frames):
            print_text(json.dumps(packet) + "\n")
    if capture.fault:
        complain(capture.fault)
    return INCOMPLETE if capture.fault else 0


async def _run(options: argparse.Namespace) -> int:
    stop = stop_event()  # before the capture begins, so that a signal at any time prints what was counted
    session, ended = await begin_session(options, options.wire_interface, options.file, options.top)
    try:
        if options.duration:
            asyncio.get_running_loop().call_later(options.duration, stop.set)
        ends = asyncio.create_task(ended.wait()), asyncio.create_task(stop.wait())
        first = partial(asyncio.wait, ends, timeout=REFRESH, return_when=asyncio.FIRST_COMPLETED)
        async with _screen(
            options
        ) as show:  # while it waits for the end of the input, of --duration, or a signal
            while not (await first())[0]:
                show(session)
        session.finish()
        if options.wire_interface:
            await asyncio.wait(ends[:1], timeout=DRAIN)
    finally:
        session.stop()
    return _print_summary(options, session)


async def begin_session(
    options: argparse.Namespace, interface: str, file: str, top: int
) -> tuple[WireSession, asyncio.Event]:
    """Read packets of a network device or of a file in a thread; the event is set when no more will come.

    Raises:
        UserError: a package is missing, or the input cannot be opened.
    """
    chosen = PacketFilter.parse(getattr(options, "filter", None) or ())
    if interface:
        from roce_exporter.wire.inputs.packet_socket import PacketSocket  # noqa: PLC0415 - a file needs no socket

    source = PacketSocket(interface) if interface else open_capture(file)
    marks = LosslessMarks(options.lossless_dscp, options.lossless_priority)
    session = WireSession(source, marks, top, interval=getattr(options, "interval", None) or 0, chosen=chosen)
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def end() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(ended.set)

    thread = CallThread()
    # A thread that has answered once does not die at its start.
    await run_in_thread(lambda: None, START, thread)
    thread.submit(partial(session.read, end))
    return session, ended


@contextlib.asynccontextmanager
async def _screen(options: argparse.Namespace) -> AsyncIterator[Callable[[WireSession], None]]:
    """Shows the table on a terminal, on the terminal's alternate screen; without it, that the command is at work."""
    if options.format == JSON or not sys.stdout.isatty():
        async with progress("reading packets"):
            yield lambda _: None
        return

    def show(session: WireSession) -> None:
        text = screen(session.summary(), options.top, session.dropped, os.get_terminal_size())
        sys.stdout.write(f"\033[H\033[J{text}")
        sys.stdout.flush()

    sys.stdout.write("\033[?1049h")
    try:
        yield show
    finally:
        sys.stdout.write("\033[?1049l")


def _print_summary(options: argparse.Namespace, session: WireSession) -> int:
    session.check()
    summary = session.summary(queues=options.queue_pairs)
    if options.format == JSON:
        print_document(wire_document(summary, options.top, session.dropped, session.fault))
    else:
        width = terminal_width(sys.stdout)
        print_text(text_table(summary, options.top, session.dropped, width, session.fault))
    if session.fault:
        complain(session.fault)
    return INCOMPLETE if any(unseen(summary, session.dropped, session.fault)) else 0
