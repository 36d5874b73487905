"""Messages of the kernel log about the devices of the host, counted by event.

Reads happen in worker threads and end when there is no new message; `surroundings.host_sources` has the rounds. What was in the log
before the exporter started is not counted. After a failed read the log is opened again at its oldest record, and those that
were already read are skipped, so nothing is counted twice and only overwritten messages are lost.
"""

from __future__ import annotations

import errno
import logging
import os
from typing import TYPE_CHECKING

from roce_exporter.catalog.kernel_events import FAILED_EVENTS
from roce_exporter.catalog.named import KERNEL_LOG_EVENTS, KERNEL_LOG_LOST, KERNEL_LOG_READABLE
from roce_exporter.collect.rounds import Calls
from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.kmsg import LogHiddenError
from roce_exporter.normalise.log_lines import event_of, events_of, read_line
from roce_exporter.normalise.series import Series
from roce_exporter.surroundings.host_sources import HostSource
from roce_exporter.surroundings.log_devices import PCIE_PORT, LogDevices
from roce_exporter.surroundings.log_position import LogPosition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roce_exporter.host.kernel import Kernel
    from roce_exporter.host.kernel.kmsg import KernelLog
    from roce_exporter.model import Device, DeviceReadings, LogRecord
    from roce_exporter.normalise.series import Value

LOG = logging.getLogger(__name__)

KERNEL_LOG = "kernel_log"
"""The source's name."""

MOST_RECORDS = 4096
"""Records of one read; the next one continues after them."""

PCIE_EVENTS = "pcie_"
"""The begin of the names of events that software devices cannot have."""

Counts = dict[tuple[str, str], int]
"""Messages by device and event."""


class KernelLogFollower(HostSource):
    """The kernel log of one host. Its ring of some thousand messages is read every second, because older ones are lost."""

    source = KERNEL_LOG
    interval = 1.0

    def __init__(self, kernel: Kernel, timeout: float = 5.0) -> None:
        self._kernel = kernel
        self._call = Calls(timeout)
        self._devices: tuple[Device, ...] = ()
        # The rest changes in worker threads, of which there is one at a time.
        self._log: KernelLog | None = None
        self._known: tuple[Device, ...] = ()
        self._names = LogDevices()
        self._position = LogPosition()
        self._counts: Counts = {}
        """Replaced and never changed in place: the event loop reads it meanwhile."""
        self._followed = False
        """Whether the log could be read at least once."""
        self._hidden = False

    def follow(self, found: Sequence[DeviceReadings]) -> None:
        """The devices that there are now."""
        devices = tuple(one.device for one in found)
        if devices != self._devices:
            self._devices = devices

    async def read(self) -> Mapping[Series, Value]:
        """The counts, with what is new in the log.

        Raises:
            Absent: this host has no kernel log, or this process may not read it.
            OSError: it is broken, and is opened again by the next call.
        """
        await self._call(self._advance)
        return self._series(readable=True)

    def unread(self) -> Mapping[Series, Value]:
        """What there is to show when `read` has failed."""
        return self._series(readable=False) if self._followed or self._hidden else {}

    def close(self) -> None:
        """Close the log as soon as no read is under way."""
        self._call.when_idle(self._drop)

    def _advance(self) -> None:
        if self._devices is not self._known:
            known = self._devices
            self._names.update(self._kernel, known)
            self._counts = self._with_zeros(known)
            self._known = known
        log = self._open()
        try:
            part = log.read(MOST_RECORDS)
        except OSError:
            self._drop()
            raise
        found = dict(self._counts)
        for record in self._position.accept(part):
            for place in self._events(record):
                found[place] = found.get(place, 0) + 1
        self._counts = found
        self._followed, self._hidden = True, False

    def _open(self) -> KernelLog:
        if self._log is None:
            try:
                self._log = self._kernel.open_kernel_log(oldest=self._position.next is not None)
            except LogHiddenError as error:
                self._hide(error)
                raise Absent(error.errno, error.strerror, error.filename) from None
            except Absent:
                raise
            except OSError:
                self._hidden = True
                raise
        return self._log

    def _hide(self, error: OSError) -> None:
        if not self._hidden:
            why = os.strerror(error.errno or errno.EPERM)
            LOG.info(
                "the kernel log is not read: %s: %s (the device node, and CAP_SYSLOG if kernel.dmesg_restrict is 1; see Privileges in README.md)",
                error.filename,
                why,
            )
        self._hidden = True

    def _drop(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _events(self, record: LogRecord) -> list[tuple[str, str]]:
        line = read_line(record)
        owners = self._names.concerned(line.names) if line else ()
        event = event_of(line) if line and owners else ""
        return [(device, event) for device in owners if event]

    def _with_zeros(self, devices: tuple[Device, ...]) -> Counts:
        counts = {place: count for place, count in self._counts.items() if place[0] in self._names}
        for device in devices:
            possible = events_of(device.driver)
            if device.pci and device.function != "vf":
                possible |= events_of(PCIE_PORT)
            for event in FAILED_EVENTS:
                if event in possible and (device.pci or not event.startswith(PCIE_EVENTS)):
                    counts.setdefault((device.name, event), 0)
        return counts

    def _series(self, *, readable: bool) -> Mapping[Series, Value]:
        found: dict[Series, Value] = {Series(KERNEL_LOG_READABLE, ()): int(readable)}
        if self._followed:
            found[Series(KERNEL_LOG_LOST, ())] = self._position.lost
            counts = self._counts
            found |= {Series(KERNEL_LOG_EVENTS, place): counts[place] for place in sorted(counts)}
        return found
