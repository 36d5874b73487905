"""One round over the RDMA objects of one device: what processes hold, the steps that read it, their order, and what a failure means.

A step blocks, so it is called from a worker thread. Between steps the round pauses, which keeps the load of the driver low.
"""

from __future__ import annotations

import errno
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from roce_exporter.host.kernel import Absent, Kernel, ObjectList
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import FROM_MEMORY, UNKNOWN_OWNER, CounterSet, ObjectKind, Owner, RdmaObject
from roce_exporter.model.values import reason_of
from roce_exporter.owners.identify import ProcessOwners, label_text

ERROR = "ERR"  # state of a queue pair that failed, as `rdma` prints it

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
    numbers: Counter[str] = field(default_factory=Counter)
    """Remote queue pairs, of which each queue pair that is connected has its own; others of NUMBERS, and bytes of memory regions."""
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
        return self.queue_pairs.total(), self.numbers["memory_region_bytes"]

    def add(self, other: ObjectTotals) -> None:
        """Add the objects of another."""
        for mine, theirs in (
            (self.queue_pairs, other.queue_pairs),
            (self.numbers, other.numbers),
            (self.connections, other.connections),
        ):
            mine.update(theirs)  # type: ignore[arg-type]  # of the same keys
        self.processes |= other.processes


NUMBERS = {
    ObjectKind.COMPLETION_QUEUE: "completion_queues",
    ObjectKind.MEMORY_REGION: "memory_regions",
    ObjectKind.CONTEXT: "contexts",
}


class Census:
    """The objects of one kind, added up per holder while the list is read."""

    def __init__(self, connected: Mapping[int, str] | None = None) -> None:
        """`connected` is the kernel module that connected a queue pair, by its number: see `Census.modules`."""
        self.holders: defaultdict[Holder, ObjectTotals] = defaultdict(ObjectTotals)
        self.named = 0
        """Objects whose thread or kernel module the kernel reports."""
        self.modules: dict[int, str] = {}
        """From a list of connections: the kernel module that uses a queue pair, by its number."""
        self._connected = connected or {}
        self._queue_pairs: set[int] = set()

    def add(self, objects: Iterable[RdmaObject]) -> None:
        """Count the objects of one part of the list. A queue pair that the list repeats is counted once."""
        for one in objects:
            # An object of the connection manager is of the module that connected it.
            is_managed = one.kernel == CONNECTION_MANAGER
            kernel = self._connected.get(one.number, one.kernel) if is_managed else one.kernel
            if one.kind is ObjectKind.QUEUE_PAIR:
                if one.number in self._queue_pairs:
                    continue
                self._queue_pairs.add(one.number)
            held = self.holders[Holder(one.pid, kernel)]
            self.named += bool(one.pid or one.kernel)
            if one.kind is ObjectKind.QUEUE_PAIR:
                held.queue_pairs[one.state, one.type] += 1
                held.numbers["remote_queue_pairs"] += one.remote != 0
            elif one.kind is ObjectKind.CONNECTION:
                if one.kernel and one.number:  # one that listens has no queue pair
                    self.modules[one.number] = one.kernel
                if one.peer:
                    held.connections[one.peer] += 1
            else:
                held.numbers[NUMBERS[one.kind]] += 1
                held.numbers["memory_region_bytes"] += one.size


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
    held: defaultdict[str, ObjectTotals] = defaultdict(ObjectTotals)
    members: dict[str, dict[tuple[int, str], Owner]] = {}
    for census in censuses:
        for (pid, kernel), holdings in census.holders.items():
            owner = owners.get(pid, UNKNOWN_OWNER)
            if kernel:
                owner = Owner(label_text(f"{KERNEL}/{kernel}"), KERNEL)
            process = processes.get(pid, pid)
            held[owner.name].add(holdings)
            if process:
                held[owner.name].processes.add(process)
            members.setdefault(owner.name, {})[process, kernel] = owner
    return HeldByOwner(dict(held), {name: Counter(found.values()) for name, found in members.items()})


def together(parts: Iterable[ObjectTotals]) -> ObjectTotals:
    """The sum of holdings."""
    total = ObjectTotals()
    for part in parts:
        total.add(part)
    return total


SUMMED = (*FROM_MEMORY, ObjectKind.QUEUE_PAIR)
"""Kinds of which the kernel's own number is compared with the number listed."""


class OwnerScan:
    """One round over one device. Used by one thread at a time.

    A step raises Absent where the kernel or the driver has no such list, and OSError where one of them fails.
    """

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
        """Read the whole list of one kind."""
        while not self.part(kind)[1]:
            pass

    def part(self, kind: ObjectKind) -> tuple[float, bool]:
        """Read the next part of the list of one kind: the seconds that the kernel took, and whether this was the end of the list."""
        begun = self._clock()
        try:
            if self._list is None:
                connections = self.censuses.get(ObjectKind.CONNECTION)
                self._census = Census(connections.modules if connections else None)
                self._list = self._kernel.open_objects(self._device, kind)
            objects = self._list.next_part()
        except OSError:
            self.close()
            raise
        seconds = self._clock() - begun
        if objects is None:
            self.close()
            self.censuses[kind] = self._census
            return seconds, True
        self._census.add(objects)
        self.known.learn((one.pid for one in objects), self._wall())
        return seconds, False

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
        """Read the counter sets of one port; returns the seconds that the kernel took."""
        begun = self._clock()
        sets = self._kernel.counter_sets(self._device, port)
        seconds = self._clock() - begun
        self.known.learn((one.pid for one in sets), self._wall())
        self.sets[port] = sets
        return seconds

    def close(self) -> None:
        """Give up a list that has not ended. Not while a step is under way."""
        unfinished, self._list = self._list, None
        if unfinished is not None:
            unfinished.close()


PART_BY_PART = (ObjectKind.CONNECTION, ObjectKind.QUEUE_PAIR)
"""Kinds that are listed in parts, with pauses: a driver may query its firmware for each object. Connections come first,
because they name the kernel modules behind the queue pairs of the connection manager."""

Call = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a step in a worker thread. TimeoutError: it has not returned in time."""


async def take_round(
    scan: OwnerScan, call: Call, ports: Iterable[int], pause: Callable[[float], Awaitable[None]]
) -> list[str]:
    """Take all steps of a round; returns what could not be read, with the reason. `pause` gets the seconds of each part.

    What fails alone is listed, and the next step follows. Raises TimeoutError: the device does not respond, so further steps would not
    get an answer either. OSError: ENODEV, the device was removed.
    """
    errors: list[str] = []

    async def attempt(what: str, step: Callable[[], Any]) -> Any:
        try:
            return await call(step)
        except Absent:
            return None
        except OSError as error:
            if isinstance(error, TimeoutError) or error.errno == errno.ENODEV:
                raise
            errors.append(f"{what}: {reason_of(error)}: {error}")

    await attempt("summary", scan.compare)
    for kind in FROM_MEMORY:
        await attempt(kind.value, partial(scan.whole_list, kind))
    await attempt("summary", scan.compare)
    for kind in PART_BY_PART:
        ended = False
        while not ended:
            seconds, ended = await attempt(kind.value, partial(scan.part, kind)) or (0.0, True)
            await pause(seconds)
    await attempt("summary", scan.compare)
    for port in ports:
        await pause(await attempt(f"counter sets of port {port}", partial(scan.counter_sets, port)) or 0.0)
    return errors
