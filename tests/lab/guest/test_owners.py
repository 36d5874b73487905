"""Owners of RDMA objects on the real kernel: perftest over Soft-RoCE in cgroups of the shapes of kubelet, Slurm and systemd.

Numbers are compared with what `rdma resource` prints and the table of cgroups. Soft-RoCE has no counter sets of queue pairs,
so counters per owner are not proved here. Timings decide nothing: whether a scrape returned during a survey is read from
the kernel's table of netlink sockets, and how the driver was queried from the kernel's own trace.
"""

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import traffic
from cgroups import CGROUPFS_DRIVER, PLACES, STEP, SYSTEMD_DRIVER, TARGET, Place, frozen, into, made
from daemon import NOBODY, Exporter, scrape_after_survey, value, wait_until
from driver_queries import Part, lists_of, trace, traced
from nic import ask_json, run
from queue_pairs import MOST_OF_A_PART, connect, holding, talking, write

KINDS = ("ctx", "cq", "mr", "qp")
SIZE = 65536
MANY = 2000
FAILED = 7
PAUSE = 49
"""By default a driver works 2 % of the time for a survey."""

NUMBERS = {"contexts": "ctx", "completion_queues": "cq", "memory_regions": "mr", "queue_pairs": "qp"}
"""The metric of each kind of object."""

LABEL = re.compile(r'\w+="([^"]*)"')
Numbers = dict[tuple[str, ...], float]


@pytest.fixture(scope="module", autouse=True)
def _wire_and_cgroups() -> Iterator[None]:
    traffic.bring_up()
    with made():
        yield
    traffic.take_down()


@pytest.fixture(scope="module")
def host(_wire_and_cgroups) -> Iterator[Exporter]:
    """The exporter in the host's namespaces."""
    made = Exporter("--owners.interval=1", "--sampler.mode=off")
    yield made
    assert made.stop() == 0


def surveyed(exporter: Exporter) -> dict[str, float]:
    """A scrape after a survey of both devices that began after this call."""
    return scrape_after_survey(exporter, traffic.DEVICES)


def family(samples: dict[str, float], name: str) -> Numbers:
    """The samples of one metric of owners, by the values of their labels; without those of 0."""
    found = ((text.partition("{"), number) for text, number in samples.items())
    return {
        tuple(LABEL.findall(labels)): number
        for (metric, _, labels), number in found
        if metric == f"roce_owner_{name}" and number
    }


def shown(samples: dict[str, float]) -> dict[str, Numbers]:
    """What the exporter says of all owners."""
    names = (*NUMBERS, "memory_region_bytes", "queue_pairs_in_error", "processes")
    return {name: family(samples, name) for name in names}


def printed() -> dict[str, Counter[tuple[str, ...]]]:
    """The same of iproute2, with owners by the test's own table."""
    found: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in NUMBERS}
    region_bytes, failed, processes = Counter(), Counter(), set()
    for name, kind in NUMBERS.items():
        for row in ask_json("rdma", "-j", "resource", "show", kind):
            key = (row["ifname"], owner_of(row))
            found[name][(*key, row["state"], row["type"]) if kind == "qp" else key] += 1
            region_bytes[key] += row.get("mrlen", 0)
            failed[key] += row.get("state") == "ERR"
            processes |= {(*key, row["pid"])} if "pid" in row else set()
    found["memory_region_bytes"], found["queue_pairs_in_error"] = +region_bytes, +failed
    found["processes"] = Counter(key[:2] for key in processes)
    return found


def owner_of(row: dict[str, Any]) -> str:
    if "pid" not in row:
        return f"kernel/{row['comm']}"
    cgroup = Path(f"/proc/{row['pid']}/cgroup").read_text().strip()
    (owner,) = [place.owner for place in PLACES if cgroup == f"0::/{place.path}"]
    return owner


