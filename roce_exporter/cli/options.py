"""The command line and the configuration file, which has the same keys; flags take precedence."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from roce_exporter import __version__
from roce_exporter.checks.health import HEALTH
from roce_exporter.cli.diagnose_flags import (
    DIAGNOSE,
    add_diagnose_flags,
    check_diagnose_options,
    check_prometheus_options,
)
from roce_exporter.cli.doctor_flags import DOCTOR, add_doctor_flags
from roce_exporter.cli.metric_flags import add_metric_flags
from roce_exporter.cli.owner_flags import add_limits_flag, add_owner_flags
from roce_exporter.cli.parser import OptionError, Parser, command_first
from roce_exporter.cli.shared_flags import (
    DEFAULT_PORT,
    add_audit_flags,
    add_log_flags,
    add_path_flag,
    add_switch_flags,
    add_web_flags,
)
from roce_exporter.cli.simulation_flags import add_simulation_flags
from roce_exporter.cli.surrounding_flags import add_namespace_flags, add_surrounding_flags
from roce_exporter.cli.translate_flags import TRANSLATE, add_translate_flags, check_translate_options
from roce_exporter.cli.wire_flags import add_wire_flags, check_wire_options
from roce_exporter.collect import Settings
from roce_exporter.fastloop import MODES, OFF, Pace
from roce_exporter.fastloop.pfc_storm import StormLimits
from roce_exporter.host import sources
from roce_exporter.owners import OWNERS
from roce_exporter.surroundings.kernel_log_follower import KERNEL_LOG

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = (*sources.NAMES, OWNERS, KERNEL_LOG, HEALTH)
"""Sources that can be disabled: those of a collection, and what works between collections: the survey and the verdict."""

SWITCHES = "switches"
WIRE = "wire"
NAMESPACES = "namespaces"
HOSTLESS = {
    SWITCHES: add_switch_flags,
    WIRE: add_wire_flags,
    NAMESPACES: add_namespace_flags,
    TRANSLATE: add_translate_flags,
}
"""Commands without the flags that select a host, and their own flags."""

COMMANDS = {
    "demo": "show a simulated host, with Prometheus, Alertmanager and a switch (redis-server) if they are installed",
    "serve": "serve metrics over HTTP (the default)",
    "once": "collect once and print the metrics",
    "capture": "record the host into a .tar.gz, a text or a folder, with identifying data scrubbed",
    "explain": "explain a raw counter or a metric: its meaning, its source and its current value",
    "audit": "compare the host's settings with a profile; exit code 0: all checks pass, 1: a check fails, 2: the audit could not run",
    DIAGNOSE: "say what is wrong with the ports, on which side, and what to do next; exit code 0: nothing, 1: something, 2: unknown",
    DOCTOR: "check a new host: what is found, which privileges and counters are missing, who scrapes it; exit code 0: fit, 1: something needs attention, 2: unknown",
    SWITCHES: "serve metrics of switches at /probe?target=NAME, or audit their settings",
    NAMESPACES: "report the RDMA devices of other network namespaces on a Unix socket, for `serve`; needs CAP_SYS_ADMIN",
    WIRE: "read RoCE packets of a capture or a mirror port: who congests whom, who retransmits",
    TRANSLATE: "rewrite dashboards, rules and PromQL from the names of other exporters to ours; exit code 0: all, 1: places were left, 2: bad input",
}

REMOVED = {
    "counters": "iproute2 does it: rdma statistic qp set link DEVICE/PORT auto type,pid on",
    "plan": "docs/operating.md, Cost, has the table",
}
"""Commands of earlier versions, and what replaces each."""


def parse_options(argv: Sequence[str]) -> argparse.Namespace:
    """The options of one run; flags take precedence over the keys of the configuration file.

    Raises:
        OptionError: a flag, a key or a value is unknown or invalid, or the file cannot be read.
    """
    parser = make_parser()
    argv = command_first(list(argv), parser)
    if argv[:1] and argv[0] in REMOVED:
        raise OptionError(f"{argv[0]} was removed; {REMOVED[argv[0]]}")
    if argv[:1] == [SWITCHES]:
        return _switches_options(argv, parser)
    options = parser.parse_args(argv)
    if options.command == WIRE:
        check_wire_options(options)
    if options.command == TRANSLATE:
        check_translate_options(options)
    if options.command in HOSTLESS:
        return options
    if options.config_file:
        from roce_exporter.cli.config_file import config_flags  # noqa: PLC0415 - most have none, and YAML is slow to import

        options = parser.parse_args(
            [argv[0], *config_flags(options.config_file, argv, make_parser()), *argv[1:]]
        )
    if options.command == "demo":
        options.host_simulate = options.host_simulate or "pfc-storm"
    _check_together(options)
    return options


def _switches_options(argv: list[str], parser: Parser) -> argparse.Namespace:
    """The options of `switches`, whose words may have flags between them: argparse itself ends a list at the first flag."""
    options, rest = parser.parse_known_args(argv)
    if any(word.startswith("-") for word in rest):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    options.words += rest
    return options


def _check_together(options: argparse.Namespace) -> None:
    hosts = {
        "--host.recording": options.host_recording,
        "--host.simulate": options.host_simulate,
        "--path.sysfs": options.path_sysfs != "/sys",
    }
    if len(given := [flag for flag, value in hosts.items() if value]) > 1:
        raise OptionError(f"{' and '.join(given)} name different hosts; give one of them")
    if options.command == DIAGNOSE:
        check_diagnose_options(options, hosts)
    if options.command == DOCTOR:
        check_prometheus_options(options)
    if "sampler_interval" not in options:
        return
    for flag, seconds, least, most in (
        ("--sampler.interval", options.sampler_interval, 0.05, 1),
        ("--sampler.detection-time", options.sampler_detection_time, 0.2, 10),
        ("--sampler.restoration-time", options.sampler_restoration_time or 0.1, 0.1, 60),
    ):
        if not least <= seconds <= most:
            raise OptionError(f"{flag}={seconds:g}: must be from {least:g} to {most:g} seconds")
    if options.sampler_detection_time < 2 * options.sampler_interval:
        raise OptionError(
            f"--sampler.detection-time={options.sampler_detection_time:g}: shorter than two sampling intervals; use at least "
            f"{2 * options.sampler_interval:g}, or a shorter --sampler.interval"
        )


def sampler_pace(options: argparse.Namespace) -> Pace:
    """How often the fast loop samples. A recording does not change between two scrapes, so it is not sampled."""
    mode = OFF if options.host_recording else options.sampler_mode
    return Pace(mode, options.sampler_interval, max(Pace().idle, options.sampler_interval))


def storm_limits(options: argparse.Namespace) -> StormLimits:
    """When pause counts as a storm."""
    detect = options.sampler_detection_time
    return StormLimits(detect, options.sampler_restoration_time or 2 * detect)


def collect_settings(options: argparse.Namespace) -> Settings:
    """The options that concern the collection."""
    return Settings(
        options.device_include,
        options.device_exclude,
        frozenset(options.source_disable),
        options.collect_timeout,
        refresh=options.inventory_refresh,
    )


def make_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="roce-exporter",
        description="Prometheus exporter for the health of RDMA over Converged Ethernet. It never changes a setting of the host.",
        epilog="Every flag, without its dashes, is also a key of the file given with --config.file.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"roce-exporter {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    host = _host_flags()
    for name, meaning in COMMANDS.items():
        command = commands.add_parser(
            name,
            parents=[] if name in HOSTLESS else [host],
            help=meaning,
            description=meaning,
            allow_abbrev=False,
        )
        if name in HOSTLESS:
            HOSTLESS[name](command)
        if name in ("serve", "once", "audit", "demo", DIAGNOSE, DOCTOR):
            add_audit_flags(command, alone=name == "audit")
        if name in ("serve", "once", DIAGNOSE):
            add_owner_flags(command, rounds=name == "serve")
            add_surrounding_flags(command)
        if name in ("serve", "once"):
            add_metric_flags(command)
        if name == "serve":
            add_web_flags(command, DEFAULT_PORT)
            add_path_flag(command)
            _add_sampler_flags(command)
        elif name in OWN_FLAGS:
            OWN_FLAGS[name](command)
        elif name == "explain":
            command.add_argument(
                "name",
                nargs="?",
                metavar="NAME",
                help="raw counter or metric name; without it, list the raw names that are not in the catalogue",
            )
    return parser


def _host_flags() -> Parser:
    flags = Parser(add_help=False, allow_abbrev=False)
    _add_source_flags(flags)
    add_simulation_flags(flags)
    _add_collect_flags(flags)
    flags.add_argument(
        "--config.file",
        dest="config_file",
        default="",
        metavar="FILE",
        help="YAML file whose keys are these flags without their dashes",
    )
    add_log_flags(flags)
    return flags


def _add_source_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--path.sysfs", dest="path_sysfs", default="/sys", metavar="DIR", help="where sysfs is mounted (/sys)"
    )
    add(
        "--host.recording",
        dest="host_recording",
        default="",
        metavar="PATH",
        help="read a recorded host (folder, .tar.gz or text) instead of this host",
    )
    add(
        "--device.include",
        dest="device_include",
        type=_pattern,
        metavar="REGEX",
        help="only devices whose full name matches REGEX",
    )
    add(
        "--device.exclude",
        dest="device_exclude",
        type=_pattern,
        metavar="REGEX",
        help="exclude devices whose full name matches REGEX",
    )
    add(
        "--source.disable",
        dest="source_disable",
        action="append",
        default=[],
        choices=SOURCES,
        metavar="SOURCE",
        help=f"disable a source, may be repeated: {', '.join(SOURCES)}",
    )


def _add_collect_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--collect.timeout",
        dest="collect_timeout",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="longest time that a collection waits for a device, even if the scraper allows more (5)",
    )
    parser.add_argument(
        "--inventory.refresh",
        dest="inventory_refresh",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how often the description of known devices is refreshed: firmware, GIDs, network devices (60)",
    )


def _add_sampler_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--sampler.mode",
        dest="sampler_mode",
        choices=MODES,
        default=Pace().mode,
        help="how the fast loop samples for storms between scrapes: adaptive (more often while there is pause; the default), "
        "fixed (constant rate), or off; a recording is never sampled",
    )
    add(
        "--sampler.interval",
        dest="sampler_interval",
        type=_seconds,
        default=Pace().interval,
        metavar="SECONDS",
        help="sampling interval of the fast loop, 0.05 to 1 (0.1); longer where reads are slow",
    )
    add(
        "--sampler.detection-time",
        dest="sampler_detection_time",
        type=_seconds,
        default=StormLimits().detect,
        metavar="SECONDS",
        help="how long pause must block all traffic to count as a storm, 0.2 to 10 (0.4)",
    )
    add(
        "--sampler.restoration-time",
        dest="sampler_restoration_time",
        type=_seconds,
        metavar="SECONDS",
        help="how long pause must be gone for the storm to end, 0.1 to 60 (twice the detection time)",
    )


def _add_demo_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--demo.seconds",
        dest="demo_seconds",
        type=_seconds,
        metavar="SECONDS",
        help="stop after this time (default: run until Ctrl-C)",
    )


def _add_capture_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        default="roce-host.tar.gz",
        metavar="FILE",
        help="a .tar.gz, a text (.txt) or a new folder (roce-host.tar.gz)",
    )
    parser.add_argument(
        "--moments", type=_count, default=1, metavar="N", help="number of snapshots to record (1)"
    )
    parser.add_argument(
        "--interval", type=_seconds, default=1.0, metavar="SECONDS", help="time between two snapshots (1)"
    )
    add_limits_flag(parser)


OWN_FLAGS = {
    DIAGNOSE: add_diagnose_flags,
    DOCTOR: add_doctor_flags,
    "capture": _add_capture_flags,
    "demo": _add_demo_flags,
}
"""Commands with a host, and the flags that only they have."""


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:  # too many repetitions, too many brackets
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid regular expression: {error}") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:  # noqa: PLR2004 - a day is the longest that makes sense
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and up to 86400")
    return seconds


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:  # noqa: PLR2004 - a thousand snapshots do not fill a disk
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return int(text)
