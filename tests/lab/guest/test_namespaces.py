"""RDMA namespaces in mode exclusive: what is hidden from the exporter, and what its helper reports."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from daemon import COMMAND, Exporter, value, wait_until
from nic import run

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICES = ("rxe_here", "rxe_away")
NETNS = "pod-a"
SOCKET = "/run/roce-namespaces.sock"


@pytest.fixture(scope="module", autouse=True)
def _exclusive() -> Iterator[None]:
    """Soft-RoCE in this network namespace and in another. The mode can change only while there is no other."""
    run("modprobe", "rdma_rxe")
    run("rdma", "system", "set", "netns", "exclusive")
    assert "exclusive" in run("rdma", "system")
    run("ip", "netns", "add", NETNS)
    run("ip", "link", "add", "veth_a", "type", "veth", "peer", "name", "veth_b")
    run("ip", "link", "set", "veth_b", "netns", NETNS)
    run("ip", "link", "set", "veth_a", "up")
    run("ip", "netns", "exec", NETNS, "ip", "link", "set", "veth_b", "up")
    run("rdma", "link", "add", DEVICES[0], "type", "rxe", "netdev", "veth_a")
    run("ip", "netns", "exec", NETNS, "rdma", "link", "add", DEVICES[1], "type", "rxe", "netdev", "veth_b")
    yield
    run("ip", "netns", "exec", NETNS, "rdma", "link", "del", DEVICES[1])
    run("rdma", "link", "del", DEVICES[0])
    run("ip", "link", "del", "veth_a")
    run("ip", "netns", "del", NETNS)
    wait_until(lambda: "exclusive" in run("rdma", "system"))
    wait_until(shared_again)


def shared_again() -> bool:
    """Whether the mode is shared again: the kernel refuses while a namespace is being removed."""
    command = ("rdma", "system", "set", "netns", "shared")
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def objects(netns: str, device: str) -> float:
    """The queue pairs that `rdma resource` counts in that namespace."""
    words = run("ip", "netns", "exec", netns, "rdma", "resource", "show", device).split()
    return float(words[words.index("qp") + 1])


def scrape(exporter: Exporter) -> dict[str, float]:
    """A scrape after the namespaces have been read: that happens in the background, and no scrape waits for it."""
    wait_until(lambda: value(exporter.scrape(), "roce_rdma_namespaces_shared") is not None)
    return exporter.scrape()


def test_without_the_helper_a_hidden_device_is_counted() -> None:
    exporter = Exporter("--sampler.mode=off")
    try:
        samples = scrape(exporter)
        assert value(samples, "roce_rdma_namespaces_shared") == 0
        assert value(samples, "roce_exporter_rdma_devices_unseen") == 1
        assert value(samples, "roce_device_info", device=DEVICES[0]) == 1
        assert value(samples, "roce_device_info", device=DEVICES[1]) is None
    finally:
        assert exporter.stop() == 0


def test_the_helper_reports_the_hidden_device() -> None:
    """The helper runs with CAP_SYS_ADMIN and nothing else; the exporter stays unprivileged."""
    only = (
        "setpriv",
        "--bounding-set=-all,+sys_admin,+chown,+dac_override",
        "--inh-caps=-all",
        "--no-new-privs",
    )
    helper = subprocess.Popen(
        [*only, COMMAND, "namespaces", f"--namespaces.socket={SOCKET}", "--namespaces.group=nogroup"]
    )
    try:
        wait_until(lambda: os.path.exists(SOCKET) and Path(SOCKET).stat().st_mode & 0o777 == 0o660)
        exporter = Exporter("--sampler.mode=off", f"--rdma.namespaces={SOCKET}")
        try:
            samples = scrape(exporter)
            assert value(samples, "roce_exporter_source_up", source="rdma_namespaces") == 1
            assert value(
                samples, "roce_namespace_objects", device=DEVICES[1], kind="qp", netns=NETNS
            ) == objects(NETNS, DEVICES[1])
            assert value(samples, "roce_namespace_objects", device=DEVICES[0], kind="qp") is None
            assert value(samples, "roce_exporter_rdma_devices_unseen") == 0
            assert value(samples, "roce_exporter_rdma_namespaces_unseen") == 0
        finally:
            assert exporter.stop() == 0
    finally:
        helper.terminate()
        assert helper.wait(timeout=60) == 0
    assert not os.path.exists(SOCKET)
