"""A real Redis with the tables of a simulated switch → `roce-exporter switches` → a real Prometheus with our rules.

The page at the end of that way is in tests/alerts/test_switch_page.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from ports import free_port
from sonic_server import sonic_server
from waiting import wait_until

from roce_exporter.simulation.leaf_watchdog import LeafWatchdog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.simulation.leaf import Databases

COMMAND = str(Path(sys.executable).with_name("roce-exporter"))
ALERTS = Path(__file__).parents[2] / "alerts"
SEED = 57
"""The first storm of this seed begins after 20 s and lasts 3.3 s."""
STORM = 20.1


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


class Command:
    """`roce-exporter` with these arguments, on a free port of loopback."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, *arguments, "--web.listen-address=127.0.0.1:0"], stderr=subprocess.PIPE, text=True
        )
        self.errors: list[str] = []
        self.address = ""
        while not self.address:
            line = self.process.stderr.readline()
            assert line, f"it ended before it listened: {self.errors}"
            self.errors.append(line)
            if match := re.search(r"listens on (127\.0\.0\.1:\d+)", line):
                self.address = match[1]

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        self.process.terminate()
        _, rest = self.process.communicate(timeout=60)
        self.errors.append(rest)
        return self.process.returncode


@pytest.fixture
def started() -> Iterator[list[Command]]:
    """Commands that end with the test."""
    commands: list[Command] = []
    yield commands
    for command in commands:
        if command.process.poll() is None:
            command.process.kill()
            command.process.communicate()


def switches_command(folder: Path, started: list[Command], socket: Path, **keys: str) -> Command:
    """The switch exporter with one target, `leaf`, whose answers are not kept."""
    target = {"module": "sonic", "address": f"unix://{socket}", **keys}
    file = folder / "switches.yml"
    file.write_text(json.dumps({"targets": {"leaf": target}, "limits": {"cache": "0"}}))
    started.append(Command("switches", f"--config.file={file}"))
    return started[-1]


SERIES = re.compile(r"(\w+)\{(.*)\} (\S+)")


def probe(command: Command) -> dict[tuple[str, str], float]:
    """The value of each series of the switch, by name and labels."""
    found = SERIES.findall(get(f"http://{command.address}/probe?target=leaf"))
    return {(name, labels): float(value) for name, labels, value in found}


def values(series: dict[tuple[str, str], float], name: str, *labels: str) -> list[float]:
    return [
        value
        for (found, text), value in series.items()
        if found == name and all(label in text for label in labels)
    ]


def test_a_probe_has_the_watchdog_and_the_neighbour_of_every_port(tmp_path, started) -> None:
    with sonic_server("pfc-storm", seed=SEED, start=time.monotonic() - STORM - 10) as socket:
        command = switches_command(tmp_path, started, socket)
        series = probe(command)
        assert values(series, "roce_switch_probe_success") == [1.0]
        assert set(values(series, "roce_switch_source_up")) == {1.0}
        assert len(values(series, "roce_switch_pfc_enabled")) == 6
        first = 'port="Ethernet0"'
        assert values(series, "roce_switch_pfc_watchdog_trips_total", first) == [1.0]
        assert values(series, "roce_switch_pfc_watchdog_tripped", first) == [0.0]
        assert values(series, "roce_switch_pfc_watchdog_detection_seconds", first) == [
            LeafWatchdog().detection
        ]
        (neighbor,) = (
            labels for name, labels in series if name.endswith("neighbor_info") and first in labels
        )
        assert 'neighbor="gpu-057"' in neighbor
        assert 'neighbor_mac="02:00:00:39:00:00"' in neighbor
        assert command.stop() == 0


def with_other_oids(databases: Databases) -> Databases:
    """As after a restart of the switch's services: all objects have other identifiers."""
    return json.loads(json.dumps(databases).replace("oid:0x1", "oid:0x7001"))


def test_a_restart_of_the_services_of_the_switch_changes_no_series(tmp_path, started) -> None:
    restarted: list[bool] = []

    def change(databases: Databases) -> Databases:
        return with_other_oids(databases) if restarted else databases

    with sonic_server("incast", change=change) as socket:
        command = switches_command(tmp_path, started, socket)
        before = probe(command)
        restarted.append(True)
        sent = ("roce_switch_queue_transmit_packets_total", 'port="Ethernet0"')

        def later() -> dict[tuple[str, str], float]:
            after = probe(command)
            return after if values(after, *sent)[0] > values(before, *sent)[0] else {}

        after = wait_until(later)
        assert after.keys() == before.keys()


