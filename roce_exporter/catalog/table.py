"""Read the tables of rows, `tables/*.txt`.

    [area]
    What the area is: its introduction in docs/metrics.md.

    roce_NAME{LABEL,LABEL} KIND UNIT SET [experimental] [usual=N] [only LABEL=VALUE,VALUE]
        HELP, on as many lines as it needs.
      DRIVER SOURCE: RAW [x N] [/ N] [(N bits)]

A line with a raw name adds one driver's name of the row's fact; their order is the order of preference. `A + B` is the sum of
several names, `A minus B` a difference. The name may hold `{priority}` and other labels of the row. The value in base units is
raw x N / N; a width that is not stated is 64 bits. The driver is `*` for names that mean the same for every driver. `#` begins
a line that is a comment. Text, not Python, because a formatter gives every argument a line of its own: these rows are half as
long as in Python, and load as fast as compiled modules.
"""

from __future__ import annotations

import re
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.row import MetricSet, Row, Spelling

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = (
    "ports",
    "transport",
    "requests",
    "pause",
    "settings",
    "ethernet",
    "link",
    "exporter",
    "switches",
    "owners",
    "host",
)
"""The files, in the order of the catalogue."""

FOLDER = Path(__file__).with_name("tables")

_HEAD = re.compile(
    r"(?P<name>[^\s{]*)\{(?P<labels>[^}\s]*)\} (?P<kind>\S+) (?P<unit>\S+) (?P<set>lean|standard|full)"
    r"(?P<stability> experimental)?(?: usual=(?P<usual>[0-9]+))?(?: only (?P<label>\w+)=(?P<values>.+))?"
)
_RAW = re.compile(
    r"  (?P<dialect>\S+) (?P<source>\w+): (?P<raw>.+?)"
    r"(?: x (?P<times>[0-9]+))?(?: / (?P<per>[0-9]+))?(?: \((?P<bits>[0-9]+) bits\))?"
)
_SETS = {str(one): one for one in MetricSet}


class CatalogError(ValueError):
    """A table that contradicts itself or cannot be read; one line that names the row, or file and line."""


class Area(NamedTuple):
    """One section of a table."""

    name: str
    introduction: str
    """Empty where the section continues an earlier one."""
    rows: tuple[Row, ...]


def areas() -> tuple[Area, ...]:
    """All areas of all files."""
    texts = ((f"{name}.txt", (FOLDER / f"{name}.txt").read_text(encoding="utf-8")) for name in TABLES)
    return tuple(area for place, text in texts for area in read(place, text))


def read(place: str, text: str) -> Iterator[Area]:
    """The areas of one file.

    Raises:
        CatalogError: a line is not of one of the forms above.
    """
    numbered = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()[:1] != "#")
    name, introduction, blocks = "", list[str](), list[list[tuple[int, str]]]()
    for number, line in numbered:
        if line.startswith("["):
            if name:
                yield Area(name, "\n".join(introduction).strip(), tuple(_row(place, one) for one in blocks))
            name, introduction, blocks = line.strip("[]"), [], []
        elif "{" in line.partition(" ")[0]:
            blocks.append([(number, line)])
        elif blocks and line.startswith("  "):
            blocks[-1].append((number, line))
        elif not blocks and not line.startswith(" "):
            introduction.append(line)
        elif line:
            raise CatalogError(f"{place}:{number}: {line.strip()!r} is not an area, a row, or part of a row")
    if name:
        yield Area(name, "\n".join(introduction).strip(), tuple(_row(place, one) for one in blocks))


def _row(place: str, block: list[tuple[int, str]]) -> Row:
    (number, head), *rest = block
    found = _HEAD.fullmatch(head)
    if not found:
        name = head.partition("{")[0]
        raise CatalogError(
            f"{place}:{number}: {name}: needs labels in braces, kind, unit and set (lean, standard or full), in this order"
        )
    values = found["values"].split(",") if found["values"] else ()
    return Row(
        found["name"],
        intern(found["kind"]),
        intern(found["unit"]),
        " ".join(line.strip() for _, line in rest if line.startswith("    ")),
        tuple(_spelling(place, *one) for one in rest if not one[1].startswith("    ")),
        tuple(intern(label) for label in found["labels"].split(",") if label),
        "experimental" if found["stability"] else "stable",
        _SETS[found["set"]],
        int(found["usual"]) if found["usual"] else None,
        (found["label"], *values) if values else (),
    )


def _spelling(place: str, number: int, line: str) -> Spelling:
    found = _RAW.fullmatch(line)
    if not found:
        raise CatalogError(f"{place}:{number}: {line.strip()!r} is not DRIVER SOURCE: RAW")
    difference = " minus " in found["raw"]
    return Spelling(
        intern(found["dialect"]),
        intern(found["source"]),
        tuple(map(intern, found["raw"].split(" minus " if difference else " + "))),
        int(found["bits"] or 64),
        int(found["times"] or 1),
        int(found["per"] or 1),
        difference,
    )
