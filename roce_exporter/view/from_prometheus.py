"""The history of one exporter from Prometheus: two requests, and what the matrix of `/api/v1/query_range` means.

Prometheus leaves out empty labels, and has the labels of its target in addition to those of the exporter
(https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.drivers import dialect_of
from roce_exporter.catalog.named import METRIC_SET_INFO, SOURCE_LABELS, SOURCE_UP
from roce_exporter.catalog.row import (
    COUNTER,
    FULL,
    HISTOGRAM,
    HW_COUNTERS,
    NETDEV_LABELS,
    PORT_LABELS,
    PRIORITY_LABELS,
    MetricSet,
)
from roce_exporter.collect.device_work import INVENTORY
from roce_exporter.host.sources import NAMES
from roce_exporter.host.sources.hw_counters import STATISTICS
from roce_exporter.net import NetError
from roce_exporter.net.http import TooLargeError
from roce_exporter.net.prometheus_api import get
from roce_exporter.view.history import History, LabelValues, TimedSamples
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roce_exporter.catalog.row import Row
    from roce_exporter.net.http import HttpServer
    from roce_exporter.net.prometheus_api import Access


DEVICE_INFO, PORT_UP, LINK_UP = "roce_device_info", "roce_port_up", "roce_link_up"
DEVICE_LABELS = ("device",)
DEVICE_SOURCES = (*NAMES, INVENTORY, "owners")
"""Sources that every device has for itself, if it has them."""

Values = dict[str, dict["LabelValues", float]]


class SparseRow(NamedTuple):
    """A row whose missing series have a value in lean and standard."""

    row: Row
    usual: int


class HostPlaces(NamedTuple):
    """What a host has at one moment."""

    dialects: Mapping[str, str]
    """By device."""
    places: Mapping[tuple[str, ...], tuple[LabelValues, ...]]
    """By the labels of a row: devices, ports, network devices."""
    working: frozenset[tuple[str, str]]
    """Sources and devices."""


def _is_of_priority(row: Row) -> bool:
    return row.kind == COUNTER and row.labels[: len(PRIORITY_LABELS)] == PRIORITY_LABELS


SPARSE = tuple(
    SparseRow(row, row.usual or 0)
    for row in CATALOG
    if row.kind != HISTOGRAM and row.metric_set != FULL and (row.sparse or _is_of_priority(row))
)


def with_usual_values(history: History) -> History:
    """The history with the values of series that had not begun; the same if the exporter served everything."""
    if not any(_set_of(moment) for moment in history):
        return history
    begun = {
        sparse.row.name: {
            labels: None for moment in history for labels in moment.values.get(sparse.row.name, ())
        }
        for sparse in SPARSE
    }
    return tuple(_completed(moment, begun) for moment in history)


def _set_of(moment: TimedSamples) -> MetricSet | None:
    """The set that leaves something out; None: everything was served, or by an exporter that has no sets."""
    for labels in moment.values.get(METRIC_SET_INFO.name, ()):
        if labels[0] in tuple(MetricSet) and labels[0] != FULL:
            return MetricSet(labels[0])
    return None


def _completed(moment: TimedSamples, begun: Mapping[str, Mapping[LabelValues, None]]) -> TimedSamples:
    metric_set = _set_of(moment)
    if metric_set is None:
        return moment
    host = _places(moment)
    states = dict.fromkeys(_states(moment, host), 1.0)
    values: Values = {name: dict(found) for name, found in moment.values.items()}
    for row, usual in SPARSE:
        if not metric_set.includes(row.metric_set):
            continue
        found = values.setdefault(row.name, {})
        known = states if row.labels == SOURCE_LABELS else _known(row, host)
        for labels in (*begun[row.name], *known):
            if _is_there(row, labels, host):
                found.setdefault(labels, usual)
    return TimedSamples(moment.time, values)


def _is_there(row: Row, labels: LabelValues, host: HostPlaces) -> bool:
    return "device" not in row.labels or labels[row.labels.index("device")] in host.dialects


def _known(row: Row, host: HostPlaces) -> Iterator[LabelValues]:
    """The series that a row without labels of its own has on this host."""
    for labels in host.places.get(row.labels, ()):
        if any(
            INDEX.speaks(host.dialects.get(labels[0], ""), spelling)
            and (spelling.source, labels[0]) in host.working
            for spelling in row.spellings
        ):
            yield labels


def _places(moment: TimedSamples) -> HostPlaces:
    values = moment.values
    dialects = {labels[0]: dialect_of(labels[1]) for labels in values.get(DEVICE_INFO, ())}
    places = {
        DEVICE_LABELS: tuple((device,) for device in dialects),
        PORT_LABELS: tuple(values.get(PORT_UP, ())),
        NETDEV_LABELS: tuple(values.get(LINK_UP, ())),
    }
    broken = {labels[:2] for labels, value in values.get(SOURCE_UP.name, {}).items() if not value}
    named = {labels[0] for labels in values.get(SOURCE_UP.name, ())}
    working = {(source, device) for source in named for device in dialects if (source, device) not in broken}
    # Both sources report the same counters.
    working |= {(HW_COUNTERS, device) for source, device in working if source == STATISTICS}
    return HostPlaces(dialects, places, frozenset(working))


def _states(moment: TimedSamples, host: HostPlaces) -> Iterator[LabelValues]:
    """The labels of sources: those that have series of their own, and those that one series of all devices stands for."""
    found = moment.values.get(SOURCE_UP.name, {})
    own = {labels[:2] for labels in found}
    yield from found
    for source, _device, _netdev in [labels for labels in found if not labels[1]]:
        if source in DEVICE_SOURCES:
            yield from ((source, name, "") for name in host.dialects if (source, name) not in own)


TARGET = ("cluster", "job")
"""Labels of a target besides `instance`: an instance with several values of them is several exporters."""

ROWS = {row.name: row for row in CATALOG if row.kind != HISTOGRAM}
OWN = "roce_exporter_"
"""How the names of the exporter's metrics about itself begin; not all of them are rows."""

