"""The samples of another host: its history from Prometheus, or those of a running exporter at one time.

Prometheus: two requests, and what the matrix of `/api/v1/query_range` means. It leaves out empty labels, and has the labels of its target in
addition to those of the exporter (https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries).

An exporter: as a client of its web server, also whether anything scrapes it. The text format:
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format. Another program than a roce_exporter is an error, so only the
names and values that it writes are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.row import HISTOGRAM, Row
from roce_exporter.net import NetError, meanings
from roce_exporter.net.http import OK, Access, HttpServer, TooMuchError, fetch, parse_server
from roce_exporter.net.prometheus_api import get, labels_of
from roce_exporter.view.host_view import History, LabelValues, TimedSamples
from roce_exporter.words import escaped, few

TARGET = ("cluster", "job")
"""Labels of a target besides `instance`: an instance with several values of them is several exporters."""

ROWS = {row.name: row for row in CATALOG if row.kind != HISTOGRAM}
OF_HISTOGRAMS = ("_bucket", "_sum", "_count")
"""How the names of a histogram's series end, which are no rows."""

TIMEOUT = 60.0  # seconds that one request may take: Prometheus gives up a query after two minutes
MOST_POINTS = 500  # most points per series: Prometheus refuses more than 11,000
SHOWN = 5  # instances that an error lists
OWN_ADDRESSES, NEIGHBOURS = "roce_netdev_info", "roce_switch_lldp_neighbor_info"
"""The MAC addresses of a host's ports, and the switch ports that have them as neighbours."""
PROBE = "roce_exporter_devices"
"""A metric that every exporter of a host has."""

LabelledPoints = tuple[dict[str, str], list[tuple[float, float]]]
"""The labels of a series, its name among them, and its points."""


class MatrixError(NetError):
    """The answer is not a matrix, or not of one exporter."""


class PrometheusHistory(NamedTuple):
    """A history, and the metrics whose names this version of the exporter does not know."""

    history: History
    unknown: tuple[str, ...]


def read_matrix(document: object) -> PrometheusHistory:
    """The history in the `data` of an answer; without series it is empty.

    Raises:
        MatrixError: the document is not a matrix, or the series are of several exporters.
    """
    series = [*_series(document)]
    targets = {
        tuple(one.get(label, "") for label in TARGET) for one, _ in series if one.get("__name__") in ROWS
    }
    if len(targets) > 1:
        named = (
            [f"{label}={value}" for label, value in zip(TARGET, one, strict=True) if value]
            for one in sorted(targets)
        )
        raise MatrixError(f"several exporters have this instance: {'; '.join(map(', '.join, named))}")
    return _gathered(series, ROWS.get)


def _gathered(series: Iterable[LabelledPoints], row_of: Callable[[str], Row | None]) -> PrometheusHistory:
    """The history that these series are, and the names that are unexpected."""
    moments: dict[float, dict[str, dict[LabelValues, float]]] = {}
    unknown: set[str] = set()
    for metric, points in series:
        name = metric.get("__name__", "")
        if row := row_of(name):
            labels = tuple(metric.get(label, "") for label in row.labels if label != "le")
            for at, value in points:
                moments.setdefault(at, {}).setdefault(name, {})[labels] = value
        elif not name.endswith(OF_HISTOGRAMS):
            unknown.add(name)
    history = tuple(TimedSamples(at, moments[at]) for at in sorted(moments))
    return PrometheusHistory(history, tuple(sorted(unknown)))


def _series(document: object) -> Iterator[LabelledPoints]:
    if not isinstance(document, dict) or document.get("resultType") != "matrix":
        raise MatrixError("the answer is not a matrix")
    try:
        for one in document["result"]:
            points = ((float(at), float(text)) for at, text in one["values"])
            yield labels_of(one["metric"]), [point for point in points if all(map(math.isfinite, point))]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise MatrixError(f"the answer is not a valid matrix ({type(error).__name__})") from None


