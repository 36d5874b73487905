"""Requests of a client: heads, bodies and the bytes after them, and the headers that are decoded after the head."""

import asyncio
import atexit
import contextlib
import math

from roce_exporter.exposition import negotiate
from roce_exporter.web.application import accepts_gzip, scrape_timeout
from roce_exporter.web.client_stream import ClientStream
from roce_exporter.web.connection import ClientLimits, Connection, Request, Response
from roce_exporter.web.passwords import _credentials

ALLOWED = (OSError,)
CORE = ("web/connection.py", "web/client_stream.py")
WORDS = (
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    *(
        f"\r\n{name}: ".encode()
        for name in ("Host", "Content-Length", "Transfer-Encoding", "Expect", "Accept")
    ),
    *(f"\r\n{name}: ".encode() for name in ("Authorization", "Connection", "Accept-Encoding")),
    b"\r\nX-Prometheus-Scrape-Timeout-Seconds: ",
    b"chunked",
    b"Basic ",
    b"100-continue",
    b"keep-alive",
    b"%2e%2e/",
    b"http://a",
    b"application/openmetrics-text;version=1.0.0;q=0.5",
)
LIMITS = ClientLimits(request_seconds=60, idle_seconds=60)
LOOP = asyncio.new_event_loop()
atexit.register(LOOP.close)
SCRATCH = memoryview(bytearray(1 << 16))


class Transport(asyncio.Transport):
    """A socket that accepts everything at once and cannot be half closed, so that no test waits."""

    def __init__(self, wire: ClientStream) -> None:
        super().__init__()
        self.sent = bytearray()
        self._wire = wire

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def can_write_eof(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self._wire.connection_lost(None)


def decode(data: bytes) -> None:
    LOOP.run_until_complete(talk(data[: len(SCRATCH)]))


async def talk(data: bytes) -> None:
    wire = ClientStream(SCRATCH, LIMITS.head_bytes)
    transport = Transport(wire)
    wire.connection_made(transport)
    SCRATCH[: len(data)] = data
    wire.buffer_updated(len(data))
    wire.eof_received()
    with contextlib.suppress(*ALLOWED):
        await Connection(wire, LIMITS, answer).serve()
    assert not transport.sent or transport.sent.startswith(b"HTTP/1.1 ")
    assert b"HTTP/1.1 500" not in transport.sent


async def answer(_: Connection, request: Request) -> Response:
    assert request.method in ("GET", "HEAD")
    assert request.path
    assert request.path.isascii()
    assert request.path.isprintable()
    headers = request.headers
    negotiate(headers.get("accept", ""))
    accepts_gzip(headers.get("accept-encoding", ""))
    seconds = scrape_timeout(headers.get("x-prometheus-scrape-timeout-seconds", ""))
    assert seconds > 0
    assert math.isfinite(seconds)
    _credentials(headers.get("authorization"))
    return Response(200, b"ok\n", "text/plain")
