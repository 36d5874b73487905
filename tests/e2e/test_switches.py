"""A real Redis with the tables of a simulated switch → `roce-exporter serve --switches.config` → a real Prometheus with our rules.

The page at the end of that way is in tests/alerts/test_switch_page.py.
"""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from servers import Running, exporter, prometheus
from sonic_server import sonic_server
from waiting import wait_until

from roce_exporter.host.simulated.simulated_switch_port import SwitchWatchdog

pytestmark = pytest.mark.ci

ALERTS = Path(__file__).parents[2] / "alerts"
SEED = 57
"""The first storm of this seed begins after 20 s and lasts 3.3 s."""
STORM = 20.1


def switches(folder: Path, socket: Path) -> AbstractContextManager[Running]:
    """The switch exporter with one target, `leaf`, whose answers are not kept."""
    target = {"module": "sonic", "address": f"unix://{socket}"}
    file = folder / "switches.yml"
    file.write_text(json.dumps({"targets": {"leaf": target}, "limits": {"cache": "0"}}))
    return exporter(folder, "--no-host", f"--switches.config={file}")


SERIES = re.compile(r"(\w+)\{(.*)\} (\S+)")


def probe(command: Running) -> dict[tuple[str, str], float]:
    """The value of each series of the switch, by name and labels."""
    found = SERIES.findall(command.get("/probe?target=leaf").decode())
    return {(name, labels): float(value) for name, labels, value in found}


def values(series: dict[tuple[str, str], float], name: str, *labels: str) -> list[float]:
    return [
        value
        for (found, text), value in series.items()
        if found == name and all(label in text for label in labels)
    ]


def test_a_probe_has_the_watchdog_and_the_neighbour_of_every_port(tmp_path: Path) -> None:
    with (
        sonic_server("pfc-storm", seed=SEED, at=STORM + 10) as socket,
        switches(tmp_path, socket) as command,
    ):
        series = probe(command)
        assert values(series, "roce_switch_probe_success") == [1.0]
        assert set(values(series, "roce_switch_source_up")) == {1.0}
        assert len(values(series, "roce_switch_pfc_enabled")) == 6
        first = 'port="Ethernet0"'
        assert values(series, "roce_switch_pfc_watchdog_trips_total", first) == [1.0]
        assert values(series, "roce_switch_pfc_watchdog_tripped", first) == [0.0]
        assert values(series, "roce_switch_pfc_watchdog_detection_seconds", first) == [
            SwitchWatchdog().detection
        ]
        (neighbor,) = (
            labels for name, labels in series if name.endswith("neighbor_info") and first in labels
        )
        assert 'neighbor="gpu-057"' in neighbor
        assert 'neighbor_mac="02:00:00:39:00:00"' in neighbor
        assert command.stop() == 0


def test_a_redis_that_ends_and_returns_is_one_line_each(tmp_path: Path) -> None:
    with ExitStack() as running:
        with sonic_server("quiet") as socket:
            command = running.enter_context(switches(tmp_path, socket))
            assert values(probe(command), "roce_switch_probe_success") == [1.0]
        for _ in range(3):
            assert values(probe(command), "roce_switch_probe_success") == [0.0]
        assert command.stop() == 0
    lines = [line for line in command.log.splitlines() if "target leaf" in line]
    assert lines
    assert all(str(socket) in line or "redis" in line.lower() for line in lines), lines
    assert len({line.partition("msg=")[2] for line in lines}) == len(lines), "each fault once"
    assert "Traceback" not in command.log


def test_a_signal_reads_the_file_again_and_keeps_what_is_known(tmp_path: Path) -> None:
    with sonic_server("quiet") as socket, switches(tmp_path, socket) as command:
        file = tmp_path / "switches.yml"
        before = json.loads(file.read_text())
        assert values(probe(command), "roce_switch_probe_success") == [1.0]
        target = before["targets"]["leaf"]
        for text in ("targets: 5", json.dumps({**before, "targets": {"leaf": target, "new": target}})):
            file.write_text(text)
            command.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "SIGHUP: " in command.log)
            assert values(probe(command), "roce_switch_probe_success") == [1.0]
        wait_until(lambda: "was read again" in command.log)
        assert b"roce_switch_probe_success" in command.get("/probe?target=new")
        assert command.stop() == 0
    assert "SIGHUP: nothing has changed, because" in command.log


class Monitoring(Running):
    """A Prometheus with our rules."""

    def alert(self, name: str) -> dict[str, Any] | None:
        """An alert of this name that is pending or fires."""
        return next(
            (alert for alert in self.ask("alerts")["alerts"] if alert["labels"]["alertname"] == name), None
        )

    def paused_ends(self) -> set[str]:
        """The ends of the first link that report pause from the host to the switch."""
        pause = (
            'link:roce_pfc_pause:ratio_rate5m{netdev="eth0", switch_port="Ethernet0", toward="switch"} > 0'
        )
        return {found["metric"]["end"] for found in self.query(pause)}


@contextmanager
def monitoring(folder: Path, host: Running, switches: Running) -> Iterator[Monitoring]:
    """It scrapes a host and a switch each second."""
    labels = {"cluster": "one"}
    jobs = [
        {"job_name": "roce", "static_configs": [{"targets": [host.address], "labels": labels}]},
        {
            "job_name": "roce-switches",
            "metrics_path": "/probe",
            "params": {"target": ["leaf"]},
            "static_configs": [{"targets": [switches.address], "labels": labels | {"instance": "leaf"}}],
        },
    ]
    intervals = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    rules = yaml.safe_load((ALERTS / "roce.rules.yml").read_text())
    for group in rules["groups"]:
        group.pop("interval", None)
    (folder / "rules.yml").write_text(json.dumps(rules))
    config = {"global": intervals, "rule_files": ["rules.yml"], "scrape_configs": jobs}
    with prometheus(folder, config) as running:
        yield Monitoring(running.process, running.address, running.log_file)


def test_the_alert_on_a_tripped_watchdog_names_the_host_behind_the_port(tmp_path: Path) -> None:
    with (
        exporter(tmp_path / "host", "--host.simulate=pfc-storm", f"--host.simulate-seed={SEED}") as host,
        sonic_server("pfc-storm", seed=SEED) as socket,
        switches(tmp_path, socket) as command,
        monitoring(tmp_path, host, command) as monitor,
    ):
        alert = wait_until(lambda: monitor.alert("RoceSwitchWatchdogTripped"))
        (link,) = monitor.query('link:roce_host_port:info{port="Ethernet0"}')
        both_ends = wait_until(lambda: monitor.paused_ends() == {"host", "switch"})
    assert "gpu-057 (eth0)" in alert["annotations"]["summary"]
    assert "leaf-057 Ethernet0" in alert["annotations"]["summary"]
    expected = {"host": "gpu-057", "netdev": "eth0", "device": "mlx5_0", "port": "1", "switch": "leaf-057"}
    assert expected.items() <= alert["labels"].items()
    assert link["metric"]["host_device"] == "mlx5_0"
    assert both_ends
