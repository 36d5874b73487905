"""Prometheus' HTTP API: one request, without redirects, so that credentials reach no other server.

The format of replies is that of https://prometheus.io/docs/prometheus/latest/querying/api/. Requests block: call them in a worker.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

REPLY_BYTES = 256 << 20
"""A host with 16 ports has 20,000 series; 1,000 points of each are half a gigabyte, which no diagnosis needs."""
ERROR_BYTES = 64 * 1024
SHOWN = 200
"""Most characters of Prometheus' own error."""
OK = 200
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 401, 403, 404
REDIRECTS = range(300, 400)

REMEDY = {
    UNAUTHORIZED: "it requires a user: give --prometheus.username and --prometheus.password-file",
    FORBIDDEN: "this user may not query it",
    NOT_FOUND: "there is no API of Prometheus at this path; check the path of the URL",
}


class PrometheusError(Exception):
    """A request that failed: one line, without credentials."""


@dataclass(frozen=True, slots=True)
class PrometheusServer:
    """Where Prometheus is."""

    tls: bool
    host: str
    port: int
    path: str
    """The part of the path before /api/v1, without a slash at its end."""

    @property
    def text(self) -> str:
        """The URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.path}"


@dataclass(frozen=True, slots=True, repr=False)
class Access:
    """User, password and TLS; its text has no password."""

    username: str = ""
    password: str = ""
    context: ssl.SSLContext | None = None

    def headers(self) -> dict[str, str]:
        """The header of HTTP basic authentication (RFC 7617), if there is a user."""
        if not self.username:
            return {}
        pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}


def parse_server(url: str) -> PrometheusServer:
    """The server of a URL such as `http://prometheus:9090` or `https://monitoring.example.org/prometheus`.

    Raises:
        PrometheusError: it is not such a URL. The error does not contain it if it has credentials.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise PrometheusError("not a valid URL; write http://HOST:9090") from None
    if parts.username is not None or parts.password is not None:
        raise PrometheusError(
            "has credentials in it; give --prometheus.username and --prometheus.password-file"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise PrometheusError("must begin with http:// or https:// and a host; write http://HOST:9090")
    if parts.query or parts.fragment or not url.isprintable() or " " in url or not url.isascii():
        raise PrometheusError("has more than scheme, host, port and path; write http://HOST:9090")
    tls = parts.scheme == "https"
    default = http.client.HTTPS_PORT if tls else http.client.HTTP_PORT
    return PrometheusServer(tls, host, port or default, parts.path.rstrip("/"))


def get(
    server: PrometheusServer, access: Access, what: str, query: Mapping[str, str], timeout: float
) -> object:
    """The `data` of the answer of `/api/v1/WHAT`. Blocks; each wait is at most `timeout` seconds.

    Raises:
        PrometheusError: no answer, an error, or an answer that is not Prometheus'.
    """
    connection = _connection(server, access, timeout)
    try:
        connection.request("GET", f"{server.path}/api/v1/{what}?{urlencode(query)}", headers=access.headers())
        with connection.getresponse() as reply:
            status = reply.status
            body = reply.read(REPLY_BYTES + 1 if status == OK else ERROR_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise PrometheusError(_reason(error, timeout)) from None
    finally:
        connection.close()
    if status != OK:
        raise PrometheusError(_refusal(status, body))
    if len(body) > REPLY_BYTES:
        raise PrometheusError(f"the answer is larger than {REPLY_BYTES >> 20} MiB; use a shorter --since")
    return _data(body)


def _connection(server: PrometheusServer, access: Access, timeout: float) -> http.client.HTTPConnection:
    if server.tls:
        return http.client.HTTPSConnection(server.host, server.port, timeout=timeout, context=access.context)
    return http.client.HTTPConnection(server.host, server.port, timeout=timeout)


def _reason(error: Exception, timeout: float) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message.rstrip('.')}; give --prometheus.ca-file"
    if isinstance(error, ssl.SSLError):
        return (
            f"the TLS handshake failed ({error.reason or 'UNKNOWN'}); check http:// or https:// and the port"
        )
    if isinstance(error, TimeoutError):
        return f"no answer in {timeout:g} s"
    if isinstance(error, OSError):
        return f"{error.strerror or error}; check the address, and whether Prometheus runs"
    return "the reply is not HTTP; check the port"


def _refusal(status: int, body: bytes) -> str:
    if status in REDIRECTS:
        return f"it redirects to another place (HTTP {status}), which is not followed; give the final URL"
    if status in REMEDY:
        return f"HTTP {status}: {REMEDY[status]}"
    said = _parsed(body).get("error")
    return f"HTTP {status}" + (f": {_one_line(said)}" if isinstance(said, str) else "")


def _data(body: bytes) -> object:
    document = _parsed(body)
    if document.get("status") != "success" or "data" not in document:
        raise PrometheusError("the reply is not that of Prometheus' API; check the port and the path")
    return document["data"]


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _one_line(text: str) -> str:
    return ascii(" ".join(text.split())[:SHOWN])[1:-1]
