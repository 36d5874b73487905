"""The join of host and switch ports: which link wins, that no rule ever fails, and both ends of a link under one name."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from alert_promtool import complaints, delivered, name_of, needed

pytestmark = pytest.mark.usefixtures("promtool")

ALWAYS = "1x240"
"""A constant, for two hours of scrapes."""


class Check(NamedTuple):
    """A query at a minute, and the samples that it must have by their labels."""

    minute: int
    query: str
    samples: dict[str, float]


Situation = tuple[dict[str, str], tuple[Check, ...]]
"""Series with their values, and what is checked."""


def target(series: str, instance: str, job: str = "roce", cluster: str = "<cluster>") -> str:
    """The series as Prometheus labels it on a target."""
    metric, labels = series.split("{", maxsplit=1)
    return f'{metric}{{cluster="{cluster}",job="{job}",instance="{instance}",{labels}'


def always(*names: str) -> dict[str, str]:
    """Series that never change."""
    return dict.fromkeys(names, ALWAYS)


def differences(folder: Path, recorded: str, situations: Mapping[str, Situation]) -> str:
    """What promtool finds different, with the names of the situations; `recorded` begins the names of the rules that are needed."""
    series, queries = [], []
    for name, (given, checks) in situations.items():
        series += [{"series": one.replace("<cluster>", name), "values": text} for one, text in given.items()]
        for check in checks:
            samples = [
                {"labels": labels.replace("<cluster>", name), "value": value}
                for labels, value in check.samples.items()
            ]
            query = check.query.replace("{}", f'{{cluster="{name}"}}')
            queries.append({"expr": query, "eval_time": f"{check.minute}m", "exp_samples": samples})
    names = {name_of(rule) for group in delivered() for rule in group["rules"]}
    groups = needed({name for name in names if name.startswith(recorded)}, delivered())
    return complaints(
        folder, groups, [{"interval": "30s", "input_series": series, "promql_expr_test": queries}]
    )


LINKS = "sum by (host, instance, netdev, switch, switch_port) (link:roce_switch_port:info{})"
"""Two series of one link would add up to 2."""
NEIGHBOR = ("neighbor", "neighbor_chassis", "neighbor_port", "neighbor_description", "neighbor_mac")


def host(
    netdev: str = "eth0", mac: int = 1, hostname: str = "gpu-1", device: str = "mlx5_0", **on: str
) -> str:
    """A network device, as its host's exporter reports it."""
    labels = (
        f'device="{device}",port="1",netdev="{netdev}",mac="02:00:00:00:00:{mac:02}",hostname="{hostname}"'
    )
    return target(f"roce_netdev_info{{{labels}}}", on.pop("instance", hostname.partition(".")[0]), **on)


def entry(
    port: str = "Ethernet0",
    switch: str = "leaf1",
    mac: int = 0,
    on: str = "",
    job: str = "roce-switch",
    **labels: str,
) -> str:
    """An entry in the LLDP table of a switch, which is scraped under its own name; `mac` ends the address of the neighbour's port."""
    known = {"neighbor_mac": f"02:00:00:00:00:{mac:02}", "port_id_kind": "mac"} if mac else {}
    given = dict.fromkeys(NEIGHBOR, "") | {"port_id_kind": "name", "source": "lldp"} | known | labels
    text = ",".join(f'{name}="{value}"' for name, value in given.items())
    return target(
        f'roce_switch_lldp_neighbor_info{{device="{switch}",port="{port}",{text}}}', on or switch, job
    )


def link(
    netdev: str = "eth0",
    port: str = "Ethernet0",
    switch: str = "leaf1",
    name: str = "gpu-1",
    instance: str = "",
) -> dict[str, float]:
    """The sample of a link."""
    instance = instance or name.partition(".")[0]
    return {
        f'{{host="{name}",instance="{instance}",netdev="{netdev}",switch="{switch}",switch_port="{port}"}}': 1
    }


def links(names: list[str], expected: dict[str, float]) -> Situation:
    """These links at once and for good."""
    return always(*names), (Check(5, LINKS, expected), Check(60, LINKS, expected))


