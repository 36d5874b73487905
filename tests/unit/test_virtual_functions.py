"""VFs: the kernel's reply, the text of `ip`, the series, and what a driver without counters gives."""

import errno
import json
import struct
from collections.abc import Mapping
from typing import Any

import pytest
from kernel import Faults, host
from netlink_dumps import FakeKernel, refusal
from observed import exposition, samples
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.netlink import Message, encode_attribute, encode_message, encode_u32
from roce_exporter.host.kernel.rtnetlink import MOST_VFS, VirtualFunction, read_virtual_functions
from roce_exporter.host.recorded.ip_text import parse_virtual_functions
from roce_exporter.host.sources.netdev import VIRTUAL_FUNCTIONS, netdev_readers
from roce_exporter.model import Device, Netdev, Port

MAC = "02:00:5e:00:01:{:02x}"
PCI = "0000:3b:01.{}"
COUNTS = {
    "rx_bytes": 900,
    "tx_bytes": 800,
    "rx_packets": 9,
    "tx_packets": 8,
    "rx_dropped": 3,
    "tx_dropped": 2,
}


def kernel_vf(number: int, counts: Mapping[int, int], *, state: int = 0, trust: int = 1) -> bytes:
    """`IFLA_VF_INFO` as the kernel writes it (constructed from include/uapi/linux/if_link.h)."""
    mac = bytes.fromhex(MAC.format(number).replace(":", "")).ljust(32, b"\0")
    pair = struct.Struct("=II")
    return encode_attribute(
        1,
        encode_attribute(1, struct.pack("=I", number) + mac)
        + encode_attribute(2, struct.pack("=III", number, 7, 0))
        + encode_attribute(4, pair.pack(number, 1))
        + encode_attribute(5, pair.pack(number, state))
        + encode_attribute(6, struct.pack("=III", number, 0, 100))
        + encode_attribute(9, pair.pack(number, trust))
        + encode_attribute(
            8, b"".join(encode_attribute(kind, struct.pack("=Q", value)) for kind, value in counts.items())
        ),
    )


def reply(*vfs: bytes) -> bytes:
    """A reply of the kernel to RTM_GETLINK; IFLA_VFINFO_LIST is 22."""
    payload = struct.pack("=BxHiII", 0, 1, 7, 0x1043, 0) + encode_attribute(3, b"eth0\0")
    if vfs:
        payload += encode_attribute(22, b"".join(vfs))
    return encode_message(Message(16, 0, 1, 0, payload))


def read(*vfs: bytes) -> tuple[VirtualFunction, ...]:
    return read_virtual_functions("eth0", FakeKernel(lambda _: [reply(*vfs)]))


def test_the_vfs_of_a_link() -> None:
    """Attributes of IFLA_VF_STATS: 0 and 1 packets, 2 and 3 bytes, 7 and 8 drops."""
    kernel = FakeKernel(
        lambda _: [reply(kernel_vf(0, {0: 9, 1: 8, 2: 900, 3: 800, 7: 3, 8: 2}, state=2), kernel_vf(5, {}))]
    )
    first, second = read_virtual_functions("eth0", kernel)
    (request,) = kernel.asked
    assert request.kind == 18
    assert request.payload[16:] == encode_attribute(3, b"eth0\0") + encode_u32(29, 1), "IFLA_EXT_MASK"
    assert (first.number, first.mac, first.counts) == (0, MAC.format(0), COUNTS)
    assert first.settings == {"link_state": 2, "spoof_check": 1, "trusted": 1, "vlan": 7, "max_rate": 100}
    assert (second.number, second.mac, second.counts) == (5, MAC.format(5), {})


def test_the_number_of_vfs_is_bounded() -> None:
    """The kernel begins a setting with -1 and lets the driver overwrite it: one that it does not have is left out."""
    found = read(*(kernel_vf(number % 200, {}, trust=0xFFFFFFFF) for number in range(MOST_VFS + 1)))
    assert len(found) == MOST_VFS
    assert "trusted" not in found[0].settings


