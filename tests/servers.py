"""Real servers for tests: each listens on a port that the kernel chooses, is ready when its block begins, and is gone after it.

The address is read from the kernel's table of sockets, because not every program prints it. A server that must be there
before another one (as a target in its configuration) is started first.
"""

import contextlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tools import need
from waiting import HUNG_SECONDS, wait_until

_SCRIPT = Path(sys.executable).with_name("roce-exporter")

EXPORTER = (str(_SCRIPT),) if _SCRIPT.exists() else (sys.executable, "-m", "roce_exporter")
"""The command of the environment that runs the tests: in CI that of the built wheel."""

Labels = frozenset[tuple[str, str]]
Values = dict[Labels, float]


FREE = "127.0.0.1:0"
"""An address whose port the kernel chooses."""

LISTENING = "0A"
"""The state in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is ready."""

    process: subprocess.Popen[bytes]
    address: str
    """HOST:PORT."""
    log_file: Path

    @property
    def url(self) -> str:
        """Its address for a plain client."""
        return f"http://{self.address}"

    @property
    def where(self) -> tuple[str, int]:
        """Its address for a socket."""
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def log(self) -> str:
        """All that it has printed."""
        return self.log_file.read_text(errors="replace")

    @property
    def seen(self) -> psutil.Process:
        """The process as the kernel sees it."""
        return psutil.Process(self.process.pid)

    def get(self, path: str = "/metrics", timeout: float = HUNG_SECONDS, **headers: str) -> bytes:
        """The body of its reply.

        Raises:
            OSError: no reply, or the status of an error.
        """
        request = urllib.request.Request(f"{self.url}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                return bytes(reply.read())
        except urllib.error.HTTPError as error:
            error.close()
            raise

    def status(self, path: str) -> int:
        """The status of its reply."""
        try:
            self.get(path)
        except urllib.error.HTTPError as error:
            return int(error.code)
        return 200

    def ask(self, path: str, **parameters: object) -> Any:
        """The `data` of a reply of Prometheus' HTTP API; `path` begins after /api/v1/."""
        return json.loads(self.get(f"/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"))[
            "data"
        ]

    def query(self, expression: str, **parameters: object) -> list[dict[str, Any]]:
        """The series that an expression returns."""
        found: list[dict[str, Any]] = self.ask("query", query=expression, **parameters)["result"]
        return found

    def values(self, expression: str, **parameters: object) -> Values:
        """The values that an expression returns, by labels; a scalar has none."""
        found = self.ask("query", query=expression, **parameters)
        if found["resultType"] == "scalar":
            return {frozenset(): float(found["result"][1])}
        return {frozenset(one["metric"].items()): float(one["value"][1]) for one in found["result"]}

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HUNG_SECONDS)


