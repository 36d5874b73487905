"""A real Redis with the tables of a simulated switch → `roce-exporter serve --switches.config`. tests/alerts/test_end_to_end.py has the page."""

import json
import re
import signal
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from servers import Running, exporter
from sonic_server import sonic_server
from waiting import wait_until

from roce_exporter.host.simulated.simulated_switch_port import SwitchWatchdog

pytestmark = pytest.mark.ci

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


def test_a_probe_has_the_watchdog_and_the_neighbour_of_every_port(tmp_path) -> None:
    with sonic_server("pfc-storm", seed=SEED, at=STORM + 10) as socket, switches(tmp_path, socket) as command:
        series = probe(command)
        assert values(series, "roce_switch_probe_success") == [1.0]
        assert set(values(series, "roce_switch_source_up")) == {1.0}
        assert len(values(series, "roce_switch_pfc_enabled")) == 48
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


def test_a_redis_that_ends_and_returns_is_one_line_each(tmp_path) -> None:
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


def test_a_signal_reads_the_file_again_and_keeps_what_is_known(tmp_path) -> None:
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
