"""The RDMA objects of a simulated device, and the counter sets of the processes that own them.

The counter sets are those of mlx5 with `rdma statistic qp set link ... auto type,pid on optional-counters on` (Linux 6.15): the
driver fills in the counters of queue pairs and the optional ones, and leaves those of congestion control at 0
(mlx5_ib_counter_update_stats in drivers/infiniband/hw/mlx5/counters.c).
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

from roce_exporter.host.simulated.drivers import DriverCounter
from roce_exporter.host.simulated.jobs import JOBS, TRAINING, SimulatedJob, pids_on
from roce_exporter.host.simulated.mlx5 import HW_COUNTERS
from roce_exporter.host.simulated.rates import AIMED, TROUBLES
from roce_exporter.model.owner import CounterSet, ObjectKind, RdmaObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PORT = 1
FIRST_NUMBER = 0x120
"""Number of the first queue pair of a device: lower ones are the driver's."""
REMOTE = 0x1000
"""Remote queue pairs have numbers higher by this."""

LIMITS = {"max_qp": 131_072, "max_cq": 16_777_216, "max_mr": 16_777_216}

RDMA_CM = "rdma_cm"
"""Since Linux 5.15 the owner of the kernel's queue pairs that rdma_create_qp makes for another module."""

OF_PORT_ONLY = frozenset(
    {"rp_cnp_ignored", "rp_cnp_handled", "np_ecn_marked_roce_packets", "np_cnp_sent", "rx_icrc_encapsulated"}
)
"""Counters that mlx5 reads for the whole port only; a set has their names and 0."""

SET_COUNTERS = (
    *(DriverCounter(one.raw) if one.raw in OF_PORT_ONLY else one for one in HW_COUNTERS),
    DriverCounter("cc_rx_ce_pkts", "marks"),
    DriverCounter("cc_rx_cnp_pkts", "cnps_handled"),
    DriverCounter("cc_tx_cnp_pkts", "cnps_sent"),
    DriverCounter("rdma_rx_packets", "receive_rdma_packets"),
    DriverCounter("rdma_rx_bytes", "receive_rdma_bytes"),
    DriverCounter("rdma_tx_packets", "transmit_rdma_packets"),
    DriverCounter("rdma_tx_bytes", "transmit_rdma_bytes"),
)

_KERNEL = (
    RdmaObject(ObjectKind.QUEUE_PAIR, kernel="ib_core", port=PORT, number=1, type="GSI", state="RTS"),
    RdmaObject(ObjectKind.COMPLETION_QUEUE, kernel="ib_core"),
)
"""What the kernel has on every device, for management."""


def device_objects(device: int, devices: int, broken: int = 0) -> Iterator[RdmaObject]:
    """All objects of the device at this position; `broken` queue pairs of the training job are in state ERR."""
    yield from _KERNEL
    numbers = count(FIRST_NUMBER)
    for job in JOBS:
        left = broken if job is TRAINING else 0
        for pid in pids_on(job, device, devices):
            yield from _owned(job, pid)
            for position in range(job.queue_pairs):
                yield from _connected(job, pid, next(numbers), position, left > 0)
                left -= 1


def object_counts(device: int, devices: int) -> dict[str, int]:
    """The number of objects of each kind on a device, as `rdma resource show` prints them."""
    found = Counter(one.kind.value for one in device_objects(device, devices))
    owners = sum(len(pids_on(job, device, devices)) for job in JOBS)
    return {"pd": owners + 1, **{kind.value: found[kind.value] for kind in ObjectKind}}


def counter_sets(device: int, devices: int, facts: Mapping[str, float]) -> Iterator[CounterSet]:
    """The counter sets of the user processes, given the quantities of the whole port."""
    numbers = count(1)
    for job in JOBS:
        pids = pids_on(job, device, devices) if job.ranks else ()
        values = {
            one.raw: int(_part(job, one.fact, facts) / one.per / len(pids)) for one in SET_COUNTERS if pids
        }
        for pid in pids:
            yield CounterSet(PORT, next(numbers), pid, "RC", values)


def _part(job: SimulatedJob, fact: str, facts: Mapping[str, float]) -> float:
    """The job's part of a quantity of the port: by its traffic, after what is aimed at the training job."""
    aimed = facts.get(AIMED + fact, 0.0) if fact in TROUBLES else 0.0
    return (facts.get(fact, 0.0) - aimed) * job.traffic + (aimed if job is TRAINING else 0.0)


def _owned(job: SimulatedJob, pid: int) -> Iterator[RdmaObject]:
    kernel = "" if pid else job.command
    for _ in range(2):
        yield RdmaObject(ObjectKind.COMPLETION_QUEUE, pid, kernel)
    for size in job.regions:
        yield RdmaObject(ObjectKind.MEMORY_REGION, pid, kernel, size=size)
    if pid:
        yield RdmaObject(ObjectKind.CONTEXT, pid)


def _connected(job: SimulatedJob, pid: int, number: int, position: int, broken: bool) -> Iterator[RdmaObject]:
    """A queue pair, and its connection if the connection manager made it."""
    kernel = "" if pid else job.command
    state = "ERR" if broken else "RTS"
    yield RdmaObject(
        ObjectKind.QUEUE_PAIR, pid, RDMA_CM if kernel else "", PORT, number, number + REMOTE, "RC", state
    )
    if job.peers:
        peer = job.peers[position % len(job.peers)]
        yield RdmaObject(
            ObjectKind.CONNECTION, pid, kernel, PORT, number, type="RC", state="CONNECT", peer=peer
        )
