"""One connection over a transport that the test controls: when it reads, when it waits, and what it sends."""

import asyncio
import logging

import h11
import pytest
from clock import pass_time

from roce_exporter.web.client_stream import LINGER_BYTES, ClientStream
from roce_exporter.web.connection import (
    ClientLimits,
    Connection,
    ConnectionState,
    Request,
    RequestError,
    Response,
    understood,
)

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
TEXT = "text/plain; charset=utf-8"
LIMIT = 100
ENDLESS = 3600.0
SOON = 0.01


class Pipe(asyncio.Transport):
    """The server's calls on its side of a socket; `full`: the kernel accepts none of the written bytes."""

    def __init__(self, wire: ClientStream, *, full: bool = False, closes: bool = True) -> None:
        super().__init__()
        self.wire = wire
        self.full = full
        self.closes = closes
        self.sent: list[bytes] = []
        self.reading = True
        self.calls: list[str] = []
        self.buffer_limits: tuple[int | None, int | None] = (None, None)
        wire.connection_made(self)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.buffer_limits = (high, low)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))
        if self.full:
            self.wire.pause_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.calls.append("end")

    def close(self) -> None:
        self.calls.append("close")
        if self.closes:
            self.wire.connection_lost(None)

    def abort(self) -> None:
        self.calls.append("abort")

    def receive(self, data: bytes) -> None:
        """Receive these bytes from the client."""
        self.wire.get_buffer(-1)[: len(data)] = data
        self.wire.buffer_updated(len(data))


def connected(limit: int = LIMIT, *, full: bool = False, closes: bool = True) -> tuple[ClientStream, Pipe]:
    wire = ClientStream(memoryview(bytearray(2 * LINGER_BYTES)), limit)
    return wire, Pipe(wire, full=full, closes=closes)


