"""Servers of `servers` for the tests of deploy/: histories on disk, and a daemon that a fake systemd supervises."""

import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import servers
from deploy_tools import ran
from servers import FREE
from tools import need
from waiting import HUNG_SECONDS, wait_until

LOOKBACK = "30s"
"""A history has no staleness markers: a window of two scrapes replaces them."""


def backfill(folder: Path, name: str, lines: list[str]) -> None:
    """Add lines to Prometheus' blocks while it does not run."""
    path = folder / f"{name}.om"
    path.write_text("\n".join([*lines, "# EOF\n"]))
    command = [need("promtool"), "tsdb", "create-blocks-from", "openmetrics", path, folder / "data"]
    subprocess.run(command, check=True, capture_output=True)


def on_blocks(folder: Path) -> AbstractContextManager[servers.Running]:
    """Prometheus on the blocks of a folder; it scrapes nothing."""
    flags = ("--storage.tsdb.retention.time=100y", f"--query.lookback-delta={LOOKBACK}")
    return servers.prometheus(folder, {"global": {}}, *flags)


def victoria_metrics(folder: Path, lookback: str) -> AbstractContextManager[servers.Running]:
    """The storage of VictoriaMetrics, for samples of any age."""
    staleness = f"-search.maxStalenessInterval={lookback}"
    flags = ("-retentionPeriod=100y", "-search.latencyOffset=0s", staleness, "-search.disableCache")
    return servers.victoria_metrics(folder, *flags)


def prometheus_version() -> int:
    """The major version of the Prometheus that is installed."""
    done = ran(need("prometheus"), "--version")
    found = re.search(r"version (\d+)\.", done.stdout + done.stderr)
    assert found
    return int(found[1])


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running exporter, and the socket of the fake systemd that it notifies."""

    process: subprocess.Popen[bytes]
    supervisor: socket.socket

    @property
    def port(self) -> int:
        """Its port, as soon as it listens."""
        return int(wait_until(lambda: servers.listening(self.process.pid)).rpartition(":")[2])

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def hear(self) -> str:
        """The next notification.

        Raises:
            TimeoutError: no notification for two minutes.
        """
        return self.supervisor.recv(4096).decode()

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HUNG_SECONDS)


@contextmanager
def running(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    flags: Sequence[str] = (),
    action: str = "serve",
) -> Iterator[Daemon]:
    """The daemon that a command starts; the action, its address and the flags are added."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor,
    ):
        # an abstract name chosen by the kernel: accessible from every user and mount namespace
        supervisor.bind("")
        supervisor.settimeout(HUNG_SECONDS)
        own = {"NOTIFY_SOCKET": "@" + supervisor.getsockname()[1:].decode(), **(environment or {})}
        words = [*command, action, f"--web.listen-address={FREE}", *flags]
        with servers.process(words, Path(folder) / "log", own) as process:
            yield Daemon(process, supervisor)
