"""Faults of a network between real sockets in namespaces: what the probes of all hosts say of each."""

import os
from collections.abc import AsyncIterator

import pytest
from probe_fabric import ProbeFabric, Seen
from tools import need

from roce_exporter.probe.fleet import blame, port_reports
from roce_exporter.probe.vote import HOST, TOR, Component
from roce_exporter.view.host_view import timed_samples

pytestmark = pytest.mark.ci

MINUTE = 12
"""Bursts."""
RACKS = (4, 4)


@pytest.fixture
async def fabric() -> AsyncIterator[ProbeFabric]:
    need("ip")
    if os.geteuid() or not os.access("/dev/net/tun", os.R_OK):
        pytest.skip("network namespaces need root and /dev/net/tun")
    made = ProbeFabric(f"p{os.getpid()}", RACKS)
    try:
        await made.open()
        yield made
    finally:
        made.close()


def blamed(fabric: ProbeFabric) -> list[Component]:
    return [one.component for one in blame(reports(fabric))]


def reports(fabric: ProbeFabric) -> list:
    return [
        report
        for service in fabric.services.values()
        for report in port_reports(None, timed_samples([service.samples()], 0))
    ]


def total(fabric: ProbeFabric, name: str) -> float:
    return sum(
        value or 0
        for service in fabric.services.values()
        for series, value in zip(*service.samples(), strict=True)
        if series.row.name == name and not series.suffix
    )


def every(number: int, matches: object) -> object:
    """A fault of each so many packets that match."""
    count = 0

    def fault(seen: Seen) -> bool:
        nonlocal count
        if not matches(seen):
            return True
        count += 1
        return count % number != 0

    return fault


async def test_a_healthy_fabric_loses_nothing_and_blames_nobody(fabric) -> None:
    fabric.bursts(MINUTE)
    assert total(fabric, "roce_probe_sent_total") > 1000
    assert total(fabric, "roce_probe_lost_total") == 0
    assert total(fabric, "roce_probe_remarked_total") == total(fabric, "roce_probe_marked_total") == 0
    assert blamed(fabric) == []


async def test_a_port_that_loses_packets_is_named(fabric) -> None:
    fabric.router.fault = every(20, lambda seen: "10.88.1.3" in (seen.source, seen.target))
    fabric.bursts(MINUTE)
    assert blamed(fabric) == [Component(HOST, "h12")]


async def test_a_tor_that_loses_packets_is_named(fabric) -> None:
    fabric.router.fault = every(20, lambda seen: "10.88.1." in seen.source + seen.target)
    fabric.bursts(MINUTE)
    assert blamed(fabric) == [Component(TOR, "r1")]


async def test_a_responder_that_is_stopped_is_named_within_15_seconds(fabric) -> None:
    fabric.silent.add("h01")
    fabric.bursts(3)
    assert blamed(fabric) == [Component(HOST, "h01")]


async def test_a_path_that_loses_is_a_source_port_of_a_pair(fabric) -> None:
    """One source port of one pair, as one of several equal paths."""
    fabric.bursts(1)
    (port,) = fabric.services["h00"]._ports.values()
    bad = port.sender._paths[3].socket.port
    fabric.router.fault = lambda seen: bad not in (seen.source_port, seen.target_port)
    fabric.bursts(MINUTE)
    found = [report for report in reports(fabric) if report.pairs]
    assert [report.port.host for report in found] == ["h00"]
    pairs = {
        series.labels[3]
        for series in fabric.services["h00"].samples().series
        if series.row.name == "roce_probe_pair_lost_total"
    }
    assert pairs == {str(bad)}


@pytest.mark.parametrize(
    ("tos", "name"),
    [
        pytest.param(26 << 2 | 3, "roce_probe_marked_total", id="marked"),
        pytest.param(0, "roce_probe_remarked_total", id="cleared"),
    ],
)
async def test_a_switch_that_marks_or_clears_the_class_is_seen(fabric, tos, name) -> None:
    fabric.router.fault = lambda seen: tos if seen.tos >> 2 == 26 else True
    fabric.bursts(2)
    other = {"roce_probe_marked_total", "roce_probe_remarked_total"} - {name}
    assert total(fabric, "roce_probe_lost_total") == 0
    assert total(fabric, "roce_probe_replies_dropped_total") == 0
    assert total(fabric, name) == total(fabric, "roce_probe_sent_total") > 0
    assert total(fabric, other.pop()) == 0
    assert total(fabric, "roce_probe_lost_total") == 0


async def test_after_a_fault_all_is_as_before(fabric) -> None:
    fabric.router.fault = lambda seen: "10.88.1.3" not in (seen.source, seen.target)
    fabric.bursts(3)
    fabric.router.fault = lambda _: True
    fabric.bursts(2)
    before = {host: timed_samples([service.samples()], 0) for host, service in fabric.services.items()}
    fabric.bursts(MINUTE)
    after = [
        one
        for host, service in fabric.services.items()
        for one in port_reports(before[host], timed_samples([service.samples()], 60))
    ]
    assert blame(after) == ()
    assert sum(sum(one.sent.values()) for one in after) > 1000
