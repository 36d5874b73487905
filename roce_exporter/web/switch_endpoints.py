"""The paths of the switch exporter: /probe for Prometheus, /debug/ for people, and /metrics about the exporter itself."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from roce_exporter.exposition import Format, negotiate
from roce_exporter.introspection.probe_debug import probe_document
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.switches.probe import BadModuleError, UnknownTargetError
from roce_exporter.switches.systems import ModuleMissingError
from roce_exporter.web.connection import Request, Response, plain
from roce_exporter.web.pause_tree_page import pause_tree_page
from roce_exporter.web.query import QueryError, parameters
from roce_exporter.web.routes import (
    JSON,
    TIMEOUT_HEADER,
    Router,
    exposition,
    healthy,
    landing_page,
    scrape_timeout,
)

if TYPE_CHECKING:
    from roce_exporter.switches.probe import Answer, Prober
    from roce_exporter.web.routes import Route

PROBE_PARAMETERS = ("target", "module")
SWITCH_PRIVATE = frozenset({"/debug/probe", "/debug/pause-tree"})
"""Paths that show replies of switches, not for unauthenticated clients on other hosts."""

RESTRICTED = "restricted to localhost and authenticated users"
LINKS = (
    ("/metrics", "metrics about the exporter itself"),
    ("/probe", "metrics of one switch: /probe?target=NAME, with a name from the configuration file"),
    (
        "/debug/probe",
        f"one probe in detail: what was queried, the replies, and which raw value became which series; {RESTRICTED}",
    ),
    ("/debug/pause-tree", f"from paused host ports through the switches to where pause starts; {RESTRICTED}"),
    ("/-/healthy", "whether the process responds"),
    ("/-/ready", "whether probes are answered"),
)


class SwitchEndpoints:
    """The application of `roce-exporter switches`."""

    def __init__(self, prober: Prober) -> None:
        self._prober = prober
        self._registry = OwnRegistry()
        self._probes = self._registry.counter(
            "roce_exporter_switch_probes",
            "Probes of switches answered, by module and by whether the switch could be used.",
            ("module", "success"),
        )
        routes: dict[str, Route] = {
            "/": self._landing_page,
            "/metrics": self._metrics,
            "/probe": partial(_refusing, self._probe),
            "/debug/probe": partial(_refusing, self._debug_probe),
            "/debug/pause-tree": partial(_refusing, partial(pause_tree_page, prober, asyncio.Lock())),
            "/-/healthy": healthy,
            "/-/ready": _ready,
        }
        self._router = Router(routes, self._registry, "metrics of a switch are at /probe?target=NAME")

    async def __call__(self, request: Request) -> Response:
        """The response to one request."""
        return await self._router(request)

    async def _probe(self, request: Request) -> Response:
        answer = await self._answer(request)
        success = "true" if answer.success else "false"
        self._probes.add(answer.target.module, success)
        form = negotiate(request.headers.get("accept", ""))
        end = b"# EOF\n" if form is Format.OPENMETRICS else b""
        return exposition(answer.renderer.render(answer.samples, form) + end, form, request)

    async def _debug_probe(self, request: Request) -> Response:
        answer = await self._answer(request, record=True)
        document = probe_document(answer)
        return Response(HTTPStatus.OK, json.dumps(document, indent=1).encode(), JSON)

    async def _answer(self, request: Request, *, record: bool = False) -> Answer:
        found = parameters(request.query, PROBE_PARAMETERS)
        if "target" not in found:
            raise QueryError("no target; write /probe?target=NAME with a name from the configuration file")
        wait = scrape_timeout(request.headers.get(TIMEOUT_HEADER, ""))
        return await self._prober.probe(found["target"], found.get("module", ""), wait, record=record)

    async def _metrics(self, request: Request) -> Response:
        form = negotiate(request.headers.get("accept", ""))
        return exposition(self._registry.render(openmetrics=form is Format.OPENMETRICS), form, request)

    async def _landing_page(self, _: Request) -> Response:
        return landing_page("RoCE health of switches", LINKS)


async def _ready(_: Request) -> Response:
    return plain(HTTPStatus.OK, "roce_exporter is ready.")


async def _refusing(route: Route, request: Request) -> Response:
    """The response of a route, or the refusal of what it was called with."""
    try:
        return await route(request)
    except UnknownTargetError as error:
        return plain(HTTPStatus.NOT_FOUND, str(error))
    except (QueryError, BadModuleError, ModuleMissingError) as error:
        return plain(HTTPStatus.BAD_REQUEST, str(error))
