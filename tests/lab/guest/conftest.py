"""Shared by the tests in the guest: the cards, one exporter that serves all the time, and a check of the kernel log."""

import re
from collections.abc import Iterator
from pathlib import Path

import nic
import pytest
from daemon import Exporter

import roce_exporter

ILL = re.compile(r"WARNING:|BUG:|Oops|general protection|Call Trace|refcount|unregister_netdevice: waiting")


def pytest_sessionstart() -> None:
    installed = Path(roce_exporter.__file__)
    if "site-packages" not in installed.parts:
        pytest.exit(
            f"the lab tests the built wheel, not {installed.parent}; start it with tests/lab/run.sh", 2
        )
    nic.run("modprobe", "-a", "ib_core", "ib_uverbs")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A run that reaches its limit has no summary: each failure is printed when it happens."""
    report = yield
    if report.failed:
        item.config.get_terminal_writer().line(f"\n{report.longreprtext}")
    return report


@pytest.fixture(autouse=True)
def _the_kernel_stays_well() -> Iterator[None]:
    """No test may make a driver or any part of the kernel report a fault."""
    before = nic.run("dmesg").splitlines()
    yield
    said = nic.run("dmesg").splitlines()[len(before) :]
    assert not [line for line in said if ILL.search(line)], "\n".join(said)


@pytest.fixture(scope="module")
def cards() -> Iterator[dict[str, nic.Nic]]:
    """One card of each personality and a LAG, by the names of their RDMA devices."""
    nic.load("mlx5,bnxt,ionic,ice,mlx5/2")
    nic.run("modprobe", "bonding")
    nic.run("ip", "link", "add", "bond0", "type", "bond", "mode", "802.3ad")
    for netdev in nic.nics()["mlx5_1"].netdevs:
        nic.run("ip", "link", "set", netdev, "down")
        nic.run("ip", "link", "set", netdev, "master", "bond0")
    nic.run("ip", "link", "set", "bond0", "up")
    yield nic.nics()
    nic.run("ip", "link", "del", "bond0")
    nic.unload()


@pytest.fixture(scope="module")
def exporter(cards) -> Iterator[Exporter]:
    """One exporter for all tests of a file that do not need another."""
    # Slow sources are due often, and an emulated processor is slow: the deadline is for hung reads.
    made = Exporter("--inventory.refresh=4", "--collect.timeout=8", "--sampler.mode=off")
    yield made
    assert made.stop() == 0
