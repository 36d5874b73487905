"""Real servers on loopback: each listens on a port that the kernel chooses, and its test reads which one that is."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.parse
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil
from deploy_tools import fetch, ran
from tools import need
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

Labels = frozenset[tuple[str, str]]
Values = dict[Labels, float]
ANYWHERE = "127.0.0.1:0"
LOOKBACK = "30s"
"""A history has no staleness markers: a window of two scrapes replaces them."""


def port_of(process: subprocess.Popen[Any]) -> int:
    """The port on which a process, or a child of it, listens.

    Raises:
        OSError: on none yet.
        AssertionError: the process has ended.
    """
    assert process.poll() is None, f"{process.args} has ended with {process.returncode}"
    try:
        tree = psutil.Process(process.pid)
        for one in (tree, *tree.children(recursive=True)):
            for connection in one.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    return int(connection.laddr.port)
    except psutil.Error as error:
        raise OSError(str(error)) from error
    raise OSError("it does not listen yet")


@dataclass(frozen=True)
class Server:
    """A server with Prometheus' HTTP API."""

    url: str

    @property
    def address(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")

    def query(self, path: str, **parameters: str) -> Any:
        """The `data` of a reply.

        Raises:
            OSError: no reply, or an error.
        """
        words = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        return json.loads(fetch(f"{self.url}{path}{words}"))["data"]

    def values(self, expression: str, time: float | None = None) -> Values:
        """The vector that an expression returns, by labels."""
        when = {} if time is None else {"time": f"{time:.3f}"}
        found = self.query("/api/v1/query", query=expression, **when)
        if found["resultType"] == "scalar":
            return {frozenset(): float(found["result"][1])}
        return {frozenset(one["metric"].items()): float(one["value"][1]) for one in found["result"]}


@contextmanager
def started(command: Sequence[str | Path], log: Path, ready: str = "/-/ready") -> Iterator[Server]:
    """A server that is ready. It is killed afterwards: an agent that is asked to end would wait for its store."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        server = Server(f"http://127.0.0.1:{wait_until(lambda: port_of(process))}")
        wait_until(lambda: fetch(f"{server.url}{ready}"))
        yield server
    finally:
        process.kill()
        process.wait()


def prometheus(
    config: Path, folder: Path, *flags: str, agent: bool = False
) -> AbstractContextManager[Server]:
    """A Prometheus with a configuration, whose data is in the folder."""
    program = need("prometheus")
    storage = folder / ("agent" if agent else "tsdb")
    path = f"--storage.{storage.name}.path={storage}"
    listen = f"--web.listen-address={ANYWHERE}"
    more = [agent_flag(program)] if agent else []
    return started(
        [program, f"--config.file={config}", path, listen, *more, *flags], storage.with_suffix(".log")
    )


def backfill(folder: Path, name: str, lines: list[str]) -> None:
    """Add lines to Prometheus' blocks while it does not run."""
    path = folder / f"{name}.om"
    path.write_text("\n".join([*lines, "# EOF\n"]))
    command = [need("promtool"), "tsdb", "create-blocks-from", "openmetrics", path, folder / "tsdb"]
    subprocess.run(command, check=True, capture_output=True)


def on_blocks(folder: Path) -> AbstractContextManager[Server]:
    """Prometheus on the blocks of a folder; it scrapes nothing."""
    config = folder / "nothing.yml"
    config.write_text("global: {}\n")
    flags = ("--storage.tsdb.retention.time=100y", f"--query.lookback-delta={LOOKBACK}")
    return prometheus(config, folder, *flags)


def agent_flag(program: str) -> str:
    """The flag that makes this Prometheus an agent: a flag of its own in 3.x, a feature in 2.x."""
    return "--agent" if "--[no-]agent" in help_of(program) else "--enable-feature=agent"


def help_of(program: str) -> str:
    """What a program prints about its flags."""
    done = ran(program, "--help")
    return done.stdout + done.stderr


def prometheus_version() -> int:
    """The major version of the Prometheus that is installed."""
    done = ran(need("prometheus"), "--version")
    found = re.search(r"version (\d+)\.", done.stdout + done.stderr)
    assert found
    return int(found[1])


def victoria_metrics(folder: Path, lookback: str) -> AbstractContextManager[Server]:
    """The storage of VictoriaMetrics, for samples of any age."""
    command = [
        need("victoria-metrics"),
        f"-storageDataPath={folder / 'store'}",
        f"-httpListenAddr={ANYWHERE}",
        "-retentionPeriod=100y",
        "-search.latencyOffset=0s",
        f"-search.maxStalenessInterval={lookback}",
        "-search.disableCache",
        "-memory.allowedBytes=256MB",
    ]
    return started(command, folder / "store.log", "/health")


@dataclass
class Daemon:
    """A running exporter, and the notifications that it has sent to a fake systemd."""

    process: subprocess.Popen[bytes]
    supervisor: socket.socket
    heard: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Its port, as soon as it listens."""
        return int(wait_until(lambda: port_of(self.process)))

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def hear(self) -> str:
        """The next notification.

        Raises:
            TimeoutError: no notification for two minutes.
        """
        self.heard.append(self.supervisor.recv(4096).decode())
        return self.heard[-1]

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@contextmanager
def running(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    action: str = "serve",
) -> Iterator[Daemon]:
    """The daemon that a command starts; the action, its address and the flags are added."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        # an abstract name chosen by the kernel: accessible from every user and mount namespace
        supervisor.bind("")
        supervisor.settimeout(120)
        own = {"NOTIFY_SOCKET": "@" + supervisor.getsockname()[1:].decode(), **(environment or {})}
        words = [*command, action, f"--web.listen-address={ANYWHERE}", *flags]
        process = subprocess.Popen(words, env={**os.environ, **own})
        try:
            yield Daemon(process, supervisor)
        finally:
            process.kill()
            process.wait()
