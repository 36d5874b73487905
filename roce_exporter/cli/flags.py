"""The table of flags, `flags.txt`, and what it names: groups of commands, lists, and types, which turn the text of a value into the value.

Defaults and choices are literals: a command must not import the engine of another one. `tests/unit/test_options.py` compares them.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from roce_exporter.words import seconds_of, word_list

DEFAULT_PORT = 10123
"""To be registered: the public list of exporter ports was not available when the port was chosen."""
HOST = ("demo", "serve", "once", "capture", "explain", "check", "probe")
"""Commands that read a host."""
CHECKING = ("demo", "serve", "once", "check")
COLLECTING = ("serve", "once", "check")
SERVING = ("serve", "probe")
EVERY = (*HOST, "wire", "tool namespaces", "tool otel-config", "tool translate")

KEY = "its key in the file of --config.file"  # instead of a flag for what is rarely set


class Flag(NamedTuple):
    """One flag, or without dashes one argument, of some commands."""

    name: str
    commands: tuple[str, ...]
    metavar: str
    """Empty: the flag takes no value."""
    help: str
    default: Any = ""
    type: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    is_repeated: bool = False
    nargs: str | None = None
    short: str = ""
    dest: str = ""
    """Name in the options, if it is not that of the flag with underscores."""
    instead: str = ""
    """What replaces a flag of an earlier version: it is accepted with one line on standard error, and not in `--help`."""

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return not (self.metavar or self.choices)


DAY = 86400
LONGEST = 7 * DAY
PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+")


def seconds(least: float = 0.0, most: float = DAY) -> Callable[[str], float]:
    """Seconds, at least `least` (without `least`: above 0) and at most `most`."""
    bounds = f"from {least:g} to {most:g}" if least else f"above 0 and up to {most:g}"

    def parse(text: str) -> float:
        number = _float(text)
        if not (least <= number <= most and number > 0):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds {bounds}")
        return number

    return parse


def whole(most: int) -> Callable[[str], int]:
    """A whole number from 1 to `most`."""

    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", text) or not 0 < int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return int(text)

    return parse


def ranges(most: int) -> Callable[[str], frozenset[int]]:
    """Numbers and ranges from 0 to `most`, such as `24-31,46`."""

    def parse(text: str) -> frozenset[int]:
        found: set[int] = set()
        for part in text.split(","):
            match = re.fullmatch(r"([0-9]{1,2})(?:-([0-9]{1,2}))?", part.strip())
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
            if not first <= last <= most:
                raise argparse.ArgumentTypeError(
                    f"{text!r} is not a list of numbers and ranges from 0 to {most}, such as 24-31,46"
                )
            found |= set(range(first, last + 1))
        return frozenset(found)

    return parse


def percent(text: str) -> float:
    """A share as a percentage from 0.1 to 100; the value is from 0.001 to 1."""
    number = _float(text)
    if not 0.1 <= number <= 100:  # noqa: PLR2004 - the bounds are in the message
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0.1 to 100")
    return number / 100


def duration(text: str) -> float:
    """A time, in seconds if it has no unit."""
    number = seconds_of(f"{text}s" if text[-1:].isdecimal() else text)
    if number is None or not 0 < number <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time from 1s to 7d, such as 90s, 10m or 2h")
    return number


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:  # too many repetitions, too many brackets
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid regular expression: {error}") from None


def web_path(text: str) -> str:
    """The path of a page, as clients send it: no page has a path with an escape, a query, or segments such as `..`."""
    if not PATH.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no plain absolute path; use one like /metrics")
    return text


def metric(text: str) -> str:
    """A name of the catalogue, but for what every process has."""
    from roce_exporter.catalog import AREAS, PROCESS  # noqa: PLC0415 - only for this flag: the table takes long to import

    if all(row.name != text for area in AREAS if area.name != PROCESS for row in area.rows):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a metric of this version that can be left out; exact names are in docs/metrics.md"
        )
    return text


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


PROBE_PORT = 10126  # the port of `probe` for metrics; probes themselves are UDP, to port 10124

LOG_LEVELS = ("debug", "info", "warn", "error")
SOURCES = word_list(
    "port rdma_netlink hw_counters counters resources optional_counters pcie sensors delay_drop netdev ethtool dcb pause "
    "settings link fec ethernet transceiver mac_address virtual_functions addresses limits devlink devlink_info devlink_vnic "
    "configuration owners kernel_log health"
)
"""Sources that can be disabled: those of a collection, and what works between collections."""
SCENARIOS = word_list(
    "quiet incast pfc-storm slow-receiver victim misconfigured flapping overheating lossy lossy-path dead-peer firmware broken"
)
VENDORS = ("mlx5", "mlx5-lag", "bnxt", "ionic", "ice")
PROFILES = ("amd-pollara", "auto", "broadcom-thor2", "lossy", "nvidia-lossless", "pfc-only")
EXPORTERS = ("node_exporter", "rdma_exporter", "spiderpool")  # those whose names `translate` knows
JSON, PACKETS = "json", "packets"

CHOICES = {"LOG_LEVELS": LOG_LEVELS, "SOURCES": SOURCES, "SCENARIOS": SCENARIOS, "EXPORTERS": EXPORTERS}
LISTS = {**CHOICES, "VENDORS": VENDORS, "PROFILES": PROFILES}
PORTS = {"DEFAULT_PORT": DEFAULT_PORT, "PROBE_PORT": PROBE_PORT}
PLACEHOLDERS = {**{name: ", ".join(words) for name, words in LISTS.items()}, **PORTS}


def read(text: str) -> Iterator[Flag]:
    """The rows of the table, in its order. Raises ValueError: a row has an unknown option or type, or fewer than three fields."""
    for block in re.split(r"\n(?=[^ ])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
        head, *more = block.strip().splitlines() or [""]
        if head:
            yield _flag(head, " ".join(line.strip() for line in more).format_map(PLACEHOLDERS))


def _flag(head: str, meaning: str) -> Flag:
    name, commands, metavar, *options = re.split(r" {2,}", head)
    given = {key: text for key, _, text in (option.partition("=") for option in options)}
    kind = _type(given.pop("type")) if "type" in given else None
    repeated, is_key = (given.pop(word, None) is not None for word in ("repeated", "key"))
    listed = given.pop("choices", "")
    choices = CHOICES.get(listed) or tuple(filter(None, listed.split(", ")))
    default: Any = () if repeated else None if kind else ""
    if "default" in given:
        default = (kind or str)(given.pop("default"))
    elif metavar == "-" and not choices:
        default = False
    if unknown := given.keys() - {"nargs", "short", "dest", "instead"}:
        raise ValueError(f"{name}: unknown option {', '.join(unknown)}")
    if is_key:
        given["instead"] = KEY
    groups = (globals().get(one, (one,)) for one in commands.split(", "))
    where = tuple(command for group in groups for command in group)
    return Flag(name, where, metavar.removeprefix("-"), meaning, default, kind, choices, repeated, **given)


def _type(text: str) -> Callable[[str], Any]:
    """`pattern` is that function here, `seconds(0.05, 1)` what it returns for these arguments."""
    name, brackets, arguments = text.rstrip(")").partition("(")
    found: Callable[..., Any] = int if name == "int" else globals()[name]
    if not brackets:
        return found
    numbers = (float(one) if name == "seconds" else int(one) for one in filter(None, arguments.split(", ")))
    made: Callable[[str], Any] = found(*numbers)
    return made


FLAGS = tuple(read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")))
KEYS = tuple(flag for flag in FLAGS if flag.instead == KEY)
"""What is rarely set: keys of the configuration file and no flags. As flags they work for one minor release, with one line on standard error."""
