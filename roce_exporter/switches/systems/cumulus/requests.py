"""NVIDIA Cumulus Linux: NVUE's REST interface, `https://switch:8765/nvue_v1/`, operational revision.

No device was queried for this module: paths and names come from NVIDIA's documentation (CumulusNetworks/docs, NVUE command reference
5.3 to 5.15) and from public programs that parse these replies; the nesting of the JSON is that of the object model, which the documentation
shows as tables. `docs/evidence.md` lists what was constructed. Pause durations are not exported: no document states their unit.
Where the switch does not support the query parameter `include`, the counters and the watchdog need one request per port each.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from urllib.parse import quote

from roce_exporter.catalog.switch_systems import CUMULUS
from roce_exporter.net import NetError
from roce_exporter.switches.json_client import JsonClient, StatusError, query_sources
from roce_exporter.switches.readings import Module, ProbeReply, ProbeRequest
from roce_exporter.switches.reply_values import below
from roce_exporter.switches.systems import table_of
from roce_exporter.switches.systems.cumulus.read import (
    COUNTERS,
    SUBTREES,
    SYSTEM,
    WATCHDOG,
    Subtree,
    is_port,
    read,
)

ROOT = "/nvue_v1"
PATHS = table_of("cumulus")

NO_PATH = (400, 404, 422)
"""How NVUE says that it does not have a path or does not know a parameter."""

MOST_TARGETS = 4096

PER_PORT: set[str] = set()
"""Targets that do not support `include`, so that it is not tried in every probe. Forgotten when the process ends."""


def holds(reply: Any, names: tuple[Subtree, ...]) -> bool:
    """Whether a reply has one of these subtrees for any port."""
    ports = reply.values() if isinstance(reply, dict) else ()
    return any(below(port, *subtree) is not None for port in ports for subtree in names)


class _Round:
    """One round of queries to one switch."""

    def __init__(self, client: JsonClient, target: str) -> None:
        self._client = client
        self._target = target
        self._turn = asyncio.Lock()
        self._ports: Any = None
        self._filter_is_known = asyncio.Event()

    async def document(self, source: str, path: str) -> Any:
        """The document at a path; None if the switch does not have it, as versions before 5.6 do not have the watchdog."""
        try:
            return await self._client.get(source, f"{ROOT}/{path}")
        except StatusError as error:
            if error.status in NO_PATH and source != SYSTEM:
                return None
            raise

    async def subtree(self, source: str) -> Any:
        """By port the documents of one source; None if the switch does not have them."""
        filtered, names = None, SUBTREES[source]
        if self._target not in PER_PORT:
            filtered = await self._filtered(source)
            if not holds(filtered, names):
                # The switch has no such subtree, or no filter: the reply with the counters decides.
                await self._filter_is_known.wait()
        if self._target not in PER_PORT:
            return filtered
        if source == WATCHDOG:
            return await self._from_each_port(source) or None
        listed = await self._list(source)
        return listed if holds(listed, names) else None

    async def counters(self) -> Any:
        """By port its counters. Every port has them: a reply without them shows that the switch ignores or refuses the filter."""
        try:
            if self._target not in PER_PORT:
                filtered = await self._filtered(COUNTERS)
                if holds(filtered, SUBTREES[COUNTERS]) or not isinstance(filtered, dict | None):
                    return filtered
                if len(PER_PORT) >= MOST_TARGETS:
                    PER_PORT.clear()
                PER_PORT.add(self._target)
        finally:
            self._filter_is_known.set()
        return await self._from_each_port(COUNTERS)

    async def _filtered(self, source: str) -> Any:
        """The reply that has the subtree, else the last one; None if the switch refuses the filter."""
        reply = None
        for subtree in SUBTREES[source]:
            wanted = quote("/*/" + "/".join(subtree), safe="")
            reply = await self.document(source, f"interface?include={wanted}")
            if holds(reply, (subtree,)) or not isinstance(reply, dict | None):
                break  # what is no object is no answer about an older name, but a fault
        return reply

    async def _list(self, source: str) -> Any:
        """By port what the switch puts there by itself: read once, and only where the switch has no filter."""
        async with self._turn:
            if self._ports is None:
                self._ports = await self._client.get(source, f"{ROOT}/interface")
        return self._ports

    async def _from_each_port(self, source: str) -> dict[str, Any]:
        """By port its documents, from one request per port, as many at a time as the client has connections.

        Raises:
            NetError: a port has no usable reply. Counters of some ports without a word about the others would be misleading.
        """
        listed = await self._list(source)
        found = sorted(port for port in listed if is_port(port)) if isinstance(listed, dict) else []
        if not found:
            raise NetError("the list of interfaces has no switch port (swp)")
        async with asyncio.TaskGroup() as group:
            tasks = {port: group.create_task(self._of_port(source, port)) for port in found}
        documents = {port: task.result() for port, task in tasks.items()}
        for document in documents.values():
            if isinstance(document, NetError):
                raise document
        return {port: document for port, document in documents.items() if document is not None}

    async def _of_port(self, source: str, port: str) -> Any:
        """The documents of one port, None without any, or the fault: one port must not end the requests for the others."""
        try:
            for subtree in SUBTREES[source]:
                path = f"interface/{quote(port, safe='')}/{'/'.join(subtree)}"
                if (document := await self.document(source, path)) is not None:
                    return {subtree[0]: {subtree[1]: document}}
        except NetError as fault:
            return fault
        return None


async def query(probe: ProbeRequest) -> ProbeReply:
    """Read all documents, each as a source of its own."""
    async with JsonClient(probe) as client:
        part = _Round(client, probe.target.name)
        subtrees = {source: partial(part.subtree, source) for source in SUBTREES}
        documents = {source: partial(part.document, source, path) for source, path in PATHS.items()}
        return await query_sources({**subtrees, COUNTERS: part.counters, **documents}, client)


MODULE = Module(name="cumulus", dialect=CUMULUS, query=query, read=read)
