"""The queries of dashboards, timed at a Prometheus."""

from __future__ import annotations

import json
import re
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DASHBOARDS = Path(__file__).parent.parent / "dashboards"
VARIABLE = re.compile(r"\$(?:\{([a-zA-Z_]\w*)(?::\w+)?\}|([a-zA-Z_]\w*))")
INTERVALS = {"__interval": "15s", "__rate_interval": "60s"}
POINTS = 240
"""Of a graph."""
PATIENCE = 60.0


class Query(NamedTuple):
    """A query of a panel."""

    panel: str
    expression: str
    instant: bool


class Timing(NamedTuple):
    """A query, the seconds that its response took, and the number of series in it; `error` is empty without a failure."""

    query: Query
    seconds: float
    series: int
    error: str


class Api:
    """The HTTP API of a Prometheus."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, **parameters: str | float) -> Any:
        """The `data` of a response.

        Raises:
            OSError: no response, or an error.
        """
        with urllib.request.urlopen(  # noqa: S310 - a URL of our own
            f"{self.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=PATIENCE
        ) as answer:
            return json.load(answer)["data"]

    def value(self, expression: str) -> float:
        """The value of an expression with one result; NaN without a result or if the query fails."""
        try:
            result = self.get("/api/v1/query", query=expression)["result"]
        except OSError:
            return float("nan")
        return float(result[0]["value"][1]) if result else float("nan")

    def values(self, expression: str, label: str) -> dict[str, float]:
        """The values of an expression, by one label."""
        result = self.get("/api/v1/query", query=expression)["result"]
        return {one["metric"].get(label, ""): float(one["value"][1]) for one in result}


def _panels(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for panel in part.get("panels", ()):
        yield panel
        yield from _panels(panel)


def board_queries(board: str, span: int, **chosen: str) -> Iterator[Query]:
    """The queries of a dashboard for a range of `span` seconds; variables that are not chosen match everything."""
    known = {**INTERVALS, "__range": f"{span}s", **chosen}
    for panel in _panels(json.loads((DASHBOARDS / f"{board}.json").read_text())):
        for target in panel.get("targets", ()):
            expression = VARIABLE.sub(lambda match: known.get(match[1] or match[2], ".*"), target["expr"])
            yield Query(panel["title"], expression, bool(target.get("instant")))


def timed(api: Api, query: Query, span: int, every: int) -> Timing:
    """Send a query over the last `span` seconds."""
    begun = time.perf_counter()
    series, error = 0, ""
    try:
        series = _series(api, query, span, every)
    except OSError as failure:
        error = str(failure)
    return Timing(query, time.perf_counter() - begun, series, error)


def _series(api: Api, query: Query, span: int, every: int) -> int:
    if query.instant:
        return len(api.get("/api/v1/query", query=query.expression)["result"])
    now = time.time()
    times = {"start": now - span, "end": now, "step": max(every, span // POINTS)}
    return len(api.get("/api/v1/query_range", query=query.expression, **times)["result"])
