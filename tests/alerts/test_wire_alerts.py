"""Alerts on packets: when they yield, which host an address belongs to, and that captures and hosts do not disturb each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from alert_cases import CASES
from alert_promtool import annotations_got, at, expected, run, silent, when_fired
from alert_promtool import test_of as one_test
from alert_scenario import SICK, Case, Rate
from alert_wire_cases import DESTINATION, HOST_TRAFFIC, ON, SENDERS, WIRE_CASES, address, cnps
from test_link_rules import check, target
from test_switch_alerts import firing, names_firing, sick_series

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("promtool")

CAPTURE = 'job="roce-wire",instance="probe"'


def case_of(title: str) -> Case:
    return next(case for case in WIRE_CASES if case.title == title)


def test_three_congested_senders_are_no_incast(tmp_path: Path) -> None:
    few = dict(list(SENDERS.items())[:3])
    case = replace(case_of("RoceWireReceiverCongested"), series=few, background={})
    assert not run(tmp_path, one_test(case, SICK, silent(case)))


def test_a_capture_of_idle_hosts_is_not_silent(tmp_path: Path) -> None:
    """All hosts of the cluster together send fewer packets than the limit."""
    idle = {HOST_TRAFFIC: Rate(sick=10, healthy=10)}
    case = replace(case_of("RoceWireNoFrames"), background=idle)
    assert not run(tmp_path, one_test(case, SICK, silent(case)))


def test_packets_out_of_order_are_no_alert_where_switches_spray(tmp_path: Path) -> None:
    """`clusters_with_packet_spraying` is `none` in the rules as delivered, so a cluster of this name is left out."""
    target_of = f'{{cluster="none",{CAPTURE},source="10.0.0.1",destination="10.0.0.2"'
    series = [
        {"series": f"roce_wire_retransmitted_packets_total{target_of}}}", "values": "0+3000x100"},
        {"series": f'roce_wire_packets_total{target_of},operation="write"}}', "values": "0+300000x100"},
        {"series": 'up{cluster="none",job="roce",instance="h1"}', "values": "1x100"},
    ]
    assert not firing(tmp_path, series, (40, set()))
    elsewhere = [
        {**one, "series": one["series"].replace('cluster="none"', 'cluster="east"')} for one in series
    ]
    assert not firing(tmp_path, elsewhere, (40, {"RoceWireRetransmissions"}))


@pytest.mark.parametrize("values", ["0x100", "1x20 0x80"], ids=["from the start", "later"])
def test_a_capture_that_does_not_respond_is_no_host(values: str, tmp_path: Path) -> None:
    """Its job begins with roce too; the alerts on the exporters of hosts leave it out."""
    series = [
        {"series": f'up{{cluster="east",{CAPTURE}}}', "values": values},
        {"series": 'up{cluster="east",job="roce",instance="h1"}', "values": "1x100"},
    ]
    assert not firing(tmp_path, series, (45, {"RoceWireCaptureGone"}))


def test_a_capture_that_was_removed_is_forgotten_after_six_hours(tmp_path: Path) -> None:
    series = [
        {
            "series": f'roce_wire_capture_frames_total{{cluster="east",{CAPTURE}}}',
            "values": "0+100x120 stale",
        },
        {"series": 'up{cluster="east",job="roce",instance="h1"}', "values": "1x1000"},
    ]
    gone = {"RoceWireCaptureGone"}
    assert not firing(tmp_path, series, (50, set()), (80, gone), (410, gone), (430, set()))


# ---- whose address it is

ADDRESSES = "sum by (instance, device, port, address) (port:roce_wire_address:info)"


def gid(text: str, instance: str, device: str = "mlx5_0", job: str = "roce", cluster: str = "east") -> str:
    return target(address(text, device), instance, job, cluster)


def pair(source: str, destination: str, cluster: str = "east") -> str:
    labels = f'{{source="{source}",destination="{destination}"}}'
    return target(f"roce_wire_cnps_total{labels}", "probe", "roce-wire", cluster)


def port_of(text: str, instance: str, device: str = "mlx5_0", jobs: int = 1) -> dict[str, float]:
    return {f'{{instance="{instance}",device="{device}",port="1",address="{text}"}}': jobs}


OWNERS = {
    "source and destination": (
        [gid("10.0.0.1", "h1"), gid("10.0.0.2", "h2", "mlx5_3"), pair("10.0.0.1", "10.0.0.2")],
        port_of("10.0.0.1", "h1") | port_of("10.0.0.2", "h2", "mlx5_3"),
    ),
    "IPv6": (
        [gid("2001:db8::1", "h1"), pair("2001:db8::9", "2001:db8::1")],
        port_of("2001:db8::1", "h1"),
    ),
    "an address that no capture has seen": ([gid("10.0.0.3", "h1"), pair("10.0.0.1", "10.0.0.2")], {}),
    "an address that no host has": ([pair("10.0.0.1", "10.0.0.2")], {}),
    "of an address of two hosts": (
        [gid("10.0.0.1", "h1"), gid("10.0.0.1", "h2"), gid("10.0.0.2", "h2"), pair("10.0.0.1", "10.0.0.2")],
        port_of("10.0.0.2", "h2"),
    ),
    "an address of two ports of a host": (
        [gid("10.0.0.1", "h1"), gid("10.0.0.1", "h1", "mlx5_1"), pair("10.0.0.1", "10.0.0.2")],
        {},
    ),
    "the same addresses in another cluster": (
        [gid("10.0.0.1", "h1", cluster="west"), pair("10.0.0.1", "10.0.0.2")],
        {},
    ),
    "one host in two jobs": (
        [gid("10.0.0.1", "h1"), gid("10.0.0.1", "h1", job="roce-b"), pair("10.0.0.1", "10.0.0.2")],
        port_of("10.0.0.1", "h1", jobs=2),
    ),
    "two captures of one pair": (
        [
            gid("10.0.0.1", "h1"),
            pair("10.0.0.1", "10.0.0.2"),
            pair("10.0.0.1", "10.0.0.2").replace("probe", "probe2"),
        ],
        port_of("10.0.0.1", "h1"),
    ),
    "pairs without series of their own": ([gid("10.0.0.1", "h1"), pair("other", "other")], {}),
}


@pytest.mark.parametrize("name", OWNERS)
def test_whose_address_it_is(name: str, tmp_path: Path) -> None:
    """One port, or nobody's: a wrong name is worse than none."""
    series, owners = OWNERS[name]
    assert not check(tmp_path, dict.fromkeys(series, "1x240"), (20, ADDRESSES, owners))


