"""Render samples as Prometheus text format 0.0.4 and 1.0.0 and as OpenMetrics 1.0.

All lines are made when the set of series changes. A scrape fills in the values that are another object than before: one that is
the same object cannot have changed, as most counters of an idle port. Every value went through `int` or `float`, so that no file
of the host can inject a line; integers stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import compress, count
from operator import is_not
from typing import TYPE_CHECKING

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTER
from roce_exporter.model import are_same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.catalog.row import Row
    from roce_exporter.normalise.series import Samples, Series, Value


Part = tuple["Value", ...]
"""The values of one part of a collection: a device, say."""

_UNWRITTEN: Value = float("nan")
"""No value of a collection is this object."""


class FilledLines:
    """Lines whose values are filled in."""

    def __init__(self, starts: Sequence[str], places: Sequence[Sequence[int]], parts: Sequence[Part]) -> None:
        """`starts` are the lines up to their values. `places` has, per part, the line of each value.

        A value that is None in `parts` has no line, in this and all further fillings.
        """
        self._texts = [text for start in starts for text in (start, "")]
        self._places = places
        self._parts: list[Part] = [
            tuple([None if value is None else _UNWRITTEN for value in part]) for part in parts
        ]

    def fill(self, parts: Sequence[Part]) -> bytes:
        """The lines with these values."""
        for number, (part, last) in enumerate(zip(parts, self._parts, strict=True)):
            if part is not last:
                self._write(number, part, last)
        return "".join(self._texts).encode("utf-8", "backslashreplace")  # no name costs the scrape

    def _write(self, number: int, part: Part, last: Part) -> None:
        texts, places = self._texts, self._places[number]
        if len(part) != len(last):
            raise ValueError(f"{len(part)} values for {len(last)} series")
        for position in compress(count(), map(is_not, part, last)):
            # The shortest text that reads back as the same float, and the exact integer.
            texts[2 * places[position] + 1] = f"{part[position]!a}\n"
        self._parts[number] = part


MOST_TEMPLATES = 8
"""Templates kept at once: 3 formats, each complete and without the currently missing values, and some room."""


class Format(Enum):
    """The formats, each with its Content-Type; Prometheus 3 refuses a scrape with a wrong one."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    TEXT_1 = "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class NoRowError(ValueError):
    """A series of a metric that is not in the catalogue."""


@dataclass(slots=True)
class _Layout:
    """One set of series in the order of the output."""

    parts: tuple[tuple[Series, ...], ...]
    series: tuple[Series, ...]
    places: tuple[tuple[int, ...], ...]
    """Per part, the position of each of its series."""
    templates: dict[tuple[Format, tuple[int, ...]], FilledLines]
    """The lines per format and positions without a value."""


class Renderer:
    """Renders collections; keeps the templates of the current set of series."""

    def __init__(self, rows: Sequence[Row] = CATALOG) -> None:
        self._rows = {row.name: position for position, row in enumerate(rows)}
        self._layout = _Layout((), (), (), {})

    def render(self, parts: Sequence[Samples], form: Format) -> bytes:
        """The exposition of these samples, without the closing `# EOF` of OpenMetrics.

        Raises:
            NoRowError: a series belongs to no row of the catalogue.
        """
        layout = self._lay_out(tuple(part.series for part in parts))
        values = [part.values for part in parts]
        missing: tuple[int, ...] = ()
        if any([None in part for part in values]):  # noqa: C419 - a generator takes longer
            missing = tuple(sorted(_missing(layout, values)))
        lines = layout.templates.get((form, missing))
        if lines is None:
            lines = _new_lines(layout, form, missing, values)
        return lines.fill(values)

    def _lay_out(self, parts: tuple[tuple[Series, ...], ...]) -> _Layout:
        if are_same(parts, self._layout.parts):
            return self._layout
        flat = [series for part in parts for series in part]
        for series in flat:
            if series.row.name not in self._rows:
                raise NoRowError(
                    f"{series.row.name} is not in the catalogue; add a row in roce_exporter/catalog"
                )
        order = sorted(range(len(flat)), key=lambda position: self._rows[flat[position].row.name])
        place = dict(zip(order, range(len(order)), strict=True))
        numbers = iter(range(len(flat)))
        places = tuple(tuple(place[next(numbers)] for _ in part) for part in parts)
        self._layout = _Layout(parts, tuple(flat[position] for position in order), places, {})
        return self._layout


