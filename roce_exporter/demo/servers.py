"""Prometheus and Alertmanager next to the exporter, where they are installed: configuration, processes, alerts.

`running` is the only place of the package that starts processes. No metric depends on them.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import re
import shutil
import signal
import socket
from asyncio.subprocess import DEVNULL, Process
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

import roce_exporter
from roce_exporter.demo.scene import FIRING, Address, Alert
from roce_exporter.net import NetError
from roce_exporter.net.http import OK, Access, HttpServer, fetch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

LOOPBACK = "127.0.0.1"
HOST = "demo-host"
RULES = "roce.rules.yml"
ROUTES = "alertmanager.yml"
PROMETHEUS = ("prometheus",)
ALERTMANAGER = ("alertmanager", "prometheus-alertmanager")
"""The second is Debian's name."""

ROUTING_KEYS = ("route", "inhibit_rules", "time_intervals", "mute_time_intervals")
"""Keys that the demo takes from our Alertmanager configuration: how alerts are grouped and muted, but no receivers."""

SEVERITIES = ("critical", "warning", "info", "")

SWITCH_INTERVAL = "2s"

QUERY_SECONDS = 1.0
"""Timeout of a query to Prometheus."""

END_SECONDS = 5.0
"""From SIGTERM to SIGKILL."""

LOG_CHARACTERS = 200
"""Length of the line of a process's output that is shown when it ends unexpectedly."""

PR_SET_PDEATHSIG = 1
"""prctl(2): send this process a signal when its parent dies."""

LIBC = ctypes.CDLL(None)


class SwitchJob(NamedTuple):
    """A switch to scrape: its name as a target, and HOST:PORT of the probe."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """One running program and the file that takes its output."""

    name: str
    process: Process
    log: Path

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.returncode is None


@dataclass(slots=True)
class MonitoringServers:
    """The servers that run next to the exporter. `notes` only grows."""

    addresses: list[Address] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    alive: list[ChildProcess] = field(default_factory=list)
    prometheus: str | None = None
    """HOST:PORT while it runs."""
    _alerts: tuple[Alert, ...] = ()

    async def alerts(self) -> tuple[Alert, ...] | None:
        """The alerts now, or those of the last query that succeeded; None without Prometheus."""
        self._note_exits()
        if self.prometheus is None:
            return None
        with contextlib.suppress(OSError):  # it is starting, or busy: the next scene tries again
            self._alerts = await fetch_alerts(self.prometheus)
        return self._alerts

    def _note_exits(self) -> None:
        for child in [child for child in self.alive if not child.alive]:
            self.alive.remove(child)
            self.notes.append(describe_exit(child))
            if child.name == "prometheus":
                self.prometheus = None


@contextlib.asynccontextmanager
async def monitoring_servers(
    target: str, folder: Path, notes: list[str] | None = None, switch: SwitchJob | None = None
) -> AsyncIterator[MonitoringServers]:
    """Starts Prometheus and Alertmanager, if they are on the PATH, to monitor `target` and a switch.

    Stops them at the end of the block. Messages are added to `notes`.
    """
    servers = MonitoringServers(notes=[] if notes is None else notes)
    async with contextlib.AsyncExitStack() as stack:
        prometheus = find_program(PROMETHEUS)
        if prometheus is None:
            servers.notes.append("prometheus is not on the PATH: no alerts here until it is installed")
        else:
            alertmanager = await _start_alertmanager(servers, stack, folder)
            address = free_address()
            _write_prometheus_config(servers, folder, (target, switch), alertmanager)
            command = prometheus_command(prometheus, folder, address)
            if await _start(servers, stack, "prometheus", command, folder):
                servers.prometheus = address
                servers.addresses.append(Address("prometheus", f"http://{address}/alerts"))
        yield servers


async def _start_alertmanager(
    servers: MonitoringServers, stack: contextlib.AsyncExitStack, folder: Path
) -> str | None:
    program = find_program(ALERTMANAGER)
    if program is None:
        servers.notes.append("alertmanager is not on the PATH: alerts are not grouped or muted")
        return None
    routes = find_file(ROUTES, alert_folders())
    config = alertmanager_config(routes.read_text() if routes else None)
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
    address = free_address()
    command = alertmanager_command(program, folder, address)
    if not await _start(servers, stack, "alertmanager", command, folder):
        return None
    servers.addresses.append(Address("alertmanager", f"http://{address}/"))
    return address


def _write_prometheus_config(
    servers: MonitoringServers, folder: Path, targets: tuple[str, SwitchJob | None], alertmanager: str | None
) -> None:
    rules = find_file(RULES, alert_folders())
    if rules is None:
        servers.notes.append(f"{RULES} is not there: prometheus runs without our alerts")
    else:
        (folder / RULES).write_text(
            evaluated_often(rules.read_text()).replace("http://$1/runbooks", f"http://{targets[0]}/runbooks")
        )
    config = prometheus_config(*targets, RULES if rules else None, alertmanager)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))


async def _start(
    servers: MonitoringServers,
    stack: contextlib.AsyncExitStack,
    name: str,
    command: Sequence[str],
    folder: Path,
) -> bool:
    try:
        child = await stack.enter_async_context(running(name, command, folder / f"{name}.log"))
    except OSError as error:
        servers.notes.append(f"{command[0]} cannot be started: {error.strerror}; the rest goes on")
        return False
    servers.alive.append(child)
    return True


# Configuration


def alert_folders() -> tuple[Path, ...]:
    """Folders that may hold our rules: the installed package, a checkout, the working directory."""
    package = Path(roce_exporter.__file__).parent
    return package / "alerts", package.parent / "alerts", Path("alerts").absolute()


def find_file(name: str, folders: Sequence[Path]) -> Path | None:
    """The first of these files that exists."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def find_program(names: Sequence[str]) -> str | None:
    """The path of the first of these programs that is on the PATH."""
    return next((path for name in names if (path := shutil.which(name))), None)


