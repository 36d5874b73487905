"""RDMA namespaces in mode exclusive: a device that moves, what is hidden from the exporter, and what its helper reports.

Drivers make their devices in the first namespace, also if `rdma link add` runs in another one, so devices are moved.
rdma_rxe cannot be moved without the module of ../movable.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from daemon import COMMAND, Exporter, about, scrape_after_survey, value, wait_until
from nic import ask_json, run
from queue_pairs import holding

STAYS, MOVES = "rxe_here", "rxe_away"
NETDEVS = ("veth_a", "veth_b")
NETNS = "pod-a"
IN_NETNS = ("ip", "netns", "exec", NETNS)
HOST = "host"
"""A name for the first namespace: `rdma dev set` takes names only."""
FOLDER = "/run/roce-namespaces"
SOCKET = f"{FOLDER}/namespaces.sock"
PAIRS = 5


@pytest.fixture(scope="module", autouse=True)
def _exclusive() -> Iterator[None]:
    """Two devices and another namespace. The mode can change only while there is no other."""
    run("modprobe", "-a", "rdma_rxe", "ib_uverbs")
    run("rdma", "system", "set", "netns", "exclusive")
    run("ip", "netns", "add", NETNS)
    run("ip", "netns", "attach", HOST, "1")
    run("ip", "link", "add", NETDEVS[0], "type", "veth", "peer", "name", NETDEVS[1])
    for device, netdev in zip((STAYS, MOVES), NETDEVS, strict=True):
        run("ip", "link", "set", netdev, "up")
        run("rdma", "link", "add", device, "type", "rxe", "netdev", netdev)
    run("insmod", os.environ["ROCELAB_MOVABLE"], f"netdev={NETDEVS[1]}")
    yield
    for device in (STAYS, MOVES):
        run("rdma", "link", "del", device)
    run("ip", "link", "del", NETDEVS[0])
    for netns in (HOST, NETNS):
        run("ip", "netns", "del", netns)
    wait_until(is_shared_again)


def is_shared_again() -> bool:
    """Whether the mode is shared again: the kernel refuses while a namespace is being removed."""
    command = ("rdma", "system", "set", "netns", "shared")
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@contextmanager
def moved() -> Iterator[None]:
    """The device is in the other namespace until the block ends."""
    run("rdma", "dev", "set", MOVES, "netns", NETNS)
    try:
        yield
    finally:
        run(*IN_NETNS, "rdma", "dev", "set", MOVES, "netns", HOST)


@contextmanager
def serving(*flags: str) -> Iterator[Exporter]:
    """An exporter that has read the namespaces. It does so once a minute in the background; no scrape waits for it."""
    exporter = Exporter("--sampler.mode=off", "--owners.interval=1", *flags)
    try:
        wait_until(lambda: value(exporter.scrape(), "roce_rdma_namespaces_shared") is not None)
        yield exporter
    finally:
        assert exporter.stop() == 0


@contextmanager
def helping() -> Iterator[None]:
    """The helper, with the privileges of its unit: no user's but one capability."""
    os.makedirs(FOLDER)
    os.chown(FOLDER, 65534, 65534)
    only = ("--bounding-set=-all,+sys_admin", "--inh-caps=-all,+sys_admin", "--ambient-caps=-all,+sys_admin")
    user = ("--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
    helper = subprocess.Popen(
        ["setpriv", *user, *only, COMMAND, "tool", "namespaces", f"--rdma.namespaces={SOCKET}"]
    )
    try:
        wait_until(lambda: os.path.exists(SOCKET))
        yield
    finally:
        helper.terminate()
        assert helper.wait(timeout=60) == 0
    # Only an empty folder can be removed.
    os.rmdir(FOLDER)


def present(samples: dict[str, float], device: str) -> set[str]:
    """The series of a device that is there. What the kernel log said of it, and its verdict, stay when it has gone."""
    return {
        series
        for series in about(samples, device)
        if not series.startswith(("roce_kernel_log_", "roce_port_health"))
    }


def names(samples: dict[str, float], device: str) -> set[str]:
    """The series of a device; those of owners only as far as they are the same in every survey."""
    return {series for series in present(samples, device) if "roce_owner" not in series}


def queue_pairs(samples: dict[str, float]) -> float:
    """Queue pairs of programs on the device that moves. Those of the kernel are made again with each move."""
    return sum(
        number
        for series, number in about(samples, MOVES).items()
        if series.startswith("roce_owner_queue_pairs{") and 'owner="kernel/' not in series
    )


def test_a_device_that_moves_to_another_namespace_is_gone_until_it_returns() -> None:
    with serving() as exporter:
        with holding(MOVES, PAIRS):
            before = scrape_after_survey(exporter, (MOVES,))
        with moved():
            wait_until(lambda: not present(exporter.scrape(), MOVES))
            # The check that compares ports has nothing to compare with.
            alone = {series for series in names(before, STAYS) if 'check="consistency"' not in series}
            assert names(exporter.scrape(), STAYS) == alone
        wait_until(lambda: names(exporter.scrape(), MOVES) == names(before, MOVES))
        with holding(MOVES, PAIRS):
            after = scrape_after_survey(exporter, (MOVES,))
            assert names(after, MOVES) == names(before, MOVES)
            assert queue_pairs(after) == queue_pairs(before) == PAIRS


def test_without_the_helper_a_hidden_device_is_counted() -> None:
    with serving() as exporter:
        samples = exporter.scrape()
        assert value(samples, "roce_rdma_namespaces_shared") == 0
        assert value(samples, "roce_exporter_rdma_devices_unseen") == 0
    with moved(), serving() as exporter:
        samples = exporter.scrape()
        assert value(samples, "roce_rdma_namespaces_shared") == 0
        assert value(samples, "roce_exporter_rdma_devices_unseen") == 1
        assert value(samples, "roce_exporter_devices") == 1


def test_the_helper_reports_the_objects_of_the_hidden_device() -> None:
    """It has CAP_SYS_ADMIN and nothing else; the exporter stays unprivileged."""
    with moved(), holding(MOVES, PAIRS, through=IN_NETNS), helping():
        with serving(f"--rdma.namespaces={SOCKET}") as exporter:
            samples = exporter.scrape()
        assert value(samples, "roce_exporter_source_up", source="rdma_namespaces") == 1
        assert reported(samples) == printed()
        assert reported(samples)["qp"] == PAIRS
        assert about(samples, MOVES).keys() == {
            f'roce_namespace_objects{{netns="{NETNS}",device="{MOVES}",kind="{kind}"}}' for kind in printed()
        }
        assert value(samples, "roce_exporter_rdma_devices_unseen") == 0
        assert value(samples, "roce_exporter_rdma_namespaces_unseen") == 0


def reported(samples: dict[str, float]) -> dict[str, float | None]:
    """The objects by kind, as the exporter says."""
    return {
        kind: value(samples, "roce_namespace_objects", device=MOVES, netns=NETNS, kind=kind)
        for kind in printed()
    }


def printed() -> dict[str, int]:
    """The objects by kind, as iproute2 prints them in that namespace."""
    (found,) = ask_json(*IN_NETNS, "rdma", "-j", "resource", "show", MOVES)
    return {kind: number for kind, number in found.items() if kind not in ("ifindex", "ifname")}
