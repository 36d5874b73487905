"""What a recording contains about RDMA objects and their owners, at one moment: an `ObjectKernel` without its other parts."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.recorded.object_rows import (
    COUNTER_SET_FILE,
    OBJECT_FILES,
    read_counter_sets,
    read_objects,
)
from roce_exporter.host.recorded.process_files import read_processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roce_exporter.host.recorded.tree import Tree
    from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts, RdmaObject

PART = 50
"""Objects of one part, about as many as fit in a reply of the kernel."""


class HeldObjects:
    """A list of objects in memory, in parts."""

    def __init__(self, objects: Sequence[RdmaObject], part: int = PART) -> None:
        self._left = tuple(objects)
        self._part = part

    def next_part(self) -> tuple[RdmaObject, ...] | None:
        part, self._left = self._left[: self._part], self._left[self._part :]
        return part or None

    def close(self) -> None:
        self._left = ()


@dataclass(frozen=True, slots=True)
class RecordedObjects:
    """Objects, counter sets and processes of a host at one moment."""

    objects: Mapping[tuple[str, ObjectKind], tuple[RdmaObject, ...]] = field(default_factory=dict)
    """By device and kind; ("", kind) says that the kind was recorded."""
    counter_sets: Mapping[str, tuple[CounterSet, ...]] | None = None
    """By device; None: not recorded."""
    processes: Mapping[int, ProcessFacts] = field(default_factory=dict)

    def open_objects(self, device: str, kind: ObjectKind) -> HeldObjects:
        """See `ObjectKernel.open_objects`."""
        if ("", kind) not in self.objects:
            raise Absent(errno.EOPNOTSUPP, f"no {OBJECT_FILES[kind]} in this recording")
        return HeldObjects(self.objects.get((device, kind), ()))

    def sets_of(self, device: str, port: int) -> tuple[CounterSet, ...]:
        """See `ObjectKernel.counter_sets`."""
        if self.counter_sets is None:
            raise Absent(errno.EOPNOTSUPP, f"no {COUNTER_SET_FILE} in this recording")
        return tuple(one for one in self.counter_sets.get(device, ()) if one.port == port)

    def process(self, pid: int) -> ProcessFacts:
        """See `ObjectKernel.process`."""
        try:
            return self.processes[pid]
        except KeyError:
            raise Absent(errno.ESRCH, os.strerror(errno.ESRCH), f"proc/{pid}") from None


def read_recorded_objects(tree: Tree, path: str) -> RecordedObjects:
    """Read the files about objects and processes; `path` names the recording in errors.

    Raises:
        RecordingError: a file is malformed; one line that names it.
    """
    return RecordedObjects(
        read_objects(tree, path), read_counter_sets(tree, path), read_processes(tree, path)
    )
