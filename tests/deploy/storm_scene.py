"""Two clusters with a storm each, servers that can be killed, and the messages of a real Alertmanager about the storms."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from alerts.alert_hooks import Hooks, hooked, rules_with
from deploy_tools import COMMAND, fetch, fetch_json
from servers import kept_port
from tools import need
from waiting import wait_until

STORM = "RocePfcStorm"
FIRST, SECOND = "fabric-a", "fabric-b"
"""The cluster whose storm begins while all servers run, and the one whose storm begins while one of them is away."""
SEEDS = {FIRST: 43, SECOND: 25}
"""Seeds of the simulation whose first storms begin 24 s and 20 s after the start of the exporter. Later ones follow within 112 s."""
ONE_PAGE = [("firing", {STORM}), ("resolved", {STORM})]
"""A storm is one page, which is resolved once."""
LONG = 900.0
"""Seconds after which something that must happen did not: the machine may be busy."""


@dataclass
class Process:
    """A server that is killed, stopped and started again, with one address and one log."""

    command: Sequence[str | Path]
    port: int
    log: Path
    ready: str = "/-/ready"
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, also while it does not run."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        with self.log.open("ab") as file:
            environment = {**os.environ, **self.environment}
            self.process = subprocess.Popen(self.command, stdout=file, stderr=file, env=environment)

    def wait(self) -> None:
        """Wait until it is ready."""
        wait_until(lambda: fetch(f"{self.url}{self.ready}"), LONG)

    def kill(self) -> None:
        """End it without a chance to write anything; nothing happens if it does not run."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def all_ready(*processes: Process) -> Iterator[None]:
    """Servers that are started together, and killed afterwards."""
    try:
        for process in processes:
            process.start()
        for process in processes:
            process.wait()
        yield
    finally:
        for process in processes:
            process.kill()


def placed(text: str, places: Mapping[str, str]) -> str:
    """A file as it is shipped, with the addresses, paths and intervals of a test.

    Raises:
        AssertionError: the file does not have what is to be replaced.
    """
    for shipped, here in places.items():
        assert shipped in text, f"{shipped} is not in the file"
        text = text.replace(shipped, here)
    return text


def hasty_rules(folder: Path) -> Path:
    """A folder with our rules, whose windows have seconds, so that a storm ends within the test. The rest is unchanged."""
    source, rules = folder / "rules-source", folder / "rules"
    rules.mkdir()
    source.mkdir()
    changed = {
        # with the window it is longer than the time between two storms of a host: its alert does not end before the host is replaced
        STORM: {"for": "0s", "keep_firing_for": "90s"}
    }
    shutil.copy(rules_with(source, changed, {"medium": "60s"}), rules)
    return rules


def calm(route: dict[str, Any]) -> None:
    """Delay a further message to the pager by more than two rulers differ in when they end an alert. Shipped are two minutes."""
    if route["receiver"] == "pager" and "group_interval" in route:
        route["group_interval"] = "20s"
    for below in route.get("routes", ()):
        calm(below)


def simulated(folder: Path, scenario: str, seed: int = 1, port: int | None = None) -> Process:
    """A simulated host of two mlx5 ports."""
    port = port or kept_port()
    flags = (
        f"--host.simulate={scenario}",
        f"--host.simulate-seed={seed}",
        "--host.simulate-ports=mlx5,mlx5",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    return Process([COMMAND, "serve", *flags], port, folder / f"host-{port}.log")


@dataclass(frozen=True)
class Scene:
    """Two clusters, each of a host that storms; the first has a quiet one too. Their store's rulers notify an Alertmanager."""

    folder: Path
    storming: dict[str, Process]
    quiet: Process
    alertmanager: str
    hooks: Hooks

    def targets(self, *clusters: str) -> list[dict[str, Any]]:
        """The hosts of these clusters as file discovery wants them."""
        hosts = [(cluster, "storm", process) for cluster, process in self.storming.items()]
        return [
            {
                "targets": [f"127.0.0.1:{process.port}"],
                "labels": {"cluster": cluster, "instance": f"{cluster}-{name}"},
            }
            for cluster, name, process in (*hosts, (FIRST, "quiet", self.quiet))
            if cluster in clusters
        ]

    def start_storm(self, cluster: str) -> None:
        """Start the host of a cluster that storms. Its first storm begins 20 s later."""
        self.storming[cluster].start()

    def storm_has_begun(self, cluster: str) -> bool:
        """Whether the exporter has counted a storm."""
        text = fetch(f"{self.storming[cluster].url}/metrics")
        return any(
            line.startswith("roce_pfc_storms_total{") and float(line.rsplit(" ", 1)[1]) > 0
            for line in text.splitlines()
        )

    def pages(self, cluster: str) -> list[tuple[str, set[str]]]:
        """The messages to the pager about a cluster, in their order: status and names of the alerts."""
        return [
            (message["status"], {alert["labels"]["alertname"] for alert in message["alerts"]})
            for message in self.hooks.of("pager", cluster)
        ]

    def page(self, cluster: str, status: str) -> None:
        """Wait until a message with this status was sent about a cluster."""
        wait_until(lambda: any(sent == status for sent, _ in self.pages(cluster)), LONG)

    def end(self, rulers: Sequence[Process]) -> None:
        """End the storms, wait until no ruler has one, which could page again, and check that each was one page."""
        for cluster, process in self.storming.items():
            process.kill()
            self.storming[cluster] = simulated(self.folder, "quiet", port=process.port)
            self.storming[cluster].start()
        for cluster in self.storming:
            self.page(cluster, "resolved")
        wait_until(lambda: not any(map(storms_in, rulers)), LONG)
        pages = {cluster: self.pages(cluster) for cluster in self.storming}
        assert pages == dict.fromkeys(pages, ONE_PAGE)


def storms_in(ruler: Process) -> list[dict[str, Any]]:
    """The storms that a ruler considers active."""
    alerts = fetch_json(f"{ruler.url}/api/v1/alerts")["data"]["alerts"]
    return [alert for alert in alerts if alert["labels"]["alertname"] == STORM]


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """Everything but the store, before the first storm: only the quiet host runs."""
    storming = {cluster: simulated(folder, "pfc-storm", seed) for cluster, seed in SEEDS.items()}
    quiet = simulated(folder, "quiet")
    hooks = Hooks()
    routes = hooked(hooks)
    calm(routes["route"])
    config, port = folder / "alertmanager.yml", kept_port()
    config.write_text(yaml.safe_dump(routes))
    command = [
        need("alertmanager"),
        f"--config.file={config}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    alertmanager = Process(command, port, folder / "alertmanager.log")
    try:
        with all_ready(quiet, alertmanager):
            yield Scene(folder, storming, quiet, alertmanager.url, hooks)
    finally:
        for process in storming.values():
            process.kill()
        hooks.close()
