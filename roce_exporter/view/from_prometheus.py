"""The history of one exporter as Prometheus returns it: a matrix of `/api/v1/query_range`.

Prometheus leaves out empty labels, and has the labels of its target in addition to those of the exporter
(https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import HISTOGRAM
from roce_exporter.view.history import History, LabelValues, TimedSamples
from roce_exporter.view.usual_values import with_usual_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TARGET = ("cluster", "job")
"""Labels of a target besides `instance`: an instance with several values of them is several exporters."""

ROWS = {row.name: row for row in CATALOG if row.kind != HISTOGRAM}
OWN = "roce_exporter_"
"""How the names of the exporter's metrics about itself begin; not all of them are rows."""

Moments = dict[float, dict[str, dict[LabelValues, float]]]


class MatrixError(Exception):
    """The answer is not a matrix, or not of one exporter; one line."""


class PrometheusHistory(NamedTuple):
    """A history, and the metrics whose names this version of the exporter does not know."""

    history: History
    unknown: tuple[str, ...]


def read_matrix(document: object) -> PrometheusHistory:
    """The history in the `data` of an answer; without series it is empty.

    Raises:
        MatrixError: the document is not a matrix, or the series are of several exporters.
    """
    moments: Moments = {}
    unknown: set[str] = set()
    targets: set[tuple[str, ...]] = set()
    for metric, points in _series(document):
        name = metric.get("__name__", "")
        row = ROWS.get(name)
        if row is None:
            unknown.add(name)
            continue
        targets.add(tuple(metric.get(label, "") for label in TARGET))
        labels = tuple(metric.get(label, "") for label in row.labels)
        for time, value in points:
            moments.setdefault(time, {}).setdefault(name, {})[labels] = value
    if len(targets) > 1:
        raise MatrixError(f"several exporters have this instance: {_targets(targets)}")
    history = with_usual_values(tuple(TimedSamples(time, moments[time]) for time in sorted(moments)))
    return PrometheusHistory(history, tuple(sorted(filter(_is_strange, unknown))))


def _targets(targets: Iterable[tuple[str, ...]]) -> str:
    names = [
        ", ".join(f"{label}={value}" for label, value in zip(TARGET, one, strict=True) if value)
        for one in sorted(targets)
    ]
    return "; ".join(names)


def _is_strange(name: str) -> bool:
    buckets = name.endswith(("_bucket", "_sum", "_count"))
    return not buckets and not name.startswith(OWN)


def _series(document: object) -> Iterator[tuple[dict[str, str], list[tuple[float, float]]]]:
    if not isinstance(document, dict) or document.get("resultType") != "matrix":
        raise MatrixError("the answer is not a matrix")
    try:
        for one in document["result"]:
            yield dict(one["metric"]), list(_points(one["values"]))
    except (KeyError, TypeError, ValueError) as error:
        raise MatrixError(f"the answer is not a valid matrix ({type(error).__name__})") from None


def _points(values: Iterable[Any]) -> Iterator[tuple[float, float]]:
    for time, text in values:
        value = float(text)
        if math.isfinite(value):
            yield float(time), value
