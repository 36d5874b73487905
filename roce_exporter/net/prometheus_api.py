"""Prometheus' HTTP API: https://prometheus.io/docs/prometheus/latest/querying/api/."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from roce_exporter.net import NetError
from roce_exporter.net.http import OK, HttpClient, HttpLimits, HttpServer
from roce_exporter.net.login import Login, authorization
from roce_exporter.net.tls import SYSTEM_TLS, TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

REPLY_BYTES = 256 << 20
"""A host with 16 ports has 20,000 series; 1,000 points of each are half a gigabyte, which no diagnosis needs."""
CONNECT_SECONDS = 10.0
SHOWN = 200
"""Most characters of Prometheus' own error."""
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404
REDIRECTS = range(300, 400)

LOGIN_REMEDY = "give --http.config.file with basic_auth or authorization"
REMEDY = {
    UNAUTHORIZED: f"it requires a user: {LOGIN_REMEDY}",
    FORBIDDEN: "this user may not query it",
    NOT_FOUND: "there is no API of Prometheus at this path; check the path of the URL",
}


class Access(NamedTuple):
    """Credentials, and how the server is verified."""

    login: Login = Login()
    tls: TlsFiles = SYSTEM_TLS


async def get(
    server: HttpServer, access: Access, what: str, query: Mapping[str, str], seconds: float
) -> object:
    """The `data` of the answer of `/api/v1/WHAT`.

    Raises:
        NetError: no answer, an error, or an answer that is not Prometheus'.
        TimeoutError: it took longer than `seconds`.
    """
    limits = HttpLimits(connect=CONNECT_SECONDS, body_bytes=REPLY_BYTES)
    async with asyncio.timeout(seconds), HttpClient(server, access.tls, limits) as client:
        path = f"/api/v1/{what}?{urlencode(query)}"
        reply = await client.request("GET", path, authorization(access.login))
    if reply.status != OK:
        raise NetError(_refusal(reply.status, reply.body))
    document = _parsed(reply.body)
    if document.get("status") != "success" or "data" not in document:
        raise NetError("the reply is not that of Prometheus' API; check the port and the path")
    return document["data"]


def _refusal(status: int, body: bytes) -> str:
    if status in REDIRECTS:
        return f"it redirects to another place (HTTP {status}), which is not followed; give the final URL"
    if status in REMEDY:
        return f"HTTP {status}: {REMEDY[status]}"
    said = _parsed(body).get("error")
    line = ascii(" ".join(said.split())[:SHOWN])[1:-1] if isinstance(said, str) else ""
    return f"HTTP {status}: {line}".removesuffix(": ")


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
