"""The pages of switches: /probe for Prometheus, /debug/ for people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

from roce_exporter.catalog.named import SWITCH_PROBES
from roce_exporter.collect.workers import CallThread, run_in_thread
from roce_exporter.exposition import Format, negotiate
from roce_exporter.introspection.debug import series_text
from roce_exporter.net.login import hide
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.switches.interpretation import MANY_VALUES
from roce_exporter.switches.pause.pause_report import PauseChoice, as_json, as_text
from roce_exporter.switches.pause.pause_tree import pause_tree
from roce_exporter.switches.probe import BadModuleError, Prober, ProbeResult, UnknownTargetError
from roce_exporter.switches.readings import SwitchReading, Unreadable
from roce_exporter.switches.switch_view import answer_views
from roce_exporter.switches.systems import ModuleMissingError
from roce_exporter.web import application
from roce_exporter.web.application import Route
from roce_exporter.web.connection import PLAIN, Request, Response, plain

PROBE_PARAMETERS = ("target", "module")
TREE_SECONDS = 60.0  # after this time a tree or a page is given up
TREE_FORMATS = {"text": (as_text, PLAIN), "json": (as_json, application.JSON)}


class SwitchPages:
    """The pages of one prober. The private ones show replies of switches."""

    about = "RoCE health of switches"
    age = 0.0

    def __init__(self, prober: Prober, registry: OwnRegistry) -> None:
        self._prober = prober
        self._page_turn, self._page_thread = asyncio.Lock(), CallThread()
        """For pages that take long, so that others are served meanwhile; one at a time."""
        self.tree_turn, self._tree_thread = asyncio.Lock(), CallThread()
        """For pause trees. No page waits for one: any client may ask for them."""
        self._probes = registry.counter(SWITCH_PROBES)
        self.pages: tuple[application.Page, ...] = (
            application.Page(
                "/probe",
                partial(_refusing, self._probe),
                "metrics of one switch: /probe?target=NAME, with a name from the configuration file",
            ),
            application.Page(
                "/debug/probe",
                partial(_refusing, self._debug_probe),
                "one probe in detail: what was queried, the replies, and which raw value became which series",
                is_private=True,
            ),
            application.Page(
                "/debug/pause-tree",
                partial(_refusing, self._pause_tree),
                "from paused host ports through the switches to where pause starts",
                is_private=True,
            ),
        )

    async def metrics(self, form: Format, wait: float) -> bytes:  # noqa: ARG002 - the signature of `Section`
        """Each switch has its own metrics, at /probe."""
        return b""

    async def _probe(self, request: Request) -> Response:
        answer = await self._answer(request)
        self._probes.add(answer.target.module, "true" if answer.success else "false")
        form = negotiate(request.headers.get("accept", ""))
        end = b"# EOF\n" if form is Format.OPENMETRICS else b""

        def work() -> Response:
            return application.exposition(answer.renderer.render(answer.samples, form) + end, form, request)

        is_small = len(answer.samples[0].values) <= MANY_VALUES
        if is_small and answer.renderer.is_ready(answer.samples, form):
            return work()
        async with self._page_turn:
            return await run_in_thread(work, TREE_SECONDS, self._page_thread)

    async def _debug_probe(self, request: Request) -> Response:
        return application.json_response(probe_document(await self._answer(request, record=True)))

    async def _answer(self, request: Request, *, record: bool = False) -> ProbeResult:
        found = application.parameters(request.query, PROBE_PARAMETERS)
        if "target" not in found:
            raise application.QueryError(
                "no target; write /probe?target=NAME with a name from the configuration file"
            )
        wait = application.scrape_timeout(request.headers.get(application.TIMEOUT_HEADER, ""))
        return await self._prober.probe(found["target"], found.get("module", ""), wait, record=record)

    async def _pause_tree(self, request: Request) -> Response:
        """Where pause starts, from the replies that the probes brought; it queries no switch.

        As text, or as JSON with `format=json`; from everything that is paused, or from what the query chooses.

        Raises:
            QueryError: a parameter is not known, or is not valid.
            TimeoutError, RuntimeError: the tree took too long, or there was no thread for it.
        """
        found = application.parameters(request.query, (*PauseChoice._fields, "format"))
        name = found.pop("format", "text")
        if name not in TREE_FORMATS:
            raise application.QueryError(f"format is {name[:50]!r}; use one of {', '.join(TREE_FORMATS)}")
        shown, media_type = TREE_FORMATS[name]
        choice = PauseChoice(**found)
        if choice.priority and choice.priority not in set("01234567"):
            raise application.QueryError(f"priority is {choice.priority[:50]!r}, not a number from 0 to 7")
        prober = self._prober
        views = answer_views(prober.views(), prober.targets, asyncio.get_running_loop().time())
        async with self.tree_turn:
            text = await run_in_thread(
                lambda: shown(pause_tree(views, choice)), TREE_SECONDS, self._tree_thread
            )
        return Response(HTTPStatus.OK, text.encode("utf-8", "replace"), media_type)


async def _refusing(route: Route, request: Request) -> Response:
    """The response of a route, or the refusal of what it was called with."""
    try:
        return await route(request)
    except UnknownTargetError as error:
        return plain(HTTPStatus.NOT_FOUND, str(error))
    except (application.QueryError, BadModuleError, ModuleMissingError) as error:
        return plain(HTTPStatus.BAD_REQUEST, str(error))


def probe_document(answer: ProbeResult) -> dict[str, Any]:
    """The answer as JSON, version 1: `sources`, `queries`, `facts`, `values` (object, raw name, value, series) and `rest`."""
    readings, login = answer.readings, answer.login
    return {
        "version": 1,
        "target": answer.target.name,
        "module": answer.target.module,
        "device": answer.device,
        "seconds": answer.seconds,
        "sources": [
            {
                "source": source,
                "up": source not in readings.faults,
                "fault": hide(readings.faults.get(source, ""), login),
            }
            for source in sorted({*readings.sources, *readings.faults})
        ],
        "queries": [
            {
                "source": exchange.source,
                "query": hide(exchange.query, login),
                "reply": hide(exchange.reply, login),
            }
            for exchange in answer.logged
        ],
        "facts": [series_text(series) for series in answer.samples[0].series[: answer.facts]],
        "values": list(_values(answer)),
        "rest": list(_rest(answer)),
    }


def _values(answer: ProbeResult) -> Iterator[dict[str, Any]]:
    values = answer.samples[0].values[answer.facts :]
    for source, value in zip(answer.sources, values, strict=True):
        reading = answer.readings.readings[source.places[0].reading]
        raw = source.raw[0]  # no spelling of a switch adds up several
        yield {**_raw_value(reading, raw), "series": series_text(source.series), "value": value}


def _rest(answer: ProbeResult) -> Iterator[dict[str, Any]]:
    """Raw values that became no series: the switch has a preferred one, or the catalogue has no row."""
    used = {(source.places[0].reading, source.raw[0]) for source in answer.sources}
    for position, reading in enumerate(answer.readings.readings):
        for raw in reading.values:
            if (position, raw) not in used:
                yield _raw_value(reading, raw)


def _raw_value(reading: SwitchReading, raw: str) -> dict[str, Any]:
    value = reading.values[raw]
    known = (
        {"raw_value": None, "missing": value.reason}
        if isinstance(value, Unreadable)
        else {"raw_value": value}
    )
    return {"source": reading.source, "object": dict(reading.labels), "raw": raw, **known}
