"""HTTP/1.1 to servers that are not trusted: h11 parses (RFC 9112), this module limits what a reply can cost.

There are no redirects, so credentials reach no other server, no proxy, no compression and no trust in lengths: head, body and the
number of interim responses are limited, and the caller limits the time. Connections are kept until the client is closed.

    async with HttpClient(server, files) as client:
        reply = await client.request("GET", "/api/x", authorization(login))
"""

from __future__ import annotations

import asyncio
import re
import ssl
from dataclasses import dataclass
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import h11

from roce_exporter import __version__
from roce_exporter.net import NetError
from roce_exporter.net.login import Login, authorization
from roce_exporter.net.tls import EXPIRED, SYSTEM_TLS, TlsFiles, client_context, connection_fault, expiry_text

HEAD_BYTES = 16 * 1024
BODY_BYTES = 6 * 1024 * 1024
"""A switch of 1,024 ports sends a third of it at once. Decoded it can take eight times as much, with one letter outside the BMP."""
ERROR_BODY_BYTES = 64 * 1024
"""Of a reply that is not 200. The rest of a longer body is not read, which costs the connection."""
INTERIM_RESPONSES = 8
READ_BYTES = 16 * 1024
TURN_PIECES = 128
"""The bytes, and the pieces of a body, that are parsed between two turns of the event loop."""
MOST_PIECES = 50_000  # chunks and received pieces of a body: a whole one in chunks of 400 bytes
OK = 200
PORTS = {True: 443, False: 80}  # the default port with and without TLS
PATH = re.compile(r"/[!-~]*", re.ASCII)

Headers = tuple[tuple[str, str], ...]


class TooMuchError(NetError):
    """A body that is larger than the caller accepts, or takes longer."""


class HttpServer(NamedTuple):
    """Where a server is."""

    tls: bool
    host: str
    """The name or address for the header `Host` and the server's certificate."""
    port: int
    path: str = ""
    """What every path begins with, without a slash at its end."""

    @property
    def text(self) -> str:
        """The URL."""
        return f"{'https' if self.tls else 'http'}://{place_text(self.host, self.port)}{self.path}"


class Access(NamedTuple):
    """Credentials, and how the server is verified."""

    login: Login = Login()
    tls: TlsFiles = SYSTEM_TLS


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One reply; of a status that is not 200 the beginning of the body."""

    status: int
    headers: Headers
    body: bytes

    def header(self, name: str) -> str:
        """The first header of this lower-case name, or empty."""
        return next(iter(self.all_headers(name)), "")

    def all_headers(self, name: str) -> tuple[str, ...]:
        """All headers of this lower-case name."""
        return tuple(value for key, value in self.headers if key == name)


def parse_server(url: str) -> HttpServer:
    """The server of a URL such as `http://prometheus:9090` or `https://monitoring.example.org/prometheus`.

    Raises:
        NetError: it is not such a URL. A URL with credentials is not repeated.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise NetError(
            "not a valid URL (brackets, or a port that is no number up to 65535); write http://HOST:9090"
        ) from None
    if parts.username is not None or parts.password is not None:
        raise NetError("has credentials in it; give --http.config.file with basic_auth or authorization")
    if parts.scheme not in ("http", "https") or not host:
        raise NetError("must begin with http:// or https:// and a host; write http://HOST:9090")
    if parts.query or parts.fragment or not url.isprintable() or " " in url or not url.isascii():
        raise NetError("has more than scheme, host, port and path; write http://HOST:9090")
    tls = parts.scheme == "https"
    return HttpServer(tls, host, port or PORTS[tls], parts.path.rstrip("/"))


