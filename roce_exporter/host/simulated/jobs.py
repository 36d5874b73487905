"""Who uses a simulated host: jobs with their processes, share of the traffic and RDMA objects; virtual functions of pods.

A training job in a pod, a Slurm job and a storage client of the kernel. Ranks are spread over the devices as usual: rank 5 of
a job uses device 1 of four; with more devices than ranks, each rank uses several.

The counter sets are those of mlx5 with `rdma statistic qp set link ... auto type,pid on optional-counters on` (Linux 6.15): the
driver fills in the counters of queue pairs and the optional ones, and leaves those of congestion control at 0
(mlx5_ib_counter_update_stats in drivers/infiniband/hw/mlx5/counters.c).

The PCI functions of mlx5 are here, too: what devlink reports on Linux 6.12 (cards of other drivers have no health reporters), and two
VFs of the first mlx5 port of a host, each with a part of its RoCE traffic. Both are in network namespaces of pods, so that their RDMA
devices are not visible on the host.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.kernel import FIXED, RUNNING, STORED, VNIC, Absent, ComponentVersion, HealthReporter
from roce_exporter.host.kernel.rtnetlink import VirtualFunction
from roce_exporter.host.simulated.drivers import DRIVERS, DriverCounter, counters
from roce_exporter.host.simulated.rates import AIMED, TROUBLES
from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts, RdmaObject
from roce_exporter.words import word_list

if TYPE_CHECKING:
    from roce_exporter.host.simulated.world import Card

CREATED = 1_700_000_000.0
"""Start of the first process, in seconds since 1970. The simulated host has no wall clock."""


class SimulatedJob(NamedTuple):
    """A job with ranks, each a process; or a module of the kernel, which has none."""

    command: str
    """Name of the processes, or of the kernel module."""
    traffic: float
    """Share of a port's RoCE traffic."""
    queue_pairs: int
    """RC queue pairs per rank and device."""
    regions: tuple[int, ...]
    """Bytes of each memory region, per rank and device."""
    ranks: int = 0
    """Processes; 0: a kernel module."""
    first_pid: int = 0
    user: str = ""
    cgroup: str = ""
    """Path; `{host}` is the number of the host."""
    peers: tuple[str, ...] = ()
    """Peers by the connection manager, one queue pair after the other; NCCL and MPI do not use it."""


TRAINING = SimulatedJob(
    "python3",
    traffic=0.6,
    queue_pairs=14,
    regions=(1 << 30, 1 << 30, 64 << 20, 4 << 20),
    ranks=8,
    first_pid=41_200,
    user="1000",
    cgroup=(
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7f1d4e02_5c38_4b6a_9d10_{host:012x}.slice"
        "/cri-containerd-{host:012x}0f3b5d7e9a1c2b4d6e8f0a2c4e6b8d0f1a3c5e7092b4d6f8a1c3.scope"
    ),
)
"""Scenarios aim at this one."""

SLURM = SimulatedJob(
    "gmx_mpi",
    traffic=0.25,
    queue_pairs=6,
    regions=(256 << 20, 16 << 20),
    ranks=4,
    first_pid=52_300,
    user="chem",
    cgroup="/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0",
)

STORAGE = SimulatedJob(
    "nvme_rdma",
    traffic=0.15,
    queue_pairs=8,
    regions=(128 << 10,) * 16,
    peers=("198.51.100.10", "198.51.100.11"),
)
"""NVMe over RDMA. Queue pairs of the kernel are never bound to counter sets."""

JOBS = (TRAINING, SLURM, STORAGE)


def pids_on(job: SimulatedJob, device: int, devices: int) -> tuple[int, ...]:
    """The processes of a job on the device at this position; for a kernel module one owner, of process ID 0."""
    if not job.ranks:
        return (0,)
    on = (rank for rank in range(job.ranks) if rank % devices == device % job.ranks)
    return tuple(job.first_pid + rank for rank in on)


def process_facts(pid: int, host: int) -> ProcessFacts | None:
    """What is known of a process of host number `host`; None if there is no such process."""
    for job in JOBS:
        rank = pid - job.first_pid
        if 0 <= rank < job.ranks:
            cgroups = f"0::{job.cgroup.format(host=host % 2**48)}\n"
            return ProcessFacts(pid, CREATED + rank, job.command, job.user, cgroups)
    return None


PORT = 1
FIRST_NUMBER = 0x120
"""Number of the first queue pair of a device: lower ones are the driver's."""
REMOTE = 0x1000  # remote queue pairs have numbers higher by this
LIMITS = {"max_qp": 131_072, "max_cq": 16_777_216, "max_mr": 16_777_216}
RDMA_CM = "rdma_cm"
"""Since Linux 5.15 the owner of the kernel's queue pairs that rdma_create_qp makes for another module."""

OF_PORT_ONLY = frozenset(
    {"rp_cnp_ignored", "rp_cnp_handled", "np_ecn_marked_roce_packets", "np_cnp_sent", "rx_icrc_encapsulated"}
)
"""Counters that mlx5 reads for the whole port only; a set has their names and 0."""

