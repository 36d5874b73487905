"""Replies of Redis (RESP 2) as a switch sends them, in the pieces in which they arrive."""

import asyncio

from fuzz_targets.pieces import split
from roce_exporter.net import NetError
from roce_exporter.switches.systems.sonic.redis_client import MOST_CHARACTERS, ReplyError, ReplyReader

CORE = ("switches/systems/sonic/redis_client.py",)
WORDS = (b"*2\r\n", b"$3\r\nabc\r\n", b"$-1\r\n", b":1\r\n", b"+OK\r\n", b"-ERR ", b"*99999999\r\n")


async def _read(data: bytes) -> None:
    stream = asyncio.StreamReader()
    for piece in split(data):
        stream.feed_data(piece)
    stream.feed_eof()
    reader = ReplyReader(stream)
    for _ in range(len(data) + 1):
        reply = await reader.read()
        assert reply is None or isinstance(reply, str | int | list | ReplyError)
        texts = reply if isinstance(reply, list) else [reply]
        assert all(one is None or len(str(one)) <= MOST_CHARACTERS for one in texts)


def decode(data: bytes) -> None:
    fault = ""
    try:
        asyncio.run(_read(data))
    except NetError as error:
        fault = str(error)
    assert "\n" not in fault
