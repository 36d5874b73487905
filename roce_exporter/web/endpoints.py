"""The paths that are served: /metrics for Prometheus, /-/ for probes, / and /debug/ for people."""

from __future__ import annotations

import gzip
import html
import json
from http import HTTPStatus
from typing import TYPE_CHECKING

import prometheus_client

from roce_exporter import __version__
from roce_exporter.exporter import make_registry, render_registry
from roce_exporter.exposition import negotiate
from roce_exporter.introspection.debug import snapshot_document
from roce_exporter.web import Request, Response

if TYPE_CHECKING:
    from roce_exporter.exporter import Exporter

PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"

TIMEOUT_HEADER = "x-prometheus-scrape-timeout-seconds"

MARGIN = 0.5
"""Seconds of the scraper's timeout reserved for rendering and the network."""

DEFAULT_TIMEOUT = 10.0
"""Prometheus' own default, for clients that send no timeout."""

LEAST_WAIT = 0.5
"""Minimum seconds that every client waits, even with a shorter timeout: a normal collection takes less."""

PRIVATE = frozenset({"/debug/snapshot", "/debug/events"})
"""Paths that reveal details of the host (raw names, errors, storms), not for unauthenticated clients on other hosts."""


class Endpoints:
    """The application that the web server serves."""

    def __init__(self, exporter: Exporter, telemetry_path: str) -> None:
        self.ready = False
        self._exporter = exporter
        self._telemetry_path = telemetry_path
        self._registry = make_registry()
        self._requests = prometheus_client.Counter(
            "roce_exporter_http_requests",
            "Requests answered, by path and status code; `other` is all paths that the exporter does not serve.",
            ("path", "code"),
            registry=self._registry,
        )
        self._routes = {
            "/": self._landing_page,
            telemetry_path: self._metrics,
            "/-/healthy": self._healthy,
            "/-/ready": self._ready,
            "/debug/snapshot": self._snapshot,
            "/debug/events": self._events,
        }

    async def __call__(self, request: Request) -> Response:
        """The response to one request."""
        route = self._routes.get(request.path)
        response = await route(request) if route else _not_found(request.path, self._telemetry_path)
        path = request.path if route else "other"
        self._requests.labels(path, str(response.status)).inc()
        return response

    async def _metrics(self, request: Request) -> Response:
        form = negotiate(request.headers.get("accept", ""))
        observation = await self._exporter.observe(scrape_timeout(request.headers.get(TIMEOUT_HEADER, "")))
        body = self._exporter.render(observation, form) + render_registry(self._registry, form)
        if not accepts_gzip(request.headers.get("accept-encoding", "")):
            return Response(HTTPStatus.OK, body, form.value, (("Vary", "Accept-Encoding"),))
        # Level 1 takes a tenth of the time of level 9, for a body 40 % larger.
        packed = gzip.compress(body, 1, mtime=0)
        return Response(
            HTTPStatus.OK, packed, form.value, (("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
        )

    async def _healthy(self, _: Request) -> Response:
        return Response(HTTPStatus.OK, b"roce_exporter is healthy.\n", PLAIN)

    async def _ready(self, _: Request) -> Response:
        if self.ready:
            return Response(HTTPStatus.OK, b"roce_exporter is ready.\n", PLAIN)
        return Response(
            HTTPStatus.SERVICE_UNAVAILABLE, b"roce_exporter has not finished its first collection.\n", PLAIN
        )

    async def _snapshot(self, request: Request) -> Response:
        observation = await self._exporter.observe(scrape_timeout(request.headers.get(TIMEOUT_HEADER, "")))
        document = snapshot_document(observation, self._exporter.normaliser)
        return Response(HTTPStatus.OK, json.dumps(document, indent=1).encode(), JSON)

    async def _events(self, _: Request) -> Response:
        sampler = self._exporter.sampler
        storms = sampler.events() if sampler else []
        return Response(HTTPStatus.OK, json.dumps({"storms": storms}, indent=1).encode(), JSON)

    async def _landing_page(self, _: Request) -> Response:
        links = "".join(
            f'<li><a href="{html.escape(path)}">{html.escape(path)}</a> {meaning}</li>\n'
            for path, meaning in (
                (self._telemetry_path, "metrics, for Prometheus"),
                (
                    "/debug/snapshot",
                    "every source, its state, and the series of each raw name; restricted to localhost and authenticated users",
                ),
                (
                    "/debug/events",
                    "the last PFC storms: time, port, duration and likely kind; restricted to localhost and authenticated users",
                ),
                ("/-/healthy", "whether the process responds"),
                ("/-/ready", "whether the first collection is done"),
            )
        )
        return Response(HTTPStatus.OK, _PAGE.format(version=__version__, links=links).encode(), HTML)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"><title>roce_exporter</title>
<meta name="viewport" content="width=device-width">
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem }}
@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: #ddd }} a {{ color: #8cf }} }}</style>
</head>
<body>
<h1>roce_exporter</h1>
<p>Health of RDMA over Converged Ethernet on this host, version {version}.</p>
<ul>
{links}</ul>
</body>
</html>
"""


def scrape_timeout(header: str) -> float:
    """Seconds that a client waits for a collection: its own timeout minus a margin, but at least `LEAST_WAIT`."""
    try:
        seconds = float(header)
    except ValueError:
        seconds = DEFAULT_TIMEOUT
    if not 0 < seconds < float("inf"):
        seconds = DEFAULT_TIMEOUT
    return max(seconds - MARGIN, LEAST_WAIT)


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header admits gzip (RFC 9110, 12.5.3)."""
    for item in header.split(","):
        coding, *parameters = (part.strip().lower() for part in item.split(";"))
        if coding in ("gzip", "*"):
            return not any(
                parameter.replace(" ", "") in ("q=0", "q=0.0", "q=0.00", "q=0.000")
                for parameter in parameters
            )
    return False


def _not_found(path: str, telemetry_path: str) -> Response:
    text = f"{path[:200]!r} not found; metrics are at {telemetry_path}\n"
    return Response(HTTPStatus.NOT_FOUND, text.encode("utf-8", "replace"), PLAIN)
