"""The history of one host from Prometheus: two requests in a worker, and what their answers mean."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.net.prometheus_api import PrometheusError, get
from roce_exporter.view.from_prometheus import MatrixError, PrometheusHistory, read_matrix
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.net.prometheus_api import Access, PrometheusServer

PATIENCE = 60.0
"""Seconds that one request may take as a whole: Prometheus gives up a query after two minutes."""
SILENCE = 30.0
"""Seconds without a byte after which a request is given up."""
MOST_POINTS = 500
"""Most points per series: Prometheus refuses more than 11,000."""
SHOWN = 5
"""Instances that an error lists."""
PROBE = "roce_exporter_devices"
"""A metric that every exporter of a host has."""


class QuerySpan:
    """The time that a query covers, in seconds."""

    __slots__ = ("end", "start", "step")

    def __init__(self, end: float, since: float, step: float) -> None:
        """`end` is Unix time. The step is longer than asked for if there would be too many points."""
        self.start, self.end = end - since, end
        self.step = max(step, since / MOST_POINTS)

    def bounds(self) -> dict[str, str]:
        """The parameters `start` and `end`."""
        return {"start": f"{self.start:.3f}", "end": f"{self.end:.3f}"}


class PrometheusQueries:
    """The requests to one server."""

    def __init__(self, server: PrometheusServer, access: Access, span: QuerySpan) -> None:
        self._server = server
        self._access = access
        self._span = span
        self._in_flight: InFlight[str] = InFlight(time.monotonic)

    async def history(self, instance: str) -> PrometheusHistory:
        """The history of this instance; if empty, of the only one that there is.

        Raises:
            PrometheusError: a request failed, or there is not exactly one such exporter.
        """
        instance = instance or await self._only_instance()
        query = {
            "query": f'{{__name__=~"roce_.+",instance="{_escaped(instance)}"}}',
            "step": f"{self._span.step:.3f}",
        }
        try:
            found = read_matrix(await self._get("query_range", query))
        except MatrixError as error:
            raise PrometheusError(str(error)) from None
        if not found.history:
            raise PrometheusError(
                f"no series roce_* of instance {instance!a} in this time{await self._others()}"
            )
        return found

    async def _only_instance(self) -> str:
        found = await self._instances()
        if len(found) != 1:
            raise PrometheusError(
                f"give --instance: {few([ascii(name) for name in found], SHOWN)}"
                if found
                else "no series roce_* of any host in this time"
            )
        return found[0]

    async def _others(self) -> str:
        found = await self._instances()
        return f"; instances are {few([ascii(name) for name in found], SHOWN)}" if found else ""

    async def _instances(self) -> list[str]:
        data = await self._get("label/instance/values", {"match[]": PROBE})
        if not isinstance(data, list) or not all(isinstance(one, str) for one in data):
            raise PrometheusError("the answer is not a list of instances")
        return sorted(data)

    async def _get(self, what: str, query: Mapping[str, str]) -> object:
        call = partial(get, self._server, self._access, what, {**query, **self._span.bounds()}, SILENCE)
        try:
            return await call_in_worker(self._in_flight, what, call, PATIENCE)
        except TimeoutError:
            raise PrometheusError(f"no answer in {PATIENCE:g} s; use a shorter --since") from None


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
