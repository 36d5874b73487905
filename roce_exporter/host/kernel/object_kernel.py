"""What the exporter reads from a host about RDMA objects and their owners. No method writes.

Every method may block and is called from worker threads only. `Absent` means that the host does not have the interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.model import RdmaDevice
    from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts, RdmaObject


class ObjectList(Protocol):
    """A list of objects that is read part by part, so that the caller decides how fast the driver is queried."""

    def next_part(self) -> tuple[RdmaObject, ...] | None:
        """The next objects; None at the end of the list. Objects that come or go meanwhile may be missing or repeated.

        Raises:
            OSError: the kernel or the driver fails, or the device was removed (ENODEV). The list is over then.
        """

    def close(self) -> None:
        """Give up the rest. May be called again, also from another thread once no call is in flight."""


@runtime_checkable
class ObjectKernel(Protocol):
    """Objects and processes of a host."""

    def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> ObjectList:
        """Begin to list the objects of one kind. Those of a PID namespace that is not this one or below have no process.

        Raises:
            Absent: the kernel does not list this kind.
            OSError: netlink fails.
        """

    def counter_sets(self, device: RdmaDevice, port: int) -> tuple[CounterSet, ...]:
        """The counter sets that are bound to queue pairs of one port, made per process or not.

        Raises:
            Absent: the driver or kernel has none (mlx5 and ionic have them).
            OSError: netlink or the driver fails.
        """

    def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
        """The most objects that the device can have at once: `max_qp`, `max_cq`, `max_mr`, by the names of `ibv_devinfo`.

        Raises:
            Absent: nothing here reports them, or the option that permits it is not set (see `kernel.uverbs`).
        """

    def process(self, pid: int) -> ProcessFacts:
        """What /proc reports of one process.

        Raises:
            Absent: there is no such process any more.
            OSError: EACCES or EPERM where /proc hides processes of other users (`hidepid`, `ProtectProc=`).
        """

    def process_start(self, pid: int) -> float:
        """When a process or thread began, in a unit of the implementation: the same process ID and start are the same process.

        Much cheaper than `process`, and raises the same errors.
        """
