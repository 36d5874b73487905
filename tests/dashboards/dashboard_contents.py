"""The content of the committed dashboards: panels, queries, names."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roce_exporter.catalog import CATALOG

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards"
if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.catalog.row import Row

RULES = (ROOT / "alerts/roce.rules.yml", FOLDER / "roce-dashboards.rules.yml")
DASHBOARDS = tuple(sorted(FOLDER.glob("roce-*.json")))
NAME = re.compile(r"\b(?:[a-z_]+:)?roce_[a-z0-9_]+(?::[a-z0-9_]+)?\b")
"""A metric of the exporter or of a recording rule."""

Json = dict[str, Any]


def read(place: Path) -> Json:
    found: Json = json.loads(place.read_text(encoding="utf-8"))
    return found


def panels(dashboard: Json) -> Iterator[Json]:
    """All panels except headings, including those in collapsed rows."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def queries(dashboard: Json) -> Iterator[str]:
    """Every PromQL expression: of panels and annotations, and the selectors of variables."""
    for panel in panels(dashboard):
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (one["expr"] for one in dashboard["annotations"]["list"] if "expr" in one)
    yield from (selector(one) for one in dashboard["templating"]["list"] if one["type"] == "query")


def selector(variable: Json) -> str:
    """The series whose label a variable lists."""
    match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
    assert match, variable
    return match[1]


def names(expression: str) -> set[str]:
    """Metrics of the exporter, and of recording rules, in an expression; strings are ignored."""
    without = re.sub(r'"[^"]*"', '""', expression)
    return set(NAME.findall(without)) | set(re.findall(r'__name__=~"([^"]*)"', expression.replace("|", '"')))


NO_SERIES = {
    "and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset", "inf", "nan",
}  # fmt: skip
"""Words of PromQL that are no metric."""
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
INSIDE = re.compile(r"""\{[^{}]*\}|\[[^\]]*\]""")
"""Matchers, and windows."""


def selected(expression: str) -> set[str]:
    """The name of every series that a query selects, whoever records it.

    Raises:
        AssertionError: a selector has a matcher on `__name__`, so that its names are not known.
    """
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', re.sub(r"\$\{?\w+(?::\w+)?\}?", "1s", expression))
    assert "__name__" not in text, expression
    text = INSIDE.sub(" ", GROUPING.sub(" ", text))
    # a function or an aggregation has a parenthesis after it, a number begins with a digit
    words = re.findall(r"(?<![\w:@.])([a-zA-Z_:][\w:]*)(?!\s*\()(?![\w:])", text)
    return set(words) - NO_SERIES


ROWS = {row.name: row for row in CATALOG}
SUFFIXES = ("", "_bucket", "_count", "_sum")
"""The suffixes of a histogram's series."""
TARGET = {"cluster", "job", "instance"}
OF_PROCESS = {"roce_exporter_build_info", "process_cpu_seconds_total", "process_resident_memory_bytes"}


def row_of(series: str) -> Row | None:
    """The catalogue's row of a series, or of a part of a histogram."""
    return next((ROWS[base] for suffix in SUFFIXES if (base := series.removesuffix(suffix)) in ROWS), None)


def selectors(query: str) -> list[tuple[str, str]]:
    """Name and matchers of every selector of a query."""
    return re.findall(r"(\w[\w:]*)\{([^}]*)\}", re.sub(r"\$\{(\w+)\}", r"\1", query))
