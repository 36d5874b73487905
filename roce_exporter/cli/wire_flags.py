"""The flags of `wire`, which reads packets and no host."""

from __future__ import annotations

import argparse
import re

from roce_exporter.cli.parser import OptionError
from roce_exporter.cli.shared_flags import add_log_flags, add_path_flag, add_web_flags

WIRE_PORT = 10125
"""The port of `wire --serve`, which can run next to `serve` and `switches`."""
JSON, TABLE, PACKETS = "json", "table", "packets"
MOST_DSCP, MOST_PRIORITY = 63, 7
MOST_TOP = 1000
DAY = 86400


def add_wire_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `wire`."""
    add = parser.add_argument
    add(
        "file",
        nargs="?",
        default="",
        metavar="FILE",
        help="a capture (pcap or pcapng), or - for standard input",
    )
    add(
        "--interface",
        default="",
        metavar="DEV",
        help="capture on this network device instead; needs CAP_NET_RAW",
    )
    add("--serve", action="store_true", help="serve metrics at /metrics while packets are read")
    add(
        "--format",
        choices=(TABLE, JSON, PACKETS),
        default=TABLE,
        help="what is printed: pairs as a table or JSON, or every packet with its headers, one JSON object per line (table)",
    )
    add(
        "--duration",
        type=_seconds,
        metavar="SECONDS",
        help="stop after this time (default: at the end of the input, or Ctrl-C)",
    )
    add(
        "--top",
        type=_top,
        default=20,
        metavar="N",
        help="number of pairs that are shown, or have series of their own (20)",
    )
    add("--queue-pairs", action="store_true", help="in JSON, also count per destination queue pair")
    _add_lossless_flags(parser)
    add_log_flags(parser)
    add_web_flags(parser, WIRE_PORT)
    add_path_flag(parser)


def _add_lossless_flags(parser: argparse.ArgumentParser) -> None:
    """What belongs to the lossless priorities."""
    add = parser.add_argument
    add(
        "--lossless.dscp",
        dest="lossless_dscp",
        type=_dscp,
        default=frozenset(range(24, 32)),
        metavar="LIST",
        help="DSCP values of the lossless priorities: numbers and ranges (24-31)",
    )
    add(
        "--lossless.priority",
        dest="lossless_priority",
        type=_priority,
        default=frozenset({3}),
        metavar="LIST",
        help="lossless VLAN priorities, for RoCE v1 (3)",
    )


def check_wire_options(options: argparse.Namespace) -> None:
    """Refuse flags that contradict each other.

    Raises:
        OptionError: there is no input or there are two, or a format that cannot be served.
    """
    if bool(options.file) == bool(options.interface):
        raise OptionError("wire needs one input: a FILE, - for standard input, or --interface=DEV")
    if options.format == PACKETS and (options.interface or options.serve or options.duration):
        raise OptionError(
            "--format=packets prints the packets of a file or of standard input, without other modes"
        )
    if options.serve and options.duration:
        raise OptionError("--serve runs until it is stopped; leave --duration out")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= DAY:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and up to {DAY}")
    return seconds


def _top(text: str) -> int:
    if not re.fullmatch("[0-9]{1,4}", text) or not 0 < int(text) <= MOST_TOP:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_TOP}")
    return int(text)


def _dscp(text: str) -> frozenset[int]:
    return _numbers(text, MOST_DSCP)


def _priority(text: str) -> frozenset[int]:
    return _numbers(text, MOST_PRIORITY)


def _numbers(text: str, most: int) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,2})(?:-([0-9]{1,2}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last <= most:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no list of numbers and ranges from 0 to {most}, as 24-31,46"
            )
        found |= set(range(first, last + 1))
    return frozenset(found)