@pytest.mark.parametrize(
    ("answer", "number", "absent"),
    [
        (reply(), errno.EOPNOTSUPP, True),
        (refusal(errno.ENODEV), errno.ENODEV, True),
        (refusal(errno.EMSGSIZE), errno.EMSGSIZE, False),
        (reply(encode_attribute(1, b"")), errno.EBADMSG, False),
        (reply(encode_attribute(1, encode_attribute(1, bytes(3)))), errno.EBADMSG, False),
    ],
)
def test_no_vfs_are_absent_and_a_refusal_is_a_failure(answer, number, absent) -> None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what is checked
        read_virtual_functions("eth0", FakeKernel(lambda _: [answer]))
    assert (caught.value.errno, isinstance(caught.value, Absent)) == (number, absent)


def test_pyroute2_reads_the_same() -> None:
    answer = reply(kernel_vf(3, {0: 9, 1: 8, 2: 900, 3: 800, 4: 1, 5: 2, 7: 3, 8: 4}, state=1, trust=0))
    message = ifinfmsg(answer)
    message.decode()
    (theirs,) = message.get_attr("IFLA_VFINFO_LIST").get_attrs("IFLA_VF_INFO")
    (ours,) = read_virtual_functions("eth0", FakeKernel(lambda _: [answer]))
    counted = theirs.get_attr("IFLA_VF_STATS")
    assert {
        name: counted.get_attr(f"IFLA_VF_STATS_{kind}") for name, kind in PYROUTE2_COUNTS.items()
    } == ours.counts
    assert {
        name: theirs.get_attr(f"IFLA_VF_{kind}")[field] for name, (kind, field) in PYROUTE2_SETTINGS.items()
    } == ours.settings
    assert (theirs.get_attr("IFLA_VF_MAC")["vf"], theirs.get_attr("IFLA_VF_MAC")["mac"]) == (
        ours.number,
        ours.mac,
    )


PYROUTE2_COUNTS = {
    **{name: name.upper() for name in COUNTS},
    "rx_multicast": "MULTICAST",
    "rx_broadcast": "BROADCAST",
}
PYROUTE2_SETTINGS = {
    "link_state": ("LINK_STATE", "link_state"),
    "spoof_check": ("SPOOFCHK", "spoofchk"),
    "trusted": ("TRUST", "trust"),
    "vlan": ("VLAN", "vlan"),
    "max_rate": ("RATE", "max_tx_rate"),
}


def test_a_live_device_without_vfs_is_not_queried(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(LiveKernel, "_check_own", lambda *_: pytest.fail("it is queried"))
    folder = tmp_path / "class/net/eth0/device"
    folder.mkdir(parents=True)
    kernel = LiveKernel(str(tmp_path))
    with pytest.raises(Absent):
        kernel.virtual_functions("eth0")
    (folder / "sriov_numvfs").write_text("0\n")
    with pytest.raises(Absent):
        kernel.virtual_functions("eth0")


def printed(number: int, **more: Any) -> dict[str, Any]:
    """One VF as `ip -j -s -d link show` prints it (its form was recorded with iproute2 6.1 and netdevsim, the numbers are constructed)."""
    return {
        "vf": number,
        "link_type": "ether",
        "address": MAC.format(number),
        "broadcast": "ff:ff:ff:ff:ff:ff",
        "vlan_list": [{"vlan": 7}],
        "rate": {"max_tx": 100, "min_tx": 0},
        "spoofchk": True,
        "link_state": "disable",
        "trust": True,
        "query_rss_en": False,
        "stats": {
            "rx": {"bytes": 900, "packets": 9, "multicast": 0, "broadcast": 0, "dropped": 3},
            "tx": {"tx_bytes": 800, "tx_packets": 8, "dropped": 2},
        },
        **more,
    }


def test_the_text_of_ip_gives_what_the_kernel_does() -> None:
    vf = kernel_vf(0, {0: 9, 1: 8, 2: 900, 3: 800, 4: 0, 5: 0, 7: 3, 8: 2}, state=2)
    assert parse_virtual_functions(json.dumps([{"vfinfo_list": [printed(0)]}]), "eth0") == read(vf)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[1]",
        "[{},{}]",
        '[{"vfinfo_list": [{}]}]',
        '[{"vfinfo_list": [{"vf": 1}]}]',
        '[{"vfinfo_list": [{"vf": 1e999, "mac": ""}]}]',
    ],
)
def test_a_text_that_is_not_of_ip_is_malformed(text) -> None:
    with pytest.raises(OSError, match="ip -j -s -d link show dev eth0") as caught:
        parse_virtual_functions(text, "eth0")
    assert not isinstance(caught.value, Absent)


