"""Switches that replay their recordings over HTTPS: NX-API with the DME, and NVUE."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from https_switch import LOGIN, Asked, Says, says
from switch_recordings import recorded

from roce_exporter.net.login import authorization
from roce_exporter.switches.systems.cumulus import requests as cumulus
from roce_exporter.switches.systems.nxos import requests as nxos

SESSION = "session-cookie-nxapi"
TOKEN = "session-cookie-dme"  # noqa: S105 - of the server of the tests
SECRETS = (LOGIN.password, authorization(LOGIN)[0][1].removeprefix("Basic "), SESSION, TOKEN)
"""What must never be in a log, an error, a page or a metric."""


def nxapi(asked: Asked, replies: dict[str, Any]) -> Says:
    """A reply of NX-OS. A reply in `replies` may be a `Says`, which is sent as it is."""
    if asked.path == "/api/aaaLogin.json":
        right = asked.document == nxos.login_document(LOGIN)
        cookie = (("Set-Cookie", f"APIC-cookie={TOKEN}; path=/; HttpOnly"),)
        return (
            says({"imdata": [{"aaaLogin": {"attributes": {"token": TOKEN}}}]}, headers=cookie)
            if right
            else Says(status=401)
        )
    classes = {path: source for source, path in nxos.CLASS_QUERIES.items()}
    if asked.path in classes:
        right = asked.headers.get("cookie") == f"APIC-cookie={TOKEN}"
        return sent(replies.get(classes[asked.path])) if right else Says(status=403)
    if asked.path != "/ins" or asked.method != "POST":
        return Says(status=404)
    known = asked.headers.get("cookie") == f"nxapi_auth={SESSION}"
    if not known and asked.headers.get("authorization") != authorization(LOGIN)[0][1]:
        return Says(status=401)
    command = asked.document["ins_api"]["input"]
    source = next(source for source, text in nxos.COMMANDS.items() if text == command)
    reply = sent(replies.get(source))
    return Says(
        reply.body,
        reply.status,
        (*reply.headers, ("Set-Cookie", f"nxapi_auth={SESSION}; HttpOnly")),
        reply.raw,
        reply.hang,
        reply.trickle,
    )


def sent(reply: Any) -> Says:
    if isinstance(reply, Says):
        return reply
    return Says(status=404) if reply is None else says(reply)


def nvue(asked: Asked, *, filtered: bool = True, old: bool = False, replies: Any = None) -> Says:
    """A switch that replays the recording: with the filter `include`, without it, or with the paths of version 5.4."""
    replies = replies or recorded("switch-cumulus")
    parts = urlsplit(asked.path)
    documents = {f"{cumulus.ROOT}/{path}": source for source, path in cumulus.PATHS.items()}
    if parts.path in documents:
        return sent(replies.get(documents[parts.path]))
    subtrees = {names[0]: source for source, names in cumulus.SUBTREES.items()}
    if parts.path == "/nvue_v1/interface":
        if not filtered or not parts.query:
            links = replies.get("links", {})
            return says({port: {"type": "swp", **links.get(port, {})} for port in replies["counters"]})
        include = parse_qs(parts.query)["include"][0].removeprefix("/*/")
        return sent(replies.get(subtrees.get(tuple(include.split("/"))), {}))
    port, *names = parts.path.removeprefix("/nvue_v1/interface/").split("/")
    if old:
        names = {("qos", "counters"): ["counters", "qos"], ("counters", "qos"): ["none"]}.get(
            tuple(names), names
        )
    document = replies.get(subtrees.get(tuple(names)), {}).get(port, {})
    for name in names:
        document = document.get(name)
        if document is None:
            return Says(status=404)
    return says(document)
