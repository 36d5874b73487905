"""The pages of a host: whether its ports are fit, and what was read, for people."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.fastloop import Sampler
from roce_exporter.introspection.debug import snapshot_document
from roce_exporter.owners import Surveyor
from roce_exporter.web import application
from roce_exporter.web.connection import Request, Response, plain

if TYPE_CHECKING:
    from roce_exporter.exporter import Exporter, Observation
    from roce_exporter.exposition import Format


class HostPages:
    """The pages of one exporter. The private ones reveal raw names, errors, storms and processes.

    `/health.json` is not private: all that it says follows from the series that `/metrics` serves to the same clients.
    """

    about = "Health of RDMA over Converged Ethernet on this host"

    def __init__(self, exporter: Exporter, least: float = application.LEAST_INTERVAL) -> None:
        """`least`: seconds between two collections."""
        self._exporter = exporter
        self._least = least
        self.age = 0.0
        self._last: Observation | None = None
        self._begun = -float("inf")
        """When the last complete collection began, by the clock of the event loop."""
        self.pages: tuple[application.Page, ...] = (
            application.Page(
                "/health.json",
                self._health,
                "whether each port is fit for a job, and why not, for node health controllers",
            ),
            application.Page(
                "/debug/snapshot",
                self._snapshot,
                "every source, its state, and the series of each raw name",
                is_private=True,
            ),
            application.json_page(
                "/debug/events",
                lambda: {"storms": found.events() if (found := exporter.part(Sampler)) else []},
                "the last PFC storms: time, port, duration and likely kind",
            ),
            application.json_page(
                "/debug/owners",
                lambda: {"devices": found.documents() if (found := exporter.part(Surveyor)) else []},
                "who holds the RDMA objects of each device: processes, pods, jobs",
            ),
        )

    async def metrics(self, form: Format, wait: float) -> bytes:
        """See `Section`."""
        return self._exporter.render(await self._observe(wait), form)

    async def _observe(self, wait: float) -> Observation:
        """A new collection, or the last one within `least` of its beginning: each one makes drivers and firmware work."""
        now = asyncio.get_running_loop().time()
        if self._last is None or now - self._begun >= self._least:
            found = await self._exporter.observe(wait)
            if found.snapshot.unfinished:
                return found
            self._last, self._begun = found, now
        self.age = asyncio.get_running_loop().time() - self._begun
        return self._last

    async def _health(self, request: Request) -> Response:
        try:
            version = application.parameters(request.query, ("version",)).get("version", "1")
        except application.QueryError as error:
            return plain(HTTPStatus.BAD_REQUEST, str(error))
        if version not in ("1", "2"):
            return plain(HTTPStatus.BAD_REQUEST, "version is 1 or 2")
        health = self._exporter.part(HealthWatch)
        if health is None:
            return plain(HTTPStatus.NOT_FOUND, "the verdict is off (--source.disable=health)")
        return application.json_response(health.document(int(version)), "\n")

    async def _snapshot(self, request: Request) -> Response:
        observation = await self._observe(
            application.scrape_timeout(request.headers.get(application.TIMEOUT_HEADER, ""))
        )
        return application.json_response(
            snapshot_document(observation, self._exporter.normaliser, self._exporter.states())
        )
