"""Devices, ports, network devices, LAG, VF, GIDs: found where the kernel lists them, tolerated where it does not."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from roce_exporter.inventory import describe, list_devices
from roce_exporter.kernel import Absent
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.model import Gid, Netdev

if TYPE_CHECKING:
    from pathlib import Path

    from roce_exporter.model import Device

NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"


class Sysfs:
    """A sysfs that a test writes file by file."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, files: dict[str, str]) -> Sysfs:
        for path, text in files.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                place.symlink_to(text.removeprefix("-> "))
            else:
                place.write_text(f"{text}\n")
        return self

    def describe(self, name: str) -> Device:
        kernel = LiveKernel(str(self.root), netlink=False)
        (listed,) = [one for one in list_devices(kernel) if one.name == name]
        return describe(kernel, listed)


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def port(device: str, number: int = 1, **files: str) -> dict[str, str]:
    below = f"class/infiniband/{device}/ports/{number}"
    return {f"{below}/state": "4: ACTIVE", f"{below}/link_layer": "Ethernet"} | {
        f"{below}/{path}": text for path, text in files.items()
    }


def function(device: str, pci: str, driver: str, **files: str) -> dict[str, str]:
    return {
        f"class/infiniband/{device}/device": f"-> ../../../devices/{pci}",
        f"devices/{pci}/driver": f"-> ../../bus/pci/drivers/{driver}",
    } | {f"devices/{pci}/{path}": text for path, text in files.items()}


def gid(device: str, index: int, address: str, netdev: str, kind: str = "RoCE v2") -> dict[str, str]:
    below = f"class/infiniband/{device}/ports/1"
    return {
        f"{below}/gids/{index}": address,
        f"{below}/gid_attrs/types/{index}": kind,
        f"{below}/gid_attrs/ndevs/{index}": netdev,
    }


def test_a_renamed_device_is_recognised_by_its_driver(sysfs: Sysfs) -> None:
    name = "rocep59s0f0"
    sysfs.write(
        port(name)
        | function(name, "0000:3b:00.0", "mlx5_core", **{"net/eth2/dev_port": "0", "sriov_totalvfs": "8"})
        | {f"class/infiniband/{name}/fw_ver": "28.39.1002", f"class/infiniband/{name}/hca_type": "MT4129"}
    )
    device = sysfs.describe(name)
    assert (device.driver, device.dialect, device.pci) == ("mlx5_core", "mlx5", "0000:3b:00.0")
    assert (device.firmware, device.model, device.board) == ("28.39.1002", "MT4129", "")
    assert (device.function, device.physical_function) == ("pf", "")
    assert device.ports[0].netdevs == (Netdev("eth2", "port"),)
    assert device.protocol == "roce"


def test_a_virtual_function_names_its_physical_function(sysfs: Sysfs) -> None:
    sysfs.write(
        port("mlx5_2")
        | function("mlx5_2", "0000:3b:00.2", "mlx5_core")
        | {"devices/0000:3b:00.2/physfn": "-> ../0000:3b:00.0"}
    )
    device = sysfs.describe("mlx5_2")
    assert (device.function, device.physical_function) == ("vf", "0000:3b:00.0")


def test_a_lag_is_one_device_with_its_member_ports(sysfs: Sysfs) -> None:
    sysfs.write(
        port("mlx5_bond_0")
        | function("mlx5_bond_0", "0000:3b:00.0", "mlx5_core", **{"net/eth2/dev_port": "0"})
        | gid("mlx5_bond_0", 3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "bond0")
        | {"class/net/bond0/bonding/slaves": "eth2 eth3"}
    )
    netdevs = sysfs.describe("mlx5_bond_0").ports[0].netdevs
    assert netdevs == (Netdev("bond0", "bond"), Netdev("eth2", "member"), Netdev("eth3", "member"))


def test_a_gid_on_a_vlan_leads_to_the_network_device_below(sysfs: Sysfs) -> None:
    sysfs.write(
        port("mlx5_0")
        | gid("mlx5_0", 0, "fe80:0000:0000:0000:0a00:27ff:fe00:0001", "eth2.100")
        | {"class/net/eth2.100/lower_eth2/mtu": "9000"}
    )
    assert sysfs.describe("mlx5_0").ports[0].netdevs == (Netdev("eth2", "port"),)


def test_ports_of_one_function_find_their_network_devices_by_number(sysfs: Sysfs) -> None:
    sysfs.write(
        port("mlx4_0")
        | port("mlx4_0", 2)
        | function("mlx4_0", "0000:05:00.0", "mlx4_core", **{"net/ens1/x": "", "net/ens1d1/x": ""})
        | {"class/net/ens1/dev_port": "0", "class/net/ens1d1/dev_port": "1"}
    )
    ports = sysfs.describe("mlx4_0").ports
    assert [one.netdevs for one in ports] == [(Netdev("ens1", "port"),), (Netdev("ens1d1", "port"),)]


