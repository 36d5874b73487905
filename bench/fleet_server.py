"""Replays the hosts of a fleet to Prometheus, all from one process: `python bench/fleet_server.py FOLDER`.

Kept cheap, so that a measurement on few cores measures Prometheus: a response is one dictionary lookup and one write of bytes that were
rendered and compressed beforehand. Hosts are paths of one port (`/host/7`); connections are kept alive. The host's moment
follows the clock from its first scrape on, so a missed scrape is a gap and not a delay. `/metrics` has the processor time and
memory of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet_history import Course, load, place_of, variants_of

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
END_OF_HEAD = b"\r\n\r\n"


def response(body: bytes, *encoding: bytes) -> bytes:
    """A complete response."""
    return b"".join((HEAD, *encoding, b"Content-Length: %d\r\n\r\n" % len(body), body))


class Fleet:
    """The responses of every host."""

    def __init__(self, folder: Path, metric_set: str, course: Course, hosts: int) -> None:
        self._responses = {
            number: [
                response(body, b"Content-Encoding: gzip\r\n")
                for body in load(folder, metric_set, number, course)
            ]
            for number in variants_of(hosts, course)
        }
        self._every = course.every
        self._places = {b"/host/%d" % host: place_of(host, course) for host in range(hosts)}
        self._begun: dict[bytes, float] = {}
        self.requests = 0
        self.sent = 0

    def answer(self, path: bytes) -> bytes:
        """The response of a host now."""
        if path == b"/metrics":
            return response(self._own_metrics())
        place = self._places.get(path)
        if place is None:
            return NOT_FOUND
        self.requests += 1
        now = time.monotonic()
        passed = round((now - self._begun.setdefault(path, now)) / self._every)
        history = self._responses[place.variant]
        found = history[min(place.phase + passed, len(history) - 1)]
        self.sent += len(found)
        return found

    def _own_metrics(self) -> bytes:
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        return (
            f"process_cpu_seconds_total {time.process_time()}\n"
            f"process_resident_memory_bytes {resident}\n"
            f"fleet_requests_total {self.requests}\n"
            f"fleet_bytes_total {self.sent}\n"
        ).encode()


class Connection(asyncio.Protocol):
    """One connection, kept alive. Prometheus sends the next request after the response to the last one."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._answer = answer
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the responses."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a stream server makes no other
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer a complete head; there is no body."""
        self._received += data
        if self._received.endswith(END_OF_HEAD):
            path = self._received.split(b" ", 2)[1]
            self._received = b""
            self._transport.write(self._answer(path))


async def serve(fleet: Fleet, port: int) -> None:
    """Serve until cancelled; prints the port when it listens."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(fleet.answer), "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve the fleet of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", default="standard")
    parser.add_argument("--port", type=int, default=0)
    for field in ("hosts", "seconds", "every", "ports"):
        parser.add_argument(f"--{field}", type=int, required=True)
    options = parser.parse_args()
    course = Course(options.seconds, options.every, options.ports)
    fleet = Fleet(options.folder, options.set, course, options.hosts)
    gc.collect()
    gc.freeze()  # what was loaded stays
    asyncio.run(serve(fleet, options.port))


if __name__ == "__main__":
    main()
