"""One result of the check of a new host (`roce-exporter doctor`)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Topic(StrEnum):
    """The parts of the page, in their order."""

    DEVICES = "devices"
    COUNTERS = "counters"
    SETTINGS = "settings"
    PRIVILEGES = "privileges"
    CLOCK = "clock"
    SCRAPING = "scraping"


class Status(StrEnum):
    """What a result means for the host."""

    OK = "ok"
    ATTENTION = "attention"
    """Something must be done before the host is fit to be watched."""
    OPTIONAL = "optional"
    """More could be seen."""
    UNKNOWN = "unknown"
    """Could not be checked."""


class CheckupItem(NamedTuple):
    """One result."""

    topic: Topic
    status: Status
    text: str
    """One sentence."""
    next: str = ""
    """The command or the step that changes it, or shows more."""


def is_fit(items: tuple[CheckupItem, ...]) -> bool:
    """Whether nothing needs attention."""
    return all(item.status is not Status.ATTENTION for item in items)
