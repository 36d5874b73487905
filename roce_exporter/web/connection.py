"""One HTTP/1.1 connection: h11 parses (RFC 9112), this module limits the resources that a client can use.

The limits apply to the bytes of a request, the time until it has arrived, and the memory for a response that the client
does not read: asyncio before Python 3.12 copies all bytes that a socket does not accept at once, so bodies are sent in slices.

Prometheus sends the same bytes at every scrape, and gets the same head but for date and length. Equal bytes parse to an equal request, so a
repetition of the last request of a connection is not parsed again. All bytes are compared: a request that differs in one byte, or arrives
together with another one, goes through the parser.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import h11

if TYPE_CHECKING:
    import ssl

    from roce_exporter.web.client_stream import ClientStream

    Answer: TypeAlias = "Callable[[Connection, Request], Awaitable[Response]]"

LOG = logging.getLogger(__name__)

METHODS = ("GET", "HEAD")
MOST_BYTES = 2048
"""Larger requests are not remembered, because each connection has its own. Prometheus sends about 300 bytes."""
REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
RUNBOOKS = "/runbooks/"  # the begin of the paths that need no login
PLAIN = "text/plain; charset=utf-8"
AUTHORITY = re.compile(rb"\Ahttps?://[^/?]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Request:
    """One parsed request."""

    method: str
    path: str
    """As it was sent, not decoded: a page is served under one spelling, so that a proxy in front sees which page is requested."""
    headers: Mapping[str, str]
    """By lower-case name; repeated headers are joined by a comma."""
    query: str = ""
    """What follows the first `?` of the target, not decoded."""


@dataclass(frozen=True, slots=True)
class Response:
    """One response. The server sets `Content-Length`, `Content-Type` and `Date`."""

    status: int
    body: bytes
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What one client may take, in bytes and seconds."""

    head_bytes: int = 8 * 1024
    body_bytes: int = 8 * 1024
    """For a request body, which is read and discarded."""
    request_seconds: float = 4.5
    """For a request to arrive completely, from its first byte; for that first byte on a new connection; for a handshake."""
    idle_seconds: float = 330.0
    """Between requests: longer than the five minutes after which Prometheus itself drops an idle connection."""
    stalled_seconds: float = 10.0
    """For a client to read one slice of a response."""
    linger_seconds: float = 1.0
    """For a client to read the last response and close."""
    closing_seconds: float = 0.25
    """For requests in progress when the server closes."""
    slice_bytes: int = 64 * 1024
    connections: int = 256


class RateLimit(NamedTuple):
    """`burst` requests at once, then one every `interval` seconds."""

    interval: float
    burst: int


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The settings of a web config file. Default: no TLS, no authentication."""

    tls: ssl.SSLContext | None = None
    allowed_sans: frozenset[str] = frozenset()
    """A client's certificate must have one of these subject alternative names; empty: any certificate is accepted."""
    headers: tuple[tuple[str, str], ...] = ()
    users: Mapping[bytes, bytes] = field(default_factory=dict)
    """User names, and the bcrypt hashes of their passwords."""
    rate_limit: RateLimit | None = None


class ConnectionState(enum.IntEnum):
    """What a connection is doing, in the order in which connections are closed when there are too many."""

    IDLE = 0
    """Between requests and before the first one; an unfinished handshake counts as idle."""
    READING = 1
    WRITING = 2
    ANSWERING = 3


class RequestError(Exception):
    """A request that gets `response` without a call of the application, and is the last one of its connection."""

    def __init__(self, status: int, reason: str, *headers: tuple[str, str]) -> None:
        super().__init__(reason)
        self.response = plain(status, reason, *headers, ("Connection", "close"))


def plain(status: int, line: str, *headers: tuple[str, str]) -> Response:
    """A response of one line of text."""
    return Response(status, f"{line}\n".encode(), PLAIN, headers)


class RememberedHead(NamedTuple):
    """The head of the last response of a connection, as h11 wrote it."""

    status: int
    content_type: str
    headers: tuple[tuple[str, str], ...]
    date: bytes
    length: int
    head: bytes


