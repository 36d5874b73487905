"""Drivers of the kernel's own source that Debian does not ship: netdevsim (pause, FEC) and siw (iWARP without counters)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import Exporter, about, value
from nic import kernel, run

from roce_exporter.host.kernel.rtnetlink import read_virtual_functions
from roce_exporter.host.recorded.ip_text import parse_virtual_functions

MAC = "02:00:5e:00:00:77"
"""Given to a VF of netdevsim."""

MODULES = Path(os.environ.get("ROCELAB_EXTRA", "/nowhere"))


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[dict[str, float], str]]:
    """A scrape of siw and Soft-RoCE, and the name of netdevsim's network device."""
    run("modprobe", "rdma_rxe")
    for name in ("netdevsim", "siw"):
        module = str(MODULES / f"{name}.ko")
        for needed in filter(None, run("modinfo", "-F", "depends", module).strip().split(",")):
            run("modprobe", needed)
        run("insmod", module)
    Path("/sys/bus/netdevsim/new_device").write_text("1 1")
    (place,) = Path("/sys/bus/netdevsim/devices/netdevsim1/net").iterdir()
    run("ip", "link", "set", place.name, "up")
    Path("/sys/bus/netdevsim/devices/netdevsim1/sriov_numvfs").write_text("3")
    run(
        "ip",
        "link",
        "set",
        place.name,
        "vf",
        "1",
        "mac",
        MAC,
        "state",
        "disable",
        "spoofchk",
        "on",
        "trust",
        "on",
    )
    run("ip", "link", "set", place.name, "vf", "2", "vlan", "42", "max_tx_rate", "1000")
    run("rdma", "link", "add", "rxe_sim", "type", "rxe", "netdev", place.name)
    run("rdma", "link", "add", "siw0", "type", "siw", "netdev", "lo")
    exporter = Exporter("--sampler.mode=off")
    yield exporter.scrape(), place.name
    assert exporter.stop() == 0
    run("rdma", "link", "del", "siw0")
    run("rdma", "link", "del", "rxe_sim")
    Path("/sys/bus/netdevsim/del_device").write_text("1")
    run("rmmod", "siw", "netdevsim")


def test_pause_and_fec_of_netdevsim(told) -> None:
    """drivers/net/netdevsim/ethtool.c counts two pause frames sent, one received, 123 corrected blocks, 4 lost ones."""
    samples, netdev = told
    assert value(samples, "roce_global_pause_transmit_frames_total", netdev=netdev) == 2
    assert value(samples, "roce_global_pause_receive_frames_total", netdev=netdev) == 1
    assert value(samples, "roce_phy_fec_corrected_blocks_total", netdev=netdev) == 123
    assert value(samples, "roce_phy_fec_uncorrectable_blocks_total", netdev=netdev) == 4


@pytest.mark.skipif(kernel() < (6, 18), reason="FEC histograms came with Linux 6.18")
def test_the_fec_histogram_of_netdevsim(told) -> None:
    """Three bins; it counts four lanes in the first and the last of them. Before Linux 6.18 there are no bins."""
    samples, netdev = told
    buckets = [
        value(samples, "roce_phy_fec_codeword_errors_bucket", netdev=netdev, le=bound)
        for bound in ("0", "3", "7", "+Inf")
    ]
    assert buckets == [445, 457, 459, 459]
    lanes = {
        (low, high): [
            value(
                samples,
                "roce_phy_fec_lane_codewords_total",
                netdev=netdev,
                lane=str(lane),
                low=low,
                high=high,
            )
            for lane in range(4)
        ]
        for low, high in (("0", "0"), ("1", "3"), ("4", "7"))
    }
    assert lanes == {("0", "0"): [125, 120, 100, 100], ("1", "3"): [None] * 4, ("4", "7"): [2, 0, 0, 0]}


def vf_of(samples: dict[str, float], netdev: str, number: int) -> dict[str, float | None]:
    names = ("link_state", "spoof_check", "trusted", "vlan", "transmit_limit_bytes_per_second")
    return {name: value(samples, f"roce_vf_{name}", netdev=netdev, vf=str(number)) for name in names}


def test_the_virtual_functions_of_netdevsim(told) -> None:
    """Three VFs with settings. netdevsim counts nothing per VF, for which the kernel reports 0: that is absent here."""
    samples, netdev = told
    plain = dict.fromkeys(("link_state", "spoof_check", "trusted", "vlan"), 0) | {
        "transmit_limit_bytes_per_second": 0
    }
    assert vf_of(samples, netdev, 0) == plain
    assert vf_of(samples, netdev, 1) == plain | {"link_state": 2, "spoof_check": 1, "trusted": 1}
    assert vf_of(samples, netdev, 2) == plain | {"vlan": 42, "transmit_limit_bytes_per_second": 125e6}
    assert value(samples, "roce_vf_info", netdev=netdev, vf="1", mac=MAC) == 1
    assert value(samples, "roce_exporter_source_up", netdev=netdev, source="virtual_functions") == 1
    assert not [series for series in samples if series.startswith("roce_vf_") and "_total" in series]


def test_the_text_of_ip_gives_the_same_virtual_functions(told) -> None:
    """A recording of `ip -j -s -d link show` says of the VFs what rtnetlink says."""
    _, netdev = told
    text = run("ip", "-j", "-s", "-d", "link", "show", "dev", netdev)
    read, written = read_virtual_functions(netdev), parse_virtual_functions(text, netdev)
    assert written == read


def test_siw_is_iwarp_and_counts_nothing(told) -> None:
    """Its netlink statistics return EINVAL and it has no directory of counters: absent, not failed."""
    samples = about(told[0], "siw0")
    assert value(samples, "roce_device_info", device="siw0", protocol="iw") == 1
    assert [series for series, number in samples.items() if "source_up" in series and number == 0] == []
    assert not [series for series in samples if series.startswith("roce_transport_")]
