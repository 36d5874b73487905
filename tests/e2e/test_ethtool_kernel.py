"""The ioctl and the netlink code against this machine's own kernel, on veth pairs that the test makes."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from roce_exporter.kernel import Absent
from roce_exporter.kernel.ethtool_ioctl import EthtoolIoctl
from roce_exporter.kernel.ethtool_netlink import EthtoolNetlink
from roce_exporter.kernel.live import LiveKernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.ci

LEFT, RIGHT = "rocetest0", "rocetest1"


@pytest.fixture
def pair() -> Iterator[str]:
    """Two network devices, one wire."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "making a veth pair needs root and iproute2"
        )
    made = subprocess.run(
        ["ip", "link", "add", LEFT, "type", "veth", "peer", "name", RIGHT], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"this kernel makes no veth pair: {made.stderr.decode().strip()}")
    for netdev in (LEFT, RIGHT):
        subprocess.run(["ip", "link", "set", netdev, "up"], check=True)
    yield LEFT
    subprocess.run(["ip", "link", "del", LEFT], check=False)


@pytest.fixture
def ioctl() -> Iterator[EthtoolIoctl]:
    made = EthtoolIoctl()
    yield made
    made.close()


@pytest.fixture
def netlink() -> Iterator[EthtoolNetlink]:
    made = EthtoolNetlink()
    yield made
    made.close()


def test_private_counters_of_a_real_driver(pair: str, ioctl: EthtoolIoctl) -> None:
    ethtool = ioctl
    names, values = ethtool.statistics(pair)
    assert "peer_ifindex" in names
    (peer,) = (value for name, value in zip(names, values, strict=True) if name == "peer_ifindex")
    with open(f"/sys/class/net/{RIGHT}/ifindex", encoding="ascii") as file:
        assert peer == int(file.read())
    assert ethtool.statistics(pair)[0] is names


def test_the_link_of_a_real_driver(pair: str, netlink: EthtoolNetlink) -> None:
    found = netlink.link(pair)
    assert found["up"] == 1
    assert found["speed"] == 1_250_000_000
    subprocess.run(["ip", "link", "set", RIGHT, "down"], check=True)
    assert netlink.link(pair)["up"] == 0


@pytest.mark.parametrize("question", ["pause", "fec", "standard"])
def test_unsupported_reads_of_a_real_driver_are_absent(
    pair: str, netlink: EthtoolNetlink, question: str
) -> None:
    with pytest.raises(Absent):
        getattr(netlink, question)(pair)


def test_loopback_has_no_private_counters(ioctl: EthtoolIoctl) -> None:
    with pytest.raises(Absent):
        ioctl.statistics("lo")


def test_a_missing_device_is_reported_as_such(ioctl: EthtoolIoctl, netlink: EthtoolNetlink) -> None:
    for ask in (ioctl.statistics, netlink.pause, netlink.link):
        with pytest.raises(OSError, match="No such device") as caught:
            ask("rocetest9")
        assert caught.value.errno == errno.ENODEV


def test_a_folder_of_another_host_is_not_mixed_with_this_one(tmp_path: Path) -> None:
    """`lo` exists everywhere, and this machine's is not the recorded one's."""
    place = tmp_path / "class/net/lo"
    place.mkdir(parents=True)
    (place / "address").write_text("00:00:00:00:00:00\n")
    (place / "ifindex").write_text("4711\n")
    kernel = LiveKernel(str(tmp_path))
    for ask in (kernel.ethtool_statistics, kernel.ethtool_link, kernel.ethtool_pause):
        with pytest.raises(Absent, match="not a network device of this namespace"):
            ask("lo")
    (place / "ifindex").write_text("1\n")
    assert kernel.ethtool_link("lo")["up"] == 1
    kernel._mine(EthtoolNetlink).close()
