"""The flags of `diagnose`."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from roce_exporter.checks.health.diagnosis_report import FORMATS, TEXT
from roce_exporter.cli.parser import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

DIAGNOSE = "diagnose"

SINCE = 600.0
INTERVAL = 10.0
"""Seconds between two samples of a host."""
STEP = 15.0
"""Seconds between two samples of Prometheus: the usual interval of its scrapes."""
LONGEST = 7 * 86400
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def add_diagnose_flags(parser: argparse.ArgumentParser) -> None:
    """Over which time, from where, and how it is printed."""
    add = parser.add_argument
    add(
        "--since",
        type=_duration,
        metavar="TIME",
        help="how much of the past counts, such as 90s, 10m or 2h, with --prometheus or a simulated host (10m), or a recording (all)",
    )
    add(
        "--interval",
        type=_duration,
        metavar="TIME",
        help=f"time between two samples ({INTERVAL:g}s; with --prometheus {STEP:g}s, or more if --since is long)",
    )
    add("--format", choices=FORMATS, default=TEXT, help=f"format of the findings ({TEXT})")
    add_prometheus_flags(
        parser,
        "read the history of a host from Prometheus, for example http://prometheus:9090, instead of sampling this host",
    )


def add_prometheus_flags(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Where Prometheus is, and how it is accessed; `meaning` is what --prometheus does."""
    add = parser.add_argument
    add(
        "--prometheus",
        default="",
        metavar="URL",
        help=meaning,
    )
    add(
        "--instance",
        default="",
        help="the host's target label `instance`; needed if Prometheus scrapes several exporters",
    )
    files = {
        "password-file": "file with the password of --prometheus.username, in one line",
        "ca-file": "certificates that Prometheus' certificate is verified with (default: those of the system)",
        "cert-file": "certificate to show to Prometheus, with --prometheus.key-file",
        "key-file": "key of --prometheus.cert-file",
    }
    add("--prometheus.username", dest="prometheus_username", default="", metavar="USER", help="user name")
    for name, use in files.items():
        flag = f"prometheus.{name}"
        add(f"--{flag}", dest=re.sub("[.-]", "_", flag), default="", metavar="FILE", help=use)
    add(
        "--prometheus.insecure-skip-verify",
        dest="prometheus_insecure_skip_verify",
        action="store_true",
        help="do not verify Prometheus' certificate",
    )


def check_diagnose_options(options: argparse.Namespace, others: Mapping[str, object]) -> None:
    """Refuse flags that contradict each other; `others` are those that select a host.

    Raises:
        OptionError: one line that names them.
    """
    host = [flag for flag, value in others.items() if value]
    if options.prometheus and host:
        raise OptionError(f"--prometheus and {host[0]} name different hosts; give one of them")
    check_prometheus_options(options)
    _check_times(options)


def check_prometheus_options(options: argparse.Namespace) -> None:
    """Refuse flags about Prometheus that need another one.

    Raises:
        OptionError: one line that names them.
    """
    if not options.prometheus and (given := _of_prometheus(options)):
        raise OptionError(f"{given[0]} needs --prometheus=URL")
    if bool(options.prometheus_username) != bool(options.prometheus_password_file):
        raise OptionError("--prometheus.username and --prometheus.password-file need each other")
    if bool(options.prometheus_cert_file) != bool(options.prometheus_key_file):
        raise OptionError("--prometheus.cert-file and --prometheus.key-file need each other")


def _check_times(options: argparse.Namespace) -> None:
    if not (options.prometheus or options.host_recording or options.host_simulate):
        if options.since:
            raise OptionError("--since needs a past: use --prometheus=URL, or --interval for this host")
        return
    if options.interval and options.host_recording:
        raise OptionError("--interval: the moments of a recording have their own times; leave it out")
    interval = options.interval or (STEP if options.prometheus else INTERVAL)
    if not options.host_recording and interval >= (options.since or SINCE):
        raise OptionError(f"--interval={interval:g}: must be shorter than --since")


def _of_prometheus(options: argparse.Namespace) -> list[str]:
    names = [name for name in vars(options) if name.startswith("prometheus_") and getattr(options, name)]
    flags = [f"--prometheus.{name.removeprefix('prometheus_').replace('_', '-')}" for name in names]
    return [*(["--instance"] if options.instance else []), *flags]


def _duration(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)([smhd]?)", text)
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not 0 < seconds <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time from 1s to 7d, such as 90s, 10m or 2h")
    return seconds
