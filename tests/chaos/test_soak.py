"""Sixteen ports that change all the time, the fast loop at its fastest, several clients: no leak, no missed scrape.

Five hundred scrapes in the ordinary run. `ROCE_SOAK_SCRAPES=50000` soaks; `ROCE_SOAK_REPORT=FILE` writes the
measurements.
"""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from chaos_daemon import Daemon
from servers import FREE, GENEROUS, serving
from soak_daemon import PORTS
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRAPES = int(os.environ.get("ROCE_SOAK_SCRAPES", "500"))
CLIENTS = 4
MEGABYTE = 1024 * 1024
PATIENT = f"--collect.timeout={GENEROUS}"
"""No read hangs in this test, so a device that is left out for want of processor time is none of its findings."""

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900 + SCRAPES)]

FORMS = (
    {},
    {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"},
    {"Accept-Encoding": "gzip"},
    {"Connection": "close"},
)
"""The clients' requests: each has another format, and one client opens a new connection for each."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    program = str(Path(__file__).with_name("soak_daemon.py"))
    flags = (
        "--metrics.set=full",
        "--sampler.mode=fixed",
        "--sampler.interval=0.1",
        "--log.level=warn",
        PATIENT,
    )
    command = [sys.executable, program, "serve", f"--web.listen-address={FREE}", *flags]
    with serving(command, tmp_path / "log") as running:
        yield Daemon(running.process, running.address, running.log_file)


class Client(threading.Thread):
    """Scrapes repeatedly until all clients together have done enough."""

    def __init__(self, daemon: Daemon, form: dict[str, str], left: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self.address = daemon.address
        self.form = form
        self.left = left
        self.faults: list[str] = []
        self.done = 0

    def run(self) -> None:
        client = http.client.HTTPConnection(self.address, timeout=GENEROUS)
        while self.left.acquire(blocking=False):
            try:
                client.request("GET", "/metrics", headers=self.form)
                answer = client.getresponse()
                fault = fault_of(answer.status, answer.getheader("Content-Encoding") or "", answer.read())
            except (OSError, http.client.HTTPException) as error:
                fault = repr(error)
                client.close()
            if fault:
                self.faults.append(fault)
            self.done += 1
        client.close()


def fault_of(status: int, encoding: str, body: bytes) -> str:
    """The fault of a reply; empty if it is complete: all devices but the missing one."""
    text = gzip.decompress(body) if encoding == "gzip" else body
    ports = text.count(b"\nroce_port_up{")
    if status != 200 or not PORTS - 1 <= ports <= PORTS:
        return f"status {status}, {ports} ports"
    return ""


class Account(NamedTuple):
    """The resources that the process holds."""

    scrapes: int
    memory: int
    descriptors: int
    threads: int
    tasks: int


def account(daemon: Daemon, scrapes: int) -> Account:
    """The resources that it holds now. The clients may be sending requests meanwhile."""
    before = daemon.log.count("tasks=")
    daemon.process.send_signal(signal.SIGUSR1)
    wait_until(lambda: daemon.log.count("tasks=") > before)
    tasks = int(re.findall(r"tasks=(\d+)", daemon.log)[-1])
    seen = daemon.seen
    return Account(scrapes, seen.memory_info().rss, seen.num_fds(), seen.num_threads(), tasks)


def watch(daemon: Daemon, clients: list[Client]) -> list[Account]:
    """The resources at every fortieth part of the run."""
    accounts: list[Account] = []
    while any(client.is_alive() for client in clients):
        done = sum(client.done for client in clients)
        if done >= SCRAPES * len(accounts) / 40:
            accounts.append(account(daemon, done))
        time.sleep(0.1)
    return accounts


def test_nothing_leaks_and_no_scrape_is_missed(daemon: Daemon) -> None:
    left = threading.Semaphore(SCRAPES)
    clients = [Client(daemon, FORMS[number % len(FORMS)], left) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    accounts = watch(daemon, clients)
    if place := os.environ.get("ROCE_SOAK_REPORT"):
        Path(place).write_text("".join(json.dumps(one._asdict()) + "\n" for one in accounts))
    assert [fault for client in clients for fault in client.faults] == []
    assert sum(client.done for client in clients) == SCRAPES
    warm, rest = accounts[len(accounts) // 4], accounts[len(accounts) // 4 + 1 :]
    assert len(rest) > 10
    assert max(one.descriptors for one in rest) <= warm.descriptors + CLIENTS
    assert max(one.threads for one in rest) <= 2 * PORTS + 8, "at most one worker per device and chain"
    wait_until(lambda: daemon.seen.num_threads() <= PORTS + 8)
    assert max(one.tasks for one in rest) <= warm.tasks + 2 * CLIENTS
    assert rest[-1].memory - warm.memory < 16 * MEGABYTE
    assert "Traceback" not in daemon.log
    assert daemon.stop() == 0
