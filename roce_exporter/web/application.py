"""The application of the web server: the pages of the parts that run, with what every exporter has: metrics, probes of life, a list of pages."""

from __future__ import annotations

import asyncio
import gzip
import html
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias
from urllib.parse import parse_qsl

from roce_exporter import __version__
from roce_exporter.catalog.named import COLLECTION_AGE, HTTP_REQUESTS
from roce_exporter.errors import UserError
from roce_exporter.exposition import Format, Renderer, negotiate
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.web.connection import PLAIN, RUNBOOKS, Request, Response, plain

if TYPE_CHECKING:
    from roce_exporter.normalise.series import Samples

HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"

TIMEOUT_HEADER = "x-prometheus-scrape-timeout-seconds"

MARGIN = 0.5  # seconds of the scraper's timeout reserved for rendering and the network

DEFAULT_TIMEOUT = 10.0  # Prometheus' own default, for clients that send no timeout

LEAST_INTERVAL = 0.5  # seconds between two collections, however often clients request them

LEAST_WAIT = 0.5
"""Minimum seconds that every client waits, even with a shorter timeout: a normal collection takes less."""

MOST_PARAMETERS = 8  # of a query

Route: TypeAlias = Callable[[Request], Awaitable[Response]]


class Page(NamedTuple):
    """One path that is served."""

    path: str
    answer: Route
    meaning: str
    is_private: bool = False
    """Whether it shows details that are not for unauthenticated clients on other hosts."""


class Section(Protocol):
    """The pages of one part, and its samples at the path of the metrics."""

    about: str
    pages: tuple[Page, ...]
    age: float
    """Seconds since what `metrics` returned last was collected; 0 for parts that collect for each request."""

    async def metrics(self, form: Format, wait: float) -> bytes:
        """The samples as text, without the closing `# EOF` of OpenMetrics; `wait` is what the client can wait."""


def json_page(path: str, document: Callable[[], object], meaning: str) -> Page:
    """A private page that shows a document."""

    async def answer(_: Request) -> Response:
        return json_response(document())

    return Page(path, answer, meaning, is_private=True)


def json_response(document: object, end: str = "") -> Response:
    """A document for people: indented."""
    return Response(HTTPStatus.OK, (json.dumps(document, indent=1) + end).encode(), JSON)


class SampledSection:
    """A part whose samples are at hand, and one page."""

    def __init__(
        self, about: str, page: Page, samples: Callable[[], Samples], least: float = LEAST_INTERVAL
    ) -> None:
        """`least`: seconds between two calls of `samples`."""
        self.about = about
        self.pages: tuple[Page, ...] = (page,)
        self.age = 0.0
        self._least = least
        self._take = samples
        self._samples: Samples | None = None
        self._taken = 0.0
        self._renderer = Renderer()

    async def metrics(self, form: Format, _: float) -> bytes:
        """See `Section`."""
        now = asyncio.get_running_loop().time()
        if self._samples is None or now - self._taken >= self._least:
            self._samples, self._taken = self._take(), now
        self.age = now - self._taken
        return self._renderer.render([self._samples], form)