def test_a_redis_that_ends_and_returns_is_one_line_each(tmp_path, started) -> None:
    with sonic_server("quiet") as socket:
        command = switches_command(tmp_path, started, socket)
        assert values(probe(command), "roce_switch_probe_success") == [1.0]
    for _ in range(3):
        assert values(probe(command), "roce_switch_probe_success") == [0.0]
    assert command.stop() == 0
    lines = [line for line in "".join(command.errors).splitlines() if "target leaf" in line]
    assert lines
    assert all(str(socket) in line or "redis" in line.lower() for line in lines), lines
    assert len({line.partition("msg=")[2] for line in lines}) == len(lines), "each fault once"
    assert "Traceback" not in "".join(command.errors)


def test_a_target_that_is_not_in_the_file_is_refused(tmp_path, started) -> None:
    command = switches_command(tmp_path, started, tmp_path / "none.sock")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"http://{command.address}/probe?target=169.254.169.254")


class Monitoring:
    """A Prometheus with our rules, which scrapes a host and a switch each second."""

    def __init__(self, folder: Path, host: str, switches: str) -> None:
        binary = shutil.which("prometheus")
        if binary is None:
            if os.environ.get("CI") == "true":
                pytest.fail("prometheus is not installed; CI needs it")
            pytest.skip("prometheus is not installed (apt-get install prometheus)")
        labels = {"cluster": "one"}
        jobs = [
            {"job_name": "roce", "static_configs": [{"targets": [host], "labels": labels}]},
            {
                "job_name": "roce-switches",
                "metrics_path": "/probe",
                "params": {"target": ["leaf"]},
                "static_configs": [{"targets": [switches], "labels": labels | {"instance": "leaf"}}],
            },
        ]
        intervals = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config = {
            "global": intervals,
            "rule_files": ["rules.yml"],
            "scrape_configs": jobs,
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        rules = yaml.safe_load((ALERTS / "roce.rules.yml").read_text())
        for group in rules["groups"]:
            group.pop("interval", None)
        (folder / "rules.yml").write_text(json.dumps(rules))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = (folder / "prometheus.log").open("w")
        flags = (
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={self.url.removeprefix('http://')}",
        )
        self.process = subprocess.Popen([binary, *flags], stdout=self.log, stderr=self.log)

    def query(self, expression: str) -> list[dict[str, Any]]:
        answer = json.loads(get(f"{self.url}/api/v1/query?query={urllib.request.quote(expression)}"))
        return answer["data"]["result"]

    def alert(self, name: str) -> dict[str, Any] | None:
        """An alert of this name that is pending or fires."""
        alerts = json.loads(get(f"{self.url}/api/v1/alerts"))["data"]["alerts"]
        return next((alert for alert in alerts if alert["labels"]["alertname"] == name), None)

    def paused_ends(self) -> set[str]:
        """The ends of the first link that report pause from the host to the switch."""
        pause = (
            'link:roce_pfc_pause:ratio_rate5m{netdev="eth0", switch_port="Ethernet0", toward="switch"} > 0'
        )
        return {found["metric"]["end"] for found in self.query(pause)}

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()


def test_the_alert_on_a_tripped_watchdog_names_the_host_behind_the_port(tmp_path, started) -> None:
    started.append(host := Command("serve", "--host.simulate=pfc-storm", f"--host.simulate-seed={SEED}"))
    with sonic_server("pfc-storm", seed=SEED) as socket:
        switches = switches_command(tmp_path, started, socket)
        monitoring = Monitoring(tmp_path, host.address, switches.address)
        try:
            alert = wait_until(lambda: monitoring.alert("RoceSwitchWatchdogTripped"))
            (link,) = monitoring.query('link:roce_host_port:info{port="Ethernet0"}')
            both_ends = wait_until(lambda: monitoring.paused_ends() == {"host", "switch"})
        finally:
            monitoring.stop()
    assert "gpu-057 (eth0)" in alert["annotations"]["summary"]
    assert "leaf-057 Ethernet0" in alert["annotations"]["summary"]
    expected = {"host": "gpu-057", "netdev": "eth0", "device": "mlx5_0", "port": "1", "switch": "leaf-057"}
    assert expected.items() <= alert["labels"].items()
    assert link["metric"]["host_device"] == "mlx5_0"
    assert both_ends