BELOW = "sys/class/net/eth0/device"
FILES = {
    "rdma/link.json": [{"ifname": "mlx5_0", "port": 1, "netdev": "eth0"}],
    "ip/eth0.link.json": [{"ifname": "eth0", "vfinfo_list": [printed(0), printed(1)]}],
    f"sys/devices/{PCI.format(0)}/infiniband/mlx5_4/node_guid": "0",
    f"{BELOW}/virtfn0": f"-> ../../../../devices/{PCI.format(0)}",
    f"{BELOW}/sriov_numvfs": "2",
}


async def test_each_vf_has_its_series_and_its_device_where_it_is_visible() -> None:
    """VF 0 is a function of this host with an RDMA device; VF 1 is in a virtual machine."""
    found = samples(await exposition(host(FILES)))
    where = 'device="mlx5_0",port="1",netdev="eth0",vf="{}"'
    first, second = where.format(0), where.format(1)
    assert {
        name: value for name, value in found.items() if name.startswith("roce_vf_") and first in name
    } == {
        f'roce_vf_info{{{first},mac="{MAC.format(0)}",pci="{PCI.format(0)}",rdma_device="mlx5_4"}}': "1",
        f"roce_vf_receive_bytes_total{{{first}}}": "900",
        f"roce_vf_transmit_bytes_total{{{first}}}": "800",
        f"roce_vf_receive_packets_total{{{first}}}": "9",
        f"roce_vf_transmit_packets_total{{{first}}}": "8",
        f"roce_vf_receive_drops_total{{{first}}}": "3",
        f"roce_vf_transmit_drops_total{{{first}}}": "2",
        f"roce_vf_receive_multicast_packets_total{{{first}}}": "0",
        f"roce_vf_receive_broadcast_packets_total{{{first}}}": "0",
        f"roce_vf_link_state{{{first}}}": "2",
        f"roce_vf_spoof_check{{{first}}}": "1",
        f"roce_vf_trusted{{{first}}}": "1",
        f"roce_vf_vlan{{{first}}}": "7",
        f"roce_vf_transmit_limit_bytes_per_second{{{first}}}": "12500000",
    }
    assert f'roce_vf_info{{{second},mac="{MAC.format(1)}"}}' in found, "labels without a value are left out"
    assert not [name for name in found if "unmapped" in name and "virtual_functions" in name]


def test_a_pf_of_which_no_vf_counts_has_no_counters() -> None:
    """The kernel reports 0 for drivers that do not count, so 0 in all of them says nothing."""
    zero, kernel = {"rx_bytes": 0, "tx_bytes": 0}, host(FILES)
    faults = Faults(kernel)

    def count(second: Mapping[str, int]) -> None:
        faults["virtual_functions", "eth0"] = (
            VirtualFunction(0, MAC.format(0), {"link_state": 0}, zero),
            VirtualFunction(1, MAC.format(1), {"link_state": 1}, second),
        )

    count(zero)
    (reader,) = (
        one
        for one in netdev_readers(
            kernel, Device("mlx5_0", "", "", ports=(Port(1, "Ethernet", (Netdev("eth0", "port"),)),))
        )
        if one.source == VIRTUAL_FUNCTIONS
    )
    (before,) = reader.read(0.0)
    assert before.names == (
        f"0 {MAC.format(0)} {PCI.format(0)} mlx5_4",
        "0 link_state",
        f"1 {MAC.format(1)}  ",
        "1 link_state",
    )
    count({"rx_bytes": 5, "tx_bytes": 0})
    (counting,) = reader.read(60.0)
    assert dict(zip(counting.names, counting.values, strict=True))["0 rx_bytes"] == 0
    count(zero)
    (again,) = reader.read(120.0)
    assert again.names is counting.names, "a driver that has counted still counts"