SET_COUNTERS = (
    *(DriverCounter(one.raw) if one.raw in OF_PORT_ONLY else one for one in DRIVERS["mlx5"].hw_counters),
    *counters(
        """
        cc_rx_ce_pkts=marks cc_rx_cnp_pkts=cnps_handled cc_tx_cnp_pkts=cnps_sent
        rdma_{way}_packets={direction}_rdma_packets rdma_{way}_bytes={direction}_rdma_bytes
        """
    ),
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


MLX5_CORE = "mlx5_core"
FUNCTION_REPORTERS = ("fw", "fw_fatal", VNIC)
"""On the PCI function."""
PORT_REPORTERS = ("tx", "rx")  # on a port of the auxiliary device for Ethernet

VNIC_NAMES = word_list(
    """
    total_error_queues send_queue_priority_update_flow comp_eq_overrun async_eq_overrun cq_overrun
    invalid_command quota_exceeded_command nic_receive_steering_discard generated_pkt_steering_fail
    handled_pkt_steering_fail
    """
)


def ethernet_instance(number: int) -> str:
    """The auxiliary device for Ethernet of the card at this position."""
    return f"mlx5_core.eth.{number}"


class SimulatedDevlink:
    """devlink of one host: cards by the name of their PCI function's instance and of the auxiliary one."""

    def __init__(self, functions: Mapping[str, Card]) -> None:
        """`functions` are the cards by PCI address."""
        self._cards: dict[str, tuple[Card, tuple[str, ...]]] = {}
        for number, (slot, card) in enumerate(functions.items()):
            if card.driver.module == MLX5_CORE:
                self._cards[f"pci/{slot}"] = card, FUNCTION_REPORTERS
                self._cards[f"auxiliary/{ethernet_instance(number)}"] = card, PORT_REPORTERS

    def reporters(self, instance: str, now: float) -> tuple[HealthReporter, ...]:
        """The health reporters of an instance at `now`."""
        card, names = self._of(instance)
        facts, failing = card.facts(now), card.failing(now)
        return tuple(
            HealthReporter(
                name,
                name not in failing,
                int(facts.get(f"reporter_errors_{name}", 0)),
                int(facts.get(f"reporter_recoveries_{name}", 0)),
            )
            for name in names
        )

    def versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        """The versions of a card."""
        card, names = self._of(instance)
        if names is not FUNCTION_REPORTERS:
            raise Absent(errno.EOPNOTSUPP, "no versions", instance)
        firmware = card.driver.firmware
        return (
            ComponentVersion(FIXED, "fw.psid", card.driver.board),
            ComponentVersion(RUNNING, "fw.version", firmware),
            ComponentVersion(STORED, "fw.version", firmware),
        )

    def vnic(self, instance: str, now: float) -> Mapping[str, int]:
        """The diagnosis of the reporter `vnic`: queue pairs in error are the only trouble that the simulation has for it."""
        card, names = self._of(instance)
        if VNIC not in names:
            raise Absent(errno.EOPNOTSUPP, "no reporter vnic", instance)
        return dict.fromkeys(VNIC_NAMES, 0) | {"total_error_queues": card.broken(now)}

    def _of(self, instance: str) -> tuple[Card, tuple[str, ...]]:
        try:
            return self._cards[instance]
        except KeyError:
            raise Absent(errno.ENODEV, "no such simulated instance", instance) from None


class SimulatedFunction(NamedTuple):
    """One VF."""

    share: float
    """Its part of the port's RoCE traffic."""
    settings: Mapping[str, int]
    """As in `VirtualFunction`."""


FUNCTIONS = (
    SimulatedFunction(0.25, {"link_state": 0, "spoof_check": 1, "trusted": 0, "vlan": 0, "max_rate": 0}),
    SimulatedFunction(
        0.1, {"link_state": 0, "spoof_check": 1, "trusted": 1, "vlan": 120, "max_rate": 50_000}
    ),
)


def physical_function(cards: Sequence[Card]) -> int | None:
    """The position of the card with VFs; member ports of a bond have none."""
    return next(
        (place for place, card in enumerate(cards) if card.driver.module == MLX5_CORE and not card.bond), None
    )


def virtual_functions(macs: Sequence[str], facts: Mapping[str, float]) -> Iterator[VirtualFunction]:
    """The VFs, given the quantities of their port."""
    for number, (one, mac) in enumerate(zip(FUNCTIONS, macs, strict=True)):
        yield VirtualFunction(number, mac, one.settings, dict(_counts(one.share, facts)))


def _counts(share: float, facts: Mapping[str, float]) -> Iterator[tuple[str, int]]:
    for short, direction in (("rx", "receive"), ("tx", "transmit")):
        for unit in ("bytes", "packets"):
            yield f"{short}_{unit}", int(share * facts.get(f"{direction}_rdma_{unit}", 0.0))
        yield f"{short}_dropped", 0
    yield "rx_multicast", 0
    yield "rx_broadcast", 0
