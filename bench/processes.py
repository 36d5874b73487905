"""An exporter as a process: started, scraped over HTTP, and measured by the kernel's accounting."""

from __future__ import annotations

import contextlib
import http.client
import socket
import statistics
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rivals import command_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rivals import Rival

STARTED_WITHIN = 30.0
APART = 0.0015
"""Seconds between two scrapes: within a millisecond (`--collect.min-interval`) this exporter answers with the same collection."""


class Scrape(NamedTuple):
    """One scrape: wall seconds seen by the scraper, CPU seconds of the exporter, bytes on the wire."""

    seconds: float
    cpu: float
    body: bytes


class Running:
    """A running exporter, scraped over one persistent connection, as Prometheus does."""

    def __init__(self, rival: Rival, process: subprocess.Popen[bytes], port: int) -> None:
        self.rival = rival
        self.process = process
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def scrape(self) -> Scrape:
        """Scrape once, a moment after the last scrape."""
        time.sleep(APART)
        before, begun = self.cpu(), time.perf_counter()
        self._connection.request("GET", "/metrics", headers=self.rival.headers)
        response = self._connection.getresponse()
        body = response.read()
        seconds = time.perf_counter() - begun
        if response.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{self.rival.name} answered {response.status}")
        return Scrape(seconds, self.cpu() - before, body)

    def disconnect(self) -> None:
        """Close the connection; the next scrape opens another."""
        self._connection.close()

    def cpu(self) -> float:
        """CPU seconds of all its threads so far, to the nanosecond (clock_getcpuclockid(3))."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def resident(self) -> float:
        """Megabytes of memory resident now."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1000


class Figures(NamedTuple):
    """Results of the scrapes of one exporter."""

    name: str
    p50: float
    p99: float
    cpu: float
    resident: float
    series: int


@contextlib.contextmanager
def start(rival: Rival, tree: Path) -> Iterator[Running]:
    """Run an exporter on a sysfs tree until the block ends; it is ready after its first scrape."""
    port = free_port()
    process = subprocess.Popen(command_of(rival, tree, port), stderr=subprocess.DEVNULL)  # noqa: S603 - our own commands
    try:
        wait_until_scraped(running := Running(rival, process, port))
        yield running
    finally:
        process.terminate()
        process.wait()


def wait_until_scraped(running: Running) -> None:
    """Scrape until a reply arrives.

    Raises:
        RuntimeError: the exporter ended, or did not answer within half a minute.
    """
    deadline = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < deadline:
        if running.process.poll() is not None:
            raise RuntimeError(f"{running.rival.name} ended with {running.process.returncode}")
        try:
            running.scrape()
        except OSError:
            running.disconnect()
        else:
            return
        time.sleep(0.002)
    raise RuntimeError(f"{running.rival.name} did not answer within {STARTED_WITHIN:.0f} s")


def compare(rivals: list[Rival], tree: Path, rounds: int, scrapes: int) -> list[Figures]:
    """Scrape all exporters in turn, so that other load on the machine affects them alike."""
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(start(rival, tree)) for rival in rivals]
        for one in running:
            for _ in range(5):
                one.scrape()
        taken: dict[str, list[Scrape]] = {}
        for _ in range(rounds):
            for one in running:
                taken.setdefault(one.rival.name, []).extend(one.scrape() for _ in range(scrapes))
        return [_figures(one, taken[one.rival.name]) for one in running]


def _figures(running: Running, taken: list[Scrape]) -> Figures:
    seconds = sorted(scrape.seconds for scrape in taken)
    plain = running.rival._replace(headers={})
    running.rival = plain
    series = sum(not line.startswith(b"#") for line in running.scrape().body.splitlines())
    return Figures(
        plain.name,
        statistics.median(seconds),
        seconds[int(len(seconds) * 0.99)],
        statistics.median(scrape.cpu for scrape in taken),
        running.resident(),
        series,
    )


def free_port() -> int:
    """A loopback port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
