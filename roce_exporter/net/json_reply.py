"""JSON (RFC 8259) in a reply: bounded, and with one clear line for what is not JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from roce_exporter.collect.workers import CallThread, run_in_thread
from roce_exporter.net import NetError

T = TypeVar("T")

MOST_VALUES = 300_000  # of one reply; a switch of 1,024 ports has 200,000
DEPTH = 40  # most levels of lists and objects; the deepest known reply, of NX-OS, has 16
MOST_DIGITS = 400  # of one number. The time for one grows with the square of its length.
SMALL_BYTES = 64 * 1024  # what is decoded at once; more, one reply at a time in a thread
DECODE_SECONDS = 60.0


def _integer(digits: str) -> int:  # NaN and Infinity, which are no JSON, are none
    if len(digits) > MOST_DIGITS:
        raise ValueError("a number too long")
    return int(digits)


# Python's decoder holds all threads until it calls a function of Python: for each object and each number here.
# strict=False: any host can put a control character into the system name that it announces by LLDP, and not every switch escapes it.
DECODER = json.JSONDecoder(
    strict=False, parse_constant=_integer, parse_int=_integer, object_hook=lambda found: found
)
NOT_JSON = re.compile(r"\s*(<)?")
_THREAD = CallThread()


async def read_json(body: bytes, content_type: str = "", most: int = MOST_VALUES) -> Any:
    """As `decode_json`, with the same errors, while the event loop goes on."""
    return await decode_aside(len(body), partial(decode_json, body, content_type, most))


async def decode_aside(size: int, decode: Callable[[], T]) -> T:
    """The result of decoding this number of bytes, while the event loop goes on.

    Raises:
        NetError: there was no thread for it, or it took too long.
        Exception: whatever `decode` raises.
    """
    if size <= SMALL_BYTES:
        return decode()
    try:
        return await run_in_thread(decode, DECODE_SECONDS, _THREAD)
    except (TimeoutError, RuntimeError) as error:
        raise NetError(f"the reply was not decoded: {error}") from None


def decode_json(body: bytes, content_type: str = "", most: int = MOST_VALUES) -> Any:
    """The document in the body of a reply. Raises NetError: the body is not JSON, is nested too deeply, or has more than `most` values."""
    # A neighbour's name in another encoding must not cost the whole reply.
    text = body.decode("utf-8-sig", errors="replace")
    begin = NOT_JSON.match(text)
    if begin and begin[1]:
        if "html" in content_type.lower() or "<html" in text[:1024].lower():
            raise NetError(
                "an HTML page instead of JSON, probably a login page or a proxy: check the address and the port"
            )
        raise NetError("XML instead of JSON: check the address and the port")
    if begin and begin.end() == len(text):
        raise NetError("the reply is empty where JSON is expected")
    if count_values(body) > most:
        raise NetError(f"the reply has more than {most:,} values")
    try:
        document = DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NetError(f"the reply is not valid JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError):
        # a number of hundreds of digits, NaN, Infinity; nested deeper than the interpreter allows
        raise NetError(
            "the reply is not acceptable JSON: NaN, a number too long, or nested too deeply"
        ) from None
    level = [document]
    for _ in range(DEPTH + 1):
        level = [node for node in level if isinstance(node, dict | list)]
        if not level:
            return document
        level = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
    raise NetError(f"the reply is nested deeper than {DEPTH} levels")


def count_values(text: bytes) -> int:
    """An upper bound of the values in a document, before any object is made: each follows a comma or a bracket."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
