"""Receives the alerts that a Prometheus sends, in place of an Alertmanager: which fired, and how often each."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

Labels = frozenset[tuple[str, str]]


class Pages:
    """Every alert received, by labels, with the times at which it began. Prometheus repeats an alert while it fires."""

    def __init__(self) -> None:
        self.received: dict[Labels, set[str]] = {}
        pages = self

        class Receiver(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                pages.note(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"

    def note(self, alerts: list[dict[str, object]]) -> None:
        """Remember alerts of one request of the Alertmanager API, version 2."""
        for alert in alerts:
            labels = alert["labels"]
            assert isinstance(labels, dict)  # noqa: S101 - by the API's definition
            self.received.setdefault(frozenset(labels.items()), set()).add(str(alert["startsAt"]))

    def fired(self, severity: str) -> dict[str, int]:
        """How often each alert of a severity began, by its name."""
        counts: Counter[str] = Counter()
        for labels, begun in self.received.items():
            if dict(labels).get("severity") == severity:
                counts[dict(labels)["alertname"]] += len(begun)
        return dict(sorted(counts.items()))

    def listed(self, severity: str) -> list[str]:
        """Every alert of a severity, with its labels, one line each."""
        found = (dict(labels) for labels in self.received)
        return sorted(
            " ".join(f"{name}={value}" for name, value in sorted(labels.items()))
            for labels in found
            if labels.get("severity") == severity
        )

    def repeated(self, severity: str) -> int:
        """The number of alerts of a severity that ended and began again."""
        return sum(
            len(begun) > 1
            for labels, begun in self.received.items()
            if dict(labels).get("severity") == severity
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
