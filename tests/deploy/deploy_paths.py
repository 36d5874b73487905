"""The ways from a scrape to a store: Prometheus agent, vmagent and OpenTelemetry Collector, with the files of deploy/."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_servers import Server, prometheus, started
from deploy_storm import placed
from deploy_tools import DEPLOY, need
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

OPENTELEMETRY = DEPLOY / "opentelemetry"
BUILT = Path.home() / ".cache/roce-otel/otelcol"
"""A collector built from its modules; Debian has no package of it."""
HASTE = {"scrape_interval: 15s": "scrape_interval: 1s", "scrape_timeout: 10s": "scrape_timeout: 1s"}
FOREVER = "1h"
"""How long a store repeats a sample without a successor: series that a test sees vanish were marked as stale."""
OTLP = "web.enable-otlp-receiver"
Targets = list[dict[str, object]]


def collector_program() -> str:
    """The OpenTelemetry Collector; without it the test is skipped, also in CI."""
    found = shutil.which("otelcol") or shutil.which("otelcol-contrib") or shutil.which(BUILT)
    if not found:
        pytest.skip("no otelcol or otelcol-contrib is on the PATH; Debian has no package of it")
    return found


def prometheus_3() -> str:
    """A Prometheus 3; with an older one the test is skipped."""
    program = need("prometheus", "prometheus")
    printed = subprocess.run([program, "--version"], check=True, capture_output=True, text=True)
    major = re.search(r"version (\d+)\.", printed.stdout + printed.stderr)
    if not major or int(major[1]) < 3:
        assert not os.environ.get("ROCE_NEWEST"), f"{program} is older than 3"
        pytest.skip("Prometheus is older than 3: tests/newest.sh has a newer one")
    return program


def otlp_prometheus() -> None:
    """Skip the test if this Prometheus does not receive OTLP: Debian builds it without."""
    program = prometheus_3()
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    if OTLP not in told.stdout + told.stderr:
        pytest.skip(f"{program} is built without the receiver of OTLP, as Debian's is")


def write_targets(folder: Path, targets: Targets) -> Path:
    """The file of targets, below the folder `targets`."""
    place = folder / "targets/roce.yml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(yaml.safe_dump(targets))
    return place


def receiving_prometheus(
    folder: Path, config: Mapping[str, Any] | None = None, *flags: str
) -> AbstractContextManager[Server]:
    """A Prometheus that accepts remote writes and, from version 3 on, OTLP."""
    program = need("prometheus", "prometheus")
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    otlp = [f"--{OTLP}"] if OTLP in told.stdout + told.stderr else []
    path = folder / "end.yml"
    path.write_text(yaml.safe_dump(dict(config or {"global": {}})))
    receives = ("--web.enable-remote-write-receiver", f"--query.lookback-delta={FOREVER}")
    return prometheus(program, path, folder, *receives, *otlp, *flags)


@contextmanager
def victoria_metrics(folder: Path, lookback: str = FOREVER) -> Iterator[Server]:
    """The storage of VictoriaMetrics, for samples of any age."""
    port = free_port()
    command = [
        need("victoria-metrics", "victoria-metrics"),
        f"-storageDataPath={folder / 'store'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-retentionPeriod=100y",
        "-search.latencyOffset=0s",
        f"-search.maxStalenessInterval={lookback}",
        "-search.disableCache",
        "-memory.allowedBytes=256MB",
    ]
    with started(command, port, folder / "store.log", ready="/health") as server:
        yield server


@contextmanager
def agent(folder: Path, targets: Targets, store: Server, message: str = "") -> Iterator[None]:
    """A Prometheus agent with agent.yml, as the only one. `message` is the form of its remote writes."""
    config = yaml.safe_load(placed((DEPLOY / "prometheus/agent.yml").read_text(), HASTE))
    (job,) = config["scrape_configs"]
    (hash_of_address,) = (rule for rule in job["relabel_configs"] if rule.get("action") == "hashmod")
    hash_of_address["modulus"] = 1
    (write,) = config["remote_write"]
    write["url"] = f"{store.url}/api/v1/write"
    if message:
        write["protobuf_message"] = message
    write_targets(folder, targets)
    path = folder / "agent.yml"
    path.write_text(yaml.safe_dump(config))
    with prometheus(need("prometheus", "prometheus"), path, folder, storage="agent"):
        yield


@contextmanager
def vmagent(folder: Path, targets: Targets, store: Server) -> Iterator[None]:
    """A vmagent with scrape.yml and vmagent.env, as their files ship."""
    shipped = DEPLOY / "prometheus/victoriametrics"
    write_targets(folder, targets)
    config = folder / "scrape.yml"
    config.write_text(placed((shipped / "scrape.yml").read_text(), HASTE))
    places = {
        "/etc/vmagent/scrape.yml": str(config),
        "http://victoria-metrics:8428": store.url,
        "/var/lib/vmagent": str(folder / "vmagent"),
    }
    lines = placed((shipped / "vmagent.env").read_text(), places).splitlines()
    flags = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    port = free_port()
    flags["httpListenAddr"] = f"127.0.0.1:{port}"
    # A flag is an environment variable with _ for each dot; here it is a flag again.
    given = {f"-{dotted(name)}": value for name, value in flags.items()}
    command = [vmagent_with(given), *(f"{flag}={value}" for flag, value in given.items())]
    with started(command, port, folder / "vmagent.log", ready="/health"):
        yield


def vmagent_with(flags: Iterable[str]) -> str:
    """A vmagent that has these flags; with an older one the test is skipped."""
    program = need("vmagent", "victoria-metrics")
    told = subprocess.run([program, "-help"], capture_output=True, text=True, check=False)
    known = {line.split()[0] for line in (told.stdout + told.stderr).splitlines() if line.startswith("  -")}
    if missing := sorted(set(flags) - known):
        assert not os.environ.get("ROCE_NEWEST"), f"{program} has no {missing[0]}"
        pytest.skip(f"{program} is too old for {missing[0]}: tests/newest.sh has a newer one")
    return program


def dotted(name: str) -> str:
    """The flag of a variable of vmagent.env: remoteWrite_url is remoteWrite.url."""
    return name.replace("_", ".")


@contextmanager
def collector(
    folder: Path,
    targets: Targets,
    exporter: str,
    places: Mapping[str, str],
    settings: Sequence[str] = (),
) -> Iterator[None]:
    """An OpenTelemetry Collector with receiver.yml and an exporter's file; `settings` override what the files set."""
    port = free_port()
    found = write_targets(folder, targets)
    receiver = {**HASTE, "/etc/otelcol/targets/roce*.yml": str(found), "127.0.0.1:13133": f"127.0.0.1:{port}"}
    for name, given in (("receiver.yml", receiver), (exporter, places)):
        (folder / name).write_text(placed((OPENTELEMETRY / name).read_text(), given))
    command = [collector_program(), f"--config={folder / 'receiver.yml'}", f"--config={folder / exporter}"]
    # its own metrics would need port 8888
    own = ("service::telemetry::metrics::level: none", *settings)
    command += [f"--config=yaml:{setting}" for setting in own]
    with started(command, port, folder / "collector.log", ready="/"):
        yield


def by_remote_write(
    folder: Path, targets: Targets, store: Server, settings: Sequence[str] = ()
) -> AbstractContextManager[None]:
    """A collector with remote-write.yml."""
    places = {"http://victoria-metrics:8428": store.url}
    return collector(folder, targets, "remote-write.yml", places, settings)


def by_otlp(
    folder: Path, targets: Targets, store: Server, settings: Sequence[str] = ()
) -> AbstractContextManager[None]:
    """A collector with otlp.yml."""
    places = {"http://prometheus:9090": store.url}
    return collector(folder, targets, "otlp.yml", places, settings)


def otlp_config(strategy: str = "") -> dict[str, Any]:
    """prometheus-otlp.yml without rules and alerting; with another strategy if one is given."""
    config: dict[str, Any] = yaml.safe_load((OPENTELEMETRY / "prometheus-otlp.yml").read_text())
    for key in ("rule_files", "alerting"):
        config.pop(key)
    if strategy:
        config["otlp"]["translation_strategy"] = strategy
    return config
