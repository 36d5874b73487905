"""The flags of the survey of RDMA objects and their owners, and the surveyor that they describe."""

from __future__ import annotations

import argparse
import math
import re
import time
from typing import TYPE_CHECKING

from roce_exporter.owners import OWNERS, SurveyLimits, Surveyor

if TYPE_CHECKING:
    from roce_exporter.host.kernel import Kernel

DAY = 86400
MOST_OWNERS = 1000
LEAST_LOAD, MOST_LOAD = 0.1, 100.0

DEFAULTS = SurveyLimits()

FLAGS = ("interval", "most", "peers", "load", "anonymous")
"""The fields of `SurveyLimits` that have a flag of their own."""


def add_owner_flags(parser: argparse.ArgumentParser, *, rounds: bool) -> None:
    """What is shown of owners, and with `rounds` how often and how fast the objects are listed."""
    add = parser.add_argument
    add(
        "--owners.most",
        dest="owners_most",
        type=_number,
        default=DEFAULTS.most,
        metavar="N",
        help=f"owners per RDMA device with series of their own; the rest is `other` ({DEFAULTS.most})",
    )
    add(
        "--owners.peers",
        dest="owners_peers",
        type=_number,
        default=DEFAULTS.peers,
        metavar="N",
        help=f"remote addresses per owner with a series of their own; the rest is `other` ({DEFAULTS.peers})",
    )
    add(
        "--owners.anonymous",
        dest="owners_anonymous",
        action="store_true",
        help="leave the command and the user of owners out of metrics and debug pages",
    )
    add_limits_flag(parser)
    if rounds:
        _add_round_flags(parser)


def add_limits_flag(parser: argparse.ArgumentParser) -> None:
    """Whether a context may be opened on each device to read its limits."""
    parser.add_argument(
        "--owners.limits",
        dest="owners_limits",
        action="store_true",
        help="read how many queue pairs, completion queues and memory regions each device can have on kernels that do not report "
        "it (6.12; 7.3 does): opens a user context on each device once, as ibv_devinfo does, which on mlx5 makes firmware "
        "objects and may enable loopback meanwhile",
    )


def _add_round_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--owners.interval",
        dest="owners_interval",
        type=_seconds,
        default=DEFAULTS.interval,
        metavar="SECONDS",
        help=f"how often the RDMA objects of a device are listed ({DEFAULTS.interval:g})",
    )
    add(
        "--owners.load",
        dest="owners_load",
        type=_percent,
        default=DEFAULTS.load,
        metavar="PERCENT",
        help="largest share of time that a driver may spend on listing queue pairs and connections, "
        f"{LEAST_LOAD:g} to {MOST_LOAD:g} ({100 * DEFAULTS.load:g})",
    )


def make_surveyor(options: argparse.Namespace, kernel: Kernel) -> Surveyor | None:
    """The surveyor of a host; None if the source is disabled."""
    if OWNERS in options.source_disable:
        return None
    # Not every command has all of the flags.
    given = {name: getattr(options, f"owners_{name}") for name in FLAGS if f"owners_{name}" in options}
    limits = SurveyLimits(patience=options.collect_timeout, **given)
    return Surveyor(kernel, limits, time.monotonic, time.time)


def _seconds(text: str) -> float:
    seconds = _float(text)
    if not 1 <= seconds <= DAY:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to {DAY}")
    return seconds


def _percent(text: str) -> float:
    percent = _float(text)
    if not LEAST_LOAD <= percent <= MOST_LOAD:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from {LEAST_LOAD:g} to {MOST_LOAD:g}")
    return percent / 100


def _number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,4}", text) or not 0 < int(text) <= MOST_OWNERS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_OWNERS}")
    return int(text)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