async def settle() -> None:
    """Run every task until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_reading_pauses_at_the_limit_and_goes_on_below_it() -> None:
    wire, pipe = connected()
    pipe.receive(b"a" * (LIMIT - 1))
    assert pipe.reading
    pipe.receive(b"b")
    assert not pipe.reading
    assert wire.take(1) == b"a"
    assert pipe.reading
    assert wire.take(1000) == b"a" * (LIMIT - 2) + b"b"
    pipe.receive(b"x" * (LIMIT + 1))
    wire.take(1)
    assert not pipe.reading, "the limit is still reached"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (lambda pipe: pipe.receive(b"x"), True),
        (lambda pipe: pipe.wire.eof_received(), False),
        (lambda pipe: pipe.wire.connection_lost(None), False),
    ],
    ids=["bytes", "end", "loss"],
)
async def test_waiting_for_input_ends_with_every_event(event, expected) -> None:
    wire, pipe = connected()
    waiting = asyncio.create_task(wire.has_input())
    await settle()
    assert not waiting.done()
    event(pipe)
    await settle()
    assert waiting.done()
    assert waiting.result() is expected
    assert await wire.has_input() is expected


async def test_a_write_ends_when_the_kernel_has_taken_everything() -> None:
    wire, pipe = connected(full=True)
    assert pipe.buffer_limits == (1, 0)
    writing = asyncio.create_task(wire.write(b"x", ENDLESS))
    await settle()
    assert not writing.done()
    wire.resume_writing()
    await writing
    assert pipe.sent == [b"x"]


async def test_a_write_ends_when_the_connection_is_lost_and_none_begins_after_it() -> None:
    wire, pipe = connected(full=True)
    writing = asyncio.create_task(wire.write(b"x", ENDLESS))
    await settle()
    wire.connection_lost(None)
    await writing
    with pytest.raises(ConnectionResetError):
        await wire.write(b"y", ENDLESS)
    assert pipe.sent == [b"x"]


async def test_closing_ends_our_side_waits_for_the_clients_and_then_closes() -> None:
    wire, pipe = connected()
    closing = asyncio.create_task(wire.close(ENDLESS, ENDLESS))
    await settle()
    assert pipe.calls == ["end"]
    pipe.receive(b"more")
    await settle()
    assert pipe.calls == ["end"]
    wire.eof_received()
    await closing
    assert pipe.calls == ["end", "close"]


@pytest.mark.parametrize(("size", "closed"), [(LINGER_BYTES - 1, False), (LINGER_BYTES, True)])
async def test_a_closing_connection_reads_a_limited_amount(size, closed) -> None:
    wire, pipe = connected(2 * LINGER_BYTES)
    closing = asyncio.create_task(wire.close(ENDLESS, ENDLESS))
    pipe.receive(b"x" * (size - 1))
    await settle()
    pipe.receive(b"x")
    await settle()
    assert closing.done() is closed
    closing.cancel()


async def test_a_close_that_never_ends_is_abandoned() -> None:
    wire, pipe = connected(closes=False)
    wire.eof_received()
    with pytest.raises(TimeoutError):
        await wire.close(SOON, ENDLESS)
    wire.abort()
    assert pipe.calls == ["end", "close", "abort"]


class Served:
    """An open connection, and the requests that reached the application."""

    def __init__(self, response: Response | None = None, *, full: bool = False, **limits: float) -> None:
        self.limits = ClientLimits(**limits)  # type: ignore[arg-type]
        self.wire, self.pipe = connected(self.limits.head_bytes, full=full)
        self.requests: list[Request] = []
        self.states: list[ConnectionState] = []
        self._response = response or Response(200, b"hello\n", TEXT)
        self.connection = Connection(self.wire, self.limits, self._answer)

    async def _answer(self, connection: Connection, request: Request) -> Response:
        assert connection is self.connection
        self.requests.append(request)
        self.states.append(connection.state)
        return self._response

    def answers(self) -> list[tuple[h11.Response, bytes]]:
        """The replies that the client has received, as an HTTP client parses them."""
        client = h11.Connection(h11.CLIENT)
        found = []
        client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        client.send(h11.EndOfMessage())
        client.receive_data(b"".join(self.pipe.sent))
        while isinstance(head := client.next_event(), h11.Response):
            body = b""
            while isinstance(part := client.next_event(), h11.Data):
                body += part.data
            found.append((head, body))
            if client.our_state is not h11.DONE or client.their_state is not h11.DONE:
                break
            client.start_next_cycle()
            client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
            client.send(h11.EndOfMessage())
        return found


async def refusal(text: bytes, **limits: float) -> tuple[int, str]:
    """Status and text of the only reply to this."""
    served = Served(linger_seconds=SOON, **limits)
    served.pipe.receive(text)
    await served.connection.serve()
    assert not served.requests
    assert served.connection.state is ConnectionState.IDLE, "a lingering connection is the first to be closed"
    ((head, body),) = served.answers()
    assert dict(head.headers)[b"connection"] == b"close"
    assert dict(head.headers)[b"content-type"] == TEXT.encode()
    assert dict(head.headers).get(b"allow") == (b"GET, HEAD" if head.status_code == 405 else None)
    return head.status_code, body.decode()


async def test_between_requests_a_client_may_stay_idle_for_longer() -> None:
    served = Served(request_seconds=2 * ENDLESS, idle_seconds=ENDLESS, linger_seconds=SOON)
    serving = asyncio.create_task(served.connection.serve())
    await settle()
    assert served.connection.state is ConnectionState.IDLE
    assert not serving.done()
    served.pipe.receive(GET)
    await settle()
    assert (len(served.requests), served.connection.state) == (1, ConnectionState.IDLE)
    pass_time(1.5 * ENDLESS)
    await serving
    assert served.pipe.calls == ["end", "close"]


async def test_a_request_reaches_the_application_and_its_answer_the_client() -> None:
    served = Served(idle_seconds=SOON, linger_seconds=SOON)
    served.pipe.receive(GET)
    await served.connection.serve()
    (request,) = served.requests
    assert request == Request("GET", "/metrics", {"host": "x"})
    assert served.states == [ConnectionState.READING]
    ((head, body),) = served.answers()
    assert (head.status_code, head.reason, body) == (200, b"OK", b"hello\n")
    headers = dict(head.headers)
    assert headers[b"content-type"] == TEXT.encode()
    assert headers[b"date"].endswith(b" GMT")
    assert served.connection.state is ConnectionState.IDLE


async def test_a_request_half_sent_is_read_until_its_time_is_up() -> None:
    served = Served(request_seconds=ENDLESS)
    serving = asyncio.create_task(served.connection.serve())
    served.pipe.receive(GET[:9])
    await settle()
    assert served.connection.state is ConnectionState.READING
    assert served.connection.since == pytest.approx(asyncio.get_running_loop().time(), abs=60)
    serving.cancel()
    status, text = await refusal(GET[:9], request_seconds=0.25)
    assert (status, text) == (408, "the request did not arrive within 0.25 s\n")


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400, "the request is not valid HTTP/1.1"),
        (b"GET /\r\n\r\n", 400, "the request is not valid HTTP/1.1"),
        (b"\x16\x03\x01\x02\x00\x01", 400, "the request is not valid HTTP/1.1"),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 405, "only GET and HEAD are served"),
        (b"CONNECT a:443 HTTP/1.1\r\nHost: x\r\n\r\n", 405, "only GET and HEAD are served"),
        (b"GET / HTTP/1.1\r\nHost: " + b"x" * LIMIT, 431, "the request's head is larger than 100 bytes"),
        (b"PUT / HTTP/1.1\r\nHost: x\r\n\r\n", 405, "only GET and HEAD are served"),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, "only HTTP/1.1 is served"),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
            411,
            "encoded request bodies are not accepted",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 51\r\n\r\n",
            413,
            "a request body may have at most 50 bytes",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
            417,
            "expectations are not supported; send the request without Expect",
        ),
    ],
)
async def test_a_refusal_gives_its_reason(text, status, reason) -> None:
    assert await refusal(text, head_bytes=LIMIT, body_bytes=50) == (status, f"{reason}\n")


SMUGGLING = {
    "two lengths": GET[:-2] + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef" + GET,
    "two lengths in one line": GET[:-2] + b"Content-Length: 5, 6\r\n\r\nabcdef" + GET,
    "length and chunks": GET[:-2] + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET,
    "chunks": GET[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET,
    "odd encoding": GET[:-2] + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + GET,
    "blank before the colon": GET[:-2] + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + GET,
    "negative length": GET[:-2] + b"Content-Length: -1\r\n\r\n" + GET,
    "signed length": GET[:-2] + b"Content-Length: +1\r\n\r\nx" + GET,
    "endless length": GET[:-2] + b"Content-Length: " + b"9" * 6000 + b"\r\n\r\nx" + GET,
    "two hosts": GET[:-2] + b"Host: y\r\n\r\n" + GET,
    "folded from the start": b"GET / HTTP/1.1\r\n Host: x\r\n\r\n" + GET,
    "bare carriage return": b"GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n" + GET,
    "two targets": b"GET / / HTTP/1.1\r\nHost: x\r\n\r\n" + GET,
}


@pytest.mark.parametrize("text", SMUGGLING.values(), ids=SMUGGLING.keys())
async def test_a_request_that_can_be_read_in_two_ways_is_refused_and_nothing_behind_it_served(text) -> None:
    status, _ = await refusal(text)
    assert 400 <= status < 500 or status == 501


async def test_a_small_body_is_read_in_pieces_and_discarded() -> None:
    """A repeated equal length is one length (RFC 9110, section 8.6); the body is not parsed as a request."""
    served = Served(idle_seconds=SOON, linger_seconds=SOON, body_bytes=4)
    serving = asyncio.create_task(served.connection.serve())
    served.pipe.receive(GET[:-2] + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nGE")
    await settle()
    assert not served.requests
    served.pipe.receive(b"T " + GET)
    await serving
    assert [request.path for request in served.requests] == ["/metrics", "/metrics"]


def test_a_length_together_with_an_encoding_is_a_bad_request() -> None:
    """Such requests are used for smuggling past a proxy; h11 keeps the encoding only, so this rule is our own."""
    head = h11.Request(
        method="GET",
        target="/",
        headers=[("Host", "x"), ("Content-Length", "3"), ("Transfer-Encoding", "chunked")],
    )
    headers = [*head.headers, (b"content-length", b"3")]
    forged = h11.Request(method="GET", target="/", headers=[("Host", "x")])
    object.__setattr__(forged, "headers", headers)
    with pytest.raises(RequestError) as caught:
        understood(forged, 50)
    assert caught.value.response.status == 400
    assert str(caught.value) == "encoded request bodies are not accepted"


@pytest.mark.parametrize(("sent", "status"), [(GET, 200), (GET[:9], 400)])
async def test_a_client_that_leaves_gets_an_answer_and_nothing_more(sent, status) -> None:
    """Who leaves within a request has sent a bad one."""
    served = Served(linger_seconds=SOON)
    served.pipe.receive(sent)
    served.wire.eof_received()
    await served.connection.serve()
    assert [head.status_code for head, _ in served.answers()] == [status]
    assert served.pipe.calls == ["end", "close"]


async def test_a_body_goes_out_in_slices_each_waited_for() -> None:
    body = bytes(range(256)) * 2
    served = Served(Response(200, body, TEXT), full=True, slice_bytes=200, linger_seconds=SOON)
    serving = asyncio.create_task(served.connection.serve())
    served.pipe.receive(GET)
    for slices in range(1, 4):
        await settle()
        assert len(served.pipe.sent) == slices
        assert served.connection.state is ConnectionState.WRITING
        served.connection.since = 0.0
        served.wire.resume_writing()
        await settle()
        assert served.connection.since > 0.0, "the client took a slice"
    head, _, first = served.pipe.sent[0].partition(b"\r\n\r\n")
    assert b"content-length: 512" in head.lower()
    assert [first, *served.pipe.sent[1:]] == [body[:200], body[200:400], body[400:]]
    serving.cancel()


async def test_a_client_that_reads_nothing_is_dropped_after_a_time_limit() -> None:
    served = Served(full=True, stalled_seconds=SOON)
    served.pipe.receive(GET)
    with pytest.raises(TimeoutError):
        await served.connection.serve()


async def test_head_is_answered_without_a_body_and_the_next_get_with_one() -> None:
    served = Served(idle_seconds=SOON, linger_seconds=SOON)
    served.pipe.receive(GET.replace(b"GET", b"HEAD") + GET)
    await served.connection.serve()
    first, second = (text for text in b"".join(served.pipe.sent).split(b"HTTP/1.1 200 OK")[1:])
    assert b"content-length: 6" in first.lower()
    assert first.endswith(b"\r\n\r\n")
    assert second.endswith(b"\r\n\r\nhello\n")


async def test_a_response_that_is_not_http_is_an_internal_error(caplog) -> None:
    served = Served(Response(200, b"secret", TEXT, (("X", "a\r\nb: c"),)), linger_seconds=SOON)
    served.pipe.receive(GET + GET)
    await served.connection.serve()
    ((head, body),) = served.answers()
    assert (head.status_code, body) == (500, b"internal error\n")
    assert dict(head.headers)[b"connection"] == b"close"
    (record,) = caplog.records
    assert (record.levelno, record.message) == (logging.ERROR, "a response could not be sent as HTTP")
    assert record.exc_info is not None


@pytest.mark.parametrize(("missing", "requests"), [(0, 1), (1, 0)])
async def test_a_head_just_within_the_limit_is_served(missing, requests) -> None:
    """At once, and in two pieces."""
    for first in (len(GET), len(GET) - 1):
        served = Served(head_bytes=len(GET) - missing, idle_seconds=SOON, linger_seconds=SOON)
        serving = asyncio.create_task(served.connection.serve())
        served.pipe.receive(GET[:first])
        await settle()
        served.pipe.receive(GET[first:])
        await serving
        assert len(served.requests) == requests


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("http://host:1/a", "/a", ""),
        ("HTTPS://host", "/", ""),
        ("/a/http://host/b", "/a/http://host/b", ""),
        ("/probe?target=leaf1&module=sonic", "/probe", "target=leaf1&module=sonic"),
        ("/probe?target=https://spine1.example.com/x", "/probe", "target=https://spine1.example.com/x"),
        ("http://exporter:10124/probe?target=http://a", "/probe", "target=http://a"),
        ("http://exporter:10124?target=a", "/", "target=a"),
        ("/probe?a?b", "/probe", "a?b"),
        ("/probe?", "/probe", ""),
        ("/a%3Fb", "/a%3Fb", ""),
        ("/metrics/../debug/events", "/metrics/../debug/events", ""),
        ("//debug", "//debug", ""),
    ],
)
def test_a_target_is_a_path_as_it_was_sent_and_what_follows_the_first_question_mark(
    target, path, query
) -> None:
    request = understood(h11.Request(method="GET", target=target, headers=[("Host", "x")]), 0)
    assert (request.path, request.query) == (path, query)


def test_lines_of_one_header_are_joined_and_their_bytes_kept() -> None:
    headers = [("Host", "x"), ("A", b"\xe9"), ("B", "1"), ("a", "2")]
    request = understood(h11.Request(method="HEAD", target="/", headers=headers), 0)
    assert request.headers == {"host": "x", "a": "\xe9, 2", "b": "1"}
