"""One HTTP/1.1 connection to a switch: h11 parses (RFC 9112), this module limits what a reply can cost.

There are no redirects, no compression and no trust in lengths: head, body and the number of interim responses are limited,
and the caller's deadline ends every wait.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from roce_exporter.switches.readings import SourceError

if TYPE_CHECKING:
    import ssl

HEAD_BYTES = 16 * 1024
BODY_BYTES = 32 * 1024 * 1024
ERROR_BODY_BYTES = 64 * 1024
"""Of a reply that is not 200. The rest of a longer body is not read, which costs the connection."""
INTERIM_RESPONSES = 8
READ_BYTES = 64 * 1024
OK = 200

Headers = tuple[tuple[str, str], ...]


class StaleConnectionError(Exception):
    """The switch closed an idle connection before it sent any byte of this reply."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. h11 refuses line breaks in any part of it."""

    method: str
    path: str
    headers: Headers
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One reply; of a status that is not 200 the beginning of the body."""

    status: int
    headers: Headers
    body: bytes

    def header(self, name: str) -> str:
        """The first header of this lower-case name, or empty."""
        return next((value for key, value in self.headers if key == name), "")

    def all_headers(self, name: str) -> tuple[str, ...]:
        """All headers of this lower-case name."""
        return tuple(value for key, value in self.headers if key == name)


class ClientConnection:
    """One connection, request after request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        self._requests = 0
        self._received = False
        self._ended = False

    @classmethod
    async def open(
        cls, address: str, port: int, context: ssl.SSLContext | None, server_name: str
    ) -> ClientConnection:
        """Connect to this IP address, with TLS if there is a context.

        Raises:
            OSError: no connection, or no TLS (ssl.SSLError).
        """
        name = server_name if context else None
        reader, writer = await asyncio.open_connection(
            address, port, ssl=context, server_hostname=name, limit=READ_BYTES
        )
        return cls(reader, writer)

    async def exchange(self, request: HttpRequest) -> HttpReply:
        """Send one request and receive its reply.

        Raises:
            OSError: the connection failed.
            SourceError: the reply is not HTTP, is cut off, or is larger than allowed.
            StaleConnectionError: the request can be repeated on a new connection.
        """
        self._requests += 1
        self._received = False
        try:
            await self._send(request)
            return await self._receive()
        except (OSError, h11.RemoteProtocolError) as error:
            if self._requests > 1 and not self._received:
                raise StaleConnectionError from None
            if isinstance(error, OSError):
                raise
            raise SourceError(self._protocol_fault()) from None

    def reusable(self) -> bool:
        """Whether the connection can carry another request; if so, it is made ready for it."""
        if self._parser.our_state is not h11.DONE or self._parser.their_state is not h11.DONE:
            return False
        self._parser.start_next_cycle()
        return True

    def abort(self) -> None:
        """Close at once: the descriptor is closed in the next cycle of the event loop."""
        self._writer.transport.abort()

    async def _send(self, request: HttpRequest) -> None:
        head = h11.Request(method=request.method, target=request.path, headers=list(request.headers))
        data = [self._parser.send(head) or b""]
        if request.body:
            data.append(self._parser.send(h11.Data(data=request.body)) or b"")
        data.append(self._parser.send(h11.EndOfMessage()) or b"")
        self._writer.write(b"".join(data))
        await self._writer.drain()

    async def _receive(self) -> HttpReply:
        head = await self._head()
        headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in head.headers)
        body = await (self._body() if head.status_code == OK else self._error_body())
        return HttpReply(head.status_code, headers, body)

    async def _head(self) -> h11.Response:
        interim = 0
        while not isinstance(event := self._parser.next_event(), h11.Response):
            if event is h11.NEED_DATA:
                await self._feed_head()
            elif isinstance(event, h11.InformationalResponse) and interim < INTERIM_RESPONSES:
                interim += 1
            else:
                raise SourceError("the reply is not HTTP/1.1: too many interim responses, or no response")
        return event

    async def _feed_head(self) -> None:
        """Pass at most the rest of one head to the parser, so that the limit also applies to a complete head."""
        room = HEAD_BYTES - len(self._parser.trailing_data[0])
        if room <= 0:
            raise SourceError(f"the head of the reply is larger than {HEAD_BYTES} bytes")
        await self._feed(room)

    async def _body(self) -> bytes:
        body = bytearray()
        while part := await self._part():
            body += part
            if len(body) > BODY_BYTES:
                raise SourceError(f"the reply is larger than {BODY_BYTES // 1024 // 1024} MiB")
        return bytes(body)

    async def _error_body(self) -> bytes:
        body = bytearray()
        # Leaves the parser in the middle of a longer body, so that the connection is not reusable.
        while len(body) < ERROR_BODY_BYTES and (part := await self._part()):
            body += part
        return bytes(body)

    async def _part(self) -> bytes:
        """The next bytes of the body; none at its end."""
        while not isinstance(event := self._parser.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Data) and event.data:
                return bytes(event.data)
            if event is h11.NEED_DATA:
                await self._feed(READ_BYTES)
        return b""

    async def _feed(self, room: int) -> None:
        data = await self._reader.read(
            room
        )  # no bytes: the switch has closed, which empty bytes signal to the parser
        self._received = self._received or bool(data)
        self._ended = not data
        self._parser.receive_data(data)

    def _protocol_fault(self) -> str:
        if not self._received:
            return "the switch closed the connection without a reply"
        if self._ended:
            return "the reply is cut off: the switch closed the connection before its end"
        return "the reply is not valid HTTP/1.1"
