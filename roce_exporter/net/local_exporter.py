"""The exporter that runs on this host, as a client of its own web server: does it respond, and has anything scraped it?

One request, which blocks: call it in a worker.
"""

from __future__ import annotations

import http.client
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from roce_exporter.net.prometheus_api import PrometheusServer

SILENCE = 10.0
"""Seconds without a byte after which the request is given up."""

REPLY_BYTES = 64 << 20

PATH = "/metrics"

_NUMBER = r"([0-9.e+]{1,24})$"
_SCRAPES = re.compile(
    rf'^roce_exporter_http_requests_total\{{code="200",path="{PATH}"\}} {_NUMBER}'
    rf'|^roce_exporter_http_requests_total\{{path="{PATH}",code="200"\}} {_NUMBER}',
    re.MULTILINE,
)
_START = re.compile(rf"^process_start_time_seconds {_NUMBER}", re.MULTILINE)


class LocalScrapes(NamedTuple):
    """What the exporter of this host says of its clients."""

    scrapes: int
    """Replies with metrics since it started, without the one to this request."""
    start: float
    """When it started, in seconds since 1970; 0 if it does not say."""


class LocalExporterError(Exception):
    """The exporter of this host does not respond: one line."""


def read_local_scrapes(server: PrometheusServer, timeout: float = SILENCE) -> LocalScrapes:
    """Request the metrics of the exporter at this address. Blocks.

    Raises:
        LocalExporterError: it does not respond, or this is no roce_exporter.
    """
    connection = http.client.HTTPConnection(server.host, server.port, timeout=timeout)
    try:
        connection.request("GET", f"{server.path}{PATH}")
        reply = connection.getresponse()
        with reply:
            body = reply.read(REPLY_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise LocalExporterError(str(error) or type(error).__name__) from None
    finally:
        connection.close()
    if reply.status != http.client.OK:
        raise LocalExporterError(f"HTTP {reply.status}")
    return parse_scrapes(body.decode("utf-8", "replace"))


def parse_scrapes(text: str) -> LocalScrapes:
    """What an exposition says of the clients of its exporter.

    Raises:
        LocalExporterError: it is not that of a roce_exporter.
    """
    if "roce_exporter_build_info" not in text:
        raise LocalExporterError("another program responds there")
    scrapes, start = _SCRAPES.search(text), _START.search(text)
    count = float(scrapes[1] or scrapes[2]) if scrapes else 0.0
    # The exporter counts a request when it has replied, so this one is not among them.
    return LocalScrapes(int(count), float(start[1]) if start else 0.0)
