"""Asking Prometheus on loopback which alerts there are (its HTTP API, /api/v1/alerts)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from roce_exporter.demo.scene import Alert

MOST_BYTES = 4 * 1024 * 1024


async def fetch(address: str, path: str) -> bytes:
    """The body of what answers there with 200.

    Raises:
        OSError: nothing answers there, or with another status.
    """
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port), limit=MOST_BYTES)
    try:
        # HTTP/1.0: the body is never chunked and ends with the connection.
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    if head.split(b" ", 2)[1:2] != [b"200"]:
        raise OSError(f"http://{address}{path} answered {head[:80]!r}")
    return body


async def fetch_alerts(address: str) -> tuple[Alert, ...]:
    """The alerts of the Prometheus there, firing ones first.

    Raises:
        OSError: it does not answer.
    """
    return parse_alerts(json.loads(await fetch(address, "/api/v1/alerts")))


def parse_alerts(answer: dict[str, Any]) -> tuple[Alert, ...]:
    """The alerts in an answer of /api/v1/alerts, firing ones first, then by severity and name."""
    return tuple(sorted(map(_alert, answer["data"]["alerts"]), key=_urgency))


def _alert(found: dict[str, Any]) -> Alert:
    labels = found["labels"]
    return Alert(
        labels["alertname"],
        labels.get("severity", ""),
        found["state"],
        found["annotations"].get("summary", ""),
        tuple(sorted(labels.items())),
    )


SEVERITIES = ("page", "ticket", "info", "")


def _urgency(alert: Alert) -> tuple[bool, int, str, object]:
    rank = SEVERITIES.index(alert.severity) if alert.severity in SEVERITIES else len(SEVERITIES)
    return alert.state != "firing", rank, alert.name, alert.where
