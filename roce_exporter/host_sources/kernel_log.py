"""Messages of the kernel log about the devices of the host, counted by event.

Reads happen in worker threads and end when there is no new message; the package has the rounds. What was in the log
before the exporter started is not counted. After a failed read the log is opened again at its oldest record, and those that
were already read are skipped, so nothing is counted twice and only overwritten messages are lost.
"""

from __future__ import annotations

import errno
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from roce_exporter.catalog.kernel_events import FAILED_EVENTS
from roce_exporter.catalog.named import KERNEL_LOG_EVENTS, KERNEL_LOG_LOST, KERNEL_LOG_READABLE
from roce_exporter.collect.rounds import Calls
from roce_exporter.host.inventory import CLASS, PCI_ADDRESS
from roce_exporter.host.kernel import Absent, Kernel, read_or
from roce_exporter.host.kernel.kmsg import KernelLog, LogHiddenError, LogPart
from roce_exporter.host_sources import HostSource
from roce_exporter.model import Device, DeviceReadings, LogRecord, decode_record
from roce_exporter.normalise.log_lines import EVERY_DEVICE, event_of, events_of, read_line
from roce_exporter.normalise.series import Series, Value

MOST_DEVICES = 256
"""Devices that are remembered, with those that were removed: a device that is gone is what messages are about."""
PCIE_PORT = "pcieport"


class LogDevices:
    """The devices that the host has or had since the exporter started."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, ...]] = {}
        """The names of each device, the one that was seen last at the end."""
        self._drivers: dict[str, tuple[str, ...]] = {}
        """The drivers of each device that has hardware: of its function, and of its network devices' (vmw_pvrdma has vmxnet3)."""
        self._devices: dict[str, tuple[str, ...]] = {}
        """The devices of each name."""
        self.modules: set[str] = set()
        """The names of the modules of devices that have hardware."""

    def __contains__(self, device: str) -> bool:
        return device in self._names

    def update(self, kernel: Kernel, devices: Iterable[Device]) -> None:
        """The devices that there are now; blocks, to read under which names messages may mention them."""
        numbers: Counter[str] = Counter()
        for device in devices:
            self._names.pop(device.name, None)
            # A driver that writes the number of its device: they are registered in that order.
            number = f"{device.dialect}#{numbers[device.dialect]}"
            numbers[device.dialect] += 1
            self._names[device.name] = (*_names(kernel, device), number)
            self._drivers[device.name] = _drivers(kernel, device)
            self.modules.update(_modules(device) if device.pci else ())
        for gone in tuple(self._names)[:-MOST_DEVICES]:
            del self._names[gone], self._drivers[gone]
        self._devices = self._by_name({device.name for device in devices})

    def concerned(self, names: Sequence[str]) -> tuple[str, ...]:
        """The devices that these names mean, the most precise one first; empty if none of them is known.

        A network device of another namespace may have a name that a device of the host has, too. So where the message has an address on
        the bus or a driver, it must be that of the device.
        """
        addresses = [name for name in names if PCI_ADDRESS.fullmatch(name)]
        at = {owner for address in addresses for owner in self._devices.get(address, ())}
        drivers = [name[1:-1] for name in names if name.startswith("(")]
        for name in names:
            owners = self._devices.get(name, ())
            if mine := tuple(
                owner
                for owner in owners
                if (owner in at or not addresses)
                and (not drivers or not (own := self._drivers.get(owner)) or set(own) & set(drivers))
            ):
                return mine
        return ()

    def _by_name(self, present: set[str]) -> dict[str, tuple[str, ...]]:
        # A device that is there owns its address alone; a removed one may have been replaced or renamed.
        found: dict[str, list[str]] = {EVERY_DEVICE: [*present]}
        for some in (present, self._names.keys() - present):
            taken = set(found)
            for device, names in self._names.items():
                for name in names if device in some else ():
                    if name not in taken:
                        found.setdefault(name, []).append(device)
        return {name: tuple(owners) for name, owners in found.items()}


def _names(kernel: Kernel, device: Device) -> tuple[str, ...]:
    """The device itself, its network devices, the functions below both, the PCIe port that it is plugged into, and its module."""
    home = f"{CLASS}/{device.name}/device"
    netdevs = [netdev.name for port in device.ports for netdev in port.netdevs]
    links = [home, *(f"class/net/{netdev}/device" for netdev in netdevs)]
    functions = [read_or("", kernel.link, link) for link in links]
    # A message about the port concerns the card, and not each of its VFs.
    uevent = "" if device.function == "vf" else read_or("", kernel.text, f"{home}/../uevent")
    facts = dict(line.split("=", 1) for line in uevent.splitlines() if "=" in line)
    port = facts.get("PCI_SLOT_NAME", "") if facts.get("DRIVER") == PCIE_PORT else ""
    found = (device.name, *netdevs, *functions, device.pci, port, *_modules(device))
    return tuple(dict.fromkeys(filter(None, found)))


