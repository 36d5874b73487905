"""Arista EOS: gNMI for PFC per priority, pause time, watchdog and settings, and OpenConfig's models; eAPI for what it shows.

The paths are those that the YANG models of EOS 4.36.1F support (github.com/aristanetworks/yang, `pathreport.csv`), the
commands and their revisions those of eAPI. Neither is needed for the other: what one of them does not answer is a fault
of its sources alone. What the platform does not have (NOT_FOUND, an invalid command) is no source. docs/switches.md says what EOS
does not expose.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from roce_exporter.catalog.switch_systems import EOS
from roce_exporter.net import NetError
from roce_exporter.switches.gnmi import AbsentError, GnmiClient
from roce_exporter.switches.json_client import JsonClient, query_sources
from roce_exporter.switches.readings import Module, ProbeReply, ProbeRequest
from roce_exporter.switches.stream import SwitchStream
from roce_exporter.switches.systems import requests_of
from roce_exporter.switches.systems.eos.read import read
from roce_exporter.switches.systems.openconfig.requests import (
    PORT_PATHS,
    paths_of,
    plan_of,
    subscriptions,
)
from roce_exporter.switches.systems.openconfig.requests import STREAMED as STREAMED_PORTS

OWN_PATHS, OWN_STREAMED = paths_of(EOS)
PATHS, STREAMED = {**OWN_PATHS, **PORT_PATHS}, {**STREAMED_PORTS, **OWN_STREAMED}

COMMANDS: dict[str, Any] = {
    source: command if revision == "-" else {"cmd": command, "revision": int(revision)}
    for source, revision, command in requests_of("eos eapi")
}
"""The commands that can be sent by eAPI."""

SERVICES = {"gnmi": PATHS.keys(), "eapi": COMMANDS.keys()}
EAPI = "/command-api"
NOT_HERE = (1002, 1003)
"""Errors of eAPI for a command that the platform or version does not have, or has without JSON."""


def request_of(source: str) -> dict[str, Any]:
    """The JSON-RPC request for one source's command."""
    params = {"version": 1, "cmds": [COMMANDS[source]], "format": "json"}
    return {"jsonrpc": "2.0", "method": "runCmds", "params": params, "id": source}


def is_reading(document: Any) -> bool:
    """Whether a document is the request of one of the sources, literally."""
    return any(document == request_of(source) for source in COMMANDS)


def result_of(reply: Any) -> Any:
    """The result of the one command of a JSON-RPC reply.

    Raises:
        AbsentError: the switch does not have the command.
        NetError: it failed, or the reply is none of JSON-RPC.
    """
    error = reply.get("error") if isinstance(reply, dict) else None
    if isinstance(error, dict):
        code = error.get("code")
        kind = AbsentError if code in NOT_HERE else NetError
        raise kind(
            f"eAPI refuses the command with error {code if isinstance(code, int) else '?'}: check the user's role"
        )
    result = reply.get("result") if isinstance(reply, dict) else None
    if not isinstance(result, list) or len(result) != 1 or not isinstance(result[0], dict):
        raise NetError("the reply has no result of JSON-RPC: check that the address is that of eAPI")
    return result[0]


async def query(probe: ProbeRequest) -> ProbeReply:
    """Subscribe to all paths once, and send all commands, at the same time.

    A service that does not answer at all, next to one that does, is one source that is down: a site may have enabled one of them only.
    """
    async with GnmiClient(probe) as gnmi, JsonClient(probe, posts={EAPI: is_reading}) as eapi:
        shown = {source: partial(_shown, eapi, source) for source in COMMANDS}
        answered = await query_sources(subscriptions(gnmi, PATHS) | shown, held=probe.held)
        faults = dict(answered.faults)
        for service, sources in SERVICES.items():
            if faults.keys() >= sources and (answered.replies or answered.absent):
                line = faults[min(sources)]
                faults = {one: text for one, text in faults.items() if one not in sources} | {service: line}
        return replace(answered, faults=faults, logged=(*gnmi.logged, *eapi.logged))


async def _shown(client: JsonClient, source: str) -> Any:
    try:
        return result_of(await client.post(source, EAPI, request_of(source)))
    except AbsentError:
        return None


MODULE = Module(
    "eos", EOS, query, read, partial(SwitchStream, partial(plan_of, streamed=STREAMED, origin=""))
)