@contextmanager
def stopped(
    server: Place, client: Place, *flags: str, port: int = 18515, inside: tuple[str, ...] = ()
) -> Iterator[None]:
    """Traffic from the client's cgroup to the server's that was stopped after both had registered everything."""
    test, through = ("ib_write_bw", "--run_infinitely"), (into(server, *inside), into(client, *inside))
    with traffic.started(*test, *flags, port=port, through=through):
        wait_until(lambda: is_connected("rxe1", server) and is_connected("rxe0", client))
        with frozen(server, client):
            yield


def is_connected(device: str, place: Place) -> bool:
    rows = ask_json("rdma", "-j", "resource", "show", "qp")
    states = {row["state"] for row in rows if row["ifname"] == device and owner_of(row) == place.owner}
    return bool(states & {"RTR", "RTS"}) and "INIT" not in states


def test_each_cgroup_is_an_owner_with_the_objects_that_rdma_prints(host) -> None:
    with (
        stopped(SYSTEMD_DRIVER, STEP, "-s", str(SIZE), "-q", "3"),
        stopped(CGROUPFS_DRIVER, TARGET, "-s", str(SIZE), port=18516),
    ):
        samples = surveyed(host)
        assert shown(samples) == printed()
        assert pairs_of(samples, "rxe0", STEP) == pairs_of(samples, "rxe1", SYSTEMD_DRIVER) == 3
        # perftest has one region for all queue pairs: half of it to send, half to receive
        regions = family(samples, "memory_region_bytes")
        assert regions["rxe1", SYSTEMD_DRIVER.owner] == regions["rxe0", STEP.owner] == 3 * 2 * SIZE
        assert regions["rxe1", CGROUPFS_DRIVER.owner] == regions["rxe0", TARGET.owner] == 2 * SIZE
        for place in PLACES:
            check_identity(samples, place)
        check_everything_is_seen(samples)


def pairs_of(samples: dict[str, float], device: str, place: Place) -> float:
    """The queue pairs of an owner in all states."""
    pairs = family(samples, "queue_pairs")
    return sum(
        number for (name, owner, *_), number in pairs.items() if (name, owner) == (device, place.owner)
    )


def check_identity(samples: dict[str, float], place: Place) -> None:
    (series,) = [one for one in samples if "roce_owner_info{" in one and f'owner="{place.owner}"' in one]
    found = {name: text for name, text in re.findall(r'(\w+)="([^"]*)"', series) if text}
    assert found == {"owner": place.owner, "command": "ib_write_bw", "user": "root", **place.labels}


def check_everything_is_seen(samples: dict[str, float]) -> None:
    for device in traffic.DEVICES:
        assert value(samples, "roce_owner_hidden_processes", device=device) == 0
        for kind in KINDS:
            assert value(samples, "roce_owner_unseen_objects", device=device, kind=kind) == 0


def test_processes_of_one_job_step_are_one_owner(host) -> None:
    with holding("rxe0", 1, through=into(STEP)), stopped(STEP, STEP):
        samples = surveyed(host)
        assert shown(samples) == printed()
        assert family(samples, "processes") == {("rxe0", STEP.owner): 2, ("rxe1", STEP.owner): 1}
        assert value(samples, "roce_owner_contexts", device="rxe0", owner=STEP.owner) == 2


NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_processes_of_another_pid_namespace_are_seen_from_the_host_only(host) -> None:
    with stopped(SYSTEMD_DRIVER, CGROUPFS_DRIVER, inside=NAMESPACE):
        for row in ask_json("rdma", "-j", "resource", "show", "ctx"):
            assert re.search(
                r"^NSpid:\t\d+\t1$", Path(f"/proc/{row['pid']}/status").read_text(), re.MULTILINE
            )
        samples = surveyed(host)
        assert shown(samples) == printed()
        check_identity(samples, SYSTEMD_DRIVER)
        check_everything_is_seen(samples)
        check_from_another_namespace()


