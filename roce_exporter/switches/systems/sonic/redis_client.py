"""Read hashes from the databases of a SONiC switch: Redis, by a unix socket or an address.

Two commands read, `HGETALL` and `HMGET`; two open a session, `AUTH` and `SELECT`. No other command can be sent. Commands go out
in slices, so that Redis, which is the switch's control plane too, serves others in between.

Replies (RESP2) are flat arrays of texts, and bounded. The parsers of Redis clients take any reply: hiredis allocates what the header of
an array announces, so that 14 bytes (`*1000000000`) hold the event loop for seconds. Here a reply is either short, an array without
arrays in it, or refused.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from roce_exporter.net import NetError, ReplyBudget, meanings
from roce_exporter.net.http import place_text
from roce_exporter.net.login import Login, LoginGate, hide
from roce_exporter.net.tls import connection_fault
from roce_exporter.switches.readings import LoggedRequest, label_text

READING_COMMANDS = frozenset({"HGETALL", "HMGET"})
SESSION_COMMANDS = frozenset({"AUTH", "SELECT"})
SLICE = 500
"""Commands that are sent before their replies are read."""
EXCHANGE_CHARACTERS = 2000
ERROR_CHARACTERS = 120
MOST_BYTES = 16 << 20
"""Of all replies of one round, from all databases and namespaces. Everything of 64 ports with 20 queues is 1 MiB."""
MOST_VALUES = 600_000
"""Of all replies of one round: a switch of 1,024 ports with 20 queues has a quarter, a chassis has more."""
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


def round_budget() -> ReplyBudget:
    """What all databases of one round may send together."""
    return ReplyBudget(MOST_BYTES, MOST_VALUES)


Command = tuple[str, ...]
Hash = dict[str, str]


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

    def __init__(self, stream: asyncio.StreamReader, budget: ReplyBudget | None = None) -> None:
        self._stream = stream
        self._budget = budget or round_budget()
        self._buffer = b""
        self._position = 0

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
        """The bytes of several replies; the last one is `end`.

        Raises:
            NetError: there are too many of them, or the connection was closed.
        """
        found = bytearray(self._buffer[self._position :])
        self._buffer, self._position = b"", 0
        while len(found) <= len(end) or not found.endswith(end):
            found += await self._chunk()
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
        self._budget.take(values=count)
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
                if header[:1] != b"$":
                    raise NetError(NOT_REDIS)
                length = _length(header[1:], MOST_CHARACTERS)
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
        self._buffer = self._buffer[self._position :] + await self._chunk()
        self._position = 0
        await asyncio.sleep(0)  # a server that sends as fast as this reads must not keep the others waiting

    async def _chunk(self) -> bytes:
        chunk = await self._stream.read(CHUNK)
        if not chunk:
            raise NetError("the connection was closed before the reply was complete")
        self._budget.take(len(chunk))
        return chunk


def _length(digits: bytes, most: int) -> int:
    if not digits.isdigit() or len(digits) > 20:  # noqa: PLR2004 - digits of 2^64
        raise NetError(NOT_REDIS)
    length = int(digits)
    if length > most:
        raise NetError(f"a reply announces a length of {length}: is this a SONiC switch?")
    return length


class RedisAddress(NamedTuple):
    """Where one database is."""

    host: str
    """An IP address; empty for a unix socket."""
    port: int
    path: str
    """The path of the unix socket."""
    number: int
    """The number of the database: SELECT."""

    def __str__(self) -> str:
        return f"{self.path or place_text(self.host, self.port)} database {self.number}"


Tls = tuple["ssl.SSLContext", str]
"""How to verify the server, and the name that its certificate has to be for."""


CONNECT_SECONDS = 3.0
REFUSED = "Redis refuses the user or the password: check basic_auth"


@dataclass(slots=True)
class RedisDatabase:
    """An open connection to one database."""

    address: RedisAddress
    writer: asyncio.StreamWriter
    replies: ReplyReader
    login: Login
    source: str
    """The name of the source in logged requests."""
    logged: list[LoggedRequest] | None = field(default=None)
    """Where to record, for the debug page."""
    seen: list[tuple[Command, Hash]] = field(default_factory=list)
    """What was read."""

    async def read(self, commands: Sequence[Command], *, keep: bool = True) -> list[Hash | ReplyError]:
        """The hash that each command reads, or Redis' error. A field that does not exist is absent; so are all of a hash.

        With `keep` they are added to `seen`.

        Raises:
            NetError: the connection broke, or a reply is not a hash.
        """
        replies: list[Hash | ReplyError] = []
        for start in range(0, len(commands), SLICE):
            part = commands[start : start + SLICE]
            sent = iter(part)
            async for reply in self._exchange(part):
                command = next(sent)
                found = _hash_of(command, reply)
                replies.append(found)
                if keep and not isinstance(found, ReplyError):
                    self.seen.append((command, found))
                if self.logged is not None:
                    query = f"{self.address.number}: {' '.join(command)}"[:EXCHANGE_CHARACTERS]
                    text = hide(repr(reply)[:EXCHANGE_CHARACTERS], self.login)
                    self.logged.append(LoggedRequest(self.source, query, text))
        return replies

    async def raw(self, sent: bytes, end: bytes) -> bytes:
        """Send prepared commands; their replies as they are, of which the last one is `end`.

        Raises:
            NetError: the connection broke, or the replies are too long.
        """
        try:
            self.writer.write(sent)
            await self.writer.drain()
            return await self.replies.until(end)
        except OSError as error:
            raise NetError(f"{self.address}: the connection broke ({type(error).__name__})") from None

    def line(self, error: ReplyError) -> str:
        """Redis' error as one line with the remedy, without the password."""
        said = label_text(hide(error, self.login)[:ERROR_CHARACTERS])
        return meanings("redis").get(error.code) or f"Redis returned the error: {said}"

    async def _exchange(self, commands: Sequence[Command]) -> AsyncIterator[Reply]:
        try:
            self.writer.write(packed(commands))
            await self.writer.drain()
            for _ in commands:
                yield await self.replies.read()
        except OSError as error:
            raise NetError(f"{self.address}: the connection broke ({type(error).__name__})") from None
        except NetError as error:
            raise NetError(f"{self.address}: {error}") from None

    async def select(self, login: Login, gate: LoginGate, deadline: float) -> None:
        """Open the session.

        Raises:
            NetError: Redis refuses the credentials, or has no such database.
        """
        if login.password:
            words = (login.username, login.password) if login.username else (login.password,)
            async with gate.attempt(deadline):
                try:
                    await self._session(("AUTH", *words), REFUSED)
                except NetError as error:
                    gate.refusal = str(error) if REFUSED in str(error) else ""
                    raise
                gate.is_accepted = True
        await self._session(
            ("SELECT", str(self.address.number)),
            "Redis has no database of this number: check database_config",
        )

    async def _session(self, command: Command, remedy: str) -> None:
        """Send a command of the session. The error may hold the password, so it is not shown."""
        (reply,) = [one async for one in self._exchange([command])]
        if isinstance(reply, ReplyError):
            raise NetError(f"{self.address}: {meanings('redis').get(reply.code, remedy)}")
        if reply != "OK":
            raise NetError(f"{self.address}: {NOT_REDIS}")


