"""Rounds over devices that a test sets: what is shown, and what a failing or hanging device costs."""

from clock import EPOCH
from owner_fakes import POD_CGROUP, FakeHost, following, process, queue_pair, region, survey

from roce_exporter.model.owner import ObjectKind, RdmaObject

POD = "0a1b2c3d-1111-2222-3333-444455556666"
CONTAINER = "0123456789ab" + 52 * "c"
CGROUP = POD_CGROUP.format(pod=POD.replace("-", "_"), container=CONTAINER)
OWNER = f"pod/{POD}/0123456789ab"


def busy_host() -> FakeHost:
    """Eight ranks of one pod, and the queue pair of ib_core."""
    objects = [queue_pair(100 + pid, pid, remote=200 + pid) for pid in range(1, 9)]
    objects += [region(pid, 4096) for pid in range(1, 9)]
    objects += [RdmaObject(ObjectKind.CONTEXT, pid=pid) for pid in range(1, 9)]
    objects += [RdmaObject(ObjectKind.CONNECTION, pid=1, state="CONNECT", peer="10.0.0.7", number=101)]
    objects += [RdmaObject(ObjectKind.QUEUE_PAIR, kernel="ib_core", number=1, type="GSI", state="RTS")]
    return FakeHost({"mlx5_0": objects}, {pid: process(pid, CGROUP) for pid in range(1, 9)})


async def test_the_processes_of_one_cgroup_are_one_owner() -> None:
    found = following(busy_host())
    own = f"device=mlx5_0,owner={OWNER}"
    core = "device=mlx5_0,owner=kernel/ib_core"
    assert await survey(found) == {
        f"queue_pairs{{{own},state=RTS,type=RC}}": 8,
        f"queue_pairs_in_error{{{own}}}": 0,
        f"remote_queue_pairs{{{own}}}": 8,
        f"completion_queues{{{own}}}": 0,
        f"memory_regions{{{own}}}": 8,
        f"memory_region_bytes{{{own}}}": 8 * 4096,
        f"contexts{{{own}}}": 8,
        f"connections{{{own},peer=10.0.0.7}}": 1,
        f"processes{{{own}}}": 8,
        f"queue_pairs{{{core},state=RTS,type=GSI}}": 1,
        f"queue_pairs_in_error{{{core}}}": 0,
        f"remote_queue_pairs{{{core}}}": 0,
        f"completion_queues{{{core}}}": 0,
        f"memory_regions{{{core}}}": 0,
        f"memory_region_bytes{{{core}}}": 0,
        f"contexts{{{core}}}": 0,
        f"processes{{{core}}}": 0,
        f"info{{owner={OWNER},kind=pod,command=python3,user=ada,pod_uid={POD},container_id={CONTAINER}}}": 1,
        "info{owner=kernel/ib_core,kind=kernel}": 1,
        "folded{device=mlx5_0}": 0,
        "hidden_processes{device=mlx5_0}": 0,
        "unseen_objects{device=mlx5_0,kind=ctx}": 0,
        "unseen_objects{device=mlx5_0,kind=cq}": 0,
        "unseen_objects{device=mlx5_0,kind=mr}": 0,
        "unseen_objects{device=mlx5_0,kind=qp}": 0,
        "survey_duration_seconds{device=mlx5_0}": 0,
        "survey_timestamp_seconds{device=mlx5_0}": EPOCH + 1000,
    }
    (state,) = found.states()
    assert (state.source, state.up, state.errors_total) == ("owners", True, 0)
