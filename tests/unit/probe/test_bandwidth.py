"""`probe --bandwidth`: both ends with a stand-in for ib_write_bw, which has real output; tests/lab/guest has the real one over Soft-RoCE."""

import asyncio
import ipaddress
import json
import os
import socket
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from roce_exporter.checks.finding import Report, Status
from roce_exporter.cli.entry import main
from roce_exporter.errors import UserError
from roce_exporter.model import Device, Gid, Port
from roce_exporter.probe import bandwidth
from roce_exporter.probe.bandwidth import (
    Pairing,
    PortLoad,
    Rail,
    Rates,
    bandwidth_report,
    busy_rails,
    measure,
    pair_rails,
    port_loads,
)
from roce_exporter.probe.plan import ProbeTarget
from roce_exporter.view.host_view import TimedSamples

PEER = ipaddress.ip_address("127.0.0.1")
GIGABIT = 1e9 / 8


@pytest.fixture(autouse=True)
def perftest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in on the PATH, on ports that no other test uses."""
    rates = {"a0": 190.1, "a1": 12.9, "b0": 188.2, "b1": 113.2}
    monkeypatch.setenv("RATES", json.dumps(rates))
    monkeypatch.setenv("PATH", str(Path(__file__).parent), prepend=os.pathsep)
    monkeypatch.setattr(bandwidth, "FIRST_PORT", free_ports(2))
    monkeypatch.setattr(bandwidth, "SLOT", 0.1)


def free_ports(count: int) -> int:
    """The first of some neighbouring ports that nothing uses."""
    while True:
        with socket.create_server(("", 0)) as server:
            first = int(server.getsockname()[1])
        try:
            for port in range(first, first + count):
                socket.create_server(("", port)).close()
        except (OSError, OverflowError):
            continue
        return first


def rails(host: str) -> tuple[Rail, ...]:
    return tuple(Rail(f"r{number}", f"{host}{number}", "1", 1, PEER, number) for number in range(2))


async def both(busy: Mapping[Rail, str] = {}) -> list[dict[Rail, Rates | str]]:
    """The results of two hosts that run it at the same time; `busy` of the second."""
    ends = measure(Pairing("b", rails("a"), True, 0, 2), {}), measure(Pairing("a", rails("b"), False), busy)
    return list(await asyncio.gather(*ends))


def wrong(report: Report) -> list[tuple[str, Status, str]]:
    return [(one.device, one.status, one.found) for one in report.findings if one.is_wrong]


async def test_both_hosts_have_what_a_rail_carries_each_way_and_the_slow_one_is_named() -> None:
    one, two = await both()
    sent = {
        rail.device: [round(rate / GIGABIT, 1) for rate in rates]
        for found in (one, two)
        for rail, rates in found.items()
    }
    assert sent == {"a0": [190.1, 188.2], "b0": [188.2, 190.1], "a1": [12.9, 113.2], "b1": [113.2, 12.9]}
    report = bandwidth_report(one, dict.fromkeys(one, PortLoad(200 * GIGABIT, 0.0)))
    assert wrong(report) == [("a1", Status.DEGRADED, "12.9 Gbit/s")]
    assert report.not_checked == ()
    # without the speed of the ports the rails are compared with each other; one direction is enough
    unknown = bandwidth_report(two, dict.fromkeys(two, PortLoad(None, None)))
    assert wrong(unknown) == [("b1", Status.DEGRADED, "12.9 Gbit/s")]
    assert [gap.needed for gap in unknown.not_checked] == [False, False]


async def test_a_busy_port_is_neither_served_nor_sent_on() -> None:
    loads = {rail: PortLoad(100 * GIGABIT, (10 + rail.number) * GIGABIT) for rail in rails("b")}
    one, two = await both(busy_rails(loads))
    assert "its port is busy" in str(one[rails("a")[1]])
    report = bandwidth_report(two, loads)
    assert [found.device for found in report.findings] == ["b0"]
    assert report.status is Status.UNKNOWN
    assert "carries 11 % of its speed" in report.not_checked[-1].what


async def test_what_perftest_says_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATES", "{}")
    found = await measure(Pairing("b", rails("a")[:1], True), {})
    assert list(found.values()) == ["ib_write_bw says: Unable to find the Infiniband/RoCE device"]


def test_the_load_of_a_port_is_that_of_its_busier_direction() -> None:
    received, sent = "roce_port_receive_bytes_total", "roce_port_transmit_bytes_total"
    speed = {"roce_port_speed_bytes_per_second": {("a0", "1"): 1000.0, ("a1", "1"): 1000.0}}
    before = TimedSamples(
        10, speed | {received: {("a0", "1"): 5.0, ("a1", "1"): 5.0}, sent: {("a1", "1"): 0}}
    )
    now = TimedSamples(
        12, speed | {received: {("a0", "1"): 205.0, ("a1", "1"): 5.0}, sent: {("a1", "1"): 210}}
    )
    loads = port_loads((*rails("a"), *rails("b")[:1]), (before, now))
    assert list(loads.values()) == [(1000, 100), (1000, 105), (None, None)]


def target(host: str, rail: int, address: str) -> ProbeTarget:
    return ProbeTarget("", host, str(rail), ipaddress.ip_address(address), 10124)


TARGETS = (
    target("g1", 0, "10.0.0.1"),
    target("g1", 1, "10.0.1.1"),
    target("g1", 2, "10.0.2.1"),
    target("g2", 0, "10.0.0.2"),
    target("g2", 2, "10.0.2.2"),
    target("g3", 7, "10.0.7.3"),
)


def own(*addresses: str) -> list[Device]:
    return [
        Device(
            f"mlx5_{number}",
            "mlx5",
            "mlx5_core",
            ports=(Port(1, "Ethernet", gids=(Gid(3, "RoCE v2", "e", one),)),),
        )
        for number, one in enumerate(addresses)
    ]


def test_both_hosts_pair_the_same_rails_in_the_same_order() -> None:
    one = pair_rails(own("10.0.0.1", "10.0.1.1", "10.0.2.1"), TARGETS, "g2")
    two = pair_rails(own("10.0.0.2", "10.0.2.2"), TARGETS, "10.0.0.1")
    assert [(rail.name, rail.device, rail.gid, str(rail.peer), rail.number) for rail in one.rails] == [
        ("0", "mlx5_0", 3, "10.0.0.2", 0),
        ("2", "mlx5_2", 3, "10.0.2.2", 2),
    ]
    assert [(rail.name, str(rail.peer), rail.number) for rail in two.rails] == [
        ("0", "10.0.0.1", 0),
        ("2", "10.0.2.1", 2),
    ]
    assert (one.begins, two.begins) == (True, False)
    assert (one.number, one.slots) == (two.number, two.slots) == (0, 3)


@pytest.mark.parametrize(("hosts", "rails"), [(2, 8), (9, 2), (16, 8), (16, 1)])
def test_in_a_slot_a_rail_has_one_pair_and_a_pair_one_rail(hosts: int, rails: int) -> None:
    job = tuple(
        target(f"h{one:02}", rail, f"10.{rail}.0.{one}") for one in range(hosts) for rail in range(rails)
    )
    names = ",".join(sorted({one.host for one in job}))
    used = Counter()
    for one in range(hosts):
        pairing = pair_rails(own(*(f"10.{rail}.0.{one}" for rail in range(rails))), job, names)
        assert pairing.peer == ("" if one == hosts - 1 and hosts % 2 else f"h{one ^ 1:02}")
        for rail in pairing.rails if pairing.begins else ():
            slot = round(pairing.pause(rail, 0) / bandwidth.SLOT)
            assert 0 <= slot < max(hosts // 2, rails)
            used.update([("rail", rail.name, slot), ("pair", pairing.number, slot)])
    assert len(used) == 2 * (hosts // 2) * rails
    assert set(used.values()) == {1}


@pytest.mark.parametrize(
    ("addresses", "peer", "said"),
    [
        (("10.9.9.9",), "g2", "has no address of this host"),
        (("10.0.0.1",), "g2,g9", "g9 is not a host of the list"),
        (("10.0.0.1",), "g3", "has no rail of this host"),
    ],
)
def test_a_list_that_does_not_fit_is_one_line(addresses: tuple[str, ...], peer: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        pair_rails(own(*addresses), TARGETS, peer)


SIMULATED = ("--host.simulate=incast", "--host.simulate-ports=mlx5")
RECORDED = ("--host.recording=tests/recordings/audit-drift.txt", "--device.include=mlx5_0")
"""Its counters do not move."""


@pytest.fixture
def ports_file(tmp_path: Path) -> str:
    """This host, which is simulated or recorded, and others."""
    groups = [
        {"targets": [address], "labels": {"host": host, "rail": "0"}}
        for host, address in zip(
            ("g1", "g2", "f1", "f2"), ("192.0.2.1", "127.0.0.1", "192.0.2.8", "192.0.2.9"), strict=True
        )
    ]
    (tmp_path / "ports.json").write_text(json.dumps(groups))
    return f"--probe.targets={tmp_path / 'ports.json'}"


def test_the_odd_host_of_a_job_is_not_measured(ports_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", ports_file, "--bandwidth=f1,f2", *SIMULATED]) == 0
    assert "the number of hosts is odd" in capsys.readouterr().out


def test_without_perftest_one_line_says_how_to_install_it(
    ports_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["probe", ports_file, "--bandwidth=g2", *SIMULATED]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "apt-get install perftest" in line


@pytest.mark.parametrize(
    ("host", "said"),
    [(SIMULATED, "rail 0: the port is busy"), (RECORDED, "rail 0: ib_write_bw says: Unable to find")],
    ids=["busy", "broken"],
)
def test_the_document_has_what_was_not_measured(
    ports_file: str,
    host: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RATES", "{}")
    monkeypatch.chdir(Path(__file__).parents[3])
    assert main(["probe", ports_file, "--bandwidth=g2", "--format=json", *host]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["findings"] == []
    assert [gap["what"].startswith(said) for gap in document["not_checked"] if gap["needed"]] == [True]
