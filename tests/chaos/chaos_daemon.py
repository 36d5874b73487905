"""The daemon as a separate process, real clients, and private namespaces in which the kernel itself refuses."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import psutil
import pytest
from ports import free_port
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")
Key = tuple[str, tuple[tuple[str, str], ...]]
Samples = dict[Key, float]

COMMAND = str(Path(sys.executable).with_name("roce-exporter"))
"""The command of the environment that runs the tests: in CI that of the built wheel."""

GENEROUS = 240.0
"""Seconds after which even a loaded machine has had enough time."""

SCRAPE = {"X-Prometheus-Scrape-Timeout-Seconds": "5"}


def lacking(message: str) -> NoReturn:
    """Skip, or fail in CI, where everything named here can be installed."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def need(program: str, package: str) -> str:
    """The path of a program; without it the test is skipped, and in CI it fails."""
    if found := shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        return found
    lacking(f"{program} is not installed (apt-get install {package})")


def wait_until(ask: Callable[[], T], seconds: float = GENEROUS) -> T:
    """The result of `ask` as soon as it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if found := ask():
                return found
        time.sleep(0.05)
    raise AssertionError("timed out")


def key(name: str, **labels: str) -> Key:
    return name, tuple(sorted((label, text) for label, text in labels.items() if text))


def parse(text: bytes) -> Samples:
    """Every sample of an exposition."""
    return {
        key(sample.name, **sample.labels): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def get(address: str, path: str = "/metrics", timeout: float = GENEROUS) -> bytes:
    """The reply to a plain client.

    Raises:
        OSError: no reply, or an error status.
    """
    request = urllib.request.Request(f"http://{address}{path}", headers=SCRAPE)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return bytes(answer.read())


def status_of(address: str, path: str) -> int:
    """The status code of the reply to a plain client."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=GENEROUS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return int(error.code)


@dataclass(frozen=True, slots=True)
class Daemon:
    """One running exporter, ours or another."""

    process: subprocess.Popen[bytes]
    address: str
    log_file: Path

    @property
    def log(self) -> str:
        """The whole log so far."""
        return self.log_file.read_text(errors="replace")

    @property
    def seen(self) -> psutil.Process:
        """The process as the kernel sees it."""
        return psutil.Process(self.process.pid)

    def scrape(self, timeout: float = GENEROUS) -> Samples:
        """One scrape of all samples."""
        return parse(get(self.address, timeout=timeout))

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(GENEROUS)


def is_ready(address: str) -> bool:
    return status_of(address, "/-/ready") == 200


@contextlib.contextmanager
def exporter(
    folder: Path,
    *flags: str,
    prefix: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    address: str = "",
    ready: Callable[[str], bool] = is_ready,
) -> Iterator[Daemon]:
    """Our exporter on loopback, ready. It logs to a file, because a full pipe could block it."""
    address = address or f"127.0.0.1:{free_port()}"
    command = [*prefix, COMMAND, f"--web.listen-address={address}", "--metrics.set=full", *flags]
    with process(command, folder / "exporter.log", environment) as running:
        wait_until(lambda: _alive(running, folder / "exporter.log") and ready(address))
        yield Daemon(running, address, folder / "exporter.log")


@contextlib.contextmanager
def node_exporter(folder: Path, sysfs: Path, prefix: Sequence[str] = ()) -> Iterator[Daemon]:
    """Debian's node_exporter, which reads the RDMA devices below the same folder, and nothing else."""
    program = need("prometheus-node-exporter", "prometheus-node-exporter")
    address = f"127.0.0.1:{free_port()}"
    flags = ("--collector.disable-defaults", "--collector.infiniband", f"--path.sysfs={sysfs}")
    command = [*prefix, program, *flags, f"--web.listen-address={address}"]
    with process(command, folder / "node_exporter.log", {"GOMAXPROCS": "1"}) as running:
        wait_until(lambda: _alive(running, folder / "node_exporter.log") and status_of(address, "/") == 200)
        yield Daemon(running, address, folder / "node_exporter.log")


def _alive(running: subprocess.Popen[bytes], log: Path) -> bool:
    assert running.poll() is None, f"ended with {running.returncode}: {log.read_text()}"
    return True


@contextlib.contextmanager
def process(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed afterwards, whatever its state."""
    with log.open("ab") as output:
        running = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
        )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.wait(GENEROUS)


@dataclass(frozen=True, slots=True)
class Namespace:
    """New namespaces, held by an idle process."""

    holder: subprocess.Popen[bytes]
    enter: tuple[str, ...]
    """The prefix of a command that is to run inside."""

    def run(self, *command: str) -> str:
        """The output of a command inside; it must succeed."""
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def mount_over(self, place: Path, source: Path | str) -> None:
        """Mount a file or folder over another, visible inside only."""
        self.run("mount", "--bind", str(source), str(place))


@contextlib.contextmanager
def namespace(*kinds: str) -> Iterator[Namespace]:
    """Private namespaces of these kinds (`mount`, `net`). Mounts in them are invisible elsewhere and end with them."""
    enter, unshare = need("nsenter", "util-linux"), need("unshare", "util-linux")
    user = [] if os.geteuid() == 0 else ["user"]
    mapped = ["--user", "--map-root-user"] if user else []
    flags = [f"--{kind}" for kind in kinds]
    holder = subprocess.Popen(
        [unshare, *mapped, *flags, "sh", "-c", "echo held; exec cat >/dev/null"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        if holder.stdout.readline() != b"held\n":
            lacking(f"private namespaces ({', '.join(kinds)}) are not allowed here; run as root")
        into = [f"--{kind}" for kind in (*user, *kinds)]
        credentials = ["--preserve-credentials"] if user else []
        yield Namespace(holder, (enter, f"--target={holder.pid}", *into, *credentials, "--"))
    finally:
        holder.stdin.close()
        holder.wait(GENEROUS)
        holder.stdout.close()
