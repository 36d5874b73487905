"""Record RDMA objects, counter sets and the processes that own them, as `rdma`, `ibv_devinfo` and /proc print them.

A capture lists the queue pairs of a device once and without rests, which on some drivers costs a request to the firmware for each.
Limits are read where the kernel reports them, otherwise only with `--owners.limits`, because that opens a context on the device.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from roce_exporter.host.kernel import Absent
from roce_exporter.host.recorded.ibv_devinfo_text import print_limits
from roce_exporter.host.recorded.object_rows import print_counter_set, print_object
from roce_exporter.host.recorded.process_files import print_processes
from roce_exporter.host.recorded.scrub_processes import scrub_process
from roce_exporter.model.owner import ObjectKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.host.kernel import ObjectKernel
    from roce_exporter.host.recorded.scrub import Scrubber
    from roce_exporter.model import Device, RdmaDevice
    from roce_exporter.model.owner import CounterSet, ProcessFacts, RdmaObject

    Row = dict[str, Any]

LOG = logging.getLogger(__name__)


class ProcessBook:
    """The processes of one moment, each read once, and scrubbed."""

    def __init__(self, kernel: ObjectKernel, scrub: Scrubber) -> None:
        self.kernel = kernel
        self.scrub = scrub
        self._known: dict[int, ProcessFacts | None] = {}

    def command(self, pid: int) -> str:
        """The command of a process; empty for the kernel's objects and for processes that cannot be read."""
        if pid and pid not in self._known:
            self._known[pid] = self._read(pid)
        facts = self._known.get(pid)
        return facts.command if facts else ""

    def files(self) -> dict[str, str]:
        """The files of every process whose command was read."""
        # A device that hung may still add processes.
        return print_processes({pid: facts for pid, facts in tuple(self._known.items()) if facts})

    def _read(self, pid: int) -> ProcessFacts | None:
        with contextlib.suppress(OSError):
            return scrub_process(self.scrub, self.kernel.process(pid))
        return None


def device_objects(processes: ProcessBook, device: Device) -> tuple[dict[str, Any], dict[str, list[Row]]]:
    """The files about the objects of a device, and its rows of each `rdma -j` command.

    A list that fails is left out. A kind without objects has an empty list, and no file where the kernel does not list it.
    """
    netlink = device.netlink
    if netlink is None:
        return {}, {}
    files: dict[str, Any] = {}
    files |= _limits(processes.kernel, netlink)
    name = {"ifindex": netlink.index, "ifname": device.name}
    rows = dict(_tables(processes, netlink, [port.number for port in device.ports]))
    return files, {kind: [name | row for row in found] for kind, found in rows.items()}


def _limits(kernel: ObjectKernel, device: RdmaDevice) -> dict[str, str]:
    """The limits of a device, as `ibv_devinfo -v` prints them; no file if neither the kernel nor an option reports them."""
    try:
        return {f"ibv_devinfo/{device.name}.txt": print_limits(device.name, kernel.object_limits(device))}
    except Absent:
        pass
    except OSError as error:
        LOG.warning("the limits of %s are left out: %s", device.name, error)
    return {}


def _tables(
    processes: ProcessBook, device: RdmaDevice, ports: Sequence[int]
) -> Iterator[tuple[str, list[Row]]]:
    for kind in ObjectKind:
        if (objects := _listed(processes.kernel, device, kind)) is not None:
            yield f"resource-{kind.value}", [_object_row(one, processes) for one in objects]
    lists = list(_counter_sets(processes.kernel, device, ports))
    if lists:
        yield (
            "statistic-qp",
            [print_counter_set(one, processes.command(one.pid)) for sets in lists for one in sets],
        )


def _object_row(one: RdmaObject, processes: ProcessBook) -> Row:
    scrubbed = one._replace(peer=processes.scrub.peer(one.peer)) if one.peer else one
    return print_object(scrubbed, processes.command(one.pid))


def _listed(kernel: ObjectKernel, device: RdmaDevice, kind: ObjectKind) -> tuple[RdmaObject, ...] | None:
    """All objects of one kind; None if the list cannot be read to its end."""
    with contextlib.suppress(OSError):
        objects = kernel.open_objects(device, kind)
        try:
            parts = iter(objects.next_part, None)
            return tuple(one for part in parts for one in part)
        finally:
            objects.close()
    return None


def _counter_sets(
    kernel: ObjectKernel, device: RdmaDevice, ports: Sequence[int]
) -> Iterator[tuple[CounterSet, ...]]:
    """The counter sets of each port that has a list of them."""
    for port in ports:
        with contextlib.suppress(OSError):
            yield kernel.counter_sets(device, port)
