"""An HTTP server in this process whose replies a test sets."""

import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Answers:
    """`reply` gives status and body for each request's path with its query; a body that is no bytes becomes JSON."""

    def __init__(self, reply: Callable[[str], tuple[int, object]]) -> None:
        self.reply = reply
        self.headers: dict[str, str] = {}
        """Headers of every reply."""
        self.requests: list[Any] = []
        """All requests: `path`, `headers`, and `body` of each."""
        self.url = ""


@contextmanager
def answering(
    reply: Callable[[str], tuple[int, object]], context: ssl.SSLContext | None = None
) -> Iterator[Answers]:
    """A server on a free port of loopback, with TLS if there is a context."""
    answers = Answers(reply)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answers.requests.append(self)
            status, body = answers.reply(self.path)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**answers.headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # a client need not read what it is sent
                self.wfile.write(data)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        answers.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield answers
        finally:
            server.shutdown()
            thread.join()
