"""Types of flags: each turns the text of a value into the value, or says in one line what it must be."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DAY = 86400
LONGEST = 7 * DAY
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY}
RESERVED = ("/", "/-/healthy", "/-/ready", "/debug/snapshot", "/debug/events", "/debug/owners", "/debug/wire")


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
    """A time with its unit, in seconds."""
    match = re.fullmatch(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)([smhd]?)", text)
    number = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not 0 < number <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time from 1s to 7d, such as 90s, 10m or 2h")
    return number


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:  # too many repetitions, too many brackets
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid regular expression: {error}") from None


def web_path(text: str) -> str:
    """The path of a page."""
    if not text.startswith("/") or text in RESERVED:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an absolute path, or is reserved; use one like /metrics"
        )
    return text


def metric(text: str) -> str:
    """A name of the catalogue."""
    from roce_exporter.catalog import CATALOG  # noqa: PLC0415 - only for this flag: the table takes long to import

    if all(row.name != text for row in CATALOG):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a metric of this version; exact names are in docs/metrics.md"
        )
    return text


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
