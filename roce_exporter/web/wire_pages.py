"""The pages of captured packets."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from roce_exporter.exposition import Format, Renderer
from roce_exporter.web.application import JSON, LEAST_INTERVAL, Page
from roce_exporter.web.connection import Request, Response
from roce_exporter.wire.wire_document import wire_document

if TYPE_CHECKING:
    from roce_exporter.normalise.series import Samples
    from roce_exporter.wire.wire_session import WireSession

MOST_PAIRS_SHOWN = 1000
"""Pairs at /debug/wire."""


class WirePages:
    """The pages of one capture. /debug/wire shows all addresses."""

    about = "RoCE packets on the wire"

    def __init__(self, session: WireSession, least: float = LEAST_INTERVAL) -> None:
        """`least`: seconds between two samples of the counts, which hold up the thread that reads packets."""
        self._session = session
        self._least = least
        self._samples: Samples | None = None
        self._taken = 0.0
        self.age = 0.0
        self._renderer = Renderer()
        self.pages: tuple[Page, ...] = (
            Page("/debug/wire", self._document, "pairs of addresses and sentences as JSON", is_private=True),
        )

    async def metrics(self, form: Format, _: float) -> bytes:
        """See `Section`."""
        now = asyncio.get_running_loop().time()
        if self._samples is None or now - self._taken >= self._least:
            self._samples, self._taken = self._session.samples(), now
        self.age = now - self._taken
        return self._renderer.render([self._samples], form)

    async def _document(self, _: Request) -> Response:
        document = wire_document(self._session.summary(), MOST_PAIRS_SHOWN, self._session.dropped)
        return Response(HTTPStatus.OK, json.dumps(document, indent=1).encode(), JSON)
