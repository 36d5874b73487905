"""The paths of a host's exporter: /metrics for Prometheus, /-/ for probes, / and /debug/ for people."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from roce_exporter.exposition import Format, negotiate
from roce_exporter.introspection.debug import snapshot_document
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.web import Request, Response
from roce_exporter.web.routes import (
    JSON,
    PLAIN,
    TIMEOUT_HEADER,
    Router,
    exposition,
    healthy,
    landing_page,
    scrape_timeout,
)

if TYPE_CHECKING:
    from roce_exporter.exporter import Exporter

PRIVATE = frozenset({"/debug/snapshot", "/debug/events", "/debug/owners"})
"""Paths that reveal details of the host (raw names, errors, storms, processes), not for unauthenticated clients on other hosts.

`/health.json` is not one of them: all that it says follows from the series that `/metrics` serves to the same clients.
"""


class Endpoints:
    """The application that the web server serves."""

    def __init__(self, exporter: Exporter, telemetry_path: str) -> None:
        self.ready = False
        self._exporter = exporter
        self._telemetry_path = telemetry_path
        self._registry = OwnRegistry()
        routes = {
            "/": self._landing_page,
            telemetry_path: self._metrics,
            "/health.json": self._health,
            "/-/healthy": healthy,
            "/-/ready": self._ready,
            "/debug/snapshot": self._snapshot,
            "/debug/events": self._events,
            "/debug/owners": self._owners,
        }
        self._router = Router(routes, self._registry, f"metrics are at {telemetry_path}")

    async def __call__(self, request: Request) -> Response:
        """The response to one request."""
        return await self._router(request)

    async def _metrics(self, request: Request) -> Response:
        form = negotiate(request.headers.get("accept", ""))
        observation = await self._exporter.observe(scrape_timeout(request.headers.get(TIMEOUT_HEADER, "")))
        body = self._exporter.render(observation, form) + self._registry.render(
            openmetrics=form is Format.OPENMETRICS
        )
        return exposition(body, form, request)

    async def _ready(self, _: Request) -> Response:
        if self.ready:
            return Response(HTTPStatus.OK, b"roce_exporter is ready.\n", PLAIN)
        return Response(
            HTTPStatus.SERVICE_UNAVAILABLE, b"roce_exporter has not finished its first collection.\n", PLAIN
        )

    async def _health(self, _: Request) -> Response:
        health = self._exporter.health
        if health is None:
            return Response(HTTPStatus.NOT_FOUND, b"the verdict is off (--source.disable=health)\n", PLAIN)
        return Response(HTTPStatus.OK, json.dumps(health.document(), indent=1).encode() + b"\n", JSON)

    async def _snapshot(self, request: Request) -> Response:
        observation = await self._exporter.observe(scrape_timeout(request.headers.get(TIMEOUT_HEADER, "")))
        document = snapshot_document(observation, self._exporter.normaliser, self._exporter.survey_states())
        return Response(HTTPStatus.OK, json.dumps(document, indent=1).encode(), JSON)

    async def _events(self, _: Request) -> Response:
        sampler = self._exporter.sampler
        storms = sampler.events() if sampler else []
        return Response(HTTPStatus.OK, json.dumps({"storms": storms}, indent=1).encode(), JSON)

    async def _owners(self, _: Request) -> Response:
        surveyor = self._exporter.surveyor
        devices = surveyor.documents() if surveyor else []
        return Response(HTTPStatus.OK, json.dumps({"devices": devices}, indent=1).encode(), JSON)

    async def _landing_page(self, _: Request) -> Response:
        return landing_page(
            "Health of RDMA over Converged Ethernet on this host",
            (
                (self._telemetry_path, "metrics, for Prometheus"),
                (
                    "/health.json",
                    "whether each port is fit for a job, and why not, for node health controllers",
                ),
                (
                    "/debug/snapshot",
                    "every source, its state, and the series of each raw name; restricted to localhost and authenticated users",
                ),
                (
                    "/debug/events",
                    "the last PFC storms: time, port, duration and likely kind; restricted to localhost and authenticated users",
                ),
                (
                    "/debug/owners",
                    "who holds the RDMA objects of each device: processes, pods, jobs; restricted to localhost and authenticated users",
                ),
                ("/-/healthy", "whether the process responds"),
                ("/-/ready", "whether the first collection is done"),
            ),
        )
