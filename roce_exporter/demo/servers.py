"""Prometheus and Alertmanager next to the exporter, where they are installed: configuration, processes, alerts.

`running` is the only place of the package that starts processes. No metric depends on them.
"""

import asyncio
import contextlib
import ctypes
import re
import shutil
import signal
import socket
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from roce_exporter.checks.thresholds import shipped_alerts
from roce_exporter.collect.rounds import background
from roce_exporter.demo.figures import FIRING, Address, Alert
from roce_exporter.net import NetError
from roce_exporter.net.http import Access, HttpServer
from roce_exporter.net.prometheus_api import get
from roce_exporter.web import Server
from roce_exporter.web.application import Application

LOOPBACK = "127.0.0.1"
HOST = "demo-host"
RULES = "roce.rules.yml"
PROMETHEUS = ("prometheus",)
ALERTMANAGER = ("alertmanager", "prometheus-alertmanager")
"""The second is Debian's name."""
ROUTING_KEYS = ("route", "inhibit_rules", "time_intervals", "mute_time_intervals")
"""Keys that the demo takes from our Alertmanager configuration: how alerts are grouped and muted, but no receivers."""
SEVERITIES = ("critical", "warning", "info", "")
SWITCH_INTERVAL = "2s"
PROBER_INTERVAL = "5s"
"""That of their bursts."""
QUERY_SECONDS = 1.0  # timeout of a query to Prometheus
END_SECONDS = 5.0  # from SIGTERM to SIGKILL
LOG_CHARACTERS = 200  # length of the line of a process's output that is shown when it ends unexpectedly
PR_SET_PDEATHSIG = 1  # prctl(2): send this process a signal when its parent dies
LIBC = ctypes.CDLL(None)


class ScrapeTarget(NamedTuple):
    """What Prometheus scrapes besides the exporter: the name of a switch or a prober's host, and HOST:PORT of its metrics."""

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

    folder: Path
    stack: contextlib.AsyncExitStack
    notes: list[str]
    addresses: list[Address] = field(default_factory=list)
    alive: list[ChildProcess] = field(default_factory=list)
    prometheus: str | None = None
    """HOST:PORT while it runs."""
    _alerts: tuple[Alert, ...] = ()

    async def alerts(self) -> tuple[Alert, ...] | None:
        """The alerts now, or those of the last query that succeeded; None without Prometheus."""
        for child in [child for child in self.alive if not child.alive]:
            self.alive.remove(child)
            self.notes.append(describe_exit(child))
            if child.name == "prometheus":
                self.prometheus = None
        if self.prometheus is None:
            return None
        with contextlib.suppress(NetError):  # it is starting, or busy: the next scene tries again
            self._alerts = await fetch_alerts(self.prometheus)
        return self._alerts

    async def start_alertmanager(self) -> str | None:
        """HOST:PORT of an Alertmanager with our routes; None, and a note, if it cannot run."""
        program = find_program(ALERTMANAGER)
        if program is None:
            self.notes.append("alertmanager is not on the PATH: alerts are not grouped or muted")
            return None
        address = free_address()
        self._write("alertmanager.yml", alertmanager_config(shipped_alerts("alertmanager.yml").read_text()))
        command = alertmanager_command(program, self.folder, address)
        return address if await self._start("alertmanager", command, f"http://{address}/") else None

    async def start_prometheus(
        self, program: str, target: str, switch: ScrapeTarget | None, probers: Sequence[ScrapeTarget]
    ) -> None:
        """A Prometheus with our rules that scrapes these targets, and its Alertmanager."""
        alertmanager, address = await self.start_alertmanager(), free_address()
        rules = evaluated_often(shipped_alerts(RULES).read_text())
        (self.folder / RULES).write_text(rules.replace("http${s}://$1/runbooks", f"http://{target}/runbooks"))
        self._write("prometheus.yml", prometheus_config(target, switch, alertmanager, probers))
        command = prometheus_command(program, self.folder, address)
        if await self._start("prometheus", command, f"http://{address}/alerts"):
            self.prometheus = address

    def _write(self, name: str, config: dict[str, Any]) -> None:
        (self.folder / name).write_text(yaml.safe_dump(config))

    async def _start(self, name: str, command: Sequence[str], page: str) -> bool:
        try:
            child = await self.stack.enter_async_context(running(name, command, self.folder / f"{name}.log"))
        except OSError as error:
            self.notes.append(f"{command[0]} cannot be started: {error.strerror}; the rest goes on")
            return False
        self.alive.append(child)
        self.addresses.append(Address(name, page))
        return True


@contextlib.asynccontextmanager
async def monitoring_servers(
    target: str,
    folder: Path,
    notes: list[str] | None = None,
    switch: ScrapeTarget | None = None,
    probers: Sequence[ScrapeTarget] = (),
) -> AsyncIterator[MonitoringServers]:
    """Starts Prometheus and Alertmanager, if they are on the PATH, to monitor `target`, a switch and probers.

    Stops them at the end of the block. Messages are added to `notes`.
    """
    async with contextlib.AsyncExitStack() as stack:
        servers = MonitoringServers(folder, stack, [] if notes is None else notes)
        if program := find_program(PROMETHEUS):
            await servers.start_prometheus(program, target, switch, probers)
        else:
            servers.notes.append("prometheus is not on the PATH: no alerts here until it is installed")
        yield servers


