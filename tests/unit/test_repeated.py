"""A request that is repeated byte by byte is not parsed again; everything else is. The bytes sent are those that h11 would send."""

import asyncio
from email.utils import formatdate

import h11
import pytest
from test_connection import Pipe, connected, settle

from roce_exporter.web import connection
from roce_exporter.web.connection import ClientLimits, Connection, Request, Response

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n"
OTHER = GET.replace(b"text/plain", b"text/other")
TEXT = "text/plain; charset=utf-8"
VARY = (("Vary", "Accept-Encoding"),)


class Served:
    """A connection whose parser counts the bytes that it is given."""

    def __init__(self, *responses: Response) -> None:
        wire, self.pipe = connected(ClientLimits().head_bytes)
        self.requests: list[Request] = []
        self._responses = list(responses)
        self.connection = Connection(wire, ClientLimits(), self._answer)
        self.parsed = 0
        receive = self.connection._parser.receive_data

        def count(data: bytes) -> None:
            self.parsed += len(data)
            receive(data)

        self.connection._parser.receive_data = count  # type: ignore[method-assign]
        self.task = asyncio.create_task(self.connection.serve())

    async def _answer(self, _: Connection, request: Request) -> Response:
        self.requests.append(request)
        return self._responses.pop(0) if len(self._responses) > 1 else self._responses[0]

    async def send(self, data: bytes) -> bytes:
        """What the server sends after these bytes."""
        await settle()
        before = len(self.pipe.sent)
        self.pipe.receive(data)
        await settle()
        return b"".join(self.pipe.sent[before:])

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture(autouse=True)
def seconds(monkeypatch) -> list[int]:
    now = [1_000_000_000]
    monkeypatch.setattr(connection.time, "time", lambda: now[0])
    return now


async def test_the_bytes_are_those_of_h11_for_every_length_and_date(seconds) -> None:
    bodies = [b"x" * size for size in (5, 5, 123_456, 0, 7)]
    served = Served(*(Response(200, body, TEXT, VARY) for body in bodies), Response(200, b"", TEXT))
    for body in bodies:
        sent = await served.send(GET)
        head = sent[: sent.index(b"\r\n\r\n") + 4]
        parser = h11.Connection(h11.SERVER)
        parser.receive_data(GET)
        parser.next_event()
        headers = [
            ("Date", formatdate(seconds[0], usegmt=True)),
            ("Content-Type", TEXT),
            ("Content-Length", str(len(body))),
        ]
        assert head == parser.send(h11.Response(status_code=200, headers=[*headers, *VARY], reason=b"OK"))
        assert sent == head + body
        seconds[0] += 86_400
    assert served.parsed == len(GET)
    await served.end()


async def test_a_repetition_in_pieces_or_together_with_another_is_parsed() -> None:
    served = Served(Response(200, b"body\n", TEXT))
    await served.send(GET)
    assert await served.send(GET[:10]) == b""
    assert (await served.send(GET[10:])).endswith(b"body\n")
    for _ in range(2):
        assert (await served.send(GET + OTHER)).count(b"body\n") == 2
    accepted = [one.headers["accept"] for one in served.requests]
    assert accepted == ["text/plain"] * 3 + ["text/other", "text/plain", "text/other"]
    assert (await served.send(GET)).endswith(b"body\n")
    await served.end()


async def test_the_end_of_a_request_is_no_request() -> None:
    """The second half of a request came alone, but its first half came with the request before."""
    served = Served(Response(200, b"body\n", TEXT))
    await served.send(GET + OTHER[:20])
    assert (await served.send(OTHER[20:])).endswith(b"body\n")
    assert (await served.send(OTHER[20:])).startswith(b"HTTP/1.1 400 ")
    await served.end()


async def test_another_response_is_written_by_h11_and_then_remembered_itself() -> None:
    ok, late = Response(200, b"ok", TEXT), Response(503, b"later", TEXT, (("Retry-After", "1"),))
    served = Served(ok, ok, late, late, ok)
    sent = [await served.send(GET) for _ in range(5)]
    assert [one.split(b"\r\n", 1)[0] for one in sent] == [
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 503 Service Unavailable",
        b"HTTP/1.1 503 Service Unavailable",
        b"HTTP/1.1 200 OK",
    ]
    assert sent[0] == sent[1] == sent[4]
    assert sent[2] == sent[3]
    assert b"Retry-After: 1\r\n" in sent[2]
    await served.end()


async def test_a_response_that_ends_the_connection_ends_it_on_a_repetition_too() -> None:
    served = Served(Response(200, b"ok", TEXT), Response(200, b"ok", TEXT, (("Connection", "close"),)))
    await served.send(GET)
    assert b"Connection: close\r\n" in await served.send(GET)
    assert "end" in served.pipe.calls
    await served.end()


async def test_a_large_request_is_not_kept() -> None:
    large = GET.replace(b"Host: x", b"Host: x\r\nX: " + b"a" * connection.MOST_BYTES)
    served = Served(Response(200, b"body\n", TEXT))
    for _ in range(2):
        assert (await served.send(large)).endswith(b"body\n")
    assert served.parsed == 2 * len(large)
    await served.end()


async def test_a_client_that_sends_without_end_lets_other_tasks_run() -> None:
    """Pipelined requests are answered one by one, and every task of the event loop has a turn between them."""
    served = Served(Response(200, b"body\n", TEXT))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await settle()
    before = turns
    served.pipe.receive(GET * 20)
    await settle()
    await settle()
    assert len(served.requests) == turns - before == 20, "one request per turn"
    task.cancel()
    await served.end()
    assert isinstance(served.pipe, Pipe)
