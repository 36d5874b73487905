"""Raw names that are deliberately not exported, each with the reason: `tables/left_out.txt`.

A reason has a category, which a test can check: names of one queue contain a number, counters that are never written have
no row, the parts of a sum have rows of their own, and no counter of the physical port is in the category of the kernel's
own path through the driver. See `tests/drift/test_reasons.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.table import CatalogError, sections

SUM = "sum"
NEVER = "never written"
NARROW = "low bits"
SAME = "same"
"""Another metric has the fact; the text names it if it is a single metric."""


class Reason(NamedTuple):
    """Why names are left out: the category for tests, and the sentence for users."""

    category: str
    text: str


class LeftOut(NamedTuple):
    """Names of one source and dialect whose full text matches a regular expression, and why they are left out."""

    source: str
    dialect: str
    pattern: str
    reason: Reason
    parts: tuple[str, ...] = ()
    """For a sum: the raw names that it adds up."""


def _entries() -> Iterator[LeftOut]:
    (_, first), *rest = sections("left_out.txt")
    for entry in first:
        category, _, text = entry.head.partition(":")
        CATEGORIES[category] = text.strip()
    for heading, entries in rest:
        source, _, dialect = heading.partition(" ")
        for entry in entries:
            category, _, pattern = entry.head.partition(": ")
            lines = [line for _, line in entry.more]
            pattern += "".join(line.strip() for line in lines if line.startswith("  |"))
            reason = " ".join(line.strip() for line in lines if line.startswith("    "))
            text = reason or CATEGORIES.get(category, "")
            if not text:
                raise CatalogError(
                    f"{entry.place}: {entry.head!r} has no reason, and {category!r} has none for all"
                )
            parts = " ".join(line.strip(" =") for line in lines if line[2] not in " |")
            yield LeftOut(
                source, dialect, pattern, Reason(category, text), tuple(parts.split(" + ")) if parts else ()
            )


CATEGORIES: dict[str, str] = {}
"""The text of each category; empty where every entry has its own."""
LEFT_OUT = tuple(_entries())


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def entry_of(dialect: str, source: str, raw: str) -> LeftOut | None:
    """The entry that leaves this raw name out, or None."""
    for entry in LEFT_OUT:
        if (
            entry.source == source
            and entry.dialect in (ANY, dialect)
            and _expression(entry.pattern).fullmatch(raw)
        ):
            return entry
    return None


def reason_for(dialect: str, source: str, raw: str) -> str:
    """Why this raw name is deliberately not exported; empty when it is not left out."""
    entry = entry_of(dialect, source, raw)
    return entry.reason.text if entry else ""