def repeated_head(known: RememberedHead, response: Response) -> bytes | None:
    """The head of this response, if it differs from the known one in date and length only; otherwise None."""
    if (response.status, response.content_type, response.headers) != known[:3]:
        return None
    # `_head_event` puts these two first and third, so the first match is the right one.
    dated = known.head.replace(b"Date: " + known.date, b"Date: " + http_date().encode(), 1)
    return dated.replace(
        b"Content-Length: %d\r\n" % known.length, b"Content-Length: %d\r\n" % len(response.body), 1
    )


class Connection:
    """One client, request after request."""

    def __init__(self, wire: ClientStream, limits: ClientLimits, answer: Answer) -> None:
        """`answer` is called for every well-formed request; it never raises."""
        self.wire = wire
        self.state = ConnectionState.IDLE
        self.since = 0.0
        """When the state was entered, or the last slice was sent, by the clock of the event loop."""
        self._clock = asyncio.get_running_loop().time
        self.enter(ConnectionState.IDLE)
        self._limits = limits
        self._answer = answer
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        self._timeout = limits.request_seconds
        self._head_only = False
        self._fed = b""
        """The bytes of the current request so far."""
        self._last: tuple[bytes, Request] | None = None
        """The last request, and its bytes."""
        self._last_head: RememberedHead | None = None

    def enter(self, state: ConnectionState) -> None:
        """Change to this state, and restart its time."""
        self.state = state
        self.since = self._clock()

    async def serve(self) -> None:
        """Answer requests until the client, a limit or an error ends the connection. Raises OSError: the client disconnected or stalled."""
        while await self._begins() and await self._exchange():
            self._timeout = self._limits.idle_seconds
        self.enter(ConnectionState.IDLE)
        await self.wire.close(self._limits.stalled_seconds, self._limits.linger_seconds)

    async def _begins(self) -> bool:
        self.enter(ConnectionState.IDLE)
        if self._parser.trailing_data[0]:
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                return await self.wire.has_input()
        return False

    async def _exchange(self) -> bool:
        """Answer one request. False when the connection cannot be used for another one."""
        self.enter(ConnectionState.READING)
        self._head_only, self._fed = False, b""
        is_first = not self._parser.trailing_data[0]
        # Never together with bytes that the parser holds back: then the last request is not remembered.
        if self._last is not None and self.wire.take_exactly(self._last[0]):
            return await self._repeat(*self._last)
        try:
            request = await self._request()
        except RequestError as refusal:
            await self._send(refusal.response)
            return False
        fed = self._fed if is_first and not self._parser.trailing_data[0] else b""
        # One that arrived alone, is small, and has a body in its response.
        is_kept = 0 < len(fed) <= MOST_BYTES and request.method == "GET"
        self._last = (fed, request) if is_kept else None
        return await self._conclude(await self._answer(self, request))

    async def _repeat(self, raw: bytes, request: Request) -> bool:
        """Answer a request that is equal to the last one. The parser does not see it unless it is needed for the response."""
        response = await self._answer(self, request)
        if self._last_head and (head := repeated_head(self._last_head, response)):
            self.enter(ConnectionState.WRITING)
            await self._write_all(head, response.body)
            return True
        self._parser.receive_data(raw)
        await self._request()
        return await self._conclude(response)

    async def _conclude(self, response: Response) -> bool:
        await self._send(response)
        if not (self._parser.our_state is h11.DONE and self._parser.their_state is h11.DONE):
            return False
        self._parser.start_next_cycle()
        return True

    async def _request(self) -> Request:
        try:
            async with asyncio.timeout(self._limits.request_seconds):
                head = await self._head()
                request = understood(head, self._limits.body_bytes)
                while not isinstance(event := self._parser.next_event(), h11.EndOfMessage):
                    if event is h11.NEED_DATA:
                        await self._feed()
        except TimeoutError:
            raise RequestError(
                408, f"the request did not arrive within {self._limits.request_seconds:g} s"
            ) from None
        except h11.RemoteProtocolError as error:
            raise RequestError(error.error_status_hint, "the request is not valid HTTP/1.1") from None
        return request

    async def _head(self) -> h11.Request:
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            await self._feed()
        if not isinstance(event, h11.Request):
            raise ConnectionResetError  # the client ended the connection between two requests
        self._head_only = event.method == b"HEAD"
        return event

    async def _feed(self) -> None:
        """Pass received bytes to the parser: never more than one head, so that the limit also applies to a complete head."""
        room = self._limits.head_bytes - len(self._parser.trailing_data[0])
        if room <= 0:
            raise RequestError(431, f"the request's head is larger than {self._limits.head_bytes} bytes")
        # No input means that the client has finished, which empty bytes signal to the parser.
        taken = self.wire.take(room) if await self.wire.has_input() else b""
        self._fed += taken
        self._parser.receive_data(taken)

    async def _send(self, response: Response) -> None:
        self.enter(ConnectionState.WRITING)
        date = http_date()
        try:
            head = self._parser.send(_head_event(response, date))
        except h11.LocalProtocolError:
            LOG.exception("a response could not be sent as HTTP")
            response = plain(500, "internal error", ("Connection", "close"))
            head = self._parser.send(_head_event(response, date))
        self._last_head = RememberedHead(
            response.status,
            response.content_type,
            response.headers,
            date.encode(),
            len(response.body),
            head or b"",
        )
        if response.body and not self._head_only:
            # Gives h11 the whole body, which it returns without a copy.
            self._parser.send_with_data_passthrough(h11.Data(data=response.body))
        self._parser.send(h11.EndOfMessage())
        await self._write_all(head or b"", b"" if self._head_only else response.body)

    async def _write_all(self, head: bytes, content: bytes) -> None:
        body, step = memoryview(content), self._limits.slice_bytes
        await self._write(b"".join((head, body[:step])), is_last=len(body) <= step)
        for start in range(step, len(body), step):
            await self._write(body[start : start + step], is_last=start + step >= len(body))

    async def _write(self, data: bytes | memoryview, *, is_last: bool) -> None:
        await self.wire.write(data, self._limits.stalled_seconds)
        self.enter(ConnectionState.WRITING)
        if not (is_last and self.wire.is_quiet and not self._parser.trailing_data[0]):
            await asyncio.sleep(0)  # a client that reads as fast as we write must not keep the others waiting


