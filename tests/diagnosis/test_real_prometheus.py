"""`check health --prometheus` against a real Prometheus that holds the history of a fault: the same findings as from the samples."""

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from changed_host import healthy_moments
from fault_histories import fault_history
from fault_table import load_faults
from servers import prometheus
from tools import need

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.cli.entry import main
from roce_exporter.view.host_view import History

pytestmark = pytest.mark.ci

LABELS = {row.name: row.labels for row in CATALOG}
INSTANCE = "gpu-007:10123"
HOLES = 'a "quoted" \\ value'


def openmetrics(history: History, end: float) -> Iterator[str]:
    """The history as OpenMetrics with timestamps, the newest sample at `end`; unknown labels are absent, as in a scrape."""
    shift = end - history[-1].time
    names = sorted({name for one in history for name in one.values})
    for name in names:
        yield f"# TYPE {name} unknown"
        for one in history:
            for values, value in one.values.get(name, {}).items():
                pairs = {"instance": INSTANCE, "job": "roce", **dict(zip(LABELS[name], values, strict=True))}
                labels = ",".join(f"{label}={json.dumps(text)}" for label, text in pairs.items() if text)
                yield f"{name}{{{labels}}} {value!r} {one.time + shift:.3f}"
    yield "# EOF\n"


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> History:
    fault = next(fault for fault in load_faults() if fault.id == "dead-peer-mlx5")

    async def of_fault() -> History:
        return await fault_history(fault, await healthy_moments(tmp_path_factory.mktemp("healthy")))

    return asyncio.run(of_fault())


@pytest.fixture(scope="module")
def url(tmp_path_factory, history) -> Iterator[str]:
    """A Prometheus with this history in its database."""
    promtool = need("promtool")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    (folder / "history.txt").write_text("\n".join(openmetrics(history, time.time() - 1)))
    blocks = (promtool, "tsdb", "create-blocks-from", "openmetrics", folder / "history.txt", folder / "data")
    subprocess.run(blocks, check=True, capture_output=True)
    with prometheus(folder, {}) as running:
        yield running.url
    shutil.rmtree(folder / "data")


