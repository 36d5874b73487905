"""The other end of each switch port, from what neighbours announce."""

import pytest
from fabric_views import MadeSwitch, views

from roce_exporter.switches.pause.fabric import (
    HOST,
    NOT_CONFIGURED,
    PORT_UNKNOWN,
    SWITCH,
    FabricLink,
    fabric_links,
    is_named,
    switch_plan,
)
from roce_exporter.switches.switch_view import SwitchView


def links(*switches: MadeSwitch, away: str = "") -> dict[tuple[str, str], FabricLink]:
    made = [*views(*switches), *([SwitchView(away)] if away else [])]
    return fabric_links(tuple(map(switch_plan, made)))


@pytest.mark.parametrize(
    ("name", "announced", "description"),
    [
        *(
            ("spine1", (port,), "")
            for port in ("Ethernet1/1", "Eth1/1", "ethernet1/1", "ETHERNET 1/1", "etp1")
        ),
        *((name, ("Ethernet1/1",), "") for name in ("SPINE1", "spine1.example.com")),
        ("spine1", ("02:00:00:00:00:01", "mac", "02:00:00:00:00:01"), "Ethernet1/1"),
    ],
)
def test_a_port_of_a_switch_is_found_by_name_short_name_alias_and_description(
    name, announced, description
) -> None:
    leaf, spine = MadeSwitch("leaf1", "Ethernet0"), MadeSwitch("spine1")
    spine.port("Ethernet1/1", alias="etp1")
    leaf.neighbor("Ethernet0", name, *announced, description=description)
    found = links(leaf, spine)["leaf1", "Ethernet0"]
    assert (found.kind, found.peer) == (SWITCH, ("spine1", "Ethernet1/1"))


def test_a_port_that_one_side_does_not_name_is_found_from_the_other_side() -> None:
    leaf, spine = MadeSwitch("leaf1", "Ethernet0"), MadeSwitch("spine1", "Ethernet4")
    leaf.neighbor("Ethernet0", "spine1", "02:00:00:00:00:01", "mac", "02:00:00:00:00:01")
    assert links(leaf, spine)["leaf1", "Ethernet0"].kind == PORT_UNKNOWN
    spine.neighbor("Ethernet4", "leaf1", "Ethernet0")
    assert links(leaf, spine)["leaf1", "Ethernet0"].peer == ("spine1", "Ethernet4")


def test_a_link_that_only_one_side_reports_has_both_ends() -> None:
    leaf, spine = MadeSwitch("leaf1", "Ethernet0"), MadeSwitch("spine1", "Ethernet4")
    spine.neighbor("Ethernet4", "leaf1", "Ethernet0")
    assert links(leaf, spine)["leaf1", "Ethernet0"].peer == ("spine1", "Ethernet4")


def test_two_ports_that_claim_one_other_end_resolve_nothing() -> None:
    leaf, spine = MadeSwitch("leaf1", "Ethernet0"), MadeSwitch("spine1", "Ethernet4", "Ethernet8")
    spine.neighbor("Ethernet4", "leaf1", "Ethernet0").neighbor("Ethernet8", "leaf1", "Ethernet0")
    assert ("leaf1", "Ethernet0") not in links(leaf, spine)


def test_an_alias_of_two_ports_resolves_nothing() -> None:
    leaf, spine = MadeSwitch("leaf1", "Ethernet0"), MadeSwitch("spine1")
    spine.port("Ethernet4", alias="etp1")
    spine.port("Ethernet8", alias="etp1")
    leaf.neighbor("Ethernet0", "spine1", "etp1")
    assert links(leaf, spine)["leaf1", "Ethernet0"].kind == PORT_UNKNOWN


def test_two_switches_of_one_short_name_need_their_domain() -> None:
    leaf = MadeSwitch("leaf1", "Ethernet0", "Ethernet4")
    east, west = MadeSwitch("s1.east", "Ethernet0"), MadeSwitch("s1.west", "Ethernet0")
    leaf.neighbor("Ethernet0", "s1.west", "Ethernet0").neighbor("Ethernet4", "s1", "Ethernet0")
    found = links(leaf, east, west)
    assert found["leaf1", "Ethernet0"].peer == ("s1.west", "Ethernet0")
    assert found["leaf1", "Ethernet4"].kind != SWITCH


@pytest.mark.parametrize(
    ("port", "source", "kind"),
    [
        *(
            (port, "lldp", NOT_CONFIGURED)
            for port in ("Ethernet12", "Eth1/1", "Ethernet1/1/1", "swp1s0", "et-0/0/1", "etp12")
        ),
        ("Ethernet2", "file", HOST),
    ],
)
def test_a_port_name_of_switches_is_no_host_unless_the_configuration_says_so(port, source, kind) -> None:
    leaf = MadeSwitch("leaf1", "Ethernet0").neighbor("Ethernet0", "core9", port, source=source)
    assert links(leaf)["leaf1", "Ethernet0"].kind == kind


@pytest.mark.parametrize("port", ["eth0", "eth12", "ens1f0np0", "enp23s0", "rdma0", "bond0", "p1"])
def test_a_port_name_of_hosts_is_a_host(port) -> None:
    leaf = MadeSwitch("leaf1", "Ethernet0").neighbor("Ethernet0", "gpu-001", port)
    found = links(leaf)["leaf1", "Ethernet0"]
    assert (found.kind, found.neighbor, found.neighbor_port) == (HOST, "gpu-001", port)


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("Interface  28 as enp154s0d22", "enp154s0d22"),
        ("eth2", "eth2"),
        ("port of a NIC", "02:00:00:00:00:01"),
        ("", "02:00:00:00:00:01"),
    ],
)
def test_a_host_that_announces_a_mac_address_is_named_by_its_description(description, shown) -> None:
    mac = "02:00:00:00:00:01"
    leaf = MadeSwitch("leaf1", "Ethernet0").neighbor(
        "Ethernet0", "gpu-001", mac, "mac", mac, description=description
    )
    assert links(leaf)["leaf1", "Ethernet0"].neighbor_port == shown


def test_the_operating_system_is_preferred_to_nic_firmware() -> None:
    mac = "02:00:00:00:00:01"
    leaf = MadeSwitch("leaf1", "Ethernet0")
    leaf.neighbor("Ethernet0", "", mac, "mac", mac, chassis=mac).neighbor("Ethernet0", "gpu-001", "eth2")
    assert str(links(leaf)["leaf1", "Ethernet0"]) == "gpu-001 eth2"
    leaf.drop("lldp_neighbor_info").neighbor("Ethernet0", "", "p0", chassis=mac)
    leaf.neighbor("Ethernet0", "gpu-002", mac, "mac", mac)
    assert str(links(leaf)["leaf1", "Ethernet0"]) == f"gpu-002 {mac}", (
        "a name is worth more than a port's name"
    )
    leaf.drop("lldp_neighbor_info").neighbor("Ethernet0", "", mac, "mac", mac, chassis="chassis")
    assert str(links(leaf)["leaf1", "Ethernet0"]) == f"chassis {mac}"


def test_full_names_differ_by_their_domains() -> None:
    assert is_named("gpu-1.east", "gpu-1")
    assert not is_named("gpu-1.east", "gpu-1.west")
    assert not is_named("gpu-10", "gpu-1")
