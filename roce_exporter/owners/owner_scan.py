"""One round over the RDMA objects of one device: what processes hold, the steps that read it, their order, and what a failure means.

A step blocks, so it is called from a worker thread. Between steps the round pauses, which keeps the load of the driver low.
"""

from __future__ import annotations

import errno
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from roce_exporter.host.kernel import Absent
from roce_exporter.model.owner import FROM_MEMORY, UNKNOWN_OWNER, ObjectKind, Owner
from roce_exporter.model.values import reason_of
from roce_exporter.owners.identify import label_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from roce_exporter.host.kernel import Kernel, ObjectList
    from roce_exporter.model import RdmaDevice
    from roce_exporter.model.owner import CounterSet, RdmaObject
    from roce_exporter.owners.identify import ProcessOwners


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
class ObjectTotals:
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

    def add(self, other: ObjectTotals) -> None:
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
        self.holders: dict[Holder, ObjectTotals] = {}
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
                held = self.holders[holder] = ObjectTotals()
            _count(held, one)

    def _holder(self, one: RdmaObject) -> Holder:
        if one.kernel == CONNECTION_MANAGER:
            return Holder(one.pid, self._connected.get(one.number, one.kernel))
        return Holder(one.pid, one.kernel)


def _count(held: ObjectTotals, one: RdmaObject) -> None:
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


class HeldByOwner(NamedTuple):
    """What each owner holds, and what its processes say who it is."""

    held: dict[str, ObjectTotals]
    """By the owner's name."""
    identities: dict[str, Counter[Owner]]
    """Processes of one owner can differ in command and user; the number of processes per identity."""


def by_owner(
    censuses: Iterable[Census], owners: Mapping[int, Owner], processes: Mapping[int, int]
) -> HeldByOwner:
    """The holdings of all holders per owner; `owners` and `processes` are the owner and process of each thread."""
    held: dict[str, ObjectTotals] = {}
    members: dict[str, dict[tuple[int, str], Owner]] = {}
    for census in censuses:
        for (pid, kernel), holdings in census.holders.items():
            owner = owner_of_holder(Holder(pid, kernel), owners)
            process = processes.get(pid, pid)
            of_owner = held.get(owner.name)
            if of_owner is None:
                of_owner = held[owner.name] = ObjectTotals()
            of_owner.add(holdings)
            if process:
                of_owner.processes.add(process)
            members.setdefault(owner.name, {})[process, kernel] = owner
    return HeldByOwner(held, {name: Counter(found.values()) for name, found in members.items()})


def owner_of_holder(holder: Holder, owners: Mapping[int, Owner]) -> Owner:
    """The owner of a holder's objects."""
    if holder.kernel:
        return Owner(label_text(f"{KERNEL}/{holder.kernel}"), KERNEL)
    return owners.get(holder.pid, UNKNOWN_OWNER)


def together(parts: Iterable[ObjectTotals]) -> ObjectTotals:
    """The sum of holdings."""
    total = ObjectTotals()
    for part in parts:
        total.add(part)
    return total


SUMMED = (*FROM_MEMORY, ObjectKind.QUEUE_PAIR)
"""Kinds of which the kernel's own number is compared with the number listed."""


class ListPart(NamedTuple):
    """A part of a list that was read."""

    seconds: float
    """Time that the kernel took."""
    ended: bool
    """Whether this was the end of the list."""


