"""Prometheus' HTTP API: https://prometheus.io/docs/prometheus/latest/querying/api/."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from roce_exporter.net import NetError, meanings
from roce_exporter.net.http import OK, Access, HttpServer, fetch
from roce_exporter.net.json_reply import read_json

REPLY_BYTES = 256 << 20
"""A host with 16 ports has 20,000 series; 1,000 points of each are half a gigabyte, which no diagnosis needs."""
SHOWN = 200  # most characters of Prometheus' own error
REDIRECTS = range(300, 400)


def labels_of(metric: Any) -> dict[str, str]:
    """The labels of a series in an answer. Raises TypeError, ValueError: they are none."""
    if not all(isinstance(text, str) for label in dict(metric).items() for text in label):
        raise TypeError("a label is no text")
    return dict(metric)


async def get(  # noqa: PLR0917 - all of them say what to get
    server: HttpServer,
    access: Access,
    what: str,
    query: Mapping[str, str],
    seconds: float,
    body_bytes: int = REPLY_BYTES,
    most_values: int = REPLY_BYTES,
) -> object:
    """The `data` of the answer of `/api/v1/WHAT`.

    Raises:
        NetError: no answer in these seconds, an error, or an answer that is not Prometheus', or larger than these bytes or values.
    """
    reply = await fetch(server, f"/api/v1/{what}?{urlencode(query)}", access, seconds, body_bytes)
    if reply.status in REDIRECTS:
        raise NetError(
            f"it redirects to another place (HTTP {reply.status}), which is not followed; give the final URL"
        )
    if remedy := meanings("prometheus").get(str(reply.status)):
        raise NetError(f"HTTP {reply.status}: {remedy}")
    try:
        document = await read_json(reply.body, most=most_values)
    except NetError:
        document = None
    found = document if isinstance(document, dict) else {}
    if reply.status != OK:
        said = found.get("error")
        line = ascii(" ".join(said.split())[:SHOWN])[1:-1] if isinstance(said, str) else ""
        raise NetError(f"HTTP {reply.status}: {line}".removesuffix(": "))
    if found.get("status") != "success" or "data" not in found:
        raise NetError("the reply is not that of Prometheus' API; check the port and the path")
    return found["data"]
