"""The content of the committed dashboards: panels, queries, names."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from promql_uses import Use, of_grafana, uses

from roce_exporter.catalog import INDEX
from roce_exporter.catalog.row import Row

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards"
RULES = (ROOT / "alerts/roce.rules.yml", FOLDER / "roce-dashboards.rules.yml")
DASHBOARDS = tuple(sorted(FOLDER.glob("roce-*.json")))
ROWS = INDEX.named
SUFFIXES = ("", "_bucket", "_count", "_sum")
"""The suffixes of a histogram's series."""

Json = dict[str, Any]


def read(place: Path) -> Json:
    found: Json = json.loads(place.read_text(encoding="utf-8"))
    return found


def panels(dashboard: Json) -> Iterator[Json]:
    """All panels except headings, including those in collapsed rows."""
    for panel in dashboard["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else (panel,)


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


@cache
def parsed(query: str) -> tuple[Use, ...]:
    """The selectors of a query. It must be PromQL."""
    return tuple(uses(of_grafana(query)))


def names(query: str) -> set[str]:
    """The name of every series that a query selects, whoever records it."""
    return {name for use in parsed(query) for name in (use.name, *use.pattern.split("|")) if name}


def row_of(series: str) -> Row | None:
    """The catalogue's row of a series, or of a part of a histogram."""
    return next((ROWS[base] for suffix in SUFFIXES if (base := series.removesuffix(suffix)) in ROWS), None)