def test_an_address_of_two_hosts_leaves_the_alert_without_a_port(tmp_path: Path) -> None:
    """In the test, all four hosts of the cluster have the address of the destination."""
    case = case_of("RoceWireRetransmissions, to a known host")
    shared = {address("10.9.9.9", "mlx5_1"): ON}
    rename = {name.replace(DESTINATION, "10.9.9.9"): shape for name, shape in case.series.items()}
    counted = {f"{cnps('10.9.9.9')}": Rate(sick=0)}
    same = replace(
        case,
        series=rename,
        background={**shared, **counted},
        labels=case.labels.replace(DESTINATION, "10.9.9.9"),
    )
    complaint = run(tmp_path, one_test(same, SICK, [at(same, when_fired(same))]))
    texts = annotations_got(complaint)
    assert texts["summary"] == "10.1.0.h1 retransmits 0.2% of its packets to 10.9.9.9."
    assert texts["description"].startswith("The capture h1 had seen their PSNs before")
    assert not run(tmp_path, one_test(same, SICK, [at(same, when_fired(same), expected(same, texts))]))


# ---- captures and hosts


def test_series_of_captures_fire_no_other_alert(tmp_path: Path) -> None:
    """Every fault of peers at once, and no host."""
    fired = names_firing(tmp_path, sick_series(WIRE_CASES, "roce_wire_"))
    assert len(fired) >= 3
    assert not {name for name in fired if not name.startswith("RoceWire")}


def test_series_of_hosts_fire_no_alert_on_captures(tmp_path: Path) -> None:
    """Every fault of a host at once, and no capture."""
    hosts = tuple(case for case in CASES if case not in WIRE_CASES)
    fired = names_firing(tmp_path, sick_series(hosts, "roce_"))
    assert len(fired) >= 30
    assert not {name for name in fired if name.startswith("RoceWire")}
