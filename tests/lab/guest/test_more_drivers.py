"""Drivers of the kernel's own source that Debian does not ship: netdevsim (pause, FEC) and siw (iWARP without counters)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from daemon import Exporter, about, value
from nic import kernel, run

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    run("rdma", "link", "add", "rxe_sim", "type", "rxe", "netdev", place.name)
    run("rdma", "link", "add", "siw0", "type", "siw", "netdev", "lo")
    exporter = Exporter("--sampler.mode=off")
    yield exporter.scrape(), place.name
    assert exporter.stop() == 0
    run("rdma", "link", "del", "siw0")
    run("rdma", "link", "del", "rxe_sim")
    Path("/sys/bus/netdevsim/del_device").write_text("1")
    run("rmmod", "siw", "netdevsim")


def test_pause_and_fec_of_netdevsim(told: tuple[dict[str, float], str]) -> None:
    """drivers/net/netdevsim/ethtool.c counts two pause frames sent, one received, 123 corrected blocks, 4 lost ones."""
    samples, netdev = told
    assert value(samples, "roce_global_pause_transmit_frames_total", netdev=netdev) == 2
    assert value(samples, "roce_global_pause_receive_frames_total", netdev=netdev) == 1
    assert value(samples, "roce_phy_fec_corrected_blocks_total", netdev=netdev) == 123
    assert value(samples, "roce_phy_fec_uncorrectable_blocks_total", netdev=netdev) == 4


@pytest.mark.skipif(kernel() < (6, 18), reason="FEC histograms came with Linux 6.18")
def test_the_fec_histogram_of_netdevsim(told: tuple[dict[str, float], str]) -> None:
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


def test_siw_is_iwarp_and_counts_nothing(told: tuple[dict[str, float], str]) -> None:
    """Its netlink statistics return EINVAL and it has no directory of counters: absent, not failed."""
    samples = about(told[0], "siw0")
    assert value(samples, "roce_device_info", device="siw0", protocol="iw") == 1
    assert [series for series, number in samples.items() if "source_up" in series and number == 0] == []
    assert not [series for series in samples if series.startswith("roce_transport_")]