def place_text(host: str, port: int) -> str:
    """HOST:PORT, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def fetch(
    server: HttpServer, path: str, access: Access, seconds: float, body_bytes: int = BODY_BYTES
) -> HttpReply:
    """The reply to one GET, of any status, over a connection of its own.

    Raises:
        NetError: as for `HttpClient.request`, or it took longer than `seconds`.
    """
    try:
        async with asyncio.timeout(seconds), HttpClient(server, access.tls, body_bytes=body_bytes) as client:
            return await client.request("GET", path, authorization(access.login))
    except TimeoutError:
        raise TooMuchError(f"no answer in {seconds:g} s") from None


class HttpClient:
    """Requests to one server. Use it with `async with`: leaving closes all connections."""

    def __init__(
        self,
        server: HttpServer,
        files: TlsFiles = SYSTEM_TLS,
        address: str = "",
        connect_seconds: float | None = None,
        body_bytes: int = BODY_BYTES,
    ) -> None:
        """Connect to `address` if it is given, which nothing resolves again; else to the host of the server."""
        self._server = server
        self._files = files
        self._address = address or server.host
        self._connect_seconds = connect_seconds
        self._body_bytes = body_bytes
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []

    async def __aenter__(self) -> Self:
        """Nothing is sent before the first request."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections, also when the task is cancelled."""
        for connection in self._open:
            connection.abort()
        self._open.clear()
        self._idle.clear()
        await asyncio.sleep(0)  # the event loop closes descriptors in its next cycle

    async def request(self, method: str, path: str, headers: Headers = (), body: bytes = b"") -> HttpReply:
        """The reply, of any status; the body of a request is JSON. Simultaneous requests use a connection each.

        Raises:
            NetError: no connection, or a reply that is not valid or too large.
            ValueError: the path has characters that must be quoted.
        """
        if not PATH.fullmatch(path):
            raise ValueError("a path has characters that must be quoted")
        server = self._server
        default = server.port == PORTS[server.tls]
        content = (("Content-Type", "application/json"), ("Content-Length", str(len(body)))) if body else ()
        every: Headers = (
            ("Host", place_text(server.host, server.port).removesuffix(f":{server.port}" if default else "")),
            ("User-Agent", f"roce-exporter/{__version__}"),
            ("Accept-Encoding", "identity"),
            *content,
        )
        head = h11.Request(method=method, target=server.path + path, headers=[*every, *headers])
        reply = await self._exchange(head, body)
        if reply.status == OK and reply.header("content-encoding").lower() not in ("", "identity"):
            raise NetError("the reply is compressed, which was not requested")
        return reply

    async def _exchange(self, head: h11.Request, body: bytes) -> HttpReply:
        is_kept = bool(self._idle)
        connection = self._idle.pop() if is_kept else await self._connected()
        try:
            reply = await connection.exchange(head, body)
        except (OSError, h11.RemoteProtocolError) as error:
            self._close(connection)
            if is_kept and not connection.received:
                # The server closed an idle connection before it sent any byte of this reply.
                return await self._exchange(head, body)
            if isinstance(error, OSError):
                raise self._fault(error) from None
            raise NetError(connection.protocol_fault) from None
        except BaseException:
            self._close(connection)
            raise
        if connection.reusable():
            self._idle.append(connection)
        else:
            self._close(connection)
        return reply

    async def _connected(self) -> _Connection:
        server = self._server
        context = client_context(self._files) if server.tls else None
        name = (self._files.server_name or server.host) if context else None
        try:
            async with asyncio.timeout(self._connect_seconds):
                reader, writer = await asyncio.open_connection(
                    self._address, server.port, ssl=context, server_hostname=name, limit=READ_BYTES
                )
        except OSError as error:
            fault = str(self._fault(error))
            if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code == EXPIRED:
                fault += await expiry_text(self._address, server.port, name or "")
            raise NetError(fault) from None
        connection = _Connection(reader, writer, self._body_bytes)
        self._open.add(connection)
        return connection

    def _close(self, connection: _Connection) -> None:
        connection.abort()
        self._open.discard(connection)

    def _fault(self, error: OSError) -> NetError:
        return NetError(connection_fault(error, place_text(self._address, self._server.port)))


class _Connection:
    """One connection, request after request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body_bytes: int) -> None:
        self._reader = reader
        self._writer = writer
        self._body_bytes = body_bytes
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        self.received = False
        """Whether any byte of the reply has arrived."""
        self._ended = False

    async def exchange(self, request: h11.Request, body: bytes) -> HttpReply:
        """Send one request and receive its reply.

        Raises:
            OSError: the connection failed.
            h11.RemoteProtocolError: the reply is not HTTP, or is cut off.
            NetError: it is larger than allowed.
        """
        self.received = False
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        self._writer.write(b"".join(self._parser.send(part) or b"" for part in parts))
        await self._writer.drain()
        head = await self._head()
        headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in head.headers)
        most = self._body_bytes if head.status_code == OK else ERROR_BODY_BYTES
        content = await self._body(most)
        if len(content) > most and head.status_code == OK:
            raise TooMuchError(f"the reply is larger than {most >> 20} MiB")
        return HttpReply(head.status_code, headers, content)

    def reusable(self) -> bool:
        """Whether the connection can carry another request; if so, it is made ready for it."""
        if self._parser.our_state is not h11.DONE or self._parser.their_state is not h11.DONE:
            return False
        self._parser.start_next_cycle()
        return True

    def abort(self) -> None:
        """Close at once: the descriptor is closed in the next cycle of the event loop."""
        self._writer.transport.abort()

    async def _head(self) -> h11.Response:
        interim = 0
        while not isinstance(event := self._parser.next_event(), h11.Response):
            if event is h11.NEED_DATA:
                # At most the rest of one head, so that the limit also applies to a complete head.
                room = HEAD_BYTES - len(self._parser.trailing_data[0])
                if room <= 0:
                    raise NetError(f"the head of the reply is larger than {HEAD_BYTES} bytes")
                await self._feed(room)
            elif isinstance(event, h11.InformationalResponse) and interim < INTERIM_RESPONSES:
                interim += 1
            else:
                raise NetError("the reply is not HTTP/1.1: too many interim responses, or no response")
        return event

    async def _body(self, most: int) -> bytes:
        """The body. Of one that is larger, more than `most` bytes; the parser stays in its middle, so the connection is not reusable."""
        body, pieces = bytearray(), 0
        while len(body) <= most and not isinstance(event := self._parser.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                body += event.data
                pieces += 1
                if pieces > MOST_PIECES:
                    raise NetError(f"the reply comes in more than {MOST_PIECES:,} pieces")
                if pieces % TURN_PIECES == 0:
                    await asyncio.sleep(0)
            elif event is h11.NEED_DATA:
                await self._feed(READ_BYTES)
        return bytes(body)

    async def _feed(self, room: int) -> None:
        data = await self._reader.read(room)  # no bytes: the server has closed, which they signal to h11
        self.received = self.received or bool(data)
        self._ended = not data
        self._parser.receive_data(data)
        await asyncio.sleep(0)  # a server that sends as fast as this reads must not keep the others waiting

    @property
    def protocol_fault(self) -> str:
        """One line for a reply that is not HTTP."""
        if not self.received:
            return "the server closed the connection without a reply"
        if self._ended:
            return "the reply is cut off: the server closed the connection before its end"
        return "the reply is not valid HTTP/1.1"
