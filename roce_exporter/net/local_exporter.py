"""The exporter that runs on this host, as a client of its own web server: does it respond, and has anything scraped it?"""

from __future__ import annotations

import asyncio
import re
from typing import NamedTuple

from roce_exporter.net import NetError
from roce_exporter.net.http import OK, HttpClient, HttpLimits, HttpServer

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


async def read_local_scrapes(server: HttpServer, seconds: float) -> LocalScrapes:
    """Request the metrics of the exporter at this address, in at most so many seconds.

    Raises:
        NetError: it does not respond, or this is no roce_exporter.
    """
    try:
        limits = HttpLimits(body_bytes=REPLY_BYTES)
        async with asyncio.timeout(seconds), HttpClient(server, limits=limits) as client:
            reply = await client.request("GET", PATH)
    except TimeoutError:
        raise NetError(f"no answer in {seconds:g} s") from None
    if reply.status != OK:
        raise NetError(f"HTTP {reply.status}")
    return parse_scrapes(reply.body.decode("utf-8", "replace"))


def parse_scrapes(text: str) -> LocalScrapes:
    """What an exposition says of the clients of its exporter.

    Raises:
        NetError: it is not that of a roce_exporter.
    """
    if "roce_exporter_build_info" not in text:
        raise NetError("another program responds there")
    scrapes, start = _SCRAPES.search(text), _START.search(text)
    count = float(scrapes[1] or scrapes[2]) if scrapes else 0.0
    # The exporter counts a request when it has replied, so this one is not among them.
    return LocalScrapes(int(count), float(start[1]) if start else 0.0)
