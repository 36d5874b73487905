"""The jobs of a simulated host: whose processes use its RDMA devices, and with which share of the traffic.

A training job in a pod, a Slurm job and a storage client of the kernel. Ranks are spread over the devices as usual: rank 5 of
a job uses device 1 of four; with more devices than ranks, each rank uses several.
"""

from __future__ import annotations

from typing import NamedTuple

from roce_exporter.model.owner import ProcessFacts

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
