"""Replies of Redis to reading commands (RESP2): flat arrays of texts, and bounded.

The parsers of Redis clients take any reply: hiredis allocates what the header of an array announces, so that 14 bytes
(`*1000000000`) hold the event loop for seconds. Here a reply is either short, an array without arrays in it, or refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.net import NetError

if TYPE_CHECKING:
    from asyncio import StreamReader

MOST_BYTES = 8 << 20
"""Of all replies of one connection. Everything of 64 ports with 20 queues is 1 MiB."""
MOST_ITEMS = 1 << 17
"""Fields and values of one hash: 65,536 queues."""
MOST_CHARACTERS = 1 << 16
"""Of one field or value."""
MOST_HEADER = 512
"""Bytes of a line: the length of a text, or an error."""
CHUNK = 1 << 16

NOT_REDIS = "the reply is not in Redis' protocol: check the address"

KNOWN_LENGTHS = {b"$%d" % length: length for length in range(-1, 256)}
"""The headers of nearly all texts. A length of -1 means that there is no text."""


class ReplyError(str):
    """An error that Redis returned instead of a value: `WRONGTYPE Operation against a key...`."""

    __slots__ = ()

    @property
    def code(self) -> str:
        """Its first word."""
        return self.partition(" ")[0]


Reply = str | int | list[str | None] | ReplyError | None


class ReplyReader:
    """Reads one reply after the other."""

    def __init__(self, stream: StreamReader) -> None:
        self._stream = stream
        self._buffer = b""
        self._position = 0
        self._received = 0

    async def read(self) -> Reply:
        """The next reply; an error of Redis is a value of the type `ReplyError`.

        Raises:
            NetError: the reply is not in Redis' protocol or too long, or the connection was closed.
        """
        header = await self._header()
        kind, rest = header[:1], header[1:]
        if kind == b"*":
            return await self._items(_length(rest, MOST_ITEMS))
        if kind == b"$":
            self._position -= len(header) + 2
            return (await self._items(1))[0]
        text = rest.decode("utf-8", "replace")
        if kind == b"-":
            return ReplyError(text)
        if kind == b"+":
            return text
        if kind == b":":
            return _length(rest, 1 << 63)
        raise NetError(NOT_REDIS)

    async def until(self, end: bytes) -> bytes:
        """The bytes of several replies, of which the last one is `end`.

        Raises:
            NetError: there are too many of them, or the connection was closed.
        """
        found = bytearray(self._buffer[self._position :])
        self._buffer, self._position = b"", 0
        while len(found) <= len(end) or not found.endswith(end):
            chunk = await self._stream.read(CHUNK)
            if not chunk:
                raise NetError("the connection was closed before the reply was complete")
            found += chunk
            if len(found) > MOST_BYTES:
                raise NetError(f"the replies are longer than {MOST_BYTES >> 20} MiB: is this a SONiC switch?")
        return bytes(found)

    async def _header(self) -> bytes:
        while (end := self._buffer.find(b"\r\n", self._position)) < 0:
            await self._receive(waiting=MOST_HEADER)
        header = self._buffer[self._position : end]
        if len(header) > MOST_HEADER:
            raise NetError(NOT_REDIS)
        self._position = end + 2
        return header

    async def _items(self, count: int) -> list[str | None]:
        items: list[str | None] = []
        while True:
            self._take(items, count)
            if len(items) >= count:
                return items
            await self._receive(waiting=MOST_CHARACTERS + MOST_HEADER)

    def _take(self, items: list[str | None], count: int) -> None:
        """Append the texts that have been received completely, until there are `count` of them."""
        buffer, position = self._buffer, self._position
        while len(items) < count and (end := buffer.find(b"\r\n", position)) >= 0:
            header = buffer[position:end]
            length = KNOWN_LENGTHS.get(header)
            if length is None:
                length = _text_length(header)
            start = end + 2
            stop = start + length
            if length < 0:
                items.append(None)
                position = start
            elif buffer[stop : stop + 2] == b"\r\n":
                items.append(buffer[start:stop].decode("utf-8", "replace"))
                position = stop + 2
            elif len(buffer) < stop + 2:
                break
            else:
                raise NetError(NOT_REDIS)
        self._position = position

    async def _receive(self, waiting: int) -> None:
        """Receive more, unless more than `waiting` bytes did not make a text or a line."""
        if len(self._buffer) - self._position > waiting:
            raise NetError(NOT_REDIS)
        chunk = await self._stream.read(CHUNK)
        if not chunk:
            raise NetError("the connection was closed before the reply was complete")
        self._received += len(chunk)
        if self._received > MOST_BYTES:
            raise NetError(f"the replies are longer than {MOST_BYTES >> 20} MiB: is this a SONiC switch?")
        self._buffer = self._buffer[self._position :] + chunk
        self._position = 0


def _text_length(header: bytes) -> int:
    if header[:1] != b"$":
        raise NetError(NOT_REDIS)
    return _length(header[1:], MOST_CHARACTERS)


def _length(digits: bytes, most: int) -> int:
    if not digits.isdigit() or len(digits) > 20:  # noqa: PLR2004 - digits of 2^64
        raise NetError(NOT_REDIS)
    length = int(digits)
    if length > most:
        raise NetError(f"a reply announces a length of {length}: is this a SONiC switch?")
    return length