def _head_event(response: Response, date: str) -> h11.Response:
    headers = [
        ("Date", date),
        ("Content-Type", response.content_type),
        ("Content-Length", str(len(response.body))),
        *response.headers,
    ]
    return h11.Response(
        status_code=response.status, headers=headers, reason=REASONS.get(response.status, b"")
    )


def understood(head: h11.Request, body_bytes: int) -> Request:
    """The request that this head describes. Raises RequestError: the request is not supported, or is ambiguous."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in head.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if not head.http_version.startswith(b"1."):
        raise RequestError(505, "only HTTP/1.1 is served")
    if "transfer-encoding" in headers:
        # Together with a length it allows request smuggling past a proxy.
        raise RequestError(
            400 if "content-length" in headers else 411, "encoded request bodies are not accepted"
        )
    if int(headers.get("content-length", "0")) > body_bytes:
        raise RequestError(413, f"a request body may have at most {body_bytes} bytes")
    if "expect" in headers:
        raise RequestError(417, "expectations are not supported; send the request without Expect")
    method = head.method.decode("ascii")
    if method not in METHODS:
        raise RequestError(405, f"only {' and '.join(METHODS)} are served", ("Allow", ", ".join(METHODS)))
    path, _, query = AUTHORITY.sub(b"", head.target).decode("ascii").partition("?")
    return Request(method, path or "/", headers, query)


def http_date() -> str:
    """The current date (RFC 9110, 5.6.7)."""
    return formatdate(time.time(), usegmt=True)