@asynccontextmanager
async def open_database(  # noqa: PLR0917 - all of them say how to connect
    address: RedisAddress,
    login: Login,
    tls: Tls | None = None,
    source: str = "",
    logged: list[LoggedRequest] | None = None,
    gate: LoginGate | None = None,
    deadline: float = math.inf,
    budget: ReplyBudget | None = None,
) -> AsyncIterator[RedisDatabase]:
    """Connect, authenticate and select; the connection is closed at the end, also after a fault or a cancellation.

    `budget` is what the round may receive; without it this connection is all of the round.

    Raises:
        NetError: the database cannot be reached, or refuses.
    """
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            if address.path:
                reader, writer = await asyncio.open_unix_connection(address.path)
            else:
                context, name = tls or (None, None)
                reader, writer = await asyncio.open_connection(
                    address.host, address.port, ssl=context, server_hostname=name
                )
    except OSError as error:
        raise NetError(connection_fault(error, str(address).rpartition(" database ")[0])) from None
    try:
        database = RedisDatabase(address, writer, ReplyReader(reader, budget), login, source, logged)
        await database.select(login, gate or LoginGate(), deadline)
        yield database
    finally:
        # At once: unsent bytes to a server that reads nothing must not keep the descriptor.
        writer.transport.abort()


def packed(commands: Iterable[Command]) -> bytes:
    """Commands as they go over the wire.

    Raises:
        ValueError: a command is not one of those that read or open the session.
    """
    parts = []
    for command in commands:
        if command[0] in READING_COMMANDS:
            words = f"{_word(command[0])}{_word(command[1])}{_fields(command[2:])}"
        elif command[0] in SESSION_COMMANDS:
            words = "".join(map(_word, command))
        else:
            raise ValueError(f"{command[0]} is no reading command")
        parts.append(f"*{len(command)}\r\n{words}")
    return "".join(parts).encode()


@lru_cache(maxsize=256)
def _fields(names: tuple[str, ...]) -> str:
    """The fields of a command, which are the same for all queues."""
    return "".join(map(_word, names))


def _word(word: str) -> str:
    return f"${len(word) if word.isascii() else len(word.encode())}\r\n{word}\r\n"


def _hash_of(command: Command, reply: Reply) -> Hash | ReplyError:
    if isinstance(reply, ReplyError):
        return reply
    if isinstance(reply, list):
        if command[0] == "HMGET" and len(reply) == len(command) - 2:
            return {name: value for name, value in zip(command[2:], reply, strict=True) if value is not None}
        if command[0] == "HGETALL" and len(reply) % 2 == 0:
            pairs = zip(reply[::2], reply[1::2], strict=True)
            return {name: value for name, value in pairs if name is not None and value is not None}
    raise NetError(f"the reply to {command[0]} {command[1]} is no hash: is this Redis?")
