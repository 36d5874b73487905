"""The steps of one round over the objects of one device. Each step blocks, so it is called from a worker thread."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.kernel import Absent
from roce_exporter.model.owner import FROM_MEMORY, ObjectKind
from roce_exporter.owners.holdings import Census

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roce_exporter.host.kernel import Kernel, ObjectList
    from roce_exporter.model import RdmaDevice
    from roce_exporter.model.owner import CounterSet, RdmaObject
    from roce_exporter.owners.identify import Roll

SUMMED = (*FROM_MEMORY, ObjectKind.QUEUE_PAIR)
"""Kinds of which the kernel's own number is compared with the number listed."""


class ListPart(NamedTuple):
    """A part of a list that was read."""

    seconds: float
    """Time that the kernel took."""
    ended: bool
    """Whether this was the end of the list."""


class Survey:
    """One round over one device. Used by one thread at a time."""

    def __init__(
        self,
        kernel: Kernel,
        device: RdmaDevice,
        roll: Roll,
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        """`clock` returns monotonic seconds, `wall` Unix time."""
        self.roll = roll
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
        self.roll.learn((one.pid for one in objects), self._wall())
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
        self.roll.learn((one.pid for one in sets), self._wall())
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
