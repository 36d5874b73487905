"""`roce-exporter`: flags become objects, objects do one of serve, once, capture, explain, audit.

Exit codes: 0 done, 1 nothing found to explain or a setting found wrong, 2 something that was given cannot be used (one line says what).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from roce_exporter import __version__
from roce_exporter.audit import (
    JSON,
    Auditor,
    ProfileError,
    as_json,
    as_table,
    audit,
    is_clean,
    load_profile,
)
from roce_exporter.collect import Collector
from roce_exporter.explain import explain, nearest, unmapped
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.kernel.live import LiveKernel, raise_descriptor_limit
from roce_exporter.log import set_up_logging
from roce_exporter.notify import ALIVE, READY, STOPPING, notify, watchdog_interval
from roce_exporter.options import (
    DEFAULT_PORT,
    collect_settings,
    parse_options,
    sampler_pace,
    storm_limits,
)
from roce_exporter.parser import OptionError
from roce_exporter.sampler import Sampler
from roce_exporter.web import ListenError, Server, WebConfigError
from roce_exporter.web.endpoints import PRIVATE, Endpoints

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from roce_exporter.kernel import Kernel
    from roce_exporter.web.config_file import WebConfigFile

LOG = logging.getLogger(__name__)

UNUSABLE = 2

LOG_LEVELS = {"serve": "info", "demo": "error"}
"""What is logged where nobody chose: the demo tells of storms itself, and on a terminal has the screen for its own."""

SUPERVISION = 0.5
"""Seconds between two questions whether the fast loop is held up by a device."""


class OutputError(Exception):
    """Standard output does not take what was asked for: one line that says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Faults of what was given are one line on standard error."""
    try:
        options = parse_options(sys.argv[1:] if argv is None else argv)
        set_up_logging(options.log_level or LOG_LEVELS.get(options.command, "warn"), options.log_format)
        kernel = open_kernel(options)
        return asyncio.run(COMMANDS[options.command](options, kernel))
    except (
        OptionError,
        WebConfigError,
        ListenError,
        ProfileError,
        OutputError,
    ) as error:
        sys.stderr.write(f"roce-exporter: {error}\n")
        return UNUSABLE
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does.
        _mute()
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def open_kernel(options: argparse.Namespace) -> Kernel:
    """The host that the options name.

    Raises:
        OptionError: there is no such sysfs, no such simulated host, or a recording that cannot be read.
    """
    if options.host_simulate:
        return _simulate(options)
    if options.host_recording:
        return _replay(options.host_recording)
    if not os.path.isdir(options.path_sysfs):
        raise OptionError(
            f"--path.sysfs={options.path_sysfs}: no such folder; name the place where sysfs is mounted"
        )
    raise_descriptor_limit()
    return LiveKernel(options.path_sysfs)


def _simulate(options: argparse.Namespace) -> Kernel:
    from roce_exporter.kernel.simulated import ScenarioError, simulate  # noqa: PLC0415 - it takes as long as all the rest

    ports = [port.strip() for port in options.host_simulate_ports.split(",")]
    try:
        return simulate(
            options.host_simulate, clock=time.monotonic, vendors=ports, seed=options.host_simulate_seed
        )
    except ScenarioError as error:
        raise OptionError(str(error)) from None


def _replay(path: str) -> Kernel:
    from roce_exporter.kernel.recorded import load_recording  # noqa: PLC0415 - brings archives and their compressions
    from roce_exporter.kernel.tree import RecordingError  # noqa: PLC0415 - the same

    try:
        return load_recording(path)
    except RecordingError as error:
        raise OptionError(str(error)) from None


async def serve(options: argparse.Namespace, kernel: Kernel) -> int:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    web_config = _web_config(options.web_config_file) if options.web_config_file else None
    auditor = Auditor(load_profile(options.audit_profile))
    collector = Collector(kernel, collect_settings(options), time.monotonic)
    hurried = kernel.hurried() if isinstance(kernel, LiveKernel) else kernel
    sampler = Sampler(hurried, time.monotonic, time.time, sampler_pace(options), storm_limits(options))
    exporter = Exporter(collector, sampler, auditor)
    endpoints = Endpoints(exporter, options.web_telemetry_path)
    server = Server(endpoints, web_config, private=PRIVATE)
    for address in await server.start(options.web_listen_address or [f":{DEFAULT_PORT}"]):
        LOG.info("roce_exporter %s listens on %s", __version__, address)
    first = asyncio.ensure_future(_first_collection(exporter, endpoints, options.collect_timeout))
    sampler.start()
    watching = [
        asyncio.ensure_future(work) for work in (_supervise(sampler), _tell_alive(watchdog_interval()))
    ]
    await stop.wait()
    notify(STOPPING)
    for task in (first, *watching):
        task.cancel()
    await server.close()
    sampler.close()
    collector.close()
    return 0


def _web_config(path: str) -> WebConfigFile:
    from roce_exporter.web.config_file import WebConfigFile  # noqa: PLC0415 - most have none, and YAML is slow to import

    return WebConfigFile(path)


async def _first_collection(exporter: Exporter, endpoints: Endpoints, seconds: float) -> None:
    observation = await exporter.observe(seconds)
    exporter.render(observation, Format.TEXT)
    endpoints.ready = True
    gc.collect()
    gc.freeze()  # what the plans hold is for ever: no collection need look at it again
    LOG.info("ready: %d RDMA devices", len(observation.snapshot.devices))
    notify(READY)


async def _tell_alive(interval: float | None) -> None:
    """Signs of life from the event loop, which serves: systemd starts a daemon anew whose loop hangs."""
    while interval:
        notify(ALIVE)
        await asyncio.sleep(interval)


async def _supervise(sampler: Sampler) -> None:
    while True:
        await asyncio.sleep(SUPERVISION)
        sampler.supervise()


async def once(options: argparse.Namespace, kernel: Kernel) -> int:
    """Print one exposition in text format 0.0.4."""
    auditor = Auditor(load_profile(options.audit_profile))
    exporter = Exporter(Collector(kernel, collect_settings(options), time.monotonic), auditor=auditor)
    observation = await exporter.observe(options.collect_timeout)
    _print(exporter.render(observation, Format.TEXT).decode())
    return 0


async def explain_name(options: argparse.Namespace, kernel: Kernel) -> int:
    """Print what is known of one name, or the names that nobody knows; 1 when there is nothing to say of a name."""
    exporter = Exporter(Collector(kernel, collect_settings(options), time.monotonic))
    observation = await exporter.observe(options.collect_timeout)
    if options.name is None:
        lines = list(unmapped(exporter.normaliser)) or ["every raw name of this host has a row"]
    else:
        lines = list(explain(options.name, observation, exporter.normaliser))
    if not lines:
        near = f"; the nearest names are {', '.join(found)}" if (found := nearest(options.name)) else ""
        sys.stderr.write(
            f"roce-exporter: {options.name}: neither a metric, nor a raw name of a row, nor on this host{near}\n"
        )
        return 1
    _print("".join(f"{line}\n" for line in lines))
    return 0


async def capture_host(options: argparse.Namespace, kernel: Kernel) -> int:
    """Record the host, scrubbed."""
    from roce_exporter.capture import CaptureError, capture  # noqa: PLC0415 - no other command needs it

    try:
        written = await capture(kernel, options.output, options.moments, options.interval)
    except CaptureError as error:
        raise OutputError(str(error)) from None
    _print(f"{written}\n")
    return 0


async def audit_host(options: argparse.Namespace, kernel: Kernel) -> int:
    """Print what the audit says; 1 when a setting is wrong."""
    profile = load_profile(options.audit_profile)
    collector = Collector(kernel, collect_settings(options), time.monotonic)
    snapshot = await collector.collect(options.collect_timeout)
    verdicts = audit(snapshot.devices, profile)
    if options.format == JSON:
        _print(as_json(verdicts, profile))
    else:
        _print(as_table(verdicts, profile, colour=sys.stdout is not None and sys.stdout.isatty()))
    return 0 if is_clean(verdicts) else 1


async def demo(options: argparse.Namespace, kernel: Kernel) -> int:
    """Show a simulated host until SIGTERM, SIGINT, SIGHUP or the end of the time that was given."""
    from roce_exporter.demo import run_demo  # noqa: PLC0415 - no other command is to pay for rich

    auditor = Auditor(load_profile(options.audit_profile))
    settings = collect_settings(options)
    return await run_demo(kernel, settings, options.host_simulate, options.demo_seconds, auditor)


def _print(text: str) -> None:
    """Write to standard output.

    Raises:
        OutputError: it takes nothing: a full disk, or nobody has opened it.
        BrokenPipeError: whoever read it has gone.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed; give it a place to go to")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _mute()
        raise OutputError(f"standard output: {error.strerror}; send it elsewhere") from None


def _mute() -> None:
    """Nothing more can be said, not even at exit, when Python would write what it still holds."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


COMMANDS = {
    "demo": demo,
    "serve": serve,
    "once": once,
    "explain": explain_name,
    "capture": capture_host,
    "audit": audit_host,
}
