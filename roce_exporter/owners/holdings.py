"""What processes hold of one device: lists of RDMA objects added up per process, then per owner. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.model.owner import UNKNOWN_OWNER, ObjectKind, Owner
from roce_exporter.owners.identify import label_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roce_exporter.model.owner import RdmaObject

ERROR = "ERR"
"""State of a queue pair that failed, as `rdma` prints it."""

KERNEL = "kernel"

CONNECTION_MANAGER = "rdma_cm"
"""Whom the kernel names for every queue pair that a module makes by `rdma_create_qp`: `ib_create_qp` takes the name of its caller."""


class Holder(NamedTuple):
    """Whom the kernel names as the owner of an object: a thread or a kernel module."""

    pid: int
    kernel: str


@dataclass(slots=True)
class Holdings:
    """Numbers of objects."""

    queue_pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By state and type."""
    connected: int = 0
    """Queue pairs with a remote queue pair. Each has its own, so this is the number of remote queue pairs as well."""
    completion_queues: int = 0
    memory_regions: int = 0
    memory_region_bytes: int = 0
    contexts: int = 0
    connections: Counter[str] = field(default_factory=Counter)
    """By remote IP address. Identifiers without one are no connections: they listen, or are not used yet."""
    processes: set[int] = field(default_factory=set)
    """Entered by `by_owner`."""

    @property
    def in_error(self) -> int:
        """Queue pairs in state ERR."""
        return sum(count for (state, _), count in self.queue_pairs.items() if state == ERROR)

    @property
    def rank(self) -> tuple[int, int]:
        """What decides which owners are shown: queue pairs, then bytes of memory regions."""
        return self.queue_pairs.total(), self.memory_region_bytes

    def add(self, other: Holdings) -> None:
        """Add the objects of another."""
        if other.queue_pairs:
            self.queue_pairs.update(other.queue_pairs)
        self.connected += other.connected
        self.completion_queues += other.completion_queues
        self.memory_regions += other.memory_regions
        self.memory_region_bytes += other.memory_region_bytes
        self.contexts += other.contexts
        if other.connections:
            self.connections.update(other.connections)
        self.processes |= other.processes


class Census:
    """The objects of one kind, added up per holder while the list is read."""

    def __init__(self, connected: Mapping[int, str] | None = None) -> None:
        """`connected` is the kernel module that connected a queue pair, by its number: see `Census.modules`."""
        self.holders: dict[Holder, Holdings] = {}
        self.named = 0
        """Objects whose thread or kernel module the kernel reports."""
        self.modules: dict[int, str] = {}
        """From a list of connections: the kernel module that uses a queue pair, by its number."""
        self._connected = connected or {}
        self._queue_pairs: set[int] = set()

    def add(self, objects: Iterable[RdmaObject]) -> None:
        """Count the objects of one part of the list. A queue pair that the list repeats is counted once."""
        for one in objects:
            if one.kind is ObjectKind.QUEUE_PAIR:
                if one.number in self._queue_pairs:
                    continue
                self._queue_pairs.add(one.number)
            elif one.kind is ObjectKind.CONNECTION and one.kernel and one.number:
                self.modules[one.number] = one.kernel
            self.named += bool(one.pid or one.kernel)
            holder = self._holder(one)
            held = self.holders.get(holder)
            if held is None:
                held = self.holders[holder] = Holdings()
            _count(held, one)

    def _holder(self, one: RdmaObject) -> Holder:
        if one.kernel == CONNECTION_MANAGER:
            return Holder(one.pid, self._connected.get(one.number, one.kernel))
        return Holder(one.pid, one.kernel)


def _count(held: Holdings, one: RdmaObject) -> None:
    match one.kind:
        case ObjectKind.QUEUE_PAIR:
            held.queue_pairs[one.state, one.type] += 1
            held.connected += one.remote != 0
        case ObjectKind.COMPLETION_QUEUE:
            held.completion_queues += 1
        case ObjectKind.MEMORY_REGION:
            held.memory_regions += 1
            held.memory_region_bytes += one.size
        case ObjectKind.CONTEXT:
            held.contexts += 1
        case ObjectKind.CONNECTION:
            if one.peer:
                held.connections[one.peer] += 1


class OwnerHoldings(NamedTuple):
    """What each owner holds, and what its processes say who it is."""

    held: dict[str, Holdings]
    """By the owner's name."""
    identities: dict[str, Counter[Owner]]
    """Processes of one owner can differ in command and user; the number of processes per identity."""


def by_owner(
    censuses: Iterable[Census], owners: Mapping[int, Owner], processes: Mapping[int, int]
) -> OwnerHoldings:
    """The holdings of all holders per owner; `owners` and `processes` are the owner and process of each thread."""
    held: dict[str, Holdings] = {}
    members: dict[str, dict[tuple[int, str], Owner]] = {}
    for census in censuses:
        for (pid, kernel), holdings in census.holders.items():
            owner = owner_of_holder(Holder(pid, kernel), owners)
            process = processes.get(pid, pid)
            of_owner = held.get(owner.name)
            if of_owner is None:
                of_owner = held[owner.name] = Holdings()
            of_owner.add(holdings)
            if process:
                of_owner.processes.add(process)
            members.setdefault(owner.name, {})[process, kernel] = owner
    return OwnerHoldings(held, {name: Counter(found.values()) for name, found in members.items()})


def owner_of_holder(holder: Holder, owners: Mapping[int, Owner]) -> Owner:
    """The owner of a holder's objects."""
    if holder.kernel:
        return Owner(label_text(f"{KERNEL}/{holder.kernel}"), KERNEL)
    return owners.get(holder.pid, UNKNOWN_OWNER)


def together(parts: Iterable[Holdings]) -> Holdings:
    """The sum of holdings."""
    total = Holdings()
    for part in parts:
        total.add(part)
    return total
