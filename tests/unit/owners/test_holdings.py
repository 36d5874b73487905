"""Lists of objects added up per owner, and which owners are shown."""

from owner_fakes import queue_pair, region

from roce_exporter.model.owner import ObjectKind, Owner, RdmaObject
from roce_exporter.owners.owner_scan import Census, HeldByOwner, by_owner, together
from roce_exporter.owners.owner_totals import choose_shown

JOB = Owner("slurm/42.0", "slurm", "python3", "ada", slurm_job="42", slurm_step="0")
SHELL = JOB._replace(command="bash")


def count(
    *objects: RdmaObject, owners: dict[int, Owner] | None = None, threads: dict[int, int] | None = None
) -> HeldByOwner:
    """These objects, listed in two parts."""
    census = Census()
    census.add(objects[:1])
    census.add(objects[1:])
    return by_owner([census], owners or {}, threads or {})


def test_every_kind_is_counted() -> None:
    found = count(
        queue_pair(1, 7, remote=900),
        queue_pair(2, 7, state="ERR"),
        queue_pair(3, 7, remote=900),  # of another remote host: numbers are unique on one device only
        RdmaObject(ObjectKind.COMPLETION_QUEUE, pid=7),
        region(7, 4096),
        region(7, 1 << 40),
        RdmaObject(ObjectKind.CONTEXT, pid=7),
        RdmaObject(ObjectKind.CONNECTION, pid=7, peer="10.0.0.2"),
        RdmaObject(ObjectKind.CONNECTION, pid=7, state="LISTEN"),
        owners={7: JOB},
    )
    held = found.held[JOB.name]
    assert held.queue_pairs == {("RTS", "RC"): 2, ("ERR", "RC"): 1}
    assert (
        held.in_error,
        *(held.numbers[name] for name in ("remote_queue_pairs", "completion_queues", "contexts")),
    ) == (1, 2, 1, 1)
    assert (held.numbers["memory_regions"], held.numbers["memory_region_bytes"]) == (2, 4096 + (1 << 40))
    assert held.connections == {"10.0.0.2": 1}
    assert held.rank == (3, 4096 + (1 << 40))


def test_queue_pairs_of_the_connection_manager_belong_to_the_module_that_connected_them() -> None:
    """As nvme_rdma on Linux 5.15 and newer: its connection names it, and its queue pair names rdma_cm."""
    connections = Census()
    connections.add([RdmaObject(ObjectKind.CONNECTION, kernel="nvme_rdma", number=5, peer="10.0.0.9")])
    connections.add([RdmaObject(ObjectKind.CONNECTION, number=6)])  # of a process that is not named
    connections.add([RdmaObject(ObjectKind.CONNECTION, kernel="nvmet_rdma")])  # it listens
    pairs = Census(connections.modules)
    pairs.add(
        [
            queue_pair(5, 0, kernel="rdma_cm"),
            queue_pair(6, 0, kernel="rdma_cm"),
            queue_pair(0, 0, kernel="rdma_cm"),
            queue_pair(1, 0, kernel="ib_core"),
        ]
    )
    held = by_owner([connections, pairs], {}, {}).held
    assert {name: one.queue_pairs.total() for name, one in held.items()} == {
        "kernel/nvme_rdma": 1,
        "unknown": 0,
        "kernel/nvmet_rdma": 0,
        "kernel/rdma_cm": 2,
        "kernel/ib_core": 1,
    }
    assert not any(one.processes for one in held.values())


def test_a_queue_pair_that_the_list_repeats_is_counted_once() -> None:
    """The kernel continues a list by position, so objects can repeat when others come and go."""
    census = Census()
    census.add([queue_pair(1, 7), queue_pair(2, 7)])
    census.add([queue_pair(2, 7), queue_pair(3, 7)])
    assert census.named == 3
    assert by_owner([census], {7: JOB}, {}).held[JOB.name].queue_pairs.total() == 3


def test_holdings_are_added_up_without_changing_the_parts() -> None:
    held = count(queue_pair(1, 7), region(8, 10), owners={7: JOB, 8: SHELL._replace(name="x")}).held
    total = together(held.values())
    assert (total.queue_pairs.total(), total.numbers["memory_region_bytes"], total.processes) == (
        1,
        10,
        {7, 8},
    )
    assert held[JOB.name].numbers["memory_region_bytes"] == 0


def test_the_highest_ranks_are_shown_and_equal_ones_by_name() -> None:
    assert choose_shown({"a": (1,), "b": (3,), "c": (2,), "d": (1,)}, (), 3) == {"b", "c", "a"}
    assert choose_shown({"a": (1, 5), "b": (1, 9)}, (), 1) == {"b"}
    assert choose_shown({}, ("gone",), 3) == frozenset()


def test_what_is_shown_keeps_its_place_until_another_exceeds_it_clearly() -> None:
    assert choose_shown({"old": (100,), "new": (125,)}, ("old",), 1) == {"old"}
    assert choose_shown({"old": (100,), "new": (126,)}, ("old",), 1) == {"new"}
    assert choose_shown({"old": (0, 0), "new": (0, 0)}, ("old",), 1) == {"old"}
    assert choose_shown({"new": (1,)}, ("old",), 1) == {"new"}
