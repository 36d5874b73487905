"""Cisco NX-OS: show commands through NX-API CLI, and statistics of queues and ports from the DME by class queries.

No device was queried for this module: forms and names come from Cisco's show command reference (release 9.3(x)), from the NX-API documentation and
from public programs that parse these replies; `docs/evidence.md` lists what was constructed. WRED and ECN thresholds are not read: no public
schema of the JSON of `show policy-map` was found.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from roce_exporter.catalog.switch_systems import NXOS
from roce_exporter.net import NetError
from roce_exporter.net.json_reply import decode_json
from roce_exporter.net.login import Login
from roce_exporter.switches.json_client import JsonClient, SessionCookie, StatusError, query_sources
from roce_exporter.switches.readings import Module, ProbeReply, ProbeRequest
from roce_exporter.switches.systems import table_of
from roce_exporter.switches.systems.nxos.ports import command_body
from roce_exporter.switches.systems.nxos.read import CLASSES, REFUSED_DME, read

COMMANDS = table_of("nxos")
INS = "/ins"
CLASS_QUERIES = {source: f"/api/node/class/{kind}.json" for source, kind in CLASSES.items()}
NX_API_COOKIE = SessionCookie("nxapi_auth")
"""Valid for ten minutes after the first request that was authenticated with a password."""

NO_DME = (400, 404, 405, 501)


def show(command: str) -> dict[str, Any]:
    """The request for one show command, in the JSON form of NX-API."""
    request = {"version": "1.0", "type": "cli_show", "chunk": "0", "sid": "1", "input": command}
    return {"ins_api": {**request, "output_format": "json"}}


def only_show(document: Any) -> bool:
    """Whether a request to NX-API is one of the show commands of this module."""
    return any(document == show(command) for command in COMMANDS.values())


def login_document(login: Login) -> dict[str, Any]:
    """The request for a session of the DME."""
    return {"aaaUser": {"attributes": {"name": login.username, "pwd": login.password}}}


DME_COOKIE = SessionCookie("APIC-cookie", "/api/aaaLogin.json", login_document)


async def query(probe: ProbeRequest) -> ProbeReply:
    """Run the show commands and the class queries, each as a source of its own."""
    async with (
        JsonClient(probe, {INS: only_show}, NX_API_COOKIE) as cli,
        JsonClient(probe, cookie=DME_COOKIE, connections=1, budget=cli.budget) as dme,
    ):
        commands = {source: partial(_command, cli, source, text) for source, text in COMMANDS.items()}
        classes = {source: partial(_class, dme, source) for source in CLASSES}
        return await query_sources({**classes, **commands}, cli, dme)


async def _command(client: JsonClient, source: str, command: str) -> Any:
    try:
        return await client.post(source, INS, show(command))
    except StatusError as error:
        # Newer versions answer 400 or 500 over HTTP too, with the usual document in the body.
        try:
            document = decode_json(error.body)
            command_body(document)
        except NetError:
            raise error from None
        return document


async def _class(client: JsonClient, source: str) -> Any:
    """The reply of the DME; None where there is no DME."""
    try:
        return await client.get(source, CLASS_QUERIES[source])
    except StatusError as error:
        if error.status in NO_DME:
            return None
        if error.status in (401, 403):
            raise NetError(f"{REFUSED_DME}: {error}") from None
        raise


MODULE = Module(name="nxos", dialect=NXOS, query=query, read=read)
