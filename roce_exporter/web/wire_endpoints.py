"""The paths of `roce-exporter wire --serve`: /metrics for Prometheus, /debug/wire for people."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from roce_exporter.exposition import Format, Renderer, negotiate
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.web.connection import Request, Response, plain
from roce_exporter.web.routes import JSON, Router, exposition, healthy, landing_page
from roce_exporter.wire.wire_document import wire_document

if TYPE_CHECKING:
    from roce_exporter.wire.wire_session import WireSession

WIRE_PRIVATE = frozenset({"/debug/wire"})
"""A path that shows all addresses, not for unauthenticated clients on other hosts."""

MOST_PAIRS_SHOWN = 1000
"""Pairs at /debug/wire."""


class WireEndpoints:
    """The application of `roce-exporter wire --serve`."""

    def __init__(self, session: WireSession, telemetry_path: str) -> None:
        self._session = session
        self._telemetry_path = telemetry_path
        self._registry = OwnRegistry()
        self._renderer = Renderer()
        routes = {
            "/": self._landing_page,
            telemetry_path: self._metrics,
            "/-/healthy": healthy,
            "/-/ready": _ready,
            "/debug/wire": self._document,
        }
        self._router = Router(routes, self._registry, f"metrics are at {telemetry_path}")

    async def __call__(self, request: Request) -> Response:
        """The response to one request."""
        return await self._router(request)

    async def _metrics(self, request: Request) -> Response:
        form = negotiate(request.headers.get("accept", ""))
        body = self._renderer.render([self._session.samples()], form) + self._registry.render(
            openmetrics=form is Format.OPENMETRICS
        )
        return exposition(body, form, request)

    async def _document(self, _: Request) -> Response:
        document = wire_document(self._session.summary(), MOST_PAIRS_SHOWN, self._session.dropped)
        return Response(HTTPStatus.OK, json.dumps(document, indent=1).encode(), JSON)

    async def _landing_page(self, _: Request) -> Response:
        return landing_page(
            "RoCE packets on the wire",
            (
                (self._telemetry_path, "metrics, for Prometheus"),
                (
                    "/debug/wire",
                    "pairs of addresses and sentences as JSON; restricted to localhost and authenticated users",
                ),
                ("/-/healthy", "whether the process responds"),
                ("/-/ready", "whether packets are counted"),
            ),
        )


async def _ready(_: Request) -> Response:
    return plain(HTTPStatus.OK, "roce_exporter is ready.")
