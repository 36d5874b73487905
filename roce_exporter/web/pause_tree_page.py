"""`/debug/pause-tree`: where pause starts, from the answers that the probes brought. It queries no switch."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from roce_exporter.collect.workers import run_in_thread
from roce_exporter.switches.answer_views import answer_views
from roce_exporter.switches.pause.pause_report import as_json, as_text
from roce_exporter.switches.pause.pause_tree import PauseChoice, pause_tree
from roce_exporter.web.connection import Request, Response
from roce_exporter.web.query import QueryError, parameters
from roce_exporter.web.routes import JSON, PLAIN

if TYPE_CHECKING:
    from roce_exporter.switches.probe import Prober

TREE_SECONDS = 60.0
"""After this time a tree is given up."""
FORMATS = {"text": (as_text, PLAIN), "json": (as_json, JSON)}


async def pause_tree_page(prober: Prober, turn: asyncio.Lock, request: Request) -> Response:
    """The tree as text, or as JSON with `format=json`; from everything that is paused, or from what the query chooses.

    Raises:
        QueryError: a parameter is not known, or is not valid.
        TimeoutError, RuntimeError: the tree took too long, or there was no thread for it.
    """
    found = parameters(request.query, (*PauseChoice._fields, "format"))
    name = found.pop("format", "text")
    if name not in FORMATS:
        raise QueryError(f"format is {name[:50]!r}; use one of {', '.join(FORMATS)}")
    shown, media_type = FORMATS[name]
    choice = PauseChoice(**found)
    if choice.priority and choice.priority not in set("01234567"):
        raise QueryError(f"priority is {choice.priority[:50]!r}, not a number from 0 to 7")
    views = answer_views(prober.views(), prober.targets, asyncio.get_running_loop().time())
    # In a thread, so that probes are served while the tree of a large fabric is computed; one at a time.
    async with turn:
        text = await run_in_thread(lambda: shown(pause_tree(views, choice)), TREE_SECONDS)
    return Response(HTTPStatus.OK, text.encode("utf-8", "replace"), media_type)