def check_from_another_namespace() -> None:
    """An exporter in a PID namespace of its own knows only what the kernel owns, and counts what it does not know."""
    exporter = Exporter("--owners.interval=1", "--sampler.mode=off", through=(*NAMESPACE, *NOBODY))
    (inside,) = run("ps", "--no-headers", "-o", "pid", "--ppid", str(exporter.process.pid)).split()
    try:
        samples = surveyed(exporter)
        assert {owner for _, owner, *_ in family(samples, "queue_pairs")} == {"kernel/ib_core", "unknown"}
        assert family(samples, "processes") == {}
        for kind in KINDS:
            owned = [row for row in ask_json("rdma", "-j", "resource", "show", kind) if "pid" in row]
            for device in traffic.DEVICES:
                number = sum(row["ifname"] == device for row in owned)
                assert value(samples, "roce_owner_unseen_objects", device=device, kind=kind) == number > 0
    finally:
        # unshare ignores SIGTERM and returns the status of its child.
        os.kill(int(inside), signal.SIGTERM)
        assert exporter.process.wait(timeout=60) == 0


def dumping(exporter: Exporter) -> set[str]:
    """Sockets of RDMA netlink by which the exporter has a list under way (netlink_native_seq_show in af_netlink.c)."""
    rows = [line.split() for line in Path("/proc/net/netlink").read_text().splitlines()[1:]]
    under_way = {row[9] for row in rows if row[1] == "20" and row[6] != "0"}
    names = [
        os.readlink(file) for file in Path(f"/proc/{exporter.process.pid}/fd").iterdir() if file.is_symlink()
    ]
    return under_way & {name[len("socket:[") : -1] for name in names}


def scraped_during_a_survey(exporter: Exporter) -> dict[str, float]:
    """A scrape that began and ended while one and the same list was under way; empty if it did not."""
    before = dumping(exporter)
    samples = exporter.scrape() if before else {}
    return samples if before & dumping(exporter) else {}


def test_thousands_of_queue_pairs_delay_no_scrape(host) -> None:
    with holding("rxe0", MANY, FAILED, through=into(TARGET)):
        with traced():
            samples = surveyed(host)
            listed = lists_of(trace())
        # Both devices have a queue pair of ib_core.
        check_pauses(next(parts for parts in listed if len(queries(parts)) > MANY))
        assert shown(samples) == printed()
        assert value(samples, "roce_owner_queue_pairs", owner=TARGET.owner, state="RESET") == MANY - FAILED
        assert family(samples, "queue_pairs_in_error") == {("rxe0", TARGET.owner): FAILED}
        during = wait_until(lambda: scraped_during_a_survey(host))
        # A round of the verdict may find the queue pairs in error between the two scrapes.
        assert {
            name for name in during.keys() ^ samples.keys() if not name.startswith("roce_port_health")
        } == set()
        assert shown(during) == shown(samples)


def check_pauses(parts: tuple[Part, ...]) -> None:
    """After each part the exporter waits until the driver has spent at most 2 % of the time on it."""
    assert len(parts) > MANY / MOST_OF_A_PART
    assert max(len(part.devices) for part in parts) <= MOST_OF_A_PART
    # The kernel reads the first two parts at once: the second while the first is received.
    begun = parts[0].begun
    for part, following in pairwise(parts[1:]):
        assert following.begun - part.ended >= PAUSE * (part.ended - begun)
        begun = following.begun


def queries(parts: tuple[Part, ...]) -> list[str]:
    return [device for part in parts for device in part.devices]


def test_a_killed_peer_leaves_a_queue_pair_in_state_err(host) -> None:
    with (
        talking("rxe1", through=into(SYSTEMD_DRIVER)) as receiver,
        talking("rxe0", through=into(STEP)) as sender,
    ):
        connect(receiver, sender)
        assert write(sender) == "IBV_WC_SUCCESS"
        samples = surveyed(host)
        assert shown(samples) == printed()
        assert family(samples, "queue_pairs_in_error") == {}
        receiver.kill()
        receiver.wait()
        assert write(sender) == "IBV_WC_RETRY_EXC_ERR"
        samples = surveyed(host)
        assert shown(samples) == printed()
        assert family(samples, "queue_pairs_in_error") == {("rxe0", STEP.owner): 1}
        assert value(samples, "roce_owner_queue_pairs", owner=STEP.owner, state="ERR", type="RC") == 1
        assert pairs_of(samples, "rxe1", SYSTEMD_DRIVER) == 0
