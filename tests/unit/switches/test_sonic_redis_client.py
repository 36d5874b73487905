"""The Redis client against servers that are not Redis, hostile, slow or refuse; without a real Redis."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from descriptors import open_descriptors
from hypothesis import given
from hypothesis import strategies as st
from sonic_redis import query_switch, target_of
from waiting import HUNG_SECONDS

from roce_exporter.net import NetError
from roce_exporter.net.login import Login, LoginGate
from roce_exporter.switches.systems.sonic import redis_client
from roce_exporter.switches.systems.sonic.redis_client import (
    MOST_BYTES,
    MOST_CHARACTERS,
    NOT_REDIS,
    RedisAddress,
    ReplyError,
    ReplyReader,
    open_database,
    packed,
)
from roce_exporter.switches.systems.sonic.tables import SOURCES

PASSWORD = "correct-horse-battery"  # noqa: S105 - of the servers of this test alone
Script = Callable[[bytes], bytes]
"""What the server returns to the bytes that it received."""


@asynccontextmanager
async def serving(place: Path, script: Script, *, close: bool = False) -> AsyncIterator[RedisAddress]:
    """A server whose reply to every write is that of the script."""
    served = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.current_task())
        try:
            while data := await reader.read(1 << 20):
                writer.write(script(data))
                await writer.drain()
                if close:
                    break
        except ConnectionError:
            pass
        finally:
            writer.close()

    path = str(place / "fake.sock")
    server = await asyncio.start_unix_server(serve, path)
    try:
        yield RedisAddress("", 0, path, 2)
    finally:
        server.close()
        for _ in range(5):
            await asyncio.sleep(0)  # what was just accepted gets its task
        await asyncio.gather(*served)
        for _ in range(2):
            await asyncio.sleep(0)  # the transports close in the next one


def after_select(reply: bytes) -> Script:
    """Accepts the session, then returns this to anything."""
    return lambda data: b"+OK\r\n" if b"SELECT" in data else reply


async def read_one(address: RedisAddress, *command: str, login: Login = Login()) -> object:  # noqa: B008 - frozen
    async with asyncio.timeout(HUNG_SECONDS), open_database(address, login) as database:
        return (await database.read([command or ("HGETALL", "k")]))[0]


async def read_often(address: RedisAddress, times: int) -> None:
    async with open_database(address, Login()) as database:
        for _ in range(times):
            await database.read([("HGETALL", "k")])


NO_HASH = "the reply to HGETALL k is no hash: is this Redis?"
TOO_LONG = "a reply announces a length of 1000000000: is this a SONiC switch?"


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", NOT_REDIS),
        (b"\x00\x01\x02\r\n", NOT_REDIS),
        (b"*2\r\n*1\r\n$1\r\na\r\n$1\r\nb\r\n", NOT_REDIS),
        (b"*2\r\n$1\r\nabc\r\n", NOT_REDIS),
        (b"*-2\r\n", NOT_REDIS),
        (b"*x\r\n", NOT_REDIS),
        (b"*" + b"9" * 400 + b"\r\n", NOT_REDIS),
        (b"y" * 5000, NOT_REDIS),
        (b"*1000000000\r\n", TOO_LONG),
        (b"*2\r\n$1000000000\r\nabc", TOO_LONG),
        (b"$1\r\na\r\n", NO_HASH),
        (b":5\r\n", NO_HASH),
        (b"+OK\r\n", NO_HASH),
        (b"*1\r\n$1\r\na\r\n", NO_HASH),
    ],
)
async def test_what_is_not_a_hash_is_a_fault_of_one_line(tmp_path, reply, line) -> None:
    async with serving(tmp_path, after_select(reply)) as address:
        with pytest.raises(NetError) as caught:
            await read_one(address)
    assert str(caught.value).removeprefix(f"{address}: ") == line


async def test_a_reply_with_another_number_of_values_is_a_fault(tmp_path) -> None:
    async with serving(tmp_path, after_select(b"*1\r\n$1\r\n5\r\n")) as address:
        assert await read_one(address, "HMGET", "k", "a") == {"a": "5"}
        with pytest.raises(NetError, match=r"^the reply to HMGET k is no hash: is this Redis\?$"):
            await read_one(address, "HMGET", "k", "a", "b")


async def test_a_field_that_does_not_exist_is_absent_and_text_that_is_no_utf8_is_kept(tmp_path) -> None:
    async with serving(tmp_path, after_select(b"*3\r\n$-1\r\n$2\r\n\xff1\r\n$0\r\n\r\n")) as address:
        assert await read_one(address, "HMGET", "k", "a", "b", "c") == {"b": "�1", "c": ""}


async def test_a_connection_that_is_closed_midway_is_a_fault(tmp_path) -> None:
    async with serving(tmp_path, lambda _: b"", close=True) as address:
        with pytest.raises(
            NetError, match=r"fake\.sock database 2: the connection was closed before the reply was complete$"
        ):
            await read_one(address)


@pytest.mark.parametrize("stream", [b"a" * 65536, b"*100000\r\n" + b"$2\r\nab\r\n" * 9000, b"+OK\r\n" * 9000])
async def test_a_reply_that_never_ends_costs_a_limited_memory(tmp_path, stream) -> None:
    """The bound is of all replies of a connection, and what a server sends without being read stays in the kernel."""

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(100)
            while True:
                writer.write(b"+OK\r\n" + stream)
                await writer.drain()
        except ConnectionError:
            writer.close()

    server = await asyncio.start_unix_server(flood, str(tmp_path / "fake.sock"))
    tracemalloc.start()
    try:
        with pytest.raises(NetError):
            await read_often(RedisAddress("", 0, str(tmp_path / "fake.sock"), 2), 1000)
        assert tracemalloc.get_traced_memory()[1] < 16 * MOST_BYTES
    finally:
        tracemalloc.stop()
        server.close()
        await asyncio.sleep(0.05)


async def test_no_more_than_the_bound_is_received(tmp_path, monkeypatch) -> None:
    """Many correct replies that together are too long, or have too many values."""
    monkeypatch.setattr(redis_client, "MOST_BYTES", most := 1 << 20)
    big = b"*2\r\n$1\r\na\r\n$60000\r\n" + b"x" * 60000 + b"\r\n"
    async with serving(tmp_path, after_select(big)) as address:
        await read_often(address, most // len(big))
        with pytest.raises(NetError, match="larger than 1 MiB"):
            await read_often(address, 1 + most // len(big))
        monkeypatch.setattr(redis_client, "MOST_VALUES", 4)
        await read_often(address, 2)
        with pytest.raises(NetError, match="more than 4 values"):
            await read_often(address, 3)
        shared = redis_client.round_budget()
        for _ in range(2):
            async with open_database(address, Login(), budget=shared) as database:
                await database.read([("HGETALL", "k")])
        with pytest.raises(NetError, match="replies of the round have more than 4 values"):
            async with open_database(address, Login(), budget=shared) as database:
                await database.read([("HGETALL", "k")])


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            "LOADING Redis is loading the dataset in memory",
            "Redis is loading its data after a start, and answers when it has",
        ),
        (
            "MOVED 3999 192.0.2.1:6381",
            "this is a node of a Redis cluster, and not a SONiC switch: check the address",
        ),
        ("WRONGTYPE Operation against a key", "the key is not a hash"),
        ("NOAUTH Authentication required.", "Redis wants a password: set basic_auth"),
        (
            "ERR unknown command 'HGETALL', with args beginning with: 'k'",
            "Redis returned the error: ERR unknown command 'HGETALL', with args beginning with: 'k'",
        ),
        (f"ERR \x1b[31m{PASSWORD}" + "z" * 300, "Redis returned the error: ERR [31m***" + "z" * 108),
        (
            "z" * (redis_client.ERROR_CHARACTERS - 8) + PASSWORD,
            "Redis returned the error: " + "z" * 112 + "***",
        ),
    ],
)
async def test_an_error_of_redis_is_a_value_and_its_line_has_no_password(tmp_path, error, line) -> None:
    script = after_select(f"-{error}\r\n".encode())
    login = Login("", PASSWORD)
    async with (
        serving(tmp_path, lambda data: b"+OK\r\n" if b"AUTH" in data else script(data)) as address,
        open_database(address, login) as database,
    ):
        (found,) = await database.read([("HGETALL", "k")])
        assert isinstance(found, ReplyError)
        shown = database.line(found)
    assert shown == line


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (
            f"-ERR unknown command 'AUTH', with args beginning with: '{PASSWORD}'\r\n",
            "Redis refuses the user or the password: check basic_auth",
        ),
        ("$1\r\nx\r\n", NOT_REDIS),
    ],
)
async def test_refused_authentication_never_shows_the_password(tmp_path, reply, line) -> None:
    async with serving(tmp_path, lambda _: reply.encode()) as address:
        gate = LoginGate()
        with pytest.raises(NetError) as caught:
            async with open_database(address, Login("ro", PASSWORD), gate=gate):
                pytest.fail("accepted")
    assert gate.refusal == ("" if line == NOT_REDIS else f"{address}: {line}")
    assert str(caught.value) == f"{address}: {line}"
    assert PASSWORD not in repr(caught.value.__context__)


@pytest.mark.parametrize("reply", [b"", b"*", b"*2\r\n$3\r\nab", b"+OK\r\n"[:3]])
async def test_a_reply_that_never_comes_ends_with_the_deadline_and_leaves_nothing(tmp_path, reply) -> None:
    descriptors = set(open_descriptors())
    async with serving(tmp_path, lambda _: reply) as address:
        _, readings = await query_switch(target_of(address.path), seconds=0.2)
        assert set(readings.faults) == set(SOURCES)
        assert set(readings.faults.values()) == {"no complete reply by the deadline"}
    assert set(open_descriptors()) <= descriptors
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cancelled_round_leaves_nothing_behind(tmp_path) -> None:
    """Cancelled while all four databases are waited for."""
    descriptors, waiting, seen = set(open_descriptors()), asyncio.Event(), []

    def script(data: bytes) -> bytes:
        seen.append(data)
        if len(seen) == 4:
            waiting.set()
        return b""

    async with serving(tmp_path, script) as address:
        task = asyncio.create_task(query_switch(target_of(address.path)))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert set(open_descriptors()) <= descriptors
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_server_that_reads_nothing_costs_no_descriptor(tmp_path) -> None:
    """Unsent bytes must not keep the connection open after the deadline."""
    blocked = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"+OK\r\n")
        await blocked.wait()
        writer.close()

    server = await asyncio.start_unix_server(serve, str(tmp_path / "fake.sock"))
    before = set(open_descriptors())
    with pytest.raises(TimeoutError):
        async with (
            asyncio.timeout(0.2),
            open_database(RedisAddress("", 0, str(tmp_path / "fake.sock"), 2), Login()) as database,
        ):
            await database.read([("HGETALL", "k" * 60_000)] * 500)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(set(open_descriptors()) - before) <= 1, "the server's own end alone"
    blocked.set()
    server.close()
    await asyncio.sleep(0.01)


async def test_each_fault_of_garbage_names_the_address(tmp_path) -> None:
    async with serving(tmp_path, lambda _: b"HTTP/1.1 200 OK\r\n\r\n") as address:
        replies, readings = await query_switch(target_of(address.path), record=True)
    assert set(readings.faults) == set(SOURCES)
    assert all(line.startswith(f"{tmp_path}/fake.sock database ") for line in readings.faults.values())
    assert replies.replies["tables"]


class Pieces:
    """A stream that returns what it has in given pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)

    async def read(self, most: int) -> bytes:
        return next(self._pieces, b"")[:most]


