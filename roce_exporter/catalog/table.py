"""Read the tables of rows, `tables/*.txt`.

    [area]
    What the area is: its introduction in docs/metrics.md.

    roce_NAME{LABEL,LABEL} KIND UNIT SET [experimental] [usual=N] [only LABEL=VALUE,VALUE]
        HELP, on as many lines as it needs.
      DRIVER[,DRIVER] SOURCE: RAW [x N] [/ N] [(N bits)] [| RAW ...]

A line with raw names adds the names that these drivers have for the row's fact; their order is the order of preference. `A + B` is
the sum of several names, `A minus B` a difference. The name may hold `{priority}` and other labels of the row. The value in base units is
raw x N / N; a width that is not stated is 64 bits. The driver is `*` for names that mean the same for every driver. `#` begins
a line that is a comment. Text, not Python, because a formatter gives every argument a line of its own: these rows are half as
long as in Python, and load as fast as compiled modules.

A choice in the name, `roce_phy_<receive|transmit>_bytes_total`, makes a row of each of its texts; every choice below it, as
`<rx|tx>_bytes_phy`, has as many texts and follows it.

    owners: NAME[=SET] ...

are rows `roce_owner_NAME` for the part of the port's counter `roce_NAME` that an owner's queue pairs caused; the set is lean if none is given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from sys import intern
from typing import NamedTuple

from roce_exporter.catalog.row import MetricSet, Row, Spelling
from roce_exporter.words import word_list

TABLES = word_list("ports transport requests pause settings ethernet link exporter switches host")
"""The files of rows, in the order of the catalogue."""

FOLDER = Path(__file__).with_name("tables")

_HEAD = re.compile(
    r"(?P<name>[^\s{]*)\{(?P<labels>[^}\s]*)\} (?P<kind>\S+) (?P<unit>\S+) (?P<set>lean|standard|full)"
    r"(?P<stability> experimental)?(?: usual=(?P<usual>[0-9]+))?(?: only (?P<label>\w+)=(?P<values>.+))?"
)
_RAWS = re.compile(r"  (?P<dialects>\S+) (?P<source>\w+): (?P<raws>.+)")
_RAW = re.compile(
    r"(?P<raw>.+?)(?: x (?P<times>[0-9]+))?(?: / (?P<per>[0-9]+))?(?: \((?P<bits>[0-9]+) bits\))?"
)
_CHOICE = re.compile(r"<([^<>]*\|[^<>]*)>")
_OWNERS = "owners: "
_SETS = {str(one): one for one in MetricSet}


class CatalogError(ValueError):
    """A table that contradicts itself or cannot be read; one line that names the row, or file and line."""


class Area(NamedTuple):
    """One section of the rows."""

    name: str
    introduction: str
    """Empty where the section continues an earlier one."""
    rows: tuple[Row, ...]


class TableLine(NamedTuple):
    """A line of a table and the indented lines below it."""

    place: str
    """File and number of the line."""
    head: str
    more: tuple[tuple[str, str], ...]
    """Place and text of each indented line, with its indentation."""


def sections(name: str, text: str | None = None) -> tuple[tuple[str, tuple[TableLine, ...]], ...]:
    """The headings of a file of `tables/`, or of a text that is elsewhere, each with what is below it.

    Raises:
        CatalogError: an indented line is below no other, or a line below no heading.
    """
    return tuple(
        (heading, tuple(one for one in entries if one.head)) for heading, entries in _sections(name, text)
    )


def parts(entry: TableLine, names: Collection[str]) -> dict[str, list[str]]:
    """The lines `NAME: TEXT` below an entry by name, with what is indented further as part of the text; all names, some without a text.

    Raises:
        CatalogError: a line has another name.
    """
    found: dict[str, list[str]] = {name: [] for name in names}
    last: list[str] = []
    for place, line in entry.more:
        name, colon, text = line.strip().partition(": ")
        if line.startswith("    "):
            last[-1] += f" {line.strip()}"
        elif colon and name in found:
            last = found[name]
            last.append(text)
        else:
            raise CatalogError(f"{place}: {line.strip()!r} is not one of {', '.join(names)}")
    return found


def _sections(name: str, text: str | None = None) -> Iterator[tuple[str, list[TableLine]]]:
    """With an entry for each empty line."""
    if text is None:
        text = (FOLDER / name).read_text(encoding="utf-8")
    heading, entries = "", list[TableLine]()
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{name}:{number}"
        if line.startswith("["):
            if heading:
                yield heading, entries
            heading, entries = line[1:-1], []
        elif line.lstrip().startswith("#") or not (line or heading):
            continue
        elif line.startswith("  ") and entries and entries[-1].head:
            entries[-1] = entries[-1]._replace(more=(*entries[-1].more, (place, line)))
        elif line.startswith(" ") or not heading:
            raise CatalogError(f"{place}: {line.strip()!r} is not a heading, a row, or part of a row")
        else:
            entries.append(TableLine(place, line, ()))
    yield heading, entries


def areas() -> tuple[Area, ...]:
    """All areas of all files."""
    found: list[Area] = []
    for name in TABLES:
        found += read(f"{name}.txt", known={row.name: row for area in found for row in area.rows})
    return tuple(found)


def read(name: str, text: str | None = None, known: Mapping[str, Row] | None = None) -> Iterator[Area]:
    """The areas of one file; `known`: the rows of ports, by name, for those of owners. CatalogError: a line is not of one of the forms above."""
    for heading, entries in _sections(name, text):
        first = next(
            (number for number, one in enumerate(entries) if "{" in one.head.partition(" ")[0]), len(entries)
        )
        introduction = "\n".join(one.head for one in entries[:first]).strip()
        rows: list[Row] = []
        for entry in entries[first:]:
            if entry.head.startswith(_OWNERS):
                rows += _owned(entry, known or {})
            elif entry.head:
                rows += map(_row, _variants(entry))
        yield Area(heading, introduction, tuple(rows))


def _owned(entry: TableLine, known: Mapping[str, Row]) -> Iterator[Row]:
    """The rows of owners for these counters of ports: without raw names of their own, and with the first sentence of their HELP."""
    words = " ".join((entry.head.removeprefix(_OWNERS), *(line for _, line in entry.more))).split()
    for name, _, lowest in (word.partition("=") for word in words):
        row = known[f"roce_{name}"]
        said = f"{row.help.partition('. ')[0].rstrip('.')}. Counts only queue pairs of the owner that are bound to counter sets."
        labels, lowest_set = ("device", "owner", "port"), _SETS[lowest or "lean"]
        yield Row(f"roce_owner_{name}", row.kind, row.unit, said, (), labels, "experimental", lowest_set)


def _variants(entry: TableLine) -> Iterator[TableLine]:
    """The entry once for each text of the choice in its name."""
    lines = (entry.head, *(line for _, line in entry.more))
    choices = [choice.split("|") for line in lines for choice in _CHOICE.findall(line)]
    numbers = {len(choice) for choice in choices if _CHOICE.search(entry.head)}
    if len({len(choice) for choice in choices}) > 1 or (choices and not numbers):
        raise CatalogError(f"{entry.place}: the choices are not as many as those of the name")
    for number in range(max(numbers, default=1)):
        texts = [_CHOICE.sub(lambda found: found[1].split("|")[number], line) for line in lines]  # noqa: B023 - called at once
        places = (place for place, _ in entry.more)
        yield TableLine(entry.place, texts[0], tuple(zip(places, texts[1:], strict=True)))


def _row(entry: TableLine) -> Row:
    found = _HEAD.fullmatch(entry.head)
    if not found:
        name = entry.head.partition("{")[0]
        raise CatalogError(
            f"{entry.place}: {name}: needs labels in braces, kind, unit and set (lean, standard or full), in this order"
        )
    values = found["values"].split(",") if found["values"] else ()
    return Row(
        found["name"],
        intern(found["kind"]),
        intern(found["unit"]),
        " ".join(line.strip() for _, line in entry.more if line.startswith("    ")),
        tuple(
            spelling for one in entry.more if not one[1].startswith("    ") for spelling in _spellings(*one)
        ),
        tuple(intern(label) for label in found["labels"].split(",") if label),
        "experimental" if found["stability"] else "stable",
        _SETS[found["set"]],
        int(found["usual"]) if found["usual"] else None,
        (found["label"], *values) if values else (),
    )


def _spellings(place: str, line: str) -> Iterator[Spelling]:
    found = _RAWS.fullmatch(line)
    if not found:
        raise CatalogError(f"{place}: {line.strip()!r} is not DRIVER SOURCE: RAW")
    for text in found["raws"].split(" | "):
        one = _RAW.fullmatch(text)
        if not one:
            raise CatalogError(f"{place}: {text!r} is not RAW")
        difference = " minus " in one["raw"]
        raw = tuple(map(intern, one["raw"].split(" minus " if difference else " + ")))
        numbers = int(one["bits"] or 64), int(one["times"] or 1), int(one["per"] or 1)
        for dialect in found["dialects"].split(","):
            yield Spelling(intern(dialect), intern(found["source"]), raw, *numbers, difference)
