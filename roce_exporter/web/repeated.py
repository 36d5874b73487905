"""What a kept connection repeats: Prometheus sends the same bytes at every scrape, and gets the same head but for date and length.

Equal bytes parse to an equal request, so a repetition of the last request of a connection is not parsed again. All bytes are compared: a
request that differs in one byte, or arrives together with another one, goes through the parser.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from roce_exporter.web.connection import Request, Response

MOST_BYTES = 2048
"""Larger requests are not remembered, because each connection has its own. Prometheus sends about 300 bytes."""


class RememberedRequest(NamedTuple):
    """The last request of a connection."""

    raw: bytes
    request: Request


def is_worth_it(raw: bytes, request: Request) -> bool:
    """Whether a request can be remembered: one that arrived alone, is small, and has a body in its response."""
    return 0 < len(raw) <= MOST_BYTES and request.method == "GET"


class RememberedHead(NamedTuple):
    """The head of the last response of a connection, as h11 wrote it."""

    status: int
    content_type: str
    headers: tuple[tuple[str, str], ...]
    date: bytes
    length: int
    head: bytes


def remembered_head(response: Response, date: str, head: bytes) -> RememberedHead:
    """What is to be kept of a response."""
    return RememberedHead(
        response.status, response.content_type, response.headers, date.encode(), len(response.body), head
    )


def repeated_head(known: RememberedHead, response: Response) -> bytes | None:
    """The head of this response, if it differs from the known one in date and length only; otherwise None."""
    if (response.status, response.content_type, response.headers) != known[:3]:
        return None
    # `connection._head_event` puts these two first and third, so the first match is the right one.
    dated = known.head.replace(b"Date: " + known.date, b"Date: " + http_date().encode(), 1)
    return dated.replace(
        b"Content-Length: %d\r\n" % known.length, b"Content-Length: %d\r\n" % len(response.body), 1
    )


class _Date:
    """The current date, formatted once per second."""

    second = -1
    text = ""


def http_date() -> str:
    """The current date (RFC 9110, 5.6.7)."""
    second = int(time.time())
    if second != _Date.second:
        _Date.text = formatdate(second, usegmt=True)
        _Date.second = second
    return _Date.text