class Application:
    """Calls the page of a path, and counts requests."""

    def __init__(
        self,
        sections: Sequence[Section],
        registry: OwnRegistry | None = None,
        telemetry_path: str = "/metrics",
    ) -> None:
        self.ready = False
        """Whether the parts serve their first samples."""
        self._sections = sections
        self._registry = registry or OwnRegistry()
        self._requests = self._registry.counter(HTTP_REQUESTS)
        pages = (
            Page(telemetry_path, self._metrics, "metrics, for Prometheus"),
            *(page for section in sections for page in section.pages),
            Page(RUNBOOKS, _runbook, "what to do about each alert: /runbooks/NAME"),
            Page("/-/healthy", _healthy, "whether the process responds"),
            Page("/-/ready", self._ready, "whether metrics are served"),
        )
        self._registry.gauge(COLLECTION_AGE, lambda: max((section.age for section in sections), default=0.0))
        paths = [page.path for page in pages]
        if taken := [path for path in paths if paths.count(path) > 1]:
            raise UserError(
                f"web.telemetry-path: {taken[0]} is the path of another page; use one like /metrics"
            )
        self.private = frozenset(page.path for page in pages if page.is_private)
        self._landing_page = _landing_page("; ".join(section.about for section in sections), pages)
        self._routes = {"/": self._list, **{page.path: page.answer for page in pages}}

    async def __call__(self, request: Request) -> Response:
        """The response to one request."""
        path = RUNBOOKS if request.path in runbooks() else request.path
        route = self._routes.get(path)
        response = await route(request) if route else _not_found(request.path)
        # Those of `check` are no scrapes, and counted all the same: any client can have this name.
        is_scrape = route and not request.headers.get("user-agent", "").startswith("roce-exporter/")
        self._requests.add(path if is_scrape else "other", str(int(response.status)))
        return response

    async def _metrics(self, request: Request) -> Response:
        form = negotiate(request.headers.get("accept", ""))
        wait = scrape_timeout(request.headers.get(TIMEOUT_HEADER, ""))
        bodies = [await section.metrics(form, wait) for section in self._sections]
        bodies.append(self._registry.render(openmetrics=form is Format.OPENMETRICS))
        return exposition(b"".join(bodies), form, request)

    async def _ready(self, _: Request) -> Response:
        if self.ready:
            return plain(HTTPStatus.OK, "roce_exporter is ready.")
        return plain(HTTPStatus.SERVICE_UNAVAILABLE, "roce_exporter has not finished its first collection.")

    async def _list(self, _: Request) -> Response:
        return self._landing_page


async def _healthy(_: Request) -> Response:
    return plain(HTTPStatus.OK, "roce_exporter is healthy.")


async def _runbook(request: Request) -> Response:
    if (text := runbooks().get(request.path)) is None:
        return _not_found(request.path)
    return Response(HTTPStatus.OK, text, PLAIN)


@cache
def runbooks() -> dict[str, bytes]:
    """The text of each page by its path, with and without `.md`, and a list of all at `/runbooks/`. Empty where none is shipped.

    Shipped text and nothing else, which every client may read, also without a login.
    """
    from roce_exporter.checks.thresholds import shipped_alerts  # noqa: PLC0415 - switches are served without checks

    names = {one.stem: one.read_bytes() for one in shipped_alerts("runbooks").glob("*.md")}
    if not names:
        return {}
    pages = {f"{RUNBOOKS}{path}": text for name, text in names.items() for path in (name, f"{name}.md")}
    return pages | {RUNBOOKS: "".join(f"{RUNBOOKS}{name}\n" for name in sorted(names)).encode()}


def _not_found(path: str) -> Response:
    text = f"{path[:200]!r} not found; / lists the pages\n"
    return Response(HTTPStatus.NOT_FOUND, text.encode("utf-8", "replace"), PLAIN)


def exposition(body: bytes, form: Format, request: Request) -> Response:
    """Metrics, compressed if the client accepts it."""
    if not accepts_gzip(request.headers.get("accept-encoding", "")):
        return Response(HTTPStatus.OK, body, form.value, (("Vary", "Accept-Encoding"),))
    # Level 1 takes a tenth of the time of level 9, for a body 40 % larger.
    packed = gzip.compress(body, 1, mtime=0)
    return Response(
        HTTPStatus.OK, packed, form.value, (("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
    )


def _landing_page(about: str, pages: Sequence[Page]) -> Response:
    """A page for people: what the process is, and its paths, each with its meaning."""
    restricted = "; restricted to localhost and authenticated users"
    items = "".join(
        f'<li><a href="{html.escape(path)}">{html.escape(path)}</a> {meaning}{restricted if private else ""}</li>\n'
        for path, _, meaning, private in pages
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


class QueryError(ValueError):
    """A query that cannot be used: one line that says why."""


def parameters(query: str, known: Collection[str]) -> dict[str, str]:
    """The parameters of a query, `target=leaf1&module=sonic` (WHATWG URL, application/x-www-form-urlencoded).

    A parameter without a value is left out. Raises QueryError: it is not well formed, or has an unknown or a repeated parameter, or unprintable text.
    """
    try:
        pairs = parse_qsl(query, strict_parsing=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError:  # also for what is not UTF-8
        if query:
            raise QueryError("the query is not of the form name=value&name=value") from None
        pairs = []
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise QueryError(f"{name[:50]!r} is not a parameter; known here: {', '.join(known)}")
        if name in found or not value.isprintable():
            raise QueryError(f"{name} is given twice or is not printable text; give it once")
        found[name] = value
    return found