@contextlib.asynccontextmanager
async def served(application: Application, *work: Coroutine[object, object, None]) -> AsyncIterator[str]:
    """HOST:PORT of a web server for the application within the block, next to this work."""
    server = Server(application, None, private=application.private)
    (address,) = await server.start([f"{LOOPBACK}:0"])
    try:
        async with background(server.accept(), *work):
            yield address
    finally:
        await server.close()


# Configuration


def find_program(names: Sequence[str]) -> str | None:
    """The path of the first of these programs that is on the PATH."""
    return next((path for name in names if (path := shutil.which(name))), None)


def free_address() -> str:
    """A loopback address with a port that is free now. Neither program reports a port that it chose itself."""
    with socket.socket() as sock:
        sock.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{sock.getsockname()[1]}"


def evaluated_often(rules: str) -> str:
    """The rules without the intervals of their groups, and alerts without a `for` of a minute: a demo is short, and its storms last seconds.

    The alert on lossy paths does not wait either.
    """
    rules = re.sub(r"^ +(interval: \w+|for: 1m)\n", "", rules, flags=re.MULTILINE)
    return re.sub(r"(- alert: RocePathLoss\n.*\n) +for: \w+\n", r"\1", rules)


def prometheus_config(
    target: str, switch: ScrapeTarget | None, alertmanager: str | None, probers: Sequence[ScrapeTarget] = ()
) -> dict[str, Any]:
    """Scrapes the targets and evaluates the rules once a second."""
    jobs = [_job("roce", HOST, target)]
    if switch:
        # A probe queries the switch, which takes longer than a read of the exporter's own host.
        times = {"scrape_interval": SWITCH_INTERVAL, "scrape_timeout": SWITCH_INTERVAL}
        probe = {"metrics_path": "/probe", "params": {"target": [switch.name]}}
        jobs.append(_job("roce-switches", switch.name, switch.address) | probe | times)
    if probers:
        scraped = [_scraped(*one) for one in probers]
        times = {"scrape_interval": PROBER_INTERVAL, "scrape_timeout": PROBER_INTERVAL}
        jobs.append({"job_name": "roce-probe", "static_configs": scraped} | times)
    times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config: dict[str, Any] = {"global": times, "scrape_configs": jobs, "rule_files": [RULES]}
    if alertmanager:
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    return config


def _job(name: str, instance: str, address: str) -> dict[str, Any]:
    return {"job_name": name, "static_configs": [_scraped(instance, address)]}


def _scraped(instance: str, address: str) -> dict[str, Any]:
    return {"targets": [address], "labels": {"instance": instance, "cluster": "demo"}}


def alertmanager_config(routes: str) -> dict[str, Any]:
    """Our routing with receivers that notify no one. yaml.YAMLError: `routes` is not YAML."""
    ours: dict[str, Any] = yaml.safe_load(routes)
    routing = {key: ours[key] for key in ROUTING_KEYS if key in ours}
    return routing | {"receivers": [{"name": receiver["name"]} for receiver in ours["receivers"]]}


def prometheus_command(program: str, folder: Path, address: str) -> list[str]:
    """Listens on this address, with `prometheus.yml` and its data in this folder."""
    # Resent so often, texts in Alertmanager follow what becomes known, such as a switch's watchdog that trips after the host's alert.
    own = f"--storage.tsdb.path={folder}/prometheus", "--rules.alert.resend-delay=1s"
    return [program, f"--config.file={folder}/prometheus.yml", *_web_flags(address), *own]


def alertmanager_command(program: str, folder: Path, address: str) -> list[str]:
    """Listens on this address, without a cluster, with `alertmanager.yml` and its data in this folder."""
    own = f"--storage.path={folder}/alertmanager", "--cluster.listen-address="
    return [program, f"--config.file={folder}/alertmanager.yml", *_web_flags(address), *own]


def _web_flags(address: str) -> tuple[str, ...]:
    return f"--web.listen-address={address}", f"--web.external-url=http://{address}/", "--log.level=warn"


# Processes


@contextlib.asynccontextmanager
async def running(
    name: str, argv: Sequence[str], log: Path, end_seconds: float = END_SECONDS
) -> AsyncIterator[ChildProcess]:
    """A child process; it has ended when the block ends. OSError: it cannot be started."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C on the terminal must reach the demo only, which then stops its children in order.
            start_new_session=True,
            # In the child: a demo that is killed cannot stop its children.
            preexec_fn=partial(LIBC.prctl, PR_SET_PDEATHSIG, signal.SIGTERM),
        )
    try:
        yield ChildProcess(name, process, log)
    finally:
        await _end(process, end_seconds)


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
    """The alerts of the Prometheus at HOST:PORT, sorted as in `parse_alerts`. NetError: an error, or no reply in `QUERY_SECONDS`."""
    host, port = address.rsplit(":", 1)
    server = HttpServer(tls=False, host=host, port=int(port))
    return parse_alerts(await get(server, Access(), "alerts", {}, QUERY_SECONDS))


def parse_alerts(data: Any) -> tuple[Alert, ...]:
    """The alerts in the data of a reply of Prometheus' /api/v1/alerts, firing ones first, then by severity and name."""
    found = []
    for one in data["alerts"]:
        labels, summary = one["labels"], one["annotations"].get("summary", "")
        shown = labels["alertname"], labels.get("severity", ""), one["state"], summary
        found.append(Alert(*shown, tuple(sorted(labels.items()))))
    ranks = {severity: rank for rank, severity in enumerate(SEVERITIES)}

    def urgency(one: Alert) -> tuple[bool, int, str, object]:
        return one.state != FIRING, ranks.get(one.severity, len(ranks)), one.name, one.labels

    return tuple(sorted(found, key=urgency))