def _drivers(kernel: Kernel, device: Device) -> tuple[str, ...]:
    """The driver of the device's function, and those of its network devices' functions; none without hardware."""
    links = [f"class/net/{netdev.name}/device/driver" for port in device.ports for netdev in port.netdevs]
    found = (read_or("", kernel.link, link) for link in links)
    return tuple(filter(None, (device.driver, *found))) if device.driver else ()


def _modules(device: Device) -> tuple[str, ...]:
    """What the RDMA module of a device may be called: siw, rdma_rxe, iw_cxgb4, mlx5_ib, ionic_rdma."""
    name = device.dialect
    return (name, f"rdma_{name}", f"iw_{name}", f"{name}_ib", f"{name}_rdma") if name else ()


class LogPosition:
    """The place up to which a log has been read, which outlives its descriptor."""

    def __init__(self) -> None:
        self.next: int | None = None
        """The sequence number of the next record; None before the first one."""
        self.lost = 0
        """Records that were overwritten before they were read."""

    def accept(self, part: LogPart) -> Iterator[LogRecord]:
        """The records of this part that were not read before, and are from the kernel."""
        if self.next is None:
            # The number of lost records is known from the next gap on.
            self.lost += min(part.overruns, 1) if part.records else part.overruns
        for raw in part.records:
            record = decode_record(raw)
            if record is None or (self.next is not None and record.sequence < self.next):
                continue
            if self.next is not None and not part.thinned:
                self.lost += record.sequence - self.next
            self.next = record.sequence + 1
            if record.text:
                yield record


LOG = logging.getLogger(__name__)
KERNEL_LOG = "kernel_log"
"""The source's name."""
MOST_RECORDS = 4096  # records of one read; the next one continues after them
FUNCTION_EVENTS = ("pcie_", "recovery_failed", "command_timeout")
"""The begins of the names of events that software devices, which have no function, cannot have."""
HIDDEN = "the kernel log is not read: %s: %s (the device node, and CAP_SYSLOG if kernel.dmesg_restrict is 1; see docs/troubleshooting.md)"
Counts = dict[tuple[str, str], int]  # messages by device and event


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
        """The counts, with what is new in the log."""
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
            line = read_line(record)
            owners = self._names.concerned(line.names) if line else ()
            if line and len(owners) > 1 and line.names[0] in self._names.modules:
                # An error of one of them: what it means is not said of the others.
                line = line._replace(text="")
            if line and owners and (event := event_of(line)):
                for device in owners:
                    found[device, event] = found.get((device, event), 0) + 1
        self._counts = found
        self._followed, self._hidden = True, False

    def _open(self) -> KernelLog:
        if self._log is None:
            try:
                self._log = self._kernel.open_kernel_log(oldest=self._position.next is not None)
            except LogHiddenError as error:
                if not self._hidden:
                    why = os.strerror(error.errno or errno.EPERM)
                    LOG.info(HIDDEN, error.filename, why)
                self._hidden = True
                raise Absent(error.errno, error.strerror, error.filename) from None
            except OSError as error:
                self._hidden |= not isinstance(error, Absent)
                raise
        return self._log

    def _drop(self) -> None:
        log, self._log = self._log, None
        if log is not None:
            log.close()

    def _with_zeros(self, devices: tuple[Device, ...]) -> Counts:
        counts = {place: count for place, count in self._counts.items() if place[0] in self._names}
        for device in devices:
            possible = events_of(device.driver)
            if device.pci and device.function != "vf":
                possible |= events_of(PCIE_PORT)
            for event in FAILED_EVENTS:
                if event in possible and (device.pci or not event.startswith(FUNCTION_EVENTS)):
                    counts.setdefault((device.name, event), 0)
        return counts

    def _series(self, *, readable: bool) -> Mapping[Series, Value]:
        found: dict[Series, Value] = {Series(KERNEL_LOG_READABLE, ()): int(readable)}
        if self._followed:
            found[Series(KERNEL_LOG_LOST, ())] = self._position.lost
            counts = self._counts
            found |= {Series(KERNEL_LOG_EVENTS, place): counts[place] for place in sorted(counts)}
        return found
