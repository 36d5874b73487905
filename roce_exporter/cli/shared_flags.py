"""Flags that several commands have, and those of `switches`, which has no host."""

from __future__ import annotations

import argparse

from roce_exporter.checks import settings
from roce_exporter.cli.log import FORMATS, LEVELS

DEFAULT_PORT = 10123
"""To be registered: the public list of exporter ports was not available when the port was chosen."""
SWITCHES_PORT = 10124
"""The port of `switches`, which can run next to `serve`."""

RESERVED = (
    "/",
    "/-/healthy",
    "/-/ready",
    "/debug/snapshot",
    "/debug/events",
    "/debug/owners",
    "/debug/wire",
)


def add_log_flags(parser: argparse.ArgumentParser) -> None:
    """Level and format of log lines."""
    parser.add_argument(
        "--log.level",
        dest="log_level",
        choices=LEVELS,
        help="minimum log level (serve, switches, wire: info, demo: error, others: warn)",
    )
    parser.add_argument(
        "--log.format",
        dest="log_format",
        choices=FORMATS,
        default="logfmt",
        help="format of the log lines (logfmt)",
    )


def add_web_flags(parser: argparse.ArgumentParser, port: int) -> None:
    """Addresses, TLS and users of the web server."""
    parser.add_argument(
        "--web.listen-address",
        dest="web_listen_address",
        action="append",
        metavar="[HOST]:PORT",
        help=f"address to listen on, may be repeated (:{port}); port 0 selects a free port, which is logged",
    )
    parser.add_argument(
        "--web.config.file",
        dest="web_config_file",
        default="",
        metavar="FILE",
        help="file with TLS and users, in the format of the Prometheus exporter-toolkit",
    )


def add_path_flag(parser: argparse.ArgumentParser) -> None:
    """The path of the metrics."""
    parser.add_argument(
        "--web.telemetry-path",
        dest="web_telemetry_path",
        type=_path,
        default="/metrics",
        help="path of the metrics (/metrics)",
    )


def add_audit_flags(parser: argparse.ArgumentParser, *, alone: bool) -> None:
    """The profile, and where the audit is the whole command the format of its findings."""
    parser.add_argument(
        "--audit.profile",
        *(("--profile",) if alone else ()),
        dest="audit_profile",
        default="auto",
        metavar="PROFILE",
        help=f"profile to check the settings against: {', '.join(settings.built_in())}, or a .toml file (auto)",
    )
    if alone:
        parser.add_argument(
            "--format",
            choices=settings.FORMATS,
            default=settings.TABLE,
            help="format of the findings (table)",
        )


def add_switch_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `switches`."""
    parser.add_argument(
        "--config.file",
        dest="config_file",
        default="",
        metavar="FILE",
        help="YAML file with the switches to query, see docs/switches.md",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="audit [TARGET...]",
        help="compare the settings of these switches (default: all) with the profile, instead of serving metrics",
    )
    add_log_flags(parser)
    add_web_flags(parser, SWITCHES_PORT)
    add_audit_flags(parser, alone=True)


def _path(text: str) -> str:
    if not text.startswith("/") or text in RESERVED:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an absolute path, or is reserved; use one like /metrics"
        )
    return text
