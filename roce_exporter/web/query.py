"""The query of a request: `target=leaf1&module=sonic` (WHATWG URL, application/x-www-form-urlencoded)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from collections.abc import Collection

MOST_PARAMETERS = 8


class QueryError(ValueError):
    """A query that cannot be used: one line that says why."""


def parameters(query: str, known: Collection[str]) -> dict[str, str]:
    """The parameters of a query; a parameter without a value is left out.

    Raises:
        QueryError: it is not well formed, or has an unknown or a repeated parameter, or unprintable text.
    """
    try:
        pairs = parse_qsl(query, strict_parsing=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except ValueError:  # also for what is not UTF-8
        if query:
            raise QueryError("the query is not of the form name=value&name=value") from None
        pairs = []
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise QueryError(f"{name[:50]!r} is not a parameter; known here: {', '.join(known)}")
        if name in found or not value.isprintable():
            raise QueryError(f"{name} is given twice or is not printable text; give it once")
        found[name] = value
    return found
