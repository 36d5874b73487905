"""What the applications of the web server share: routing with a count of requests, and the replies of every exporter."""

from __future__ import annotations

import gzip
import html
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

from roce_exporter import __version__
from roce_exporter.web import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roce_exporter.exposition import Format
    from roce_exporter.self_metrics.own_registry import OwnRegistry

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

Route: TypeAlias = Callable[[Request], Awaitable[Response]]


class Router:
    """Calls the route of a path, and counts requests."""

    def __init__(self, routes: Mapping[str, Route], registry: OwnRegistry, hint: str) -> None:
        """`hint` ends the reply to a path that is not served."""
        self._routes = routes
        self._hint = hint
        self._requests = registry.counter(
            "roce_exporter_http_requests",
            "Requests answered, by path and status code; `other` is all paths that the exporter does not serve.",
            ("path", "code"),
        )

    async def __call__(self, request: Request) -> Response:
        """The response to one request."""
        route = self._routes.get(request.path)
        response = await route(request) if route else self._not_found(request.path)
        path = request.path if route else "other"
        self._requests.add(path, str(int(response.status)))
        return response

    def _not_found(self, path: str) -> Response:
        text = f"{path[:200]!r} not found; {self._hint}\n"
        return Response(HTTPStatus.NOT_FOUND, text.encode("utf-8", "replace"), PLAIN)


async def healthy(_: Request) -> Response:
    """The reply to a liveness probe: the event loop serves requests."""
    return Response(HTTPStatus.OK, b"roce_exporter is healthy.\n", PLAIN)


def exposition(body: bytes, form: Format, request: Request) -> Response:
    """Metrics, compressed if the client accepts it."""
    if not accepts_gzip(request.headers.get("accept-encoding", "")):
        return Response(HTTPStatus.OK, body, form.value, (("Vary", "Accept-Encoding"),))
    # Level 1 takes a tenth of the time of level 9, for a body 40 % larger.
    packed = gzip.compress(body, 1, mtime=0)
    return Response(
        HTTPStatus.OK, packed, form.value, (("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
    )


def landing_page(about: str, links: Sequence[tuple[str, str]]) -> Response:
    """A page for people: what the process is, and its paths, each with its meaning."""
    items = "".join(
        f'<li><a href="{html.escape(path)}">{html.escape(path)}</a> {meaning}</li>\n'
        for path, meaning in links
    )
    page = _PAGE.format(version=__version__, about=about, links=items)
    return Response(HTTPStatus.OK, page.encode(), HTML)


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
<p>{about}, version {version}.</p>
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
