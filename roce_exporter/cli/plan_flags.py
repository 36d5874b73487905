"""The flags of `plan`."""

from __future__ import annotations

import argparse
import re

from roce_exporter.catalog.row import STANDARD, MetricSet
from roce_exporter.cli.diagnose_flags import UNITS
from roce_exporter.cli.parser import OptionError
from roce_exporter.cli.shared_flags import add_log_flags
from roce_exporter.cli.simulation_flags import VENDORS
from roce_exporter.introspection.fleet_report import FORMATS, TEXT

PLAN = "plan"
INTERVAL = 15.0
RETENTION = 15 * 86400.0
PORTS = 8
MOST_HOSTS = 10_000_000
MOST_PORTS = 16
"""A simulated host has at most this many."""
LONGEST_INTERVAL = 3600.0
LONGEST_RETENTION = 10 * 366 * 86400.0


def add_plan_flags(parser: argparse.ArgumentParser) -> None:
    """The fleet, and how its plan is printed."""
    add = parser.add_argument
    add("--hosts", type=_hosts, metavar="NUMBER", help="hosts of the fleet")
    add(
        "--ports",
        type=_ports,
        default=PORTS,
        metavar="NUMBER",
        help=f"RDMA ports of a host, 1 to {MOST_PORTS} ({PORTS})",
    )
    add(
        "--set",
        dest="metric_set",
        choices=[one.value for one in MetricSet],
        default=STANDARD.value,
        help=f"the exporters' --metrics.set: lean, standard or full ({STANDARD.value})",
    )
    add("--driver", choices=VENDORS, default=VENDORS[0], help=f"driver of the ports ({VENDORS[0]})")
    add(
        "--interval",
        type=_interval,
        default=INTERVAL,
        metavar="TIME",
        help=f"between two scrapes, and two evaluations of the rules ({INTERVAL:g}s)",
    )
    add(
        "--retention",
        type=_retention,
        default=RETENTION,
        metavar="TIME",
        help="how long samples are kept, such as 36h or 15d (15d)",
    )
    add("--format", choices=FORMATS, default=TEXT, help=f"format of the plan ({TEXT})")
    add(
        "--table",
        action="store_true",
        help="print instead the table of docs/operating.md: fleets of 10 to 100,000 such hosts, all sets",
    )
    add_log_flags(parser)


def check_plan_options(options: argparse.Namespace) -> None:
    """Refuse a plan without a fleet.

    Raises:
        OptionError: one line that names the flag.
    """
    if options.hosts is None and not options.table:
        raise OptionError("plan needs --hosts=NUMBER, or --table for several fleets")
    if options.hosts is not None and options.table:
        raise OptionError("--hosts and --table contradict each other: the table has its own numbers of hosts")
    if options.table and options.format != TEXT:
        raise OptionError("--table is Markdown only; leave out --format, or use --hosts=NUMBER")


def _hosts(text: str) -> int:
    return _whole(text, MOST_HOSTS)


def _ports(text: str) -> int:
    return _whole(text, MOST_PORTS)


def _whole(text: str, most: int) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or not 0 < int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
    return int(text)


def _interval(text: str) -> float:
    return _time(text, LONGEST_INTERVAL, "a time from 1s to 1h, such as 15s or 1m")


def _retention(text: str) -> float:
    return _time(text, LONGEST_RETENTION, "a time from 1s to 10 years, such as 36h or 15d")


def _time(text: str, longest: float, what: str) -> float:
    match = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)([smhd]?)", text)
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not 1 <= seconds <= longest:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return seconds
