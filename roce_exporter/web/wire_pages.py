"""The pages of captured packets."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from roce_exporter.exposition import Format, Renderer
from roce_exporter.web.application import JSON, Page
from roce_exporter.web.connection import Request, Response
from roce_exporter.wire.wire_document import wire_document

if TYPE_CHECKING:
    from roce_exporter.wire.wire_session import WireSession

MOST_PAIRS_SHOWN = 1000
"""Pairs at /debug/wire."""


class WirePages:
    """The pages of one capture. /debug/wire shows all addresses."""

    about = "RoCE packets on the wire"

    def __init__(self, session: WireSession) -> None:
        self._session = session
        self._renderer = Renderer()
        self.pages: tuple[Page, ...] = (
            Page("/debug/wire", self._document, "pairs of addresses and sentences as JSON", is_private=True),
        )

    async def metrics(self, form: Format, _: float) -> bytes:
        """See `Section`."""
        return self._renderer.render([self._session.samples()], form)

    async def _document(self, _: Request) -> Response:
        document = wire_document(self._session.summary(), MOST_PAIRS_SHOWN, self._session.dropped)
        return Response(HTTPStatus.OK, json.dumps(document, indent=1).encode(), JSON)
