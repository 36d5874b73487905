"""RDMA objects, the processes that own them, and what is known of both: frozen, without I/O.

The kernel reports objects by process ID (`RDMA_NLDEV_CMD_RES_*_GET`, drivers/infiniband/core/nldev.c). An owner is what
an operator knows a process by: a container of a pod, a step of a Slurm job, a systemd unit, a kernel module.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class ObjectKind(Enum):
    """A kind of RDMA object, by the name that `rdma resource show` prints."""

    CONTEXT = "ctx"
    COMPLETION_QUEUE = "cq"
    MEMORY_REGION = "mr"
    QUEUE_PAIR = "qp"
    CONNECTION = "cm_id"


FROM_MEMORY = (ObjectKind.CONTEXT, ObjectKind.COMPLETION_QUEUE, ObjectKind.MEMORY_REGION)
"""Kinds that the kernel lists from its memory. Listing queue pairs makes some drivers query their firmware for each one."""


class RdmaObject(NamedTuple):
    """One object of a device. Fields that its kind does not have, or the kernel does not report, are empty or 0."""

    kind: ObjectKind
    pid: int = 0
    """Process ID in this process' PID namespace; 0: owned by the kernel, by a process that ended, or in another namespace."""
    kernel: str = ""
    """Name of the kernel module that owns it: `ib_core`, `nvme_rdma`, ..."""
    port: int = 0
    number: int = 0
    """Number of the queue pair; for a connection, of its queue pair."""
    remote: int = 0
    """Number of the remote queue pair; 0 without one."""
    type: str = ""
    """Type of the queue pair, as `rdma` prints it: `RC`, `UD`, `GSI`, `XRC_INI`, ..."""
    state: str = ""
    """State of the queue pair or connection, as `rdma` prints it: `RTS`, `ERR`, ...; `CONNECT`, `LISTEN`, ..."""
    size: int = 0
    """Bytes of a memory region."""
    peer: str = ""
    """Remote IP address of a connection, without its port number; empty without one."""


class CounterSet(NamedTuple):
    """A set of hardware counters that is bound to queue pairs (`RDMA_NLDEV_CMD_STAT_GET` of `RDMA_NLDEV_ATTR_RES_QP`)."""

    port: int
    number: int
    """The kernel's number of the set: unique on a port while the set exists."""
    pid: int
    """Process whose queue pairs are bound; 0 if the set is not made per process."""
    type: str
    """Type of its queue pairs if the set is made per type; otherwise empty."""
    values: Mapping[str, int]


class ProcessFacts(NamedTuple):
    """What /proc reports of one process."""

    pid: int
    created: float
    """Seconds since 1970."""
    command: str
    """Name of the executable, as in /proc/PID/comm."""
    user: str
    """User name, or the number as text where it has no name here."""
    cgroups: str
    """Content of /proc/PID/cgroup."""


class Owner(NamedTuple):
    """Who uses RDMA objects. All processes of one cgroup are one owner."""

    name: str
    """The `owner` label: readable, the same for the same cgroup on every scrape, unique on a host."""
    kind: str
    """`pod`, `container`, `slurm`, `unit`, `cgroup`, `process`, `kernel`, `unknown` or `other`."""
    command: str = ""
    user: str = ""
    pod_uid: str = ""
    container_id: str = ""
    slurm_job: str = ""
    slurm_step: str = ""
    unit: str = ""


UNKNOWN_OWNER = Owner("unknown", "unknown")
"""Owner of objects whose process ended, is hidden, or is in another PID namespace."""

OTHER_OWNERS = Owner("other", "other")
"""All owners of a device beyond the configured number, together."""