ETH1 = host("eth1", 2, device="mlx5_1")
GPU_2 = host("eth0", 2, "gpu-2")
NAMED = {"neighbor": "gpu-1", "neighbor_port": "eth0"}
DESCRIBED = {"neighbor": "gpu-1", "neighbor_description": "eth0"}
WAYS = {
    "by MAC": links([host(), entry(mac=1)], link()),
    "by system and port name": links([host(), entry(**NAMED)], link()),
    "the switch has the full name": links(
        [host(), entry(**NAMED | {"neighbor": "gpu-1.example.com"})], link()
    ),
    "the host has the full name": links(
        [host(hostname="gpu-1.example.com"), entry(**NAMED)], link(name="gpu-1.example.com")
    ),
    "by the description": links(
        [
            host(),
            entry(neighbor="gpu-1", neighbor_description="Interface   28 as eth0", port_id_kind="other"),
        ],
        link(),
    ),
    "by a link from the configuration file": links([host(), entry(**NAMED, source="file")], link()),
    "all ways agree": links([host(), entry(mac=1, **DESCRIBED)], link()),
    "two agents on one host port": links([host(), entry(mac=1), entry(**NAMED)], link()),
    "the MAC wins over an old entry with the name": links(
        [host(), entry(mac=1), entry("Ethernet4", **NAMED)], link()
    ),
    "more evidence wins over an old entry with the MAC": links(
        [host(), entry(mac=1, **DESCRIBED), entry("Ethernet4", "leaf2", mac=1)], link()
    ),
    "two switches claim one MAC with equal evidence": links(
        [host(), entry(mac=1), entry(switch="leaf2", mac=1)], {}
    ),
    "a port that two hosts claim with equal evidence": links([host(), GPU_2, entry(mac=1), entry(mac=2)], {}),
    "two ports of one host on two switches": links(
        [host(), ETH1, entry(mac=1), entry(switch="leaf2", mac=2)], link() | link("eth1", switch="leaf2")
    ),
    "members of a bond announce its MAC, and their names": links(
        [
            host(),
            ETH1,
            entry(mac=1, **DESCRIBED),
            entry(switch="leaf2", mac=1, neighbor="gpu-1", neighbor_description="eth1"),
        ],
        link() | link("eth1", switch="leaf2"),
    ),
    "members of a bond announce only its MAC": links(
        [host(), ETH1, entry(mac=1), entry(switch="leaf2", mac=1)], {}
    ),
    "two network devices with one MAC have names": links(
        [host(), host("eth1", device="mlx5_1"), entry(mac=1, neighbor="gpu-1", neighbor_description="eth1")],
        link("eth1"),
    ),
    "two jobs scrape the switch": links([host(), entry(mac=1), entry(mac=1, job="another")], link()),
    "the switch is scraped under two instances": links(
        [host(), entry(mac=1), entry(mac=1, on="10.0.0.1")], link()
    ),
    "two jobs scrape the host": links([host(), host(job="roce-new"), entry(mac=1)], link()),
    "two RDMA devices share a network device": links([host(), host(device="rxe0"), entry(mac=1)], link()),
    "hosts with one name have MACs": links(
        [
            host(hostname="localhost", instance="a"),
            host(mac=2, hostname="localhost", instance="b"),
            entry(mac=1, neighbor="localhost", neighbor_description="eth0"),
            entry("Ethernet4", mac=2, neighbor="localhost", neighbor_description="eth0"),
        ],
        link(name="localhost", instance="a") | link(port="Ethernet4", name="localhost", instance="b"),
    ),
    "hosts with one name and no MACs are no link": links(
        [
            host(hostname="localhost", instance="a"),
            host(mac=2, hostname="localhost", instance="b"),
            entry(neighbor="localhost", neighbor_port="eth0"),
        ],
        {},
    ),
    "switches with one name": links(
        [
            host(),
            ETH1,
            entry(switch="sonic", mac=1, on="10.0.0.1"),
            entry(switch="sonic", mac=2, on="10.0.0.2"),
        ],
        link(switch="sonic") | link("eth1", switch="sonic"),
    ),
    "another cluster": links([host(cluster="west"), entry(mac=1)], {}),
    "no hosts": links([entry(mac=1)], {}),
    "no switches": links([host()], {}),
    "an entry without any name": links([host(), entry()], {}),
}

