"""Render samples as Prometheus text format 0.0.4 and 1.0.0 and as OpenMetrics 1.0.

The hot path is one `bytes` template per format, made when the set of series changes, and one `%` per scrape. Every
value went through `int` or `float`, so that no file of the host can inject a line; integers stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from operator import is_, itemgetter
from typing import TYPE_CHECKING

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roce_exporter.catalog.row import Row
    from roce_exporter.normalise.series import Samples, Series, Value


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
    order: Callable[[Sequence[Value]], tuple[Value, ...]]
    series: tuple[Series, ...]
    templates: dict[tuple[Format, tuple[int, ...]], bytes]
    """The template per format and positions without a value."""


class Renderer:
    """Renders collections; keeps the templates of the current set of series."""

    def __init__(self, rows: Sequence[Row] = CATALOG) -> None:
        self._rows = {row.name: position for position, row in enumerate(rows)}
        self._layout = _Layout((), _nothing, (), {})

    def render(self, parts: Sequence[Samples], form: Format) -> bytes:
        """The exposition of these samples, without the closing `# EOF` of OpenMetrics.

        Raises:
            NoRowError: a series belongs to no row of the catalogue.
        """
        layout = self._lay_out(tuple(part.series for part in parts))
        flat: list[Value] = []
        for part in parts:
            flat.extend(part.values)
        values = layout.order(flat)
        missing: tuple[int, ...] = ()
        if None in values:
            missing = tuple(position for position, value in enumerate(values) if value is None)
            values = tuple(value for value in values if value is not None)
        template = layout.templates.get((form, missing))
        if template is None:
            template = self._template(layout, form, missing)
        return template % values

    def _lay_out(self, parts: tuple[tuple[Series, ...], ...]) -> _Layout:
        known = self._layout.parts
        if len(parts) == len(known) and all(map(is_, parts, known)):
            return self._layout
        flat = [series for part in parts for series in part]
        for series in flat:
            if series.row.name not in self._rows:
                raise NoRowError(
                    f"{series.row.name} is not in the catalogue; add a row in roce_exporter/catalog"
                )
        order = sorted(range(len(flat)), key=lambda position: self._rows[flat[position].row.name])
        self._layout = _Layout(parts, _picker(order), tuple(flat[position] for position in order), {})
        return self._layout

    def _template(self, layout: _Layout, form: Format, missing: tuple[int, ...]) -> bytes:
        absent = frozenset(missing)
        present = [series for position, series in enumerate(layout.series) if position not in absent]
        if len(layout.templates) >= MOST_TEMPLATES:
            layout.templates.clear()
        template = layout.templates[form, missing] = _make_template(present, form)
        return template


def _nothing(_: Sequence[Value]) -> tuple[Value, ...]:
    return ()


def _picker(order: list[int]) -> Callable[[Sequence[Value]], tuple[Value, ...]]:
    if len(order) > 1:
        return itemgetter(*order)
    return (lambda values: (values[order[0]],)) if order else _nothing


def _make_template(series: Sequence[Series], form: Format) -> bytes:
    lines: list[str] = []
    row: Row | None = None
    for one in series:
        if one.row is not row:
            row = one.row
            lines.append(header(row, form))
        # %a is repr() in ASCII: the shortest text that reads back as the same float, and the exact integer.
        lines.append(f"{row.name}{one.suffix}{_labels(row.labels, one.labels)} ".replace("%", "%%") + "%a\n")
    return "".join(lines).encode()


def header(row: Row, form: Format) -> str:
    """The HELP, TYPE and, in OpenMetrics, UNIT lines of a row, `%` doubled for a template."""
    name = row.name
    if form is Format.OPENMETRICS and row.kind == COUNTER:
        name = name.removesuffix("_total")
    text = row.help.replace("\\", r"\\").replace("\n", r"\n")
    unit = (
        f"# UNIT {name} {row.unit}\n" if form is Format.OPENMETRICS and name.endswith(f"_{row.unit}") else ""
    )
    if form is Format.OPENMETRICS:
        text = text.replace('"', r"\"")
    return f"# HELP {name} {text}\n# TYPE {name} {row.kind}\n{unit}".replace("%", "%%")


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    # Prometheus treats an empty label as an absent one, so unknown values are left out.
    pairs = [f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True) if value]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


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
