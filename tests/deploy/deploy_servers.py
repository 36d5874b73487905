"""Real Prometheus and VictoriaMetrics on loopback, for one test session."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deploy_tools import fetch, wait_until
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Server:
    """A server with Prometheus' HTTP API."""

    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        """The `data` of a reply.

        Raises:
            OSError: no reply, or an error.
        """
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        return json.loads(fetch(f"{self.url}{path}{query}"))["data"]

    def values(self, expression: str, time: float | None = None) -> dict[Labels, float]:
        """The vector that an expression returns, by labels."""
        when = {} if time is None else {"time": f"{time:.3f}"}
        told = self.ask("/api/v1/query", query=expression, **when)
        if told["resultType"] == "scalar":
            return {frozenset(): float(told["result"][1])}
        return {frozenset(one["metric"].items()): float(one["value"][1]) for one in told["result"]}


@contextmanager
def started(command: Sequence[str | Path], port: int, log: Path, ready: str = "/-/ready") -> Iterator[Server]:
    """A server that is ready; it is terminated afterwards."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    server = Server(f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: fetch(f"{server.url}{ready}"), f"{command[0]} ready", 120)
        yield server
    finally:
        process.kill()  # killed, because a terminated agent would wait for its store; its data is not needed any more
        process.wait()


@contextmanager
def prometheus(
    program: str, config: Path, folder: Path, *flags: str, storage: str = "tsdb"
) -> Iterator[Server]:
    """A Prometheus with a configuration; `storage` is tsdb or agent."""
    port = free_port()
    command = [
        program,
        f"--config.file={config}",
        f"--storage.{storage}.path={folder / storage}",
        f"--web.listen-address=127.0.0.1:{port}",
        *flags,
    ]
    if storage == "agent":
        command.append(agent_flag(program))
    with started(command, port, folder / f"{storage}.log") as server:
        yield server


def agent_flag(program: str) -> str:
    """The flag that makes this Prometheus an agent: a flag of its own in 3.x, a feature in 2.x."""
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    return "--agent" if "--[no-]agent" in told.stdout + told.stderr else "--enable-feature=agent"
