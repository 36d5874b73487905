"""The bytes of one connection: asyncio puts them here, `web.connection` takes them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

LINGER_BYTES = 256 * 1024


class ClientStream(asyncio.BufferedProtocol):
    """The bytes of one connection, with limits in both directions."""

    def __init__(self, scratch: memoryview, limit: int) -> None:
        """`scratch` receives the bytes of a socket and may be shared by all connections of one event loop."""
        self.lost = asyncio.Event()
        self.when_lost: Callable[[], object] | None = None
        """Called when the client is gone."""
        self.transport: asyncio.Transport | None = None
        self._scratch = scratch
        self._limit = limit
        self._inbox = bytearray()
        self.has_ended = False
        """Whether the client sends no more: it waits for its response, or is gone."""
        self._news = asyncio.Event()
        self._flushed = asyncio.Event()
        self._flushed.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio has made the connection."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        # Writing pauses unless the socket accepts everything, and resumes when the buffer is empty: a write then ends when all is sent.
        transport.set_write_buffer_limits(high=1, low=0)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Where asyncio must put the received bytes."""
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Asyncio has put this number of bytes into the buffer."""
        self._inbox += self._scratch[:nbytes]
        if len(self._inbox) >= self._limit and self.transport:
            self.transport.pause_reading()
        self._news.set()

    def eof_received(self) -> bool:
        """True: a client that has finished sending still waits for its response. Not with TLS, which asyncio cannot close by half."""
        self.has_ended = True
        self._news.set()
        return self.about("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Nothing can be received or sent any more."""
        self.has_ended = True
        for event in (self.lost, self._news, self._flushed):
            event.set()
        if self.when_lost:
            self.when_lost()

    def pause_writing(self) -> None:
        """The socket did not accept everything."""
        self._flushed.clear()

    def resume_writing(self) -> None:
        """The socket has accepted everything."""
        self._flushed.set()

    def about(self, name: str) -> Any:
        """What the transport knows of the client by this name, such as `peercert`; None if it does not."""
        return self.transport.get_extra_info(name) if self.transport else None

    async def has_input(self) -> bool:
        """True once there are bytes to read; False when no more will arrive."""
        while not (self._inbox or self.has_ended):
            self._news.clear()
            await self._news.wait()
        return bool(self._inbox)

    def take(self, count: int) -> bytes:
        """The next received bytes, at most `count`."""
        taken = bytes(self._inbox[:count])
        del self._inbox[:count]
        if len(self._inbox) < self._limit and self.transport:
            self.transport.resume_reading()
        return taken

    def take_exactly(self, expected: bytes) -> bool:
        """Take the received bytes if they are these and no others; returns whether they were."""
        if self._inbox != expected:
            return False
        self.take(len(expected))
        return True

    @property
    def is_quiet(self) -> bool:
        """Whether the next input must be waited for."""
        return not (self._inbox or self.has_ended)

    async def write(self, data: bytes | memoryview, seconds: float) -> None:
        """Send, and wait until the kernel has accepted everything.

        Raises:
            OSError: the client disconnected, or took longer than `seconds` (TimeoutError).
        """
        if self.lost.is_set() or self.transport is None:
            raise ConnectionResetError
        self.transport.write(data)
        if not self._flushed.is_set():
            async with asyncio.timeout(seconds):
                await self._flushed.wait()

    async def close(self, seconds: float, linger: float) -> None:
        """Close so that a client which is still sending can read the response before its connection is reset."""
        if self.transport and self.transport.can_write_eof():
            self.transport.write_eof()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(linger):
                    left = LINGER_BYTES
                    while left > 0 and await self.has_input():
                        left -= len(self.take(left))
        if self.transport:
            self.transport.close()
            async with asyncio.timeout(seconds):
                await self.lost.wait()

    def abort(self) -> None:
        """Close at once, and discard unsent bytes."""
        if self.transport:
            self.transport.abort()
