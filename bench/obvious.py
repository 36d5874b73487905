"""A typical exporter of the InfiniBand counters: `python bench/obvious.py WAY TREE PORT`.

`aiofiles`: reads each file through aiofiles into Gauges, and calls `generate_latest` per scrape, from an asyncio
server.

`collector`: a custom collector opens and reads each file, behind `start_http_server`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import aiofiles
import prometheus_client
from prometheus_client.core import CounterMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDERS = ("counters", "hw_counters")
LABELS = ("device", "port")


def found(tree: str) -> Iterator[tuple[str, str, str, Path]]:
    """Name, device, port and path of every counter file."""
    for device in sorted(Path(tree, "class/infiniband").iterdir()):
        for port in sorted((device / "ports").iterdir()):
            for folder in FOLDERS:
                for file in sorted((port / folder).iterdir()):
                    yield file.name, device.name, port.name, file


class Collector:
    """Opens and reads all files at every scrape."""

    def __init__(self, tree: str) -> None:
        self._tree = tree

    def collect(self) -> Iterator[CounterMetricFamily]:
        """One family per file name."""
        families: dict[str, CounterMetricFamily] = {}
        for name, device, port, file in found(self._tree):
            if name not in families:
                families[name] = CounterMetricFamily(f"rdma_{name}", name, labels=LABELS)
            families[name].add_metric((device, port), int(file.read_text()))
        yield from families.values()


async def serve_with_aiofiles(tree: str, port: int) -> None:
    """Read all files at once through aiofiles, set Gauges, generate."""
    gauges: dict[str, prometheus_client.Gauge] = {}

    async def read(name: str, device: str, number: str, file: Path) -> None:
        async with aiofiles.open(file) as opened:
            value = int(await opened.read())
        gauges[name].labels(device, number).set(value)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            files = list(found(tree))
            for name in {name for name, *_ in files} - gauges.keys():
                gauges[name] = prometheus_client.Gauge(f"rdma_{name}", name, LABELS)
            await asyncio.gather(*(read(*one) for one in files))
            body = prometheus_client.generate_latest()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


def main(way: str, tree: str, port: str) -> None:
    """Serve until killed."""
    if way == "aiofiles":
        asyncio.run(serve_with_aiofiles(tree, int(port)))
    else:
        prometheus_client.REGISTRY.register(Collector(tree))  # type: ignore[arg-type]  # no Collector by inheritance
        prometheus_client.start_http_server(int(port), "127.0.0.1")
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