def test_the_findings_are_those_of_the_samples(url, history, capsys) -> None:
    assert main(["check", "health", f"--prometheus={url}", "--format=json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    found = [(one["device"], one["port"], one["side"], one["check"]) for one in findings]
    expected = [(one.device, one.port, one.side.value, one.check) for one in diagnose(history).findings]
    assert expected[0][3] == "retries_exceeded"
    assert found == expected


def test_another_instance_is_not_found(url, capsys) -> None:
    assert main(["check", "health", f"--prometheus={url}", f"--target={HOLES}"]) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"in this time; instances are '{INSTANCE}'\n")


# Series of switches

NEIGHBOR = "roce_switch_lldp_neighbor_info"
FAULT = "port:roce_switch_link_fault:info"
PAUSED, SENT = "roce_switch_pfc_receive_pause_seconds_total", "roce_switch_pfc_transmit_frames_total"
FRAMES = "roce_switch_pfc_receive_frames_total"
LINKS = {
    ("leaf1", "Ethernet0"): ("gpu-001", "eth0"),
    ("leaf1", "Ethernet48"): ("leaf2", "Ethernet48"),
    ("leaf2", "Ethernet48"): ("leaf1", "Ethernet48"),
    ("leaf2", "Ethernet12"): ("gpu-007", "eth2"),
}
SENDING = {(SENT, "leaf2", "Ethernet48"): 900.0, (SENT, "leaf1", "Ethernet0"): 300.0}
TIMES = {**SENDING, (PAUSED, "leaf2", "Ethernet12"): 0.8, (PAUSED, "leaf1", "Ethernet48"): 0.7}
"""What rises in each second of the storm. Each leaf is probed by a process of its own."""
FRAMES_ALONE = {**SENDING, (FRAMES, "leaf2", "Ethernet12"): 900.0, (PAUSED, "leaf1", "Ethernet48"): 0.01}
"""leaf2 counts no time, and leaf1 sees little of the storm."""


def storm_series(now: float, rates: Mapping[tuple[str, str, str], float]) -> Iterator[str]:
    """Two hours, with a storm of five minutes that ended an hour ago."""
    begin, end = now - 3900, now - 3600
    times = [now - 7200 + 15 * number for number in range(480)]

    def series(row: str, device: str, port: str, **more: str) -> str:
        assert {"device", "port", *more} <= {*INDEX.named[row].labels}
        labels = {"instance": device, "job": "roce-switches", "device": device, "port": port, **more}
        return f"{row}{{{','.join(f'{name}={json.dumps(text)}' for name, text in labels.items())}}}"

    yield f"# TYPE {NEIGHBOR} unknown"
    for (device, port), (name, other) in LINKS.items():
        more = {"neighbor": name, "neighbor_port": other, "port_id_kind": "name", "source": "lldp"}
        yield from (f"{series(NEIGHBOR, device, port, **more)} 1 {at:.3f}" for at in times)
    for row in (PAUSED, FRAMES, SENT):
        yield f"# TYPE {row} unknown"
        for device, port in LINKS if row == SENT else [one[1:] for one in rates if one[0] == row]:
            rate = rates.get((row, device, port), 0.0)
            for at in times:
                risen = rate * (min(max(at, begin), end) - begin)
                yield f"{series(row, device, port, priority='3')} {risen!r} {at:.3f}"
    yield "# EOF\n"


def write_blocks(series: Iterable[str], folder: Path) -> None:
    """Blocks of Prometheus in `folder/data` with these lines of OpenMetrics."""
    text = folder / "series.txt"
    text.write_text("\n".join(series))
    command = (need("promtool"), "tsdb", "create-blocks-from", "openmetrics", text, folder / "data")
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("rates", "amount"), [(TIMES, "for 80 %"), (FRAMES_ALONE, "with 900 pause frames per second")]
)
def test_a_storm_that_is_over_is_followed_to_its_host(tmp_path, capsys, rates, amount) -> None:
    now = time.time()
    write_blocks(storm_series(now, rates), tmp_path)
    with prometheus(tmp_path, {}) as running:
        command = ["check", "fabric", f"--prometheus={running.url}", "--format=json"]
        assert main([*command, "--since=10m"]) == 3
        assert not json.loads(capsys.readouterr().out)["findings"]
        assert main([*command, "--since=2h"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["check"], found["device"], found["side"]) == ("pause_start", "gpu-007 eth2", "host")
    assert now - 3900 < found["until"] < now - 3400
    assert found["evidence"][0].startswith(
        f"gpu-007 eth2 sends pause on priority 3 to leaf2 Ethernet12 {amount}"
    )
    assert found["evidence"][-1].startswith("leaf1 Ethernet0 pauses gpu-001 eth0")


# Both ends of links

SWITCH = {"cluster": "c", "instance": "leaf1", "device": "leaf1"}
HOST = {"cluster": "c", "instance": "gpu-001:10123", "device": "mlx5_0", "netdev": "eth0"}


def link_series(now: float) -> Iterator[str]:
    """Three ports of a switch with a host each: one slow with damaged packets, one that is well, one without an exporter."""

    def lines(name: str, value: float, rise: float = 0.0, **labels: str) -> Iterator[str]:
        yield f"# TYPE {name} unknown"
        text = ",".join(f"{label}={json.dumps(one)}" for label, one in labels.items())
        yield from (
            f"{name}{{{text}}} {value + rise * at!r} {now - 900 + at:.3f}" for at in range(0, 900, 15)
        )

    ports = {"Ethernet0": ("gpu-001", "1", 25e9), "Ethernet4": ("gpu-002", "2", 50e9)}
    series: dict[str, list[str]] = {}

    def add(name: str, *found: object, **labels: str) -> None:
        head, *rest = lines(name, *found, **labels)  # type: ignore[arg-type]
        series.setdefault(name, [head]).extend(rest)

    for port, (host, number, speed) in ports.items():
        link = {"host": host, "netdev": "eth0"}
        ends = {**HOST, "port": number, "host": host, "switch": "leaf1", "switch_port": port}
        add("link:roce_switch_port:info", 1.0, **ends)
        add("link:roce_host_port:info", 1.0, **SWITCH, port=port, **link)
        add("roce_link_speed_bytes_per_second", 50e9, job="roce", **HOST, port=number)
        add("roce_switch_link_speed_bytes_per_second", speed, job="roce-switches", **SWITCH, port=port)
        add(
            "roce_switch_phy_receive_crc_errors_total",
            7.0,
            0.1 if host == "gpu-001" else 0.0,
            **SWITCH,
            port=port,
        )
    for port, host in (("Ethernet4", "gpu-002"), ("Ethernet8", "gpu-003"), ("Ethernet48", "spine1")):
        other = "Ethernet1/1" if host == "spine1" else "eth0"
        add(NEIGHBOR, 1.0, **SWITCH, port=port, neighbor=host, neighbor_port=other)
        add("roce_switch_pfc_enabled", 1.0, **SWITCH, port=port, priority="3")
    for port, reasons in (("Ethernet0", ("crc_errors", "flaps")), ("Ethernet48", ("crc_errors",))):
        for reason in reasons:
            add(FAULT, 1.0, job="roce-switches", **SWITCH, port=port, reason=reason)
    yield from (line for found in series.values() for line in found)
    yield "# EOF\n"


def test_what_the_switchs_end_of_a_link_says_is_found(tmp_path, capsys) -> None:
    write_blocks(link_series(time.time()), tmp_path)
    with prometheus(tmp_path, {}) as running:
        assert main(["check", "fabric", f"--prometheus={running.url}", "--format=json", "--since=10m"]) == 1
    said = json.loads(capsys.readouterr().out)
    ports = {one["device"]: one["evidence"] for one in said["findings"] if one["check"] == "switch_link"}
    # what has a number, because a host is at the other end, is said once
    assert ports == {
        "leaf1 Ethernet0": ["the switch reports flaps"],
        "leaf1 Ethernet48": ["the switch reports crc_errors"],
    }
    found = {one["check"]: one for one in said["findings"] if one["check"] != "switch_link"}
    assert {one["device"] for one in found.values()} == {"gpu-001 eth0"}
    assert found.keys() == {"speed_differs", "damaged_at_switch"}
    assert found["speed_differs"]["evidence"] == [
        "leaf1 Ethernet0: the switch's end runs at 0.5 times the speed of the host's"
    ]
    assert "packets with a wrong checksum arrived at the switch" in found["damaged_at_switch"]["evidence"][0]
    assert "hosts without series behind leaf1 Ethernet8 (gpu-003): only" in json.dumps(said)
    assert "spine1" not in json.dumps(said)
