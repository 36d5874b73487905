"""Devices, ports, network devices, LAG, VF, GIDs: found where the kernel lists them, tolerated where it does not."""

import errno

import pytest
from kernel import host

from roce_exporter.host.inventory import describe, list_devices
from roce_exporter.host.kernel import Absent
from roce_exporter.model import Device, Gid, Netdev

CLASS = "sys/class/infiniband"
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
MAPPED = "0000:0000:0000:0000:0000:ffff:c612:0001"
LINK_LOCAL = "fe80:0000:0000:0000:0a00:27ff:fe00:0001"
FUNCTION = "0000:3b:00.0"


def described(files: dict[str, str], name: str = "mlx5_0") -> Device:
    kernel = host(files)
    (listed,) = [one for one in list_devices(kernel) if one.name == name]
    return describe(kernel, listed)


def port(device: str = "mlx5_0", number: int = 1, **files: str) -> dict[str, str]:
    below = f"{CLASS}/{device}/ports/{number}"
    return {f"{below}/state": "4: ACTIVE", f"{below}/link_layer": "Ethernet"} | {
        f"{below}/{path}": text for path, text in files.items()
    }


def function(device: str = "mlx5_0", driver: str = "mlx5_core", **files: str) -> dict[str, str]:
    place = f"sys/devices/{FUNCTION}"
    return {
        f"{CLASS}/{device}/device": f"-> ../../../devices/{FUNCTION}",
        f"{place}/driver": f"-> ../../bus/pci/drivers/{driver}",
    } | {f"{place}/{path}": text for path, text in files.items()}


def gid(device: str, index: int, address: str, netdev: str, kind: str = "RoCE v2") -> dict[str, str]:
    below = f"{CLASS}/{device}/ports/1"
    return {
        f"{below}/gids/{index}": address,
        f"{below}/gid_attrs/types/{index}": kind,
        f"{below}/gid_attrs/ndevs/{index}": netdev,
    }


def test_a_renamed_device_is_recognised_by_its_driver() -> None:
    name = "rocep59s0f0"
    device = described(
        port(name)
        | function(name, **{"net/eth2/dev_port": "0", "sriov_totalvfs": "8"})
        | {f"{CLASS}/{name}/fw_ver": "28.39.1002", f"{CLASS}/{name}/hca_type": "MT4129"},
        name,
    )
    assert (device.driver, device.dialect, device.pci) == ("mlx5_core", "mlx5", FUNCTION)
    assert (device.firmware, device.model, device.board) == ("28.39.1002", "MT4129", "")
    assert (device.function, device.physical_function) == ("pf", "")
    assert device.ports[0].netdevs == (Netdev("eth2", "port"),)
    assert device.protocol == "roce"


@pytest.mark.parametrize(
    ("files", "kind", "parent"),
    [({f"sys/devices/{FUNCTION}/physfn": "-> ../0000:3b:00.7"}, "vf", "0000:3b:00.7"), ({}, "", "")],
)
def test_a_virtual_function_names_its_physical_function(files, kind, parent) -> None:
    """One that is passed through to a virtual machine has no link to it, so it is neither PF nor VF."""
    device = described(port() | function() | files)
    assert (device.function, device.physical_function) == (kind, parent)


NETDEVS = {
    "a LAG is one device with its member ports": (
        port()
        | function(**{"net/eth2/dev_port": "0"})
        | gid("mlx5_0", 3, MAPPED, "bond0")
        | {"sys/class/net/bond0/bonding/slaves": "eth2 eth3"},
        [(Netdev("bond0", "bond"), Netdev("eth2", "member"), Netdev("eth3", "member"))],
    ),
    "a GID on a VLAN leads to the network device below": (
        port() | gid("mlx5_0", 0, LINK_LOCAL, "eth2.100") | {"sys/class/net/eth2.100/lower_eth2/mtu": "9000"},
        [(Netdev("eth2", "port"),)],
    ),
    "ports of one function find theirs by number": (
        port()
        | port(number=2)
        | function(driver="mlx4_core", **{"net/ens1/x": "", "net/ens1d1/x": ""})
        | {"sys/class/net/ens1/dev_port": "0", "sys/class/net/ens1d1/dev_port": "1"},
        [(Netdev("ens1", "port"),), (Netdev("ens1d1", "port"),)],
    ),
    # In switchdev mode the function has the uplink and one representor per VF and SF.
    "a representor is not taken for the port": (
        port()
        | function(**{"net/en3f0pf0sf0/x": "", "net/p0/x": ""})
        | {"sys/class/net/en3f0pf0sf0/phys_port_name": "pf0sf0", "sys/class/net/p0/phys_port_name": "p0"},
        [(Netdev("p0", "port"),)],
    ),
    "indistinguishable ones are not assigned": (port() | function(**{"net/a/x": "", "net/b/x": ""}), [()]),
}


@pytest.mark.parametrize(("files", "netdevs"), NETDEVS.values(), ids=NETDEVS)
def test_the_network_devices_of_a_port(files, netdevs) -> None:
    assert [one.netdevs for one in described(files).ports] == netdevs


def test_twelve_planes_are_twelve_ports_in_order() -> None:
    """No kernel makes a folder `01`; a recording may have one, which is no second port."""
    files = {f"{CLASS}/mlx5_0/ports/01/state": "4: ACTIVE"}
    for number in range(1, 13):
        files |= port(number=number)
    assert [one.number for one in described(files).ports] == list(range(1, 13))


def test_gids_are_read_and_empty_slots_are_not_read_further() -> None:
    """The kernel returns EINVAL for the attributes of an empty slot by design: here the files do not even exist."""
    device = described(
        port(**{"gids/0": NO_GID, "gids/x": "y", "gids/2": "hello", "gids/3": ""})
        | gid("mlx5_0", 1, MAPPED, "eth2")
        | gid("mlx5_0", 10, LINK_LOCAL, "eth2", "IB/RoCE v1")
    )
    assert device.ports[0].gids == (
        Gid(1, "RoCE v2", "eth2", "198.18.0.1"),
        Gid(10, "IB/RoCE v1", "eth2", "fe80::a00:27ff:fe00:1"),
    )


@pytest.mark.parametrize(
    ("files", "protocol"),
    [
        ({"node_type": "1: CA", "ports/1/link_layer": "Ethernet"}, "roce"),
        ({"node_type": "1: CA", "ports/1/link_layer": "InfiniBand"}, "ib"),
        ({"node_type": "4: RNIC", "ports/1/link_layer": "Ethernet"}, "iw"),
        ({"ports/1/state": "4: ACTIVE"}, ""),
    ],
)
def test_the_protocol_follows_node_type_and_link_layer(files, protocol) -> None:
    device = described({f"{CLASS}/mlx5_0/{path}": text for path, text in files.items()})
    assert device.protocol == protocol


def test_a_device_without_attributes_is_still_a_device_and_its_names_tell_the_dialect() -> None:
    device = described({f"{CLASS}/mlx5_0/x": ""})
    assert (device.name, device.driver, device.dialect, device.ports) == ("mlx5_0", "", "", ())
    names = ("np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets")
    assert described(port(**{f"hw_counters/{name}": "0" for name in names})).dialect == "mlx5"


def test_a_host_without_rdma_has_no_devices_and_a_removed_one_is_absent() -> None:
    assert list_devices(host({"sys/class/net/eth0/mtu": "9000"})) == ()
    kernel = host(port())
    (listed,) = list_devices(kernel)
    with pytest.raises(Absent) as caught:
        describe(kernel, listed._replace(name="mlx5_1"))
    assert caught.value.errno == errno.ENOENT