def _missing(layout: _Layout, parts: Sequence[Part]) -> list[int]:
    """The positions of the series without a value."""
    return [
        place
        for places, part in zip(layout.places, parts, strict=True)
        for place, value in zip(places, part, strict=True)
        if value is None
    ]


def _new_lines(layout: _Layout, form: Format, missing: tuple[int, ...], parts: Sequence[Part]) -> FilledLines:
    absent = frozenset(missing)
    present = [position for position in range(len(layout.series)) if position not in absent]
    line = dict(zip(present, range(len(present)), strict=True))
    places = tuple(tuple(line.get(place, -1) for place in part) for part in layout.places)
    if len(layout.templates) >= MOST_TEMPLATES:
        layout.templates.clear()
    starts = _starts([layout.series[position] for position in present], form)
    lines = layout.templates[form, missing] = FilledLines(starts, places, parts)
    return lines


def _starts(series: Sequence[Series], form: Format) -> list[str]:
    """Each line up to its value, the first one of a row with the header."""
    lines: list[str] = []
    row: Row | None = None
    for one in series:
        before = header(one.row, form) if one.row is not row else ""
        row = one.row
        lines.append(f"{before}{row.name}{one.suffix}{_labels(row.labels, one.labels)} ")
    return lines


def header(row: Row, form: Format) -> str:
    """The HELP, TYPE and, in OpenMetrics, UNIT lines of a row."""
    name = row.name
    if form is Format.OPENMETRICS and row.kind == COUNTER:
        name = name.removesuffix("_total")
    text = row.help.replace("\\", r"\\").replace("\n", r"\n")
    unit = (
        f"# UNIT {name} {row.unit}\n" if form is Format.OPENMETRICS and name.endswith(f"_{row.unit}") else ""
    )
    if form is Format.OPENMETRICS:
        text = text.replace('"', r"\"")
    return f"# HELP {name} {text}\n# TYPE {name} {row.kind}\n{unit}"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    # Prometheus treats an empty label as an absent one, so unknown values are left out.
    pairs = [f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True) if value]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@lru_cache(maxsize=64)
def negotiate(accept: str) -> Format:
    """The format that an Accept header prefers (RFC 9110, 12.5.1): the highest q, the first named among equals.

    A header without a supported format gets text 0.0.4, as from Prometheus' own client libraries.
    """
    best, best_quality = Format.TEXT, 0.0
    for item in accept.split(","):
        kind, parameters = _media_type(item)
        form = _FORMATS.get((kind, parameters.get("version", "")))
        quality = _quality(parameters.get("q", "1"))
        if form is not None and quality > best_quality:
            best, best_quality = form, quality
    return best


_FORMATS = {
    ("application/openmetrics-text", "1.0.0"): Format.OPENMETRICS,
    ("application/openmetrics-text", ""): Format.OPENMETRICS,
    ("text/plain", "1.0.0"): Format.TEXT_1,
    ("text/plain", "0.0.4"): Format.TEXT,
    ("text/plain", ""): Format.TEXT,
    ("*/*", ""): Format.TEXT,
}


def _media_type(item: str) -> tuple[str, dict[str, str]]:
    kind, *rest = (part.strip() for part in item.split(";"))
    pairs = (part.partition("=") for part in rest)
    return kind.lower(), {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def _quality(text: str) -> float:
    try:
        quality = float(text)
    except ValueError:
        return 0.0
    return quality if quality <= 1.0 else 0.0
