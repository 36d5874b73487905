"""Render samples as Prometheus text format 0.0.4 and 1.0.0 and as OpenMetrics 1.0.

All lines are made when the set of series changes. A scrape fills in the values that are another object than before: one that is
the same object cannot have changed, as most counters of an idle port. Every value went through `int` or `float`, so that no file
of the host can inject a line; integers stay exact.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import compress, count
from operator import is_not
from typing import TYPE_CHECKING

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTER, Row
from roce_exporter.model import are_same
from roce_exporter.words import escaped

if TYPE_CHECKING:
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


class OneText:
    """The same as one text, compressed to a tenth, for many switches, most of whose values change."""

    def __init__(self, starts: Sequence[str], places: Sequence[Sequence[int]], parts: Sequence[Part]) -> None:
        """As of `FilledLines`."""
        text = "".join([start.replace("%", "%%") + "%a\n" for start in starts])
        self._text = zlib.compress(text.encode("utf-8", "backslashreplace"), 1)
        came = {place: at for at, place in enumerate(place for part in places for place in part)}
        self._runs: list[slice] = []
        for place in range(len(starts)):
            at = came[place]
            if self._runs and self._runs[-1].stop == at:
                at = self._runs.pop().start
            self._runs.append(slice(at, came[place] + 1))
        self._lengths = [*map(len, parts)]

    def fill(self, parts: Sequence[Part]) -> bytes:
        """The lines with these values."""
        if [*map(len, parts)] != self._lengths:
            raise ValueError(f"{sum(map(len, parts))} values for {sum(self._lengths)} series")
        values = [value for part in parts for value in part]
        ordered = [value for run in self._runs for value in values[run]]
        return zlib.decompress(self._text) % (*ordered,)


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

    parts: tuple[Sequence[Series], ...]
    order: array[int]
    """Of each series in the order of the output, its position among those of all parts."""
    places: tuple[array[int], ...]
    """Per part, the position of each of its series."""
    templates: dict[tuple[Format, tuple[int, ...]], FilledLines | OneText]
    """The lines per format and positions without a value."""


def _positions(rows: Sequence[Row]) -> dict[str, int]:
    return {row.name: position for position, row in enumerate(rows)}


_POSITIONS = _positions(CATALOG)


class Renderer:
    """Renders collections; keeps the templates of the current set of series."""

    def __init__(
        self, rows: Sequence[Row] = CATALOG, lines: type[FilledLines | OneText] = FilledLines
    ) -> None:
        self._rows = _POSITIONS if rows is CATALOG else _positions(rows)
        self._lines = lines
        self._layout = _Layout((), array("i"), (), {})

    def render(self, parts: Sequence[Samples], form: Format) -> bytes:
        """The exposition of these samples, without the closing `# EOF` of OpenMetrics.

        Raises:
            NoRowError: a series belongs to no row of the catalogue.
        """
        layout = self._lay_out(tuple(part.series for part in parts))
        values = [part.values for part in parts]
        missing: tuple[int, ...] = ()
        if any([None in part for part in values]):  # noqa: C419 - a generator takes longer
            pairs = (
                pair for both in zip(layout.places, values, strict=True) for pair in zip(*both, strict=True)
            )
            missing = tuple(sorted(place for place, value in pairs if value is None))
        lines = layout.templates.get((form, missing))
        if lines is None:
            lines = _new_lines(layout, form, missing, values, self._lines)
        return lines.fill(values)

    def is_ready(self, parts: Sequence[Samples], form: Format) -> bool:
        """Whether these series were rendered in this format before: the first time takes long."""
        is_same = are_same(tuple(part.series for part in parts), self._layout.parts)
        return is_same and any(one is form for one, _ in self._layout.templates)

    def _lay_out(self, parts: tuple[Sequence[Series], ...]) -> _Layout:
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
        places = tuple(array("i", [place[next(numbers)] for _ in part]) for part in parts)
        self._layout = _Layout(parts, array("i", order), places, {})
        return self._layout


def _new_lines(
    layout: _Layout,
    form: Format,
    missing: tuple[int, ...],
    parts: Sequence[Part],
    kind: type[FilledLines | OneText],
) -> FilledLines | OneText:
    absent = frozenset(missing)
    present = [position for position in range(len(layout.order)) if position not in absent]
    series = [one for part in layout.parts for one in part]
    line = dict(zip(present, range(len(present)), strict=True))
    places = tuple(tuple(line.get(place, -1) for place in part) for part in layout.places)
    if len(layout.templates) >= MOST_TEMPLATES:
        layout.templates.clear()
    starts = _starts([series[layout.order[position]] for position in present], form)
    lines = layout.templates[form, missing] = kind(starts, places, parts)
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
    pairs = [f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True) if value]
    return "{" + ",".join(pairs) + "}" if pairs else ""


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
