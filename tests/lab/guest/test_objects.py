"""RDMA objects of real traffic over Soft-RoCE, read without privilege: the same that `rdma resource` prints.

And the one command that changes a setting: the kernel's own tool shows what it changed.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import traffic
from daemon import NOBODY, wait_until
from nic import ask_json, run

from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink
from roce_exporter.host.kernel.uverbs import read_limits
from roce_exporter.model.owner import ObjectKind

READ_LISTS = """
import json
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.model.owner import ObjectKind
kernel, found = LiveKernel(), []
for device in kernel.rdma_devices():
    for kind in ObjectKind:
        objects, parts = kernel.open_objects(device, kind), []
        while (part := objects.next_part()) is not None:
            parts.append([{"device": device.name, **one._asdict(), "kind": kind.value} for one in part])
        found.append((device.name, kind.value, parts))
print(json.dumps(found))
"""

READ_PROCESSES = """
import json, sys
from roce_exporter.host.kernel.live import LiveKernel
print(json.dumps([LiveKernel().process(int(pid)) for pid in sys.argv[1:]]))
"""


Found = dict[str, Any]


def without_privilege(code: str, *arguments: str) -> Any:
    """The JSON that this program prints."""
    return json.loads(run(*NOBODY, sys.executable, "-c", code, *arguments))


def parts_of(kind: ObjectKind) -> dict[str, list[list[Found]]]:
    """The parts of the lists of one kind, by device."""
    return {device: parts for device, name, parts in without_privilege(READ_LISTS) if name == kind.value}


def listed(kind: ObjectKind) -> list[Found]:
    """All objects of one kind, in any order."""
    found = [one for parts in parts_of(kind).values() for part in parts for one in part]
    return sorted(found, key=str)


def printed(kind: ObjectKind) -> list[Found]:
    """The same of iproute2, in the same form."""
    rows = ask_json("rdma", "-j", "resource", "show", kind.value)
    return sorted((as_object(kind, row) for row in rows), key=str)


def as_object(kind: ObjectKind, row: Found) -> Found:
    """One object that iproute2 printed."""
    return {
        "device": row["ifname"],
        "kind": kind.value,
        "pid": row.get("pid", 0),
        "kernel": "" if "pid" in row else row.get("comm", ""),
        "port": row.get("port", 0),
        "number": row.get("lqpn", 0),
        "remote": row.get("rqpn", 0),
        "type": row.get("type", row.get("qp-type", "")),
        "state": row.get("state", ""),
        "size": row.get("mrlen", 0),
        "peer": row.get("dst-addr", "").rpartition(":")[0],
    }


def is_waiting() -> bool:
    """Whether a server waits for its client."""
    return any(one["state"] == "LISTEN" for one in ask_json("rdma", "-j", "resource", "show", "cm_id"))


def connections_with_pairs() -> int:
    """How many ends of connections have a queue pair: the kernel calls the server's end CONNECT before the server accepts it."""
    rows = ask_json("rdma", "-j", "resource", "show", "cm_id")
    return sum(one["state"] == "CONNECT" and one.get("lqpn", 0) > 0 for one in rows)


@contextmanager
def connected() -> Iterator[traffic.Ends]:
    """Traffic of a program that uses the RDMA connection manager."""
    common = ("ib_write_bw", "-F", "-R", "-x", "1", "--run_infinitely")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen((*common, "-d", "rxe1"), **quiet)
    wait_until(is_waiting)
    client = subprocess.Popen((*common, "-d", "rxe0", traffic.ADDRESSES[1]), **quiet)
    try:
        # one connection for the parameters of the test, one for its data
        wait_until(lambda: connections_with_pairs() == 4)
        yield traffic.Ends(server, client)
    finally:
        for process in (client, server):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def wire() -> Iterator[None]:
    """Two Soft-RoCE devices."""
    traffic.bring_up()
    yield
    traffic.take_down()


@contextmanager
def stopped(*processes: subprocess.Popen[bytes]) -> Iterator[None]:
    """These processes are stopped: nothing changes, and the guest has its processor for the test."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda pid=process.pid: is_stopped(pid))
    yield
    for process in processes:
        process.send_signal(signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Whether all threads of a process are stopped."""
    return all(
        "State:\tT" in (thread / "status").read_text() for thread in Path(f"/proc/{pid}/task").iterdir()
    )


def test_every_list_is_what_rdma_prints(wire) -> None:
    with (
        connected() as managed,
        stopped(*managed),
        traffic.started("ib_write_bw", "--run_infinitely", "-s", "65536") as plain,
        stopped(*plain),
    ):
        for kind in ObjectKind:
            found = listed(kind)
            assert found == printed(kind)
            assert {one["device"] for one in found} >= {"rxe1"}
            assert any(one["pid"] for one in found)
        check_connections()
        check_memory_regions()
        check_processes()


def check_connections() -> None:
    """Each has its peer and its queue pair."""
    connections = [one for one in listed(ObjectKind.CONNECTION) if one["state"] == "CONNECT"]
    pairs = {(one["device"], one["number"], one["pid"]) for one in listed(ObjectKind.QUEUE_PAIR)}
    assert {one["peer"] for one in connections} == {traffic.ADDRESSES[1]}
    assert {(one["device"], one["number"], one["pid"]) for one in connections} <= pairs


def check_memory_regions() -> None:
    """They have the size that the program registered: ib_write_bw registers one buffer to send and one to receive."""
    assert 2 * 65536 in {one["size"] for one in listed(ObjectKind.MEMORY_REGION)}


def check_processes() -> None:
    """They are known by the numbers that RDMA netlink reports."""
    pids = sorted({one["pid"] for one in listed(ObjectKind.QUEUE_PAIR)} - {0})
    assert len(pids) == 4
    for pid, (number, created, command, user, cgroups) in zip(
        pids, without_privilege(READ_PROCESSES, *map(str, pids)), strict=True
    ):
        assert (number, command, user) == (pid, "ib_write_bw", "root")
        assert cgroups == Path(f"/proc/{pid}/cgroup").read_text()
        assert created > 0


def test_the_kernel_reports_threads_and_they_belong_to_their_process(wire) -> None:
    """A thread other than the first opens a context, as the threads of NCCL do."""
    opened, done, threads = threading.Event(), threading.Event(), []
    (device,) = [one for one in LiveKernel().rdma_devices() if one.name == "rxe0"]

    def hold(events: int) -> None:
        threads.append(threading.get_native_id())
        opened.set()
        done.wait()
        os.close(events)

    thread = threading.Thread(target=read_limits, args=(RdmaNetlink(), device), kwargs={"close_events": hold})
    thread.start()
    assert opened.wait(60)
    try:
        assert [one["pid"] for one in listed(ObjectKind.CONTEXT)] == threads
        assert threads != [os.getpid()]
        assert LiveKernel().process(threads[0]).pid == os.getpid()
    finally:
        done.set()
        thread.join()
