"""Hostile and broken clients: the cost of each is bounded, and the next scrape is served."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from waiting import HUNG_SECONDS

from roce_exporter.web import ClientLimits, Request, Response, Server

LIMITS = ClientLimits(request_seconds=HUNG_SECONDS, stalled_seconds=HUNG_SECONDS, linger_seconds=0.3)
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
CLOSE = GET[:-2] + b"Connection: close\r\n\r\n"
TEXT = "text/plain; charset=utf-8"


async def hello(_: Request) -> Response:
    return Response(200, b"hello\n", TEXT)


@contextlib.asynccontextmanager
async def serving(application=hello, limits: ClientLimits = LIMITS, config=None) -> AsyncIterator[int]:
    server = Server(application, config, limits)
    (address,) = await server.start(["127.0.0.1:0"])
    try:
        yield int(address.rpartition(":")[2])
    finally:
        await server.close()


async def connect(port: int, text: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    return reader, writer


async def everything(reader: asyncio.StreamReader) -> bytes:
    """Everything that the server sends until it closes, which it must."""
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(HUNG_SECONDS):
            while chunk := await reader.read(65536):
                received += chunk
    return bytes(received)


async def talk(port: int, text: bytes) -> bytes:
    """Everything that the server replies to these bytes until it closes."""
    reader, writer = await connect(port, text)
    try:
        return await everything(reader)
    finally:
        writer.close()


async def scrape_succeeds(port: int) -> bool:
    reader, writer = await connect(port, GET)
    async with asyncio.timeout(HUNG_SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head.startswith(b"HTTP/1.1 200 ")


SMUGGLING = {
    "two lengths": GET[:-2] + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef" + GET,
    "two lengths in one line": GET[:-2] + b"Content-Length: 5, 6\r\n\r\nabcdef" + GET,
    "length and chunks": GET[:-2] + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET,
    "chunks": GET[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET,
    "odd encoding": GET[:-2] + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + GET,
    "encoding with a blank before the colon": GET[:-2]
    + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"
    + GET,
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
    async with serving() as port:
        answer = await talk(port, text)
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501 "))
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_repeated_equal_length_is_one_length() -> None:
    """RFC 9110, section 8.6 allows it; the point is that the body is not parsed as a request."""
    async with serving() as port:
        answer = await talk(port, GET[:-2] + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\nGET " + CLOSE)
    assert answer.count(b"HTTP/1.1 200 ") == answer.count(b"HTTP/1.1 ") == 2


async def test_at_the_cap_the_longest_idle_connection_makes_room() -> None:
    async with serving(limits=ClientLimits(connections=3)) as port:
        idle = []
        for _ in range(3):
            idle.append(await connect(port, GET))
            await idle[-1][0].readuntil(b"hello\n")
        idle[0][1].write(GET)  # the first connection is now the most recently used
        await idle[0][0].readuntil(b"hello\n")
        assert await scrape_succeeds(port)
        assert await everything(idle[1][0]) == b""
        for reader, writer in (idle[0], idle[2]):
            assert not reader.at_eof()
            writer.close()
        idle[1][1].close()


async def test_a_request_being_answered_is_not_dropped_for_a_new_one() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def application(_: Request) -> Response:
        entered.set()
        await leave.wait()
        return Response(200, b"done", TEXT)

    async with serving(application, replace(LIMITS, connections=1)) as port:
        reader, writer = await connect(port, GET)
        await entered.wait()
        assert await talk(port, GET) == b"", "the only one that can be refused"
        leave.set()
        assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 ")
        writer.close()