VALUES = st.lists(st.one_of(st.none(), st.binary(max_size=20)), max_size=8)


@given(VALUES, st.lists(st.integers(1, 9), min_size=1))
def test_replies_arrive_in_any_pieces(values, sizes) -> None:
    items = [b"$-1\r\n" if value is None else b"$%d\r\n%b\r\n" % (len(value), value) for value in values]
    wire = b"*%d\r\n%b:7\r\n-ERR x\r\n$2\r\nhi\r\n" % (len(items), b"".join(items))
    pieces, position = [], 0
    while position < len(wire):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(wire[position : position + size])
        position += size

    async def parse() -> list[object]:
        parser = ReplyReader(Pieces(pieces))
        return [await parser.read() for _ in range(4)]

    found = asyncio.run(parse())
    assert found[0] == [None if value is None else value.decode("utf-8", "replace") for value in values]
    assert found[1:] == [7, "ERR x", "hi"]
    assert isinstance(found[2], ReplyError)


async def test_a_text_of_the_longest_length_is_read(tmp_path) -> None:
    text = b"x" * MOST_CHARACTERS
    reply = b"*2\r\n$1\r\na\r\n$%d\r\n%b\r\n" % (len(text), text)
    async with serving(tmp_path, after_select(reply)) as address:
        assert await read_one(address) == {"a": text.decode()}


def test_words_go_over_the_wire_with_their_length_in_bytes() -> None:
    """A key with line ends is one word: a switch cannot smuggle a command in through a name map."""
    command = ("HGETALL", "COUNTERS:é\r\nDEL x")
    assert packed([command]) == b"*2\r\n$7\r\nHGETALL\r\n$18\r\nCOUNTERS:\xc3\xa9\r\nDEL x\r\n"