class PrometheusQueries:
    """The requests to one server, about the `since` seconds up to `end`, which is Unix time."""

    def __init__(self, server: HttpServer, access: Access, end: float, since: float, step: float) -> None:
        """The step, in seconds, is longer than asked for if there would be too many points."""
        self._server = server
        self._access = access
        self._start, self._end = end - since, end
        self._step = max(step, since / MOST_POINTS)

    async def history(self, instance: str) -> PrometheusHistory:
        """The history of this instance; if empty, of the only one that there is.

        Raises:
            NetError: a request failed, or there is not exactly one such exporter.
        """
        instance = instance or await self._only_instance()
        query = {
            "query": f'{{__name__=~"roce_.+",instance="{escaped(instance)}"}}',
            "step": f"{self._step:.3f}",
        }
        found = read_matrix(await self._get("query_range", query))
        if not found.history:
            others = [ascii(name) for name in await self._instances()]
            more = f"; instances are {few(others, SHOWN)}" if others else ""
            raise NetError(f"no series roce_* of instance {instance!a} in this time{more}")
        return found._replace(history=await self._with_neighbours(found.history))

    async def _with_neighbours(self, history: History) -> History:
        """The history with what switches say of the host's ports, at its newest moment: where each of them is plugged in."""
        macs = sorted(
            {labels[3] for moment in history for labels in moment.values.get(OWN_ADDRESSES, ())} - {""}
        )
        row = ROWS[NEIGHBOURS]
        if not macs:
            return history
        pattern = "|".join(re.escape(mac) for mac in macs)
        found = await self.values(f'{NEIGHBOURS}{{neighbor_mac=~"{escaped(pattern)}"}}')
        values = {tuple(labels.get(name, "") for name in row.labels): value for labels, value in found}
        newest = history[-1]
        return (
            (*history[:-1], newest._replace(values={**newest.values, NEIGHBOURS: values}))
            if values
            else history
        )

    async def ends(self, names: Iterable[str]) -> dict[tuple[str, ...], History]:
        """The first and the last moment, if they differ, of all exporters that have one of these metrics, by target and instance.

        Raises:
            NetError: a request failed.
        """
        step = f"{self._end - self._start:.3f}"
        query = {"query": f'{{__name__=~"{"|".join(names)}"}}', "step": step}
        series: dict[tuple[str, ...], list[LabelledPoints]] = {}
        for metric, points in _series(await self._get("query_range", query)):
            target = tuple(metric.get(label, "") for label in (*TARGET, "instance"))
            series.setdefault(target, []).append((metric, points))

        def row_of(name: str) -> Row | None:
            # Sums and counts of histograms have their own names, and the labels of the row without `le`.
            return INDEX.named.get(name) or INDEX.named.get(name.removesuffix("_sum").removesuffix("_count"))

        return {target: _gathered(own, row_of).history for target, own in series.items()}

    async def values(self, query: str) -> list[tuple[dict[str, str], float]]:
        """The labels and the value of each series of an expression, at the end of the time.

        Raises:
            NetError: the request failed.
        """
        step = {"query": query, "step": "1"}
        span = {"start": f"{self._end:.3f}", "end": f"{self._end:.3f}"}
        found = _series(await self._get("query_range", step | span))
        return [(metric, points[-1][1]) for metric, points in found if points]

    async def _only_instance(self) -> str:
        found = await self._instances()
        if len(found) != 1:
            raise NetError(
                f"it has several hosts: give --target=INSTANCE, one of {few([ascii(name) for name in found], SHOWN)}"
                if found
                else "no series roce_* of any host in this time"
            )
        return found[0]

    async def _instances(self) -> list[str]:
        data = await self._get("label/instance/values", {"match[]": PROBE})
        if not isinstance(data, list) or not all(isinstance(one, str) for one in data):
            raise NetError("the answer is not a list of instances")
        return sorted(data)

    async def _get(self, what: str, query: dict[str, str]) -> object:
        bounds = {"start": f"{self._start:.3f}", "end": f"{self._end:.3f}"}
        try:
            return await get(self._server, self._access, what, bounds | query, TIMEOUT)
        except TooMuchError as error:
            raise NetError(f"{error}; use a shorter --since") from None


REPLY_BYTES = 64 << 20

PATH = "/metrics"

REQUESTS = "roce_exporter_http_requests_total"
_START = re.compile(r"^process_start_time_seconds (\d{1,10}(?:\.\d{1,20})?(?:e\+\d\d)?)$", re.MULTILINE)
_SAMPLE = re.compile(r"^(roce_[a-z0-9_]+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(?<![a-z0-9_])([a-z][a-z0-9_]*+)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


class LocalScrapes(NamedTuple):
    """What the exporter of this host says of its clients."""

    scrapes: int
    """Replies with metrics since it started, without the one to this request."""
    start: float
    """When it started, in seconds since 1970; 0 if it does not say."""


class ExporterPlace(NamedTuple):
    """Where the metrics of an exporter are."""

    server: HttpServer
    path: str

    @property
    def text(self) -> str:
        """The URL as a user writes it: without the usual path."""
        return self.server.text + ("" if self.path == PATH else self.path)


def parse_place(url: str) -> ExporterPlace:
    """The place of `http://HOST:10123`, or of a URL with another path than `/metrics`.

    Raises:
        NetError: it is not such a URL.
    """
    server = parse_server(url)
    return ExporterPlace(server._replace(path=""), server.path or PATH)


async def read_metrics(place: ExporterPlace, access: Access, seconds: float) -> str:
    """The metrics of the exporter at this place, in at most so many seconds.

    Raises:
        NetError: it does not respond, or this is no roce_exporter.
    """
    reply = await fetch(place.server, place.path, access, seconds, REPLY_BYTES)
    if reply.status != OK:
        remedy = meanings("exporter").get(str(reply.status), "")
        raise NetError(f"HTTP {reply.status}{': ' * bool(remedy)}{remedy}")
    text = reply.body.decode("utf-8", "replace")
    if "roce_exporter_build_info" not in text:
        raise NetError("another program responds there; check the port and path of the URL")
    return text


def parse_scrapes(text: str) -> LocalScrapes:
    """What an exposition says of the clients of its exporter."""
    mine, start = {"code": "200", "path": PATH}, _START.search(text)
    counts = (value for name, labels, value in _samples(text) if name == REQUESTS and labels == mine)
    # The exporter counts a request when it has replied, so this one is not among them.
    return LocalScrapes(int(next(counts, 0.0)), float(start[1]) if start else 0.0)


def parse_samples(text: str, time: float) -> tuple[TimedSamples, tuple[str, ...]]:
    """The samples of an exposition, read at this Unix time, and the metrics whose names this version does not know."""
    series = (({**labels, "__name__": name}, [(time, value)]) for name, labels, value in _samples(text))
    history, unknown = _gathered(series, ROWS.get)
    return history[0] if history else TimedSamples(time, {}), unknown


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for name, labels, number in _SAMPLE.findall(text):
        try:
            value = float(number)
        except ValueError:
            continue
        if math.isfinite(value):
            texts = (
                (key, _ESCAPE.sub(lambda one: "\n" if one[1] == "n" else one[1], text))
                for key, text in _LABEL.findall(labels)
            )
            yield name, dict(texts), value