GONE, COMES = "1x20 stale", "_x20 1x200"
CHANGES = {
    # the first, as Prometheus orders them: values of links do not change with it
    "of two instances of a host one has the link at all times": (
        always(host(), host(instance="gpu-1:10123", job="roce-new"), entry(mac=1)),
        (Check(110, "count(count_over_time(link:roce_switch_port:info{}[100m]))", {"{}": 1}),),
    ),
    # its exporter and its LLDP agent stop together
    "a host that hangs keeps its link for an hour": (
        {host(): "1x20", entry(mac=1): "1x24"},
        (Check(50, LINKS, link()), Check(90, LINKS, {})),
    ),
    "a moved cable moves the link at once": (
        {host(): ALWAYS, entry(mac=1): GONE, entry("Ethernet4", mac=1): COMES},
        (Check(9, LINKS, link()), Check(13, LINKS, link(port="Ethernet4"))),
    ),
    "exchanged cables exchange the links": (
        {
            **always(host(), GPU_2),
            entry(mac=1): GONE,
            entry("Ethernet4", mac=2): GONE,
            entry("Ethernet4", mac=1): COMES,
            entry(mac=2): COMES,
        },
        (
            Check(9, LINKS, link() | link(port="Ethernet4", name="gpu-2")),
            Check(13, LINKS, link(port="Ethernet4") | link(name="gpu-2")),
        ),
    ),
    "a switch port with another host forgets the former one": (
        {host(): GONE, GPU_2: ALWAYS, entry(mac=1): GONE, entry(mac=2): COMES},
        (Check(30, LINKS, link(name="gpu-2")),),
    ),
    # it moved from Ethernet0 to Ethernet4 and vanished; then another host got Ethernet4
    "a host does not remember the port before its last one": (
        {
            host(): "1x40 stale",
            host("eth0", 3, "gpu-3"): ALWAYS,
            entry(mac=1): GONE,
            entry("Ethernet4", mac=1): "_x20 1x20 stale",
            entry("Ethernet4", mac=3): "_x41 1x200",
        },
        (Check(25, LINKS, link(port="Ethernet4", name="gpu-3")),),
    ),
    "a port does not remember the host before its last one": (
        {
            host(): GONE,
            GPU_2: ALWAYS,
            entry(mac=1): GONE,
            entry(mac=2): "_x20 1x20 stale",
            entry("Ethernet8", mac=2): "_x41 1x200",
        },
        (Check(25, LINKS, link(port="Ethernet8", name="gpu-2")),),
    ),
}

ENDS = 'cluster="<cluster>",host="gpu-1",netdev="eth0",switch="leaf1",switch_port="Ethernet0"'


def counting(**growth: float) -> dict[str, str]:
    """A link, and counters of its ends that grow by this per second; those of the switch begin with `switch`."""
    made = always(host(), entry(mac=1))
    for name, rate in growth.items():
        at, instance, job = 'device="mlx5_0",port="1",netdev="eth0"', "gpu-1", "roce"
        if name.startswith("switch"):
            at, instance, job = 'device="leaf1",port="Ethernet0"', "leaf1", "roce-switch"
        made[target(f'roce_{name}_total{{{at},priority="3"}}', instance, job)] = f"0+{rate * 30:g}x240"
    return made


def ends(name: str, **values: float) -> Check:
    """Samples of a link by `end_toward`."""
    made = {}
    for key, value in values.items():
        end, _, toward = key.partition("_")
        more = f',toward="{toward}"' if toward else ""
        made[f'{name}{{{ENDS},priority="3",end="{end}"{more}}}'] = value
    return Check(20, f"{name}{{}}", made)


MEASURED, ESTIMATED = "link:roce_pfc_pause:ratio_rate5m", "link:roce_pfc_pause_estimated:ratio_rate5m"
FRAMES, PEERS = "link:roce_pfc_frames:rate5m", "link:roce_switch_peer:info"
FRAMES_OF_BOTH = counting(pfc_transmit_frames=64, switch_pfc_receive_frames=32)
ENABLED = {
    target('roce_pfc_enabled{device="mlx5_0",port="1",netdev="eth0",priority="3"}', "gpu-1"): ALWAYS,
    target(
        'roce_switch_pfc_enabled{device="leaf1",port="Ethernet0",priority="3"}', "leaf1", "roce-switch"
    ): "0x240",
}


