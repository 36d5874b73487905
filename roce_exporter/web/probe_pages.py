"""The pages of active probes."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from roce_exporter.exposition import Format, Renderer
from roce_exporter.web.application import JSON, Page
from roce_exporter.web.connection import Request, Response

if TYPE_CHECKING:
    from roce_exporter.probe.service import ProbeService


class ProbePages:
    """The metrics of the probes of this host, and its plan, which shows addresses."""

    about = "Active probes between RoCE ports"
    age = 0.0

    def __init__(self, service: ProbeService) -> None:
        self._service = service
        self._renderer = Renderer()
        self.pages: tuple[Page, ...] = (
            Page("/debug/probe-plan", self._plan, "what is sent in each burst, as JSON", is_private=True),
        )

    async def metrics(self, form: Format, _: float) -> bytes:
        """See `Section`."""
        return self._renderer.render([self._service.samples()], form)

    async def _plan(self, _: Request) -> Response:
        document = {
            str(own.address): [
                {
                    "target": str(one.target.address),
                    "host": one.target.name,
                    "path": one.path,
                    "scope": one.scope,
                }
                for one in probes
            ]
            for own, probes in self._service.plans().items()
        }
        return Response(HTTPStatus.OK, json.dumps(document, indent=1).encode(), JSON)