def test_a_representor_is_not_taken_for_the_port(sysfs: Sysfs) -> None:
    """In switchdev mode the function has the uplink and one representor per VF and SF."""
    sysfs.write(
        port("mlx5_0")
        | function("mlx5_0", "0000:03:00.0", "mlx5_core", **{"net/en3f0pf0sf0/x": "", "net/p0/x": ""})
        | {"class/net/en3f0pf0sf0/phys_port_name": "pf0sf0", "class/net/p0/phys_port_name": "p0"}
    )
    assert sysfs.describe("mlx5_0").ports[0].netdevs == (Netdev("p0", "port"),)


def test_indistinguishable_network_devices_are_not_assigned(sysfs: Sysfs) -> None:
    sysfs.write(
        port("mlx5_0") | function("mlx5_0", "0000:03:00.0", "mlx5_core", **{"net/a/x": "", "net/b/x": ""})
    )
    assert sysfs.describe("mlx5_0").ports[0].netdevs == ()


def test_an_ambiguous_function_is_neither_pf_nor_vf(sysfs: Sysfs) -> None:
    """A VF passed through to a virtual machine has no link to its PF."""
    sysfs.write(port("mlx5_0") | function("mlx5_0", "0000:00:05.0", "mlx5_core"))
    assert sysfs.describe("mlx5_0").function == ""


def test_twelve_planes_are_twelve_ports_in_order(sysfs: Sysfs) -> None:
    for number in range(1, 13):
        sysfs.write(port("mlx5_0", number))
    assert [one.number for one in sysfs.describe("mlx5_0").ports] == list(range(1, 13))


def test_gids_are_read_and_empty_slots_are_not_read_further(sysfs: Sysfs) -> None:
    """The kernel returns EINVAL for the attributes of an empty slot by design: here the files do not even exist."""
    sysfs.write(
        port("mlx5_0", **{"gids/0": NO_GID})
        | gid("mlx5_0", 1, "0000:0000:0000:0000:0000:ffff:c612:0001", "eth2")
        | gid("mlx5_0", 10, "fe80:0000:0000:0000:0a00:27ff:fe00:0001", "eth2", "IB/RoCE v1")
    )
    assert sysfs.describe("mlx5_0").ports[0].gids == (
        Gid(1, "RoCE v2", "eth2", "198.18.0.1"),
        Gid(10, "IB/RoCE v1", "eth2", "fe80::a00:27ff:fe00:1"),
    )


def test_garbage_in_the_gid_table_is_passed_over(sysfs: Sysfs) -> None:
    sysfs.write(port("mlx5_0", **{"gids/0": "hello", "gids/x": "y", "gids/1": ""}))
    assert sysfs.describe("mlx5_0").ports[0].gids == ()


@pytest.mark.parametrize(
    ("files", "protocol"),
    [
        ({"node_type": "1: CA", "ports/1/link_layer": "Ethernet"}, "roce"),
        ({"node_type": "1: CA", "ports/1/link_layer": "InfiniBand"}, "ib"),
        ({"node_type": "4: RNIC", "ports/1/link_layer": "Ethernet"}, "iw"),
        ({"ports/1/state": "4: ACTIVE"}, ""),
    ],
)
def test_the_protocol_follows_node_type_and_link_layer(
    sysfs: Sysfs, files: dict[str, str], protocol: str
) -> None:
    sysfs.write({f"class/infiniband/x_0/{path}": text for path, text in files.items()})
    assert sysfs.describe("x_0").protocol == protocol


def test_a_device_without_attributes_is_still_a_device(sysfs: Sysfs) -> None:
    (sysfs.root / "class/infiniband/x_0").mkdir(parents=True)
    device = sysfs.describe("x_0")
    assert (device.name, device.driver, device.dialect, device.ports) == ("x_0", "", "", ())


def test_the_dialect_is_recognised_by_names_if_the_driver_is_unknown(sysfs: Sysfs) -> None:
    names = ("np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets")
    sysfs.write(port("rocep1s0", **{f"hw_counters/{name}": "0" for name in names}))
    assert sysfs.describe("rocep1s0").dialect == "mlx5"


def test_a_host_without_rdma_has_no_devices(sysfs: Sysfs) -> None:
    assert list_devices(LiveKernel(str(sysfs.root), netlink=False)) == ()


def test_a_removed_device_is_absent(sysfs: Sysfs) -> None:
    sysfs.write(port("mlx5_0"))
    kernel = LiveKernel(str(sysfs.root), netlink=False)
    (listed,) = list_devices(kernel)
    with pytest.raises(Absent) as caught:
        describe(kernel, listed._replace(name="mlx5_1"))
    assert caught.value.errno == errno.ENOENT


def test_a_port_is_not_listed_twice(sysfs: Sysfs) -> None:
    """No kernel makes a folder `01`; a recording may have one."""
    sysfs.write(port("mlx5_0") | {"class/infiniband/mlx5_0/ports/01/state": "4: ACTIVE"})
    assert [one.number for one in sysfs.describe("mlx5_0").ports] == [1]