@contextlib.contextmanager
def process(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed afterwards, whatever its state. It prints into a file, because a full pipe could block it."""
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
        running.wait(HUNG_SECONDS)


def answers(running: Running) -> bool:
    """Whether Prometheus, Alertmanager and our daemon are ready."""
    return bool(running.get("/-/ready"))


def listens(_: Running) -> bool:
    """For servers whose first reply cannot be waited for."""
    return True


@contextlib.contextmanager
def serving(
    command: Sequence[str | Path],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    ready: Callable[[Running], object] = answers,
) -> Iterator[Running]:
    """A server that is ready, of a command that lets the kernel choose its port."""
    with process(command, log, environment) as started:

        def alive() -> bool:
            assert started.poll() is None, f"{command} ended with {started.returncode}: {beginning(log)}"
            return True

        address = wait_until(lambda: alive() and listening(started.pid))
        running = Running(started, address, log)
        wait_until(lambda: alive() and ready(running))
        yield running


def beginning(log: Path) -> str:
    """What a server printed first; /dev/full has no end."""
    with log.open(errors="replace") as printed:
        return printed.read(10_000)


def listening(pid: int) -> str:
    """The address on which a process, or one that it started, listens; empty before it does."""
    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(pid)
        for one in (started, *started.children(recursive=True)):
            if found := sorted(_listeners(Path(f"/proc/{one.pid}"))):
                return found[0]
    return ""


def _listeners(place: Path) -> Iterator[str]:
    """The addresses of the listening sockets of a process, in its own network namespace."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        own = {os.readlink(descriptor) for descriptor in (place / "fd").iterdir()}
        for name in ("tcp", "tcp6"):
            for line in (place / "net" / name).read_text().splitlines()[1:]:
                _, local, _, state, _, _, _, _, _, inode, *_ = line.split()
                if state == LISTENING and f"socket:[{inode}]" in own:
                    yield _address(*local.split(":"))


def _address(host: str, port: str) -> str:
    """An address of /proc/net: words of four bytes, each in the order of the processor."""
    words = bytes.fromhex(host)
    packed = b"".join(words[place : place + 4][::-1] for place in range(0, len(words), 4))
    found = ipaddress.ip_address(packed)
    # All addresses include loopback.
    text = "127.0.0.1" if found.is_unspecified else f"[{found}]" if found.version == 6 else str(found)
    return f"{text}:{int(port, 16)}"


@contextlib.contextmanager
def exporter(
    folder: Path,
    *flags: str,
    command: str = "serve",
    prefix: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    address: str = FREE,
    ready: Callable[[Running], object] = answers,
) -> Iterator[Running]:
    """Our daemon on loopback."""
    folder.mkdir(exist_ok=True)
    line = [*prefix, *EXPORTER, command, f"--web.listen-address={address}", *flags]
    with serving(line, folder / "exporter.log", environment=environment, ready=ready) as running:
        yield running


@contextlib.contextmanager
def node_exporter(
    folder: Path, *flags: str, prefix: Sequence[str] = (), program: str = "node_exporter"
) -> Iterator[Running]:
    """Debian's node_exporter, or a newer one, with these collectors and no others."""
    line = [*prefix, need(program), "--collector.disable-defaults", *flags, f"--web.listen-address={FREE}"]
    environment = {"GOMAXPROCS": "1"}
    with serving(
        line, folder / "node_exporter.log", environment=environment, ready=lambda one: one.get("/")
    ) as running:
        yield running


@contextlib.contextmanager
def prometheus(
    folder: Path, config: Mapping[str, Any] | Path, *flags: str, storage: str = "tsdb", program: str = ""
) -> Iterator[Running]:
    """A Prometheus with its data in `folder`; `storage` is tsdb or agent."""
    found = program or need("prometheus")
    folder.mkdir(exist_ok=True)
    line = [
        found,
        f"--config.file={_written(folder / 'prometheus.yml', config)}",
        f"--storage.{storage}.path={folder / 'data'}",
        f"--web.listen-address={FREE}",
        *([agent_flag(found)] if storage == "agent" else []),
        *flags,
    ]
    with serving(line, folder / "prometheus.log") as running:
        yield running


def agent_flag(program: str) -> str:
    """The flag that makes this Prometheus an agent: a flag of its own in 3.x, a feature in 2.x."""
    return "--agent" if "--[no-]agent" in help_of(program) else "--enable-feature=agent"


def help_of(program: str) -> str:
    """What a program prints about its flags."""
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@contextlib.contextmanager
def alertmanager(folder: Path, config: Mapping[str, Any] | Path, *flags: str) -> Iterator[Running]:
    """An Alertmanager alone."""
    folder.mkdir(exist_ok=True)
    line = [
        need("alertmanager"),
        f"--config.file={_written(folder / 'alertmanager.yml', config)}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={FREE}",
        "--cluster.listen-address=",
        *flags,
    ]
    with serving(line, folder / "alertmanager.log") as running:
        yield running


@contextlib.contextmanager
def victoria_metrics(folder: Path, *flags: str) -> Iterator[Running]:
    """The storage of VictoriaMetrics."""
    program = need("victoria-metrics")
    line = [
        program,
        f"-storageDataPath={folder / 'victoria-metrics'}",
        f"-httpListenAddr={FREE}",
        "-memory.allowedBytes=256MB",
    ]
    with serving([*line, *flags], folder / "victoria-metrics.log", ready=is_healthy) as running:
        yield running


@contextlib.contextmanager
def vmagent(folder: Path, config: Mapping[str, Any] | Path, store: str, *flags: str) -> Iterator[Running]:
    """An agent of VictoriaMetrics that writes to the URL of a store."""
    line = [
        need("vmagent"),
        f"-promscrape.config={_written(folder / 'vmagent.yml', config)}",
        f"-httpListenAddr={FREE}",
        f"-remoteWrite.url={store}",
        f"-remoteWrite.tmpDataPath={folder / 'vmagent'}",
    ]
    with serving([*line, *flags], folder / "vmagent.log", ready=is_healthy) as running:
        yield running


def is_healthy(running: Running) -> bool:
    """Whether a program of VictoriaMetrics is ready."""
    return bool(running.get("/health"))


def kept_port() -> int:
    """A port of loopback that refuses connections until a server is told to listen on it, and that the kernel gives to nobody else.

    For an address that must be known before its server starts, or that outlives it. Two sockets with SO_REUSEADDR, which servers set, may have
    the same port as long as only one listens.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    _kept.append(kept)
    return int(kept.getsockname()[1])


_kept: list[socket.socket] = []


def _written(place: Path, config: Mapping[str, Any] | Path) -> Path:
    if isinstance(config, Path):
        return config
    place.write_text(json.dumps(config))  # JSON is YAML
    return place
