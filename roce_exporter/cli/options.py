"""The command line and the configuration file, which holds the same keys; flags win."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from roce_exporter import __version__, audit, sources
from roce_exporter.cli.log import FORMATS, LEVELS
from roce_exporter.cli.parser import OptionError, Parser, command_first
from roce_exporter.collect import Settings
from roce_exporter.detectors.pfc_storm import StormLimits
from roce_exporter.sampler import MODES, OFF, Pace

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_PORT = 10123
"""To be registered: the public list of exporter ports could not be consulted when it was chosen."""

SCENARIOS = (
    "quiet",
    "incast",
    "pfc-storm",
    "slow-receiver",
    "victim",
    "misconfigured",
    "flapping",
    "lossy",
    "broken",
)
VENDORS = ("mlx5", "mlx5-lag", "bnxt", "ionic", "ice")
"""As `simulation` has them, which is imported only where it is used: it takes as long as all the rest."""

COMMANDS = {
    "demo": "show a simulated host, with Prometheus and Alertmanager where they are installed",
    "serve": "serve metrics over HTTP (the default)",
    "once": "collect once and print the exposition",
    "capture": "record the host, scrubbed, into a folder or .tar.gz",
    "explain": "say what a raw counter or a metric is, where it comes from and what it is now",
    "audit": "compare the host's settings with a profile; 0 when all is right, 1 when not, 2 when it could not be done",
}


def parse_options(argv: Sequence[str]) -> argparse.Namespace:
    """The options of one run, the configuration file's keys below the flags.

    Raises:
        OptionError: a flag, a key or a value is unknown or impossible, or the file cannot be read.
    """
    parser = make_parser()
    argv = command_first(list(argv), parser)
    options = parser.parse_args(argv)
    if options.config_file:
        from roce_exporter.cli.config_file import config_flags  # noqa: PLC0415 - most have none, and YAML is slow to import

        options = parser.parse_args(
            [argv[0], *config_flags(options.config_file, argv, make_parser()), *argv[1:]]
        )
    if options.command == "demo":
        options.host_simulate = options.host_simulate or "pfc-storm"
    _check_together(options)
    return options


def _check_together(options: argparse.Namespace) -> None:
    hosts = {
        "--host.recording": options.host_recording,
        "--host.simulate": options.host_simulate,
        "--path.sysfs": options.path_sysfs != "/sys",
    }
    if len(given := [flag for flag, value in hosts.items() if value]) > 1:
        raise OptionError(f"{' and '.join(given)} name different hosts; give one of them")
    if "sampler_interval" not in options:
        return
    for flag, seconds, least, most in (
        ("--sampler.interval", options.sampler_interval, 0.05, 1),
        ("--sampler.detection-time", options.sampler_detection_time, 0.2, 10),
        ("--sampler.restoration-time", options.sampler_restoration_time or 0.1, 0.1, 60),
    ):
        if not least <= seconds <= most:
            raise OptionError(f"{flag}={seconds:g}: not from {least:g} to {most:g} seconds")
    if options.sampler_detection_time < 2 * options.sampler_interval:
        raise OptionError(
            f"--sampler.detection-time={options.sampler_detection_time:g}: shorter than two looks; give at least "
            f"{2 * options.sampler_interval:g}, or a shorter --sampler.interval"
        )


def sampler_pace(options: argparse.Namespace) -> Pace:
    """How often the fast loop looks. A recording stands still between two scrapes, so it is not looked at."""
    mode = OFF if options.host_recording else options.sampler_mode
    return Pace(mode, options.sampler_interval, max(Pace().idle, options.sampler_interval))


def storm_limits(options: argparse.Namespace) -> StormLimits:
    """When pause is a storm."""
    detect = options.sampler_detection_time
    return StormLimits(detect, options.sampler_restoration_time or 2 * detect)


def collect_settings(options: argparse.Namespace) -> Settings:
    """The part of the options that collecting needs."""
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
        description="Prometheus exporter for the health of RDMA over Converged Ethernet. It only reads.",
        epilog="Every flag is a key of the file that --config.file names, without its dashes.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"roce-exporter {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    host = _host_flags()
    for name, meaning in COMMANDS.items():
        command = commands.add_parser(
            name, parents=[host], help=meaning, description=meaning, allow_abbrev=False
        )
        if name in ("serve", "once", "audit", "demo"):
            _add_audit_flags(command, alone=name == "audit")
        if name == "serve":
            _add_web_flags(command)
            _add_sampler_flags(command)
        elif name == "capture":
            _add_capture_flags(command)
        elif name == "demo":
            _add_demo_flags(command)
        elif name == "explain":
            command.add_argument(
                "name",
                nargs="?",
                metavar="NAME",
                help="raw counter or metric name; without it, what no row knows",
            )
    return parser


def _host_flags() -> Parser:
    flags = Parser(add_help=False, allow_abbrev=False)
    _add_source_flags(flags)
    _add_simulation_flags(flags)
    _add_collect_flags(flags)
    add = flags.add_argument
    add(
        "--config.file",
        dest="config_file",
        default="",
        metavar="FILE",
        help="YAML file with the same keys as these flags",
    )
    add(
        "--log.level",
        dest="log_level",
        choices=LEVELS,
        help="the least that is logged (serve: info, others: warn)",
    )
    add(
        "--log.format",
        dest="log_format",
        choices=FORMATS,
        default="logfmt",
        help="form of the log lines (logfmt)",
    )
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
        help="a recorded host, folder or .tar.gz",
    )
    add(
        "--device.include",
        dest="device_include",
        type=_pattern,
        metavar="REGEX",
        help="only devices of this whole name",
    )
    add(
        "--device.exclude",
        dest="device_exclude",
        type=_pattern,
        metavar="REGEX",
        help="no devices of this whole name",
    )
    add(
        "--source.disable",
        dest="source_disable",
        action="append",
        default=[],
        choices=sources.NAMES,
        metavar="SOURCE",
        help=f"leave a source out, may be repeated: {', '.join(sources.NAMES)}",
    )


def _add_simulation_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--host.simulate",
        dest="host_simulate",
        default="",
        choices=("", *SCENARIOS),
        metavar="SCENARIO",
        help=f"a simulated host that moves: {', '.join(SCENARIOS)}",
    )
    add(
        "--host.simulate-ports",
        dest="host_simulate_ports",
        default="mlx5,mlx5,mlx5,mlx5",
        metavar="VENDOR,...",
        help=f"its ports, 1 to 16, each one of {', '.join(VENDORS)} (mlx5,mlx5,mlx5,mlx5)",
    )
    add(
        "--host.simulate-seed",
        dest="host_simulate_seed",
        type=int,
        default=1,
        metavar="NUMBER",
        help="another number, another course of events (1)",
    )


def _add_collect_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--collect.timeout",
        dest="collect_timeout",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="longest a collection waits for a device, whatever the scraper allows (5)",
    )
    parser.add_argument(
        "--inventory.refresh",
        dest="inventory_refresh",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how often known devices are described anew: firmware, GIDs, network devices (60)",
    )


def _add_web_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--web.listen-address",
        dest="web_listen_address",
        action="append",
        metavar="[HOST]:PORT",
        help=f"address to serve on, may be repeated (:{DEFAULT_PORT}); port 0 picks a free one and logs it",
    )
    parser.add_argument(
        "--web.telemetry-path",
        dest="web_telemetry_path",
        type=_path,
        default="/metrics",
        help="path of the metrics (/metrics)",
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config_file",
        default="",
        metavar="FILE",
        help="TLS and users, in the Prometheus exporter-toolkit format",
    )


def _add_sampler_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--sampler.mode",
        dest="sampler_mode",
        choices=MODES,
        default=Pace().mode,
        help="how the fast loop looks for storms between scrapes: more often once there is pause (adaptive), always "
        "as often (fixed), or off; a recording is never looked at, for it does not move",
    )
    add(
        "--sampler.interval",
        dest="sampler_interval",
        type=_seconds,
        default=Pace().interval,
        metavar="SECONDS",
        help="between two looks of the fast loop, 0.05 to 1 (0.1); longer where reads are slow",
    )
    add(
        "--sampler.detection-time",
        dest="sampler_detection_time",
        type=_seconds,
        default=StormLimits().detect,
        metavar="SECONDS",
        help="pause without progress for so long is a storm, 0.2 to 10 (0.4)",
    )
    add(
        "--sampler.restoration-time",
        dest="sampler_restoration_time",
        type=_seconds,
        metavar="SECONDS",
        help="a storm is over when the pause has been for so long, 0.1 to 60 (twice the detection time)",
    )


def _add_audit_flags(parser: argparse.ArgumentParser, *, alone: bool) -> None:
    parser.add_argument(
        "--audit.profile",
        *(("--profile",) if alone else ()),
        dest="audit_profile",
        default="auto",
        metavar="PROFILE",
        help=f"what the settings shall be: {', '.join(audit.built_in())}, or a .toml file (auto)",
    )
    if alone:
        parser.add_argument(
            "--format", choices=audit.FORMATS, default=audit.TABLE, help="form of the findings (table)"
        )


def _add_demo_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--demo.seconds",
        dest="demo_seconds",
        type=_seconds,
        metavar="SECONDS",
        help="end by itself after so long; without it Ctrl-C ends it",
    )


def _add_capture_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", default="roce-host.tar.gz", metavar="FILE", help="a .tar.gz or a new folder"
    )
    parser.add_argument(
        "--moments", type=_count, default=1, metavar="N", help="record the host this often (1)"
    )
    parser.add_argument(
        "--interval", type=_seconds, default=1.0, metavar="SECONDS", help="between two moments (1)"
    )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:  # too many repetitions, too many brackets
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:  # noqa: PLR2004 - a day is the longest that makes sense
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0 and up to 86400")
    return seconds


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:  # noqa: PLR2004 - a thousand moments fill no disk
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 1000")
    return int(text)


def _path(text: str) -> str:
    if not text.startswith("/") or text in (
        "/",
        "/-/healthy",
        "/-/ready",
        "/debug/snapshot",
        "/debug/events",
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is no path of its own; use one like /metrics")
    return text