def free_address() -> str:
    """A loopback address with a port that is free now. Neither program reports a port that it chose itself."""
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{sock.getsockname()[1]}"


def evaluated_often(rules: str) -> str:
    """The rules without the intervals of their groups, and alerts without a `for` of a minute: a demo is short, and its storms last seconds."""
    return re.sub(r"^ +(interval: \w+|for: 1m)\n", "", rules, flags=re.MULTILINE)


def prometheus_config(
    target: str, switch: SwitchJob | None, rules: str | None, alertmanager: str | None
) -> dict[str, Any]:
    """Scrapes the targets and evaluates the rules once a second."""
    scraped = {"targets": [target], "labels": {"instance": HOST, "cluster": "demo"}}
    config: dict[str, Any] = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "roce", "static_configs": [scraped]}],
    }
    if switch:
        config["scrape_configs"].append(_switch_job(switch))
    if rules:
        config["rule_files"] = [rules]
    if alertmanager:
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    return config


def _switch_job(switch: SwitchJob) -> dict[str, Any]:
    scraped = {"targets": [switch.address], "labels": {"instance": switch.name, "cluster": "demo"}}
    return {
        "job_name": "roce-switches",
        "metrics_path": "/probe",
        "params": {"target": [switch.name]},
        # A probe queries the switch, which takes longer than a read of the exporter's own host.
        "scrape_interval": SWITCH_INTERVAL,
        "scrape_timeout": SWITCH_INTERVAL,
        "static_configs": [scraped],
    }


def alertmanager_config(routes: str | None) -> dict[str, Any]:
    """Our routing with receivers that notify no one; without `routes` one such receiver for all alerts.

    Raises:
        yaml.YAMLError: `routes` is not YAML.
    """
    ours: dict[str, Any] = yaml.safe_load(routes) if routes else {}
    routing = {key: ours[key] for key in ROUTING_KEYS if key in ours}
    names = [receiver["name"] for receiver in ours.get("receivers", ())] or ["silent"]
    return {"route": {"receiver": names[0]}} | routing | {"receivers": [{"name": name} for name in names]}


def prometheus_command(program: str, folder: Path, address: str) -> list[str]:
    """Listens on this address, with `prometheus.yml` and its data in this folder."""
    return [
        program,
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/prometheus",
        f"--web.listen-address={address}",
        f"--web.external-url=http://{address}/",
        # so that texts in Alertmanager follow what becomes known, such as a switch's watchdog that trips after the host's alert
        "--rules.alert.resend-delay=1s",
        "--log.level=warn",
    ]


def alertmanager_command(program: str, folder: Path, address: str) -> list[str]:
    """Listens on this address, without a cluster, with `alertmanager.yml` and its data in this folder."""
    return [
        program,
        f"--config.file={folder}/alertmanager.yml",
        f"--storage.path={folder}/alertmanager",
        f"--web.listen-address={address}",
        f"--web.external-url=http://{address}/",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]


# Processes


@contextlib.asynccontextmanager
async def running(
    name: str, argv: Sequence[str], log: Path, end_seconds: float = END_SECONDS
) -> AsyncIterator[ChildProcess]:
    """A child process; it has ended when the block ends.

    Raises:
        OSError: it cannot be started.
    """
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C on the terminal must reach the demo only, which then stops its children in order.
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    try:
        yield ChildProcess(name, process, log)
    finally:
        await _end(process, end_seconds)


def _end_with_parent() -> None:
    # In the child: a demo that is killed cannot stop its children.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


async def _end(process: Process, seconds: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def describe_exit(child: ChildProcess) -> str:
    """One line describing an unexpected child exit, with the last line of output unless a signal ended it."""
    code = child.process.returncode or 0
    if code < 0:
        return f"{child.name} was ended by {signal.Signals(-code).name}; the rest goes on"
    lines = child.log.read_text(errors="replace").strip().splitlines()[-1:]
    last = "".join(f": {line[-LOG_CHARACTERS:]}" for line in lines)
    return f"{child.name} ended with code {code}; the rest goes on{last}"


# Alerts


async def fetch_alerts(address: str) -> tuple[Alert, ...]:
    """The alerts of the Prometheus at HOST:PORT, sorted as in `parse_alerts`.

    Raises:
        OSError: no reply in `QUERY_SECONDS`, or a status other than 200.
    """
    host, port = address.rsplit(":", 1)
    try:
        server = HttpServer(tls=False, host=host, port=int(port))
        reply = await fetch(server, "/api/v1/alerts", Access(), QUERY_SECONDS)
    except NetError as error:
        raise OSError(str(error)) from None
    if reply.status != OK:
        raise OSError(f"http://{address}/api/v1/alerts returned status {reply.status}")
    return parse_alerts(json.loads(reply.body))


def parse_alerts(reply: dict[str, Any]) -> tuple[Alert, ...]:
    """The alerts in a reply of Prometheus' /api/v1/alerts, firing ones first, then by severity and name."""
    return tuple(sorted(map(_alert, reply["data"]["alerts"]), key=_urgency))


def _alert(found: dict[str, Any]) -> Alert:
    labels = found["labels"]
    return Alert(
        labels["alertname"],
        labels.get("severity", ""),
        found["state"],
        found["annotations"].get("summary", ""),
        tuple(sorted(labels.items())),
    )


def _urgency(alert: Alert) -> tuple[bool, int, str, object]:
    rank = SEVERITIES.index(alert.severity) if alert.severity in SEVERITIES else len(SEVERITIES)
    return alert.state != FIRING, rank, alert.name, alert.labels