def info(switch: str, instance: str) -> str:
    return target(
        f'roce_switch_info{{device="{switch}",os="sonic",version="",model="",asic=""}}',
        instance,
        "roce-switch",
    )


SPINE = {"neighbor": "spine1", "neighbor_port": "Ethernet4"}
BOTH_ENDS = {
    "pause": (
        counting(
            pfc_transmit_pause_seconds=0.25,
            pfc_receive_pause_seconds=0.125,
            switch_pfc_receive_pause_seconds=0.1875,
            switch_pfc_receive_pause_estimated_seconds=0.5,
        ),
        (ends(MEASURED, host_switch=0.25, host_host=0.125, switch_switch=0.1875), ends(ESTIMATED)),
    ),
    "estimated pause is never under the name of measured pause": (
        counting(pfc_transmit_pause_seconds=0.25, switch_pfc_receive_pause_estimated_seconds=0.5),
        (ends(MEASURED, host_switch=0.25), ends(ESTIMATED, switch_switch=0.5)),
    ),
    "all frames": (
        counting(
            pfc_transmit_frames=64,
            pfc_receive_frames=32,
            switch_pfc_receive_frames=32,
            switch_pfc_transmit_frames=16,
        ),
        (ends(FRAMES, host_switch=64, host_host=32, switch_switch=32, switch_host=16),),
    ),
    "XOFF and XON apart": (
        counting(
            pfc_transmit_xoff_frames=48,
            pfc_transmit_xon_frames=16,
            pfc_receive_xoff_frames=24,
            pfc_receive_xon_frames=8,
        ),
        (ends(FRAMES, host_switch=64, host_host=32),),
    ),
    "two jobs that scrape both ends do not double the values": (
        FRAMES_OF_BOTH
        | {name.replace('job="', 'job="second-'): text for name, text in FRAMES_OF_BOTH.items()},
        (ends(FRAMES, host_switch=64, switch_switch=32),),
    ),
    "enabled priorities": (
        always(host(), entry(mac=1)) | ENABLED,
        (ends("link:roce_pfc_enabled:bool", host=1, switch=0),),
    ),
    "both views of a link hold the labels of their series": (
        always(host(), entry(mac=1)),
        (
            Check(
                5,
                "link:roce_switch_port:info{}",
                {
                    f'link:roce_switch_port:info{{{ENDS},instance="gpu-1",device="mlx5_0",port="1",'
                    'switch_instance="leaf1"}': 1
                },
            ),
            Check(
                5,
                "link:roce_host_port:info{}",
                {
                    f'link:roce_host_port:info{{{ENDS},instance="leaf1",device="leaf1",port="Ethernet0",'
                    'host_instance="gpu-1",host_device="mlx5_0",host_port="1"}': 1
                },
            ),
        ),
    ),
    # a neighbour that is no probed switch is no peer; a switch with two entries for a port has one
    "ports between probed switches have peers": (
        always(
            info("leaf1", "leaf1"),
            info("spine1.example.com", "spine1"),
            info("spine1.example.com", "10.0.0.9"),
            entry("Ethernet48", **SPINE),
            entry("Ethernet48", **SPINE, neighbor_description="to leaf1"),
            entry("Ethernet52", neighbor="router-7", neighbor_port="xe-0/0/1"),
        ),
        (
            Check(
                5,
                f"{PEERS}{{}}",
                {
                    f'{PEERS}{{cluster="<cluster>",instance="leaf1",device="leaf1",port="Ethernet48",'
                    'peer="spine1.example.com",peer_port="Ethernet4"}': 1
                },
            ),
        ),
    ),
    # a join with the peers cannot fail
    "a port with two peers has one": (
        always(
            info("spine1", "spine1"),
            entry("Ethernet48", **SPINE),
            entry("Ethernet48", **SPINE | {"neighbor_port": "Ethernet8"}),
        ),
        (Check(5, f"count({PEERS}{{}})", {"{}": 1}),),
    ),
}


