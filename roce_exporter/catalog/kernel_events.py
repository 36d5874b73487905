"""What messages of the kernel log mean: the events with their severity, and the messages of the drivers, `tables/kernel_log.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from roce_exporter.catalog.table import CatalogError, TableLine, sections


class Severity(StrEnum):
    """What an event says about the device at that moment."""

    FAILED = "failed"
    """It carries no traffic, or is about to lose it: an alert, and a series from the start."""
    DEGRADED = "degraded"
    """It works, but worse or not for long."""
    INFORMATION = "information"
    """Part of normal operation, or counted by the driver as well."""


class KernelEvent(NamedTuple):
    """One value of the label `event`."""

    name: str
    severity: Severity
    meaning: str
    """One line without a full stop."""


class KernelMessage(NamedTuple):
    """One message."""

    event: str
    """The name of a `KernelEvent`."""
    drivers: tuple[str, ...]
    """The first word of the message: the kernel driver of the function, or the module. Empty: any."""
    pattern: str
    """A regular expression."""
    source: str
    """File below the kernel's source and function; `6.1` or `7.3` if only kernels up to or from there have it."""


_MESSAGE = re.compile(r"(\w+) /(.+)/ (\S.*)")


def _message(entry: TableLine, drivers: tuple[str, ...], folder: str) -> KernelMessage:
    found = _MESSAGE.fullmatch(" ".join((entry.head, *(line.strip() for _, line in entry.more))))
    if not found:
        raise CatalogError(f"{entry.place}: {entry.head!r} is not EVENT /PATTERN/ FILE FUNCTION")
    event, pattern, source = found.groups()
    return KernelMessage(
        event,
        drivers,
        pattern,
        source if source.startswith(("drivers/", "net/", "kernel/")) else f"{folder}/{source}",
    )


def _messages() -> Iterator[KernelMessage]:
    for heading, entries in _SECTIONS[len(Severity) :]:
        names, _, folder = heading.partition(": ")
        drivers = () if names == "*" else tuple(names.split(", "))
        yield from (_message(one, drivers, folder) for one in entries)


_SECTIONS = sections("kernel_log.txt")

EVENTS = tuple(
    KernelEvent(name, Severity(severity), meaning)
    for severity, entries in _SECTIONS[: len(Severity)]
    for name, _, meaning in (one.head.partition(": ") for one in entries)
)
"""By severity; within one, the worst first."""

FAILED_EVENTS = tuple(one.name for one in EVENTS if one.severity is Severity.FAILED)
"""The events that have a series of 0 from the start, so that `increase()` sees the first message."""

MESSAGES = tuple(_messages())
"""All messages; the order counts within a driver."""
