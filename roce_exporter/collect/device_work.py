"""One device as it is followed from collection to collection: described when that is due, and read every time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from roce_exporter.collect.lanes import Finished
from roce_exporter.collect.reads import Account, Outcome, Task
from roce_exporter.inventory import describe
from roce_exporter.model import Reading
from roce_exporter.sources import open_readers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from roce_exporter.collect.lanes import InFlight, Key
    from roce_exporter.inventory import Listed
    from roce_exporter.kernel import Kernel
    from roce_exporter.model import Device
    from roce_exporter.sources import Reader

INVENTORY = "inventory"
"""The source that lists the host's devices (device "") and describes each of them."""

GONE = "ENODEV"


class DeviceWork:
    """Everything that is done for one device. `device` is None until it has been described."""

    def __init__(
        self,
        kernel: Kernel,
        listed: Listed,
        disabled: Collection[str],
        in_flight: InFlight,
        clock: Callable[[], float],
    ) -> None:
        self.listed = listed
        self.device: Device | None = None
        self.readings: tuple[Reading, ...] = ()
        self.account = Account(listed.name)
        self._kernel = kernel
        self._disabled = disabled
        self._in_flight = in_flight
        self._clock = clock
        self._readers: tuple[Reader, ...] = ()
        self._tasks: dict[Key, Task] = {}
        """What reads each of them, in the same order."""
        self._due: tuple[Task, ...] = ()
        """Those of interfaces that the device has."""
        self._described = -float("inf")
        self._inventory = (listed.name, INVENTORY, "")
        self._absent: set[Key] = set()
        """Interfaces that the device does not have: not asked again before the next description."""

    def tasks(self, refresh: float) -> tuple[Task, ...]:
        """The reads of one collection. A known device is described last, every `refresh` seconds: it delays nobody."""
        if self.device is not None and self._clock() - self._described < refresh:
            return self._due
        return (*self._tasks.values(), Task(self._inventory, self._describe))

    def settle(self, outcomes: Mapping[Key, Outcome]) -> None:
        """Take what a collection brought."""
        if inventory := outcomes.get(self._inventory):
            self._described = self._clock()
            if inventory.found is not None:
                self._adopt(*inventory.found)  # type: ignore[misc]  # `_describe` puts a device and its readers there
        absent = self._absent.difference(outcomes)
        absent.update([key for key, outcome in outcomes.items() if outcome.up is None])
        if inventory or absent != self._absent:
            self._absent = absent
            self._due = tuple(task for key, task in self._tasks.items() if key not in absent)
        failed = self.account.settle(outcomes)
        told = [outcomes[task.key] for task in self._due if task.key in outcomes]
        self.readings = tuple([reading for outcome in told for reading in outcome.readings])
        broken = self.device is not None and self.device.netlink_errno != 0
        if broken or _lost_device(failed):
            self._described = -float("inf")

    def retire(self) -> None:
        """The device has gone: close what is open for it, but for what a read in flight still uses."""
        self._close(self._readers)

    def _describe(self) -> Finished[Task, Outcome]:
        device = describe(self._kernel, self.listed)
        readers = self._readers
        if self.device is None or _without_gids(device) != _without_gids(self.device):
            readers = open_readers(self._kernel, device, self._disabled)
        first = tuple(self._read_task(reader) for reader in readers) if self.device is None else ()
        return Finished(Outcome(up=True, readings=_told(device), found=(device, readers)), first)

    def _adopt(self, device: Device, readers: tuple[Reader, ...]) -> None:
        # An equal description keeps the old object, by which plans and templates are found again.
        if device != self.device:
            self.device = device
        if readers is not self._readers:
            old, self._readers = self._readers, readers
            self._tasks = {self._key(reader): self._read_task(reader) for reader in readers}
            self._close(old)
            self.account.keep([self._inventory, *map(self._key, readers)])

    def _close(self, readers: tuple[Reader, ...]) -> None:
        for reader in readers:
            if self._key(reader) not in self._in_flight:
                reader.close()

    def _read_task(self, reader: Reader) -> Task:
        return Task(self._key(reader), lambda: self._read(reader))

    def _key(self, reader: Reader) -> Key:
        return (self.listed.name, reader.source, reader.netdev)

    def _read(self, reader: Reader) -> Finished[Task, Outcome]:
        readings = reader.read(self._clock())
        return Finished(Outcome(up=True, readings=readings, quarantined=reader.quarantined))


def _lost_device(outcomes: Iterable[Outcome]) -> bool:
    """Whether a read said that the device went away, so that it had better be described anew."""
    return any(
        outcome.error.startswith(GONE)
        or any(loss.reason == GONE for reading in outcome.readings for loss in reading.losses)
        for outcome in outcomes
    )


def _told(device: Device) -> tuple[Reading, ...]:
    """That the inventory answered, and what it could not tell; nothing when it could tell all."""
    if not device.losses:
        return ()
    names = ("name", *[loss.name for loss in device.losses])
    return (Reading(INVENTORY, device.name, 0, names, (1, *[None] * len(device.losses)), device.losses),)


def _without_gids(device: Device) -> Device:
    return replace(device, ports=tuple(replace(port, gids=()) for port in device.ports))
