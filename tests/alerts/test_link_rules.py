"""The join of host and switch ports: which link wins, that no rule ever fails, and both ends of a link under one name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from alert_promtool import run
from alert_switch_cases import neighbor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("promtool")

ALWAYS = "1x240"
"""A constant, for two hours of scrapes."""


def target(series: str, instance: str, job: str = "roce", cluster: str = "east") -> str:
    """The series as Prometheus labels it on a target."""
    metric, labels = series.split("{", maxsplit=1)
    return f'{metric}{{cluster="{cluster}",job="{job}",instance="{instance}",{labels}'


class Leg(NamedTuple):
    """A network device of a host, as its exporter reports it."""

    netdev: str = "eth0"
    mac: str = "02:00:00:00:00:01"
    hostname: str = "gpu-1"
    device: str = "mlx5_0"

    def series(self) -> str:
        return (
            f'roce_netdev_info{{device="{self.device}",port="1",netdev="{self.netdev}",mac="{self.mac}",'
            f'hostname="{self.hostname}"}}'
        )


def host(leg: Leg = Leg(), instance: str = "", **labels: str) -> str:  # noqa: B008 - a constant
    return target(leg.series(), instance or leg.hostname.split(".")[0], **labels)


def entry(port: str = "Ethernet0", switch: str = "leaf1", **labels: str) -> str:
    """An entry in the LLDP table of a switch, which is scraped under its own name."""
    return target(neighbor(f'device="{switch}",port="{port}"', **labels), switch, "roce-switch")


def check(folder: Path, series: Mapping[str, str], *queries: tuple[int, str, Mapping[str, float]]) -> str:
    """What promtool finds wrong: a rule that failed, or a query (at a minute) whose result is another one."""
    test: dict[str, Any] = {
        "interval": "30s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
            }
            for minute, expression, samples in queries
        ],
    }
    return run(folder, test, every="1m")


LINKS = "sum by (host, instance, netdev, switch, switch_port) (link:roce_switch_port:info)"
"""Two series of one link would add up to 2."""


def link(
    netdev: str = "eth0", port: str = "Ethernet0", switch: str = "leaf1", **more: str
) -> dict[str, float]:
    name = more.get("host", "gpu-1")
    instance = more.get("instance", name.split(".")[0])
    text = f'host="{name}",instance="{instance}",netdev="{netdev}",switch="{switch}",switch_port="{port}"'
    return {f"{{{text}}}": 1}


MAC = {"neighbor_mac": "02:00:00:00:00:01", "neighbor_port": "02:00:00:00:00:01", "port_id_kind": "mac"}
SECOND = Leg("eth1", "02:00:00:00:00:02", device="mlx5_1")
OTHER_MAC = {"neighbor_mac": "02:00:00:00:00:02", "port_id_kind": "mac"}

WAYS = {
    "by MAC": ([host(), entry(**MAC)], link()),
    "by MAC of an agent in the NIC that has no system name": ([host(), entry(**MAC, neighbor="")], link()),
    "by system and port name": ([host(), entry(neighbor="gpu-1", neighbor_port="eth0")], link()),
    "the switch has the full name": (
        [host(), entry(neighbor="gpu-1.example.com", neighbor_port="eth0")],
        link(),
    ),
    "the host has the full name": (
        [host(Leg(hostname="gpu-1.example.com")), entry(neighbor="gpu-1", neighbor_port="eth0")],
        link(host="gpu-1.example.com"),
    ),
    "by the description": (
        [
            host(),
            entry(neighbor="gpu-1", neighbor_description="Interface   28 as eth0", port_id_kind="other"),
        ],
        link(),
    ),
    "by a link from the configuration file": (
        [host(), entry(neighbor="gpu-1", neighbor_port="eth0", source="file")],
        link(),
    ),
    "all ways agree": (
        [host(), entry(**MAC, neighbor="gpu-1", neighbor_description="eth0")],
        link(),
    ),
    "two agents on one host port": (
        [host(), entry(**MAC), entry(neighbor="gpu-1", neighbor_port="eth0")],
        link(),
    ),
    "the MAC wins over an old entry with the name": (
        [host(), entry(**MAC), entry("Ethernet4", neighbor="gpu-1", neighbor_port="eth0")],
        link(),
    ),
    "more evidence wins over an old entry with the MAC": (
        [
            host(),
            entry(**MAC, neighbor="gpu-1", neighbor_description="eth0"),
            entry("Ethernet4", "leaf2", **MAC),
        ],
        link(),
    ),
    "two switches claim one MAC with equal evidence": (
        [host(), entry(**MAC), entry(switch="leaf2", **MAC)],
        {},
    ),
    "a port that two hosts claim with equal evidence": (
        [
            host(),
            host(Leg("eth0", "02:00:00:00:00:02", "gpu-2")),
            entry(**MAC),
            entry(**OTHER_MAC),
        ],
        {},
    ),
    "two legs of one host on two switches": (
        [host(), host(SECOND), entry(**MAC), entry(switch="leaf2", **OTHER_MAC)],
        link() | link("eth1", switch="leaf2"),
    ),
    "members of a bond announce its MAC, and their names": (
        [
            host(),
            host(SECOND),
            entry(**MAC, neighbor="gpu-1", neighbor_description="eth0"),
            entry(switch="leaf2", **MAC, neighbor="gpu-1", neighbor_description="eth1"),
        ],
        link() | link("eth1", switch="leaf2"),
    ),
    "members of a bond announce only its MAC": (
        [host(), host(SECOND), entry(**MAC), entry(switch="leaf2", **MAC)],
        {},
    ),
    "two network devices with one MAC have names": (
        [
            host(),
            host(SECOND._replace(mac="02:00:00:00:00:01")),
            entry(**MAC, neighbor="gpu-1", neighbor_description="eth1"),
        ],
        link("eth1"),
    ),
    "two jobs scrape the switch": (
        [
            host(),
            entry(**MAC),
            target(neighbor('device="leaf1",port="Ethernet0"', **MAC), "leaf1", "another"),
        ],
        link(),
    ),
    "the switch is scraped under two instances": (
        [
            host(),
            entry(**MAC),
            target(neighbor('device="leaf1",port="Ethernet0"', **MAC), "10.0.0.1", "roce-switch"),
        ],
        link(),
    ),
    "two jobs scrape the host": ([host(), host(job="roce-new"), entry(**MAC)], link()),
    "two RDMA devices share a network device": (
        [host(), host(Leg(device="rxe0")), entry(**MAC)],
        link(),
    ),
    "hosts with one name have MACs": (
        [
            host(Leg(hostname="localhost"), "a"),
            host(Leg(mac="02:00:00:00:00:02", hostname="localhost"), "b"),
            entry(**MAC, neighbor="localhost", neighbor_description="eth0"),
            entry("Ethernet4", **OTHER_MAC, neighbor="localhost", neighbor_description="eth0"),
        ],
        link(host="localhost", instance="a") | link(port="Ethernet4", host="localhost", instance="b"),
    ),
    "hosts with one name and no MACs are no link": (
        [
            host(Leg(hostname="localhost"), "a"),
            host(Leg(mac="02:00:00:00:00:02", hostname="localhost"), "b"),
            entry(neighbor="localhost", neighbor_port="eth0"),
        ],
        {},
    ),
    "switches with one name": (
        [
            host(),
            host(SECOND),
            target(neighbor('device="sonic",port="Ethernet0"', **MAC), "10.0.0.1", "roce-switch"),
            target(neighbor('device="sonic",port="Ethernet0"', **OTHER_MAC), "10.0.0.2", "roce-switch"),
        ],
        link(switch="sonic") | link("eth1", switch="sonic"),
    ),
    "another cluster": (
        [host(cluster="west"), entry(**MAC)],
        {},
    ),
    "no hosts": ([entry(**MAC)], {}),
    "no switches": ([host()], {}),
    "an entry without any name": ([host(), entry()], {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_which_switch_port_is_joined_with_which_netdev(way: str, tmp_path: Path) -> None:
    """One series per link at most, and no rule fails."""
    names, expected = WAYS[way]
    assert not check(tmp_path, dict.fromkeys(names, ALWAYS), (5, LINKS, expected), (60, LINKS, expected))


def test_of_two_instances_of_a_host_one_has_the_link_at_all_times(tmp_path: Path) -> None:
    """The first, as Prometheus orders them: values of links do not change with it."""
    names = [host(), host(instance="gpu-1:10123", job="roce-new"), entry(**MAC)]
    ever = "count(count_over_time(link:roce_switch_port:info[100m]))"
    assert not check(tmp_path, dict.fromkeys(names, ALWAYS), (110, ever, {"{}": 1}))


def test_both_views_of_a_link_hold_the_labels_of_their_series(tmp_path: Path) -> None:
    both = 'cluster="east",host="gpu-1",netdev="eth0",switch="leaf1",switch_port="Ethernet0"'
    from_host = f'{both},instance="gpu-1",device="mlx5_0",port="1",switch_instance="leaf1"'
    from_switch = f'{both},instance="leaf1",device="leaf1",port="Ethernet0",host_instance="gpu-1",host_device="mlx5_0",host_port="1"'
    assert not check(
        tmp_path,
        dict.fromkeys([host(), entry(**MAC)], ALWAYS),
        (5, "link:roce_switch_port:info", {f"link:roce_switch_port:info{{{from_host}}}": 1}),
        (5, "link:roce_host_port:info", {f"link:roce_host_port:info{{{from_switch}}}": 1}),
    )


def test_a_host_that_hangs_keeps_its_link_for_an_hour(tmp_path: Path) -> None:
    """Its exporter and its LLDP agent stop together."""
    series = {host(): "1x20", entry(**MAC): "1x24"}
    assert not check(tmp_path, series, (50, LINKS, link()), (90, LINKS, {}))


def test_a_moved_cable_moves_the_link_at_once(tmp_path: Path) -> None:
    series = {
        host(): ALWAYS,
        entry(**MAC): "1x20 stale",
        entry("Ethernet4", **MAC): "_x20 1x200",
    }
    assert not check(tmp_path, series, (9, LINKS, link()), (13, LINKS, link(port="Ethernet4")))


def test_exchanged_cables_exchange_the_links(tmp_path: Path) -> None:
    second = Leg(mac="02:00:00:00:00:02", hostname="gpu-2")
    series = {
        host(): ALWAYS,
        host(second): ALWAYS,
        entry(**MAC): "1x20 stale",
        entry("Ethernet4", **OTHER_MAC): "1x20 stale",
        entry("Ethernet4", **MAC): "_x20 1x200",
        entry(**OTHER_MAC): "_x20 1x200",
    }
    now = link(port="Ethernet4") | link(host="gpu-2")
    assert not check(
        tmp_path, series, (9, LINKS, link() | link(port="Ethernet4", host="gpu-2")), (13, LINKS, now)
    )


def test_a_switch_port_with_another_host_forgets_the_former_one(tmp_path: Path) -> None:
    second = Leg(mac="02:00:00:00:00:02", hostname="gpu-2")
    series = {
        host(): "1x20 stale",
        host(second): ALWAYS,
        entry(**MAC): "1x20 stale",
        entry(**OTHER_MAC): "_x20 1x200",
    }
    assert not check(tmp_path, series, (30, LINKS, link(host="gpu-2")))


ENDS = 'cluster="east",host="gpu-1",netdev="eth0",switch="leaf1",switch_port="Ethernet0",priority="3"'
HOST_LABELS = 'device="mlx5_0",port="1",netdev="eth0",priority="3"'
SWITCH_LABELS = 'device="leaf1",port="Ethernet0",priority="3"'


def growing(per_second: float) -> str:
    """A counter, for two hours of scrapes."""
    return f"0+{per_second * 30:g}x240"


def counters(of_host: Mapping[str, float], of_switch: Mapping[str, float]) -> dict[str, str]:
    """A link, and the growth per second of counters at its ends."""
    return {
        host(): ALWAYS,
        entry(**MAC): ALWAYS,
        **{target(f"{name}{{{HOST_LABELS}}}", "gpu-1"): growing(rate) for name, rate in of_host.items()},
        **{
            target(f"{name}{{{SWITCH_LABELS}}}", "leaf1", "roce-switch"): growing(rate)
            for name, rate in of_switch.items()
        },
    }


def ends(name: str, **values: float) -> dict[str, float]:
    """Samples of a link by `end_toward`."""
    made = {}
    for key, value in values.items():
        end, _, toward = key.partition("_")
        labels = ",".join([ENDS, f'end="{end}"', *([f'toward="{toward}"'] if toward else [])])
        made[f"{name}{{{labels}}}"] = value
    return made


def test_pause_of_both_ends_is_under_one_name(tmp_path: Path) -> None:
    series = counters(
        {"roce_pfc_transmit_pause_seconds_total": 0.25, "roce_pfc_receive_pause_seconds_total": 0.125},
        {
            "roce_switch_pfc_receive_pause_seconds_total": 0.1875,
            "roce_switch_pfc_receive_pause_estimated_seconds_total": 0.5,
        },
    )
    name = "link:roce_pfc_pause:ratio_rate5m"
    expected = ends(name, host_switch=0.25, host_host=0.125, switch_switch=0.1875)
    assert not check(
        tmp_path, series, (20, name, expected), (20, "link:roce_pfc_pause_estimated:ratio_rate5m", {})
    )


def test_estimated_pause_is_never_under_the_name_of_measured_pause(tmp_path: Path) -> None:
    series = counters(
        {"roce_pfc_transmit_pause_seconds_total": 0.25},
        {"roce_switch_pfc_receive_pause_estimated_seconds_total": 0.5},
    )
    measured, estimated = "link:roce_pfc_pause:ratio_rate5m", "link:roce_pfc_pause_estimated:ratio_rate5m"
    assert not check(
        tmp_path,
        series,
        (20, measured, ends(measured, host_switch=0.25)),
        (20, estimated, ends(estimated, switch_switch=0.5)),
    )


@pytest.mark.parametrize(
    "counted",
    [
        {"roce_pfc_transmit_frames_total": 64, "roce_pfc_receive_frames_total": 32},
        {
            "roce_pfc_transmit_xoff_frames_total": 48,
            "roce_pfc_transmit_xon_frames_total": 16,
            "roce_pfc_receive_xoff_frames_total": 24,
            "roce_pfc_receive_xon_frames_total": 8,
        },
    ],
    ids=["all frames", "XOFF and XON apart"],
)
def test_frames_of_both_ends_are_under_one_name(counted: dict[str, float], tmp_path: Path) -> None:
    series = counters(
        counted, {"roce_switch_pfc_receive_frames_total": 32, "roce_switch_pfc_transmit_frames_total": 16}
    )
    name = "link:roce_pfc_frames:rate5m"
    expected = ends(name, host_switch=64, host_host=32, switch_switch=32, switch_host=16)
    assert not check(tmp_path, series, (20, name, expected))


def test_two_jobs_that_scrape_both_ends_do_not_double_the_values(tmp_path: Path) -> None:
    once = counters({"roce_pfc_transmit_frames_total": 64}, {"roce_switch_pfc_receive_frames_total": 32})
    twice = {name.replace('job="', 'job="second-'): values for name, values in once.items()}
    name = "link:roce_pfc_frames:rate5m"
    assert not check(tmp_path, once | twice, (20, name, ends(name, host_switch=64, switch_switch=32)))


def test_enabled_priorities_of_both_ends_are_under_one_name(tmp_path: Path) -> None:
    series = {
        host(): ALWAYS,
        entry(**MAC): ALWAYS,
        target(f"roce_pfc_enabled{{{HOST_LABELS}}}", "gpu-1"): ALWAYS,
        target(f"roce_switch_pfc_enabled{{{SWITCH_LABELS}}}", "leaf1", "roce-switch"): "0x240",
    }
    name = "link:roce_pfc_enabled:bool"
    assert not check(tmp_path, series, (20, name, ends(name, host=1, switch=0)))


PEERS = "link:roce_switch_peer:info"


def test_ports_between_probed_switches_have_peers(tmp_path: Path) -> None:
    """A neighbour that is no probed switch is no peer; a switch with two entries for a port has one."""

    def info(switch: str, instance: str) -> str:
        labels = f'device="{switch}",os="sonic",version="",model="",asic=""'
        return target(f"roce_switch_info{{{labels}}}", instance, "roce-switch")

    names = [
        info("leaf1", "leaf1"),
        info("spine1.example.com", "spine1"),
        info("spine1.example.com", "10.0.0.9"),
        entry("Ethernet48", neighbor="spine1", neighbor_port="Ethernet4"),
        entry("Ethernet48", neighbor="spine1", neighbor_port="Ethernet4", neighbor_description="to leaf1"),
        entry("Ethernet52", neighbor="router-7", neighbor_port="xe-0/0/1"),
    ]
    labels = 'cluster="east",instance="leaf1",device="leaf1",port="Ethernet48",peer="spine1.example.com",peer_port="Ethernet4"'
    assert not check(tmp_path, dict.fromkeys(names, ALWAYS), (5, PEERS, {f"{PEERS}{{{labels}}}": 1}))