class OwnerScan:
    """One round over one device. Used by one thread at a time."""

    def __init__(
        self,
        kernel: Kernel,
        device: RdmaDevice,
        known: ProcessOwners,
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        """`clock` returns monotonic seconds, `wall` Unix time."""
        self.known = known
        self.censuses: dict[ObjectKind, Census] = {}
        """Per kind that was listed to its end."""
        self.unseen: dict[ObjectKind, int] = {}
        """Objects that the kernel counts, and does not list or lists without a process."""
        self.sets: dict[int, tuple[CounterSet, ...]] = {}
        """Per port whose counter sets could be read."""
        self._kernel = kernel
        self._device = device
        self._clock = clock
        self._wall = wall
        self._census = Census()
        self._list: ObjectList | None = None
        self._summary: Mapping[str, int] = {}

    def whole_list(self, kind: ObjectKind) -> None:
        """Read the whole list of one kind.

        Raises:
            Absent: the kernel does not list this kind.
            OSError: the kernel or the driver fails.
        """
        while not self.part(kind).ended:
            pass

    def part(self, kind: ObjectKind) -> ListPart:
        """Read the next part of the list of one kind.

        Raises:
            Absent: the kernel does not list this kind.
            OSError: the kernel or the driver fails.
        """
        begun = self._clock()
        try:
            objects = self._next(kind)
        except OSError:
            self.close()
            raise
        seconds = self._clock() - begun
        if objects is None:
            self.close()
            self.censuses[kind] = self._census
            return ListPart(seconds, ended=True)
        self._census.add(objects)
        self.known.learn((one.pid for one in objects), self._wall())
        return ListPart(seconds, ended=False)

    def compare(self) -> None:
        """Compare the kernel's own numbers with those listed since the last call; a list that failed is left out.

        Objects of other PID namespaces are listed without a process; old kernels leave them out.
        """
        with suppress(Absent):
            before, self._summary = self._summary, self._kernel.rdma_resources(self._device)
            for kind in SUMMED:
                if kind in self.censuses and kind not in self.unseen and kind.value in self._summary:
                    # Objects made or destroyed while a list was read are not unseen.
                    counted = min(
                        self._summary[kind.value], before.get(kind.value, self._summary[kind.value])
                    )
                    self.unseen[kind] = max(0, counted - self.censuses[kind].named)

    def counter_sets(self, port: int) -> float:
        """Read the counter sets of one port; returns the seconds that the kernel took.

        Raises:
            Absent: the driver has none.
            OSError: the kernel or the driver fails.
        """
        begun = self._clock()
        sets = self._kernel.counter_sets(self._device, port)
        seconds = self._clock() - begun
        self.known.learn((one.pid for one in sets), self._wall())
        self.sets[port] = sets
        return seconds

    def _next(self, kind: ObjectKind) -> tuple[RdmaObject, ...] | None:
        if self._list is None:
            connections = self.censuses.get(ObjectKind.CONNECTION)
            self._census = Census(connections.modules if connections else None)
            self._list = self._kernel.open_objects(self._device, kind)
        return self._list.next_part()

    def close(self) -> None:
        """Give up a list that has not ended. Not while a step is under way."""
        unfinished, self._list = self._list, None
        if unfinished is not None:
            unfinished.close()


T = TypeVar("T")

PART_BY_PART = (ObjectKind.CONNECTION, ObjectKind.QUEUE_PAIR)
"""Kinds that are listed in parts, with pauses: a driver may query its firmware for each object. Connections come first,
because they name the kernel modules behind the queue pairs of the connection manager."""


class Caller(Protocol):
    """Calls a step in a worker thread."""

    def __call__(self, step: Callable[[], T]) -> Awaitable[T]:
        """The result of the step.

        Raises:
            TimeoutError: it has not returned in time.
        """


class OwnerRound:
    """One round. Used by the event loop."""

    def __init__(
        self, scan: OwnerScan, call: Caller, sleep: Callable[[float], Awaitable[None]], pause: float
    ) -> None:
        """After a part that took t seconds, the round waits `pause` times t."""
        self.errors: list[str] = []
        """What could not be read, with the reason."""
        self._scan = scan
        self._call = call
        self._sleep = sleep
        self._pause = pause

    async def take(self, ports: Iterable[int]) -> None:
        """Take all steps. What fails alone is entered in `errors`, and the next step follows.

        Raises:
            TimeoutError: the device does not respond, so further steps would not get an answer either.
            OSError: ENODEV, the device was removed.
        """
        scan = self._scan
        await self._attempt("summary", self._call(scan.compare))
        for kind in FROM_MEMORY:
            await self._attempt(kind.value, self._call(partial(scan.whole_list, kind)))
        await self._attempt("summary", self._call(scan.compare))
        for kind in PART_BY_PART:
            await self._attempt(kind.value, self._parts(kind))
        await self._attempt("summary", self._call(scan.compare))
        for port in ports:
            await self._attempt(f"counter sets of port {port}", self._sets(port))

    async def _parts(self, kind: ObjectKind) -> None:
        ended = False
        while not ended:
            seconds, ended = await self._call(partial(self._scan.part, kind))
            await self._sleep(seconds * self._pause)

    async def _sets(self, port: int) -> None:
        seconds = await self._call(partial(self._scan.counter_sets, port))
        await self._sleep(seconds * self._pause)

    async def _attempt(self, what: str, step: Awaitable[None]) -> None:
        try:
            await step
        except (Absent, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                raise
        except OSError as error:
            if error.errno == errno.ENODEV:
                raise
            self.errors.append(f"{what}: {reason_of(error)}: {error}")