TIMEOUT = 60.0
"""Seconds that one request may take: Prometheus gives up a query after two minutes."""
MOST_POINTS = 500
"""Most points per series: Prometheus refuses more than 11,000."""
SHOWN = 5
"""Instances that an error lists."""
PROBE = "roce_exporter_devices"
"""A metric that every exporter of a host has."""

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
        for at, value in points:
            moments.setdefault(at, {}).setdefault(name, {})[labels] = value
    if len(targets) > 1:
        raise MatrixError(f"several exporters have this instance: {_targets(targets)}")
    history = with_usual_values(tuple(TimedSamples(at, moments[at]) for at in sorted(moments)))
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
    for at, text in values:
        value = float(text)
        if math.isfinite(value):
            yield float(at), value


class QuerySpan:
    """The time that a query covers, in seconds."""

    __slots__ = ("end", "start", "step")

    def __init__(self, end: float, since: float, step: float) -> None:
        """`end` is Unix time. The step is longer than asked for if there would be too many points."""
        self.start, self.end = end - since, end
        self.step = max(step, since / MOST_POINTS)

    def bounds(self) -> dict[str, str]:
        """The parameters `start` and `end`."""
        return {"start": f"{self.start:.3f}", "end": f"{self.end:.3f}"}


class PrometheusQueries:
    """The requests to one server."""

    def __init__(self, server: HttpServer, access: Access, span: QuerySpan) -> None:
        self._server = server
        self._access = access
        self._span = span

    async def history(self, instance: str) -> PrometheusHistory:
        """The history of this instance; if empty, of the only one that there is.

        Raises:
            NetError: a request failed, or there is not exactly one such exporter.
        """
        instance = instance or await self._only_instance()
        query = {
            "query": f'{{__name__=~"roce_.+",instance="{_escaped(instance)}"}}',
            "step": f"{self._span.step:.3f}",
        }
        try:
            found = read_matrix(await self._get("query_range", query))
        except MatrixError as error:
            raise NetError(str(error)) from None
        if not found.history:
            raise NetError(f"no series roce_* of instance {instance!a} in this time{await self._others()}")
        return found

    async def _only_instance(self) -> str:
        found = await self._instances()
        if len(found) != 1:
            raise NetError(
                f"give --instance: {few([ascii(name) for name in found], SHOWN)}"
                if found
                else "no series roce_* of any host in this time"
            )
        return found[0]

    async def _others(self) -> str:
        found = await self._instances()
        return f"; instances are {few([ascii(name) for name in found], SHOWN)}" if found else ""

    async def _instances(self) -> list[str]:
        data = await self._get("label/instance/values", {"match[]": PROBE})
        if not isinstance(data, list) or not all(isinstance(one, str) for one in data):
            raise NetError("the answer is not a list of instances")
        return sorted(data)

    async def _get(self, what: str, query: Mapping[str, str]) -> object:
        try:
            return await get(self._server, self._access, what, {**query, **self._span.bounds()}, TIMEOUT)
        except TimeoutError:
            raise NetError(f"no answer in {TIMEOUT:g} s; use a shorter --since") from None
        except TooLargeError as error:
            raise NetError(f"{error}; use a shorter --since") from None


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