def test_links_are_those_of_the_situation(tmp_path) -> None:
    """One series per link at most, and no rule fails."""
    assert not differences(tmp_path, "link:", WAYS | CHANGES | BOTH_ENDS)


# ---- whose address it is that a capture has seen: one port, or no port, because a wrong name is worse than none

PORTS = "sum by (instance, device, port, address) (port:roce_wire_address:info{})"
ONE, TWO, OTHER = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def gid(address: str, instance: str, device: str = "mlx5_0", **target_of: str) -> str:
    """An entry of a host's GID table."""
    at = f'device="{device}",port="1",index="3",type="RoCE v2",netdev="ens1f0np0"'
    return target(f'roce_gid_info{{{at},address="{address}"}}', instance, **target_of)


def pair(source: str, destination: str, instance: str = "probe") -> str:
    """What a capture has seen."""
    labels = f'source="{source}",destination="{destination}"'
    return target(f"roce_wire_cnps_total{{{labels}}}", instance, "roce-wire")


def port(address: str, instance: str, device: str = "mlx5_0", jobs: int = 1) -> dict[str, float]:
    """The sample of a port; `jobs` scrape its host."""
    return {f'{{instance="{instance}",device="{device}",port="1",address="{address}"}}': jobs}


SEEN = pair(ONE, TWO)
SITUATIONS = {
    "source and destination": (
        [gid(ONE, "h1"), gid(TWO, "h2", "mlx5_3"), SEEN],
        port(ONE, "h1") | port(TWO, "h2", "mlx5_3"),
    ),
    "IPv6": ([gid("2001:db8::1", "h1"), pair("2001:db8::9", "2001:db8::1")], port("2001:db8::1", "h1")),
    "an address that no capture has seen": ([gid(OTHER, "h1"), SEEN], {}),
    "an address that no host has": ([SEEN], {}),
    "an address of two hosts": ([gid(ONE, "h1"), gid(ONE, "h2"), gid(TWO, "h2"), SEEN], port(TWO, "h2")),
    "an address of two ports of a host": ([gid(ONE, "h1"), gid(ONE, "h1", "mlx5_1"), SEEN], {}),
    "the same addresses in another cluster": ([gid(ONE, "h1", cluster="west"), SEEN], {}),
    "one host in two jobs": ([gid(ONE, "h1"), gid(ONE, "h1", job="roce-b"), SEEN], port(ONE, "h1", jobs=2)),
    "two captures of one pair": ([gid(ONE, "h1"), SEEN, pair(ONE, TWO, "probe2")], port(ONE, "h1")),
    "pairs without series of their own": ([gid(ONE, "h1"), pair("other", "other")], {}),
}


def test_the_port_of_an_address(tmp_path) -> None:
    situations = {
        name: (always(*series), (Check(20, PORTS, found),)) for name, (series, found) in SITUATIONS.items()
    }
    assert not differences(tmp_path, "port:roce_wire_address", situations)


# ---- the first loss of a pair of probes, which has no series before it


TARGETS = target("roce_probe_targets{}", "h1")
PAIR = target('roce_probe_pair_lost_total{device="mlx5_0",port="1",peer="h2",source_port="50001"}', "h1")
LOST = "sum by (peer) (port:roce_probe_pair_lost:rate5m{})"


def test_the_first_loss_of_a_pair_counts_where_its_prober_was_scraped_before(tmp_path) -> None:
    """Not of a prober that is scraped again, or for the first time, whose losses may be old."""
    lost, gone = {'{peer="h2"}': 0.01}, {TARGETS: "_x19 3x20"}
    situations = {
        "a pair that appears": (
            {TARGETS: "3x40"} | {PAIR: "_x19 3x20"},
            (Check(11, LOST, lost), Check(17, LOST, {'{peer="h2"}': 0})),
        ),
        "of a prober that appears": (gone | {PAIR: "_x19 3x20"}, (Check(11, LOST, {'{peer="h2"}': 0}),)),
    }
    assert not differences(tmp_path, "port:roce_probe_pair_lost", situations)
