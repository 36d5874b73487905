"""A running exporter, as a client of its web server: the samples of its host at one time, and whether anything scrapes it.

The text format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format. Another program than a roce_exporter
is an error, so only the names and values that it writes are read.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.net import NetError
from roce_exporter.net.http import OK, Access, HttpServer, fetch, parse_server
from roce_exporter.net.prometheus_api import LOGIN_REMEDY, UNAUTHORIZED
from roce_exporter.view.from_prometheus import ROWS, is_strange
from roce_exporter.view.history import LabelValues, TimedSamples

if TYPE_CHECKING:
    from collections.abc import Iterator

REPLY_BYTES = 64 << 20

PATH = "/metrics"

_NUMBER = r"([0-9.e+]{1,24})$"
_SCRAPES = re.compile(
    rf'^roce_exporter_http_requests_total\{{code="200",path="{PATH}"\}} {_NUMBER}'
    rf'|^roce_exporter_http_requests_total\{{path="{PATH}",code="200"\}} {_NUMBER}',
    re.MULTILINE,
)
_START = re.compile(rf"^process_start_time_seconds {_NUMBER}", re.MULTILINE)
_SAMPLE = re.compile(r"^(roce_[a-z0-9_]+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'([a-z][a-z0-9_]*)="((?:[^"\\]|\\.)*)"')
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
    server = parse_server(url, LOGIN_REMEDY)
    return ExporterPlace(server._replace(path=""), server.path or PATH)


async def read_metrics(place: ExporterPlace, access: Access, seconds: float) -> str:
    """The metrics of the exporter at this place, in at most so many seconds.

    Raises:
        NetError: it does not respond, or this is no roce_exporter.
    """
    try:
        reply = await fetch(place.server, place.path, access, seconds, REPLY_BYTES)
    except TimeoutError:
        raise NetError(f"no answer in {seconds:g} s") from None
    if reply.status != OK:
        remedy = f": it requires a user: {LOGIN_REMEDY}" if reply.status == UNAUTHORIZED else ""
        raise NetError(f"HTTP {reply.status}{remedy}")
    text = reply.body.decode("utf-8", "replace")
    if "roce_exporter_build_info" not in text:
        raise NetError("another program responds there")
    return text


def parse_scrapes(text: str) -> LocalScrapes:
    """What an exposition says of the clients of its exporter."""
    scrapes, start = _SCRAPES.search(text), _START.search(text)
    count = float(scrapes[1] or scrapes[2]) if scrapes else 0.0
    # The exporter counts a request when it has replied, so this one is not among them.
    return LocalScrapes(int(count), float(start[1]) if start else 0.0)


def parse_samples(text: str, time: float) -> tuple[TimedSamples, tuple[str, ...]]:
    """The samples of an exposition, read at this Unix time, and the metrics whose names this version does not know."""
    values: dict[str, dict[LabelValues, float]] = {}
    unknown: set[str] = set()
    for name, labels, value in _samples(text):
        if row := ROWS.get(name):
            values.setdefault(name, {})[tuple(labels.get(label, "") for label in row.labels)] = value
        elif is_strange(name):
            unknown.add(name)
    return TimedSamples(time, values), tuple(sorted(unknown))


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for name, labels, number in _SAMPLE.findall(text):
        try:
            value = float(number)
        except ValueError:
            continue
        if math.isfinite(value):
            pairs = ((key, _ESCAPE.sub(_unescaped, quoted)) for key, quoted in _LABEL.findall(labels))
            yield name, dict(pairs), value


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]
