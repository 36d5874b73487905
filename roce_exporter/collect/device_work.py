"""One device across collections: how it is described, and how its quick and its slow chain are read."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.collect.reads import Account, Finished, Outcome, ReadKey, Task, outcome_of
from roce_exporter.host.inventory import CLASS, Listed, describe
from roce_exporter.host.kernel import Absent, Kernel, read_or
from roce_exporter.host.sources import AGED, SLOW, Reader, open_readers
from roce_exporter.host.sources.netdev import hardware_netdevs
from roce_exporter.model import WHOLE_DEVICE, Device, DeviceReadings, Reading, SourceState, are_same

if TYPE_CHECKING:
    from roce_exporter.collect.workers import InFlight

INVENTORY = "inventory"
"""The source that lists the host's devices (device "") and describes each of them."""

GONE = "ENODEV"

NEVER = -float("inf")

RENAMED = 1 << 64
"""Added to the incarnation of a device whose network devices were renamed; inode numbers are below it."""

UNREAD = Outcome(None, begun=NEVER)


@dataclass(slots=True, eq=False)
class Slot:
    """One reader of a device, and the last outcome of its reads."""

    reader: Reader
    task: Task
    last: Outcome = UNREAD


class DeviceWork:
    """All work on one device. Used by the event loop; only the tasks run in worker threads."""

    def __init__(
        self,
        kernel: Kernel,
        listed: Listed,
        disabled: Collection[str],
        in_flight: InFlight[ReadKey],
        clock: Callable[[], float],
    ) -> None:
        self.listed = listed
        self.device: Device | None = None
        """None until it has been described."""
        self.readings: tuple[Reading, ...] = ()
        self._found: DeviceReadings | None = None
        """What `found` returned last."""
        self.account = Account()
        self._kernel = kernel
        self._disabled = disabled
        self._in_flight = in_flight
        self._clock = clock
        self._slots: dict[ReadKey, Slot] = {}
        """In reading order. Replaced and never changed, because worker threads read it."""
        self._first: dict[ReadKey, Slot] = {}
        """The slots of a device described for the first time: they are read before they are adopted."""
        self._retired = False
        self._slow: tuple[Slot, ...] = ()
        """The slots that the slow chain reads."""
        self._quick: tuple[Task, ...] = ()
        """The quick sources whose interface the device has; absent ones are tried again after the next description."""
        self._described = NEVER
        self._inventory = ReadKey(*listed, INVENTORY)
        self._netdevs: dict[str, int] = {}
        """The folders of the described network devices, and their inodes. Replaced and never changed."""

    def listed_now(self, one: Listed) -> Listed:
        """This device where the host lists it as `one`: the same, a new one, or one whose network devices were renamed.

        Called in a worker thread. All reads of a network device use its name, and two can exchange their names.
        """
        if one.incarnation != self.listed.incarnation % RENAMED:
            return one
        if all(read_or(0, self._kernel.identity, path) == inode for path, inode in self._netdevs.items()):
            return self.listed
        return one._replace(incarnation=self.listed.incarnation + RENAMED)

    def tasks(self, refresh: float) -> tuple[Task, ...]:
        """The reads that a collection waits for: the quick sources, and slow ones without a recent value.

        `refresh` is the interval of the slow ones, in seconds. A slow source is waited for when it has never been
        read, or when its value is older than twice this interval because no collection ran.
        """
        waited = self._clock() - 2 * refresh
        tasks = (*self._quick, *self._slow_before(waited)) if self._slow else self._quick
        if self.device is None or self._described <= waited:
            return (*tasks, Task(self._inventory, self._describe))
        return tasks

    def slow_tasks(self, refresh: float) -> tuple[Task, ...]:
        """The reads of the slow chain that are due, every `refresh` seconds."""
        if self.device is None:
            return ()
        due = self._clock() - refresh
        tasks = self._slow_before(due)
        return (*tasks, Task(self._inventory, self._describe)) if self._described <= due else tasks

    def settle(self, outcomes: Mapping[ReadKey, Outcome]) -> None:
        """Enter the outcomes of a collection, and those of the slow chain since the last collection."""
        inventory = outcomes.get(self._inventory)
        if inventory is not None:
            self._described = inventory.begun
            if inventory.found is not None:
                self._adopt(*inventory.found)  # type: ignore[misc]  # `_describe` puts a device and its slots there
        slots, came_or_went = self._slots, inventory is not None
        for key, outcome in outcomes.items():
            if (slot := slots.get(key)) is not None:
                if outcome.up is not slot.last.up:
                    came_or_went = True
                slot.last = outcome
        if came_or_went:
            self._choose_quick(outcomes.keys() if inventory is not None else slots.keys())
        readings = (*[reading for slot in slots.values() for reading in slot.last.readings], *self._ages())
        if not are_same(readings, self.readings):
            self.readings = readings
        failed = self.account.settle(self._mine(outcomes))
        broken = self.device is not None and self.device.netlink_errno != 0
        # A device that went away is described again at once.
        if broken or any(
            outcome.error.startswith(GONE)
            or any(loss.reason == GONE for reading in outcome.readings for loss in reading.losses)
            for outcome in failed
        ):
            self._described = NEVER

    def found(self) -> DeviceReadings | None:
        """Device and readings, the same object as long as both are; None until the device has been described."""
        known, device, readings = self._found, self.device, self.readings
        if device is not None and (
            known is None or known.device is not device or known.readings is not readings
        ):
            self._found = DeviceReadings(device, readings)
        return self._found if device is not None else None

    def so_far(
        self, outcomes: Mapping[ReadKey, Outcome]
    ) -> tuple[DeviceReadings | None, Iterable[SourceState]]:
        """Readings and states for a caller that cannot wait for the end of a collection. Enters nothing.

        A source that has not been read yet contributes its names without values, so that no plan changes, and no state.
        """
        if self.device is None:
            return None, ()
        readings: list[Reading] = []
        for key, slot in self._slots.items():
            if key in outcomes or key.source in SLOW:
                readings += outcomes.get(key, slot.last).readings
            else:
                readings += [
                    replace(one, values=(None,) * len(one.names), losses=()) for one in slot.last.readings
                ]
        readings += self._ages()
        kept = {self._inventory, *(slot.task.key for slot in self._slow)}
        states = (
            *self.account.preview(self._mine(outcomes)),
            *self.account.states_of(kept - outcomes.keys()),
        )
        return DeviceReadings(self.device, tuple(readings)), states

    def retire(self) -> None:
        """The device was removed: close its readers, each as soon as no read uses it."""
        self._retired = True
        self._replace({})

    def _slow_before(self, time: float) -> tuple[Task, ...]:
        """The slow sources that were last read at this time or earlier (monotonic seconds)."""
        return tuple([slot.task for slot in self._slow if slot.last.begun <= time])

    def _choose_quick(self, tried: Collection[ReadKey]) -> None:
        """Choose the quick sources to read from now on, without those that were tried and turned out to be absent."""
        self._quick = tuple(
            [
                slot.task
                for key, slot in self._slots.items()
                if key.source not in SLOW and (slot.last.up is not None or key not in tried)
            ]
        )

    def _describe(self) -> Finished:
        device = describe(self._kernel, self.listed)
        netdevs = self._folders(device)
        if self.device is not None and _without_gids(device) == _without_gids(self.device):
            return Finished(
                Outcome(up=True, readings=_inventory_losses(device), found=(device, netdevs, None))
            )
        slots = self._open(device)
        found = Outcome(up=True, readings=_inventory_losses(device), found=(device, netdevs, slots))
        if self.device is not None:
            return Finished(found)
        # A new device is read at once. Readers opened for a description that arrived too late are not needed any more.
        late, self._first = self._first, slots
        self._close(late)
        return Finished(found, tuple(slot.task for slot in slots.values()))

    def _folders(self, device: Device) -> dict[str, int]:
        """The folder of each network device, below its function where it is one of this device's, and its inode."""
        found = {}
        for _, netdev in hardware_netdevs(device):
            for path in (f"{CLASS}/{device.name}/device/net/{netdev}", f"class/net/{netdev}"):
                if inode := read_or(0, self._kernel.identity, path):
                    found[path] = inode
                    break
        return found

    def _open(self, device: Device) -> dict[ReadKey, Slot]:
        readers = open_readers(self._kernel, device, self._disabled)
        keys = [ReadKey(*self.listed, reader.source, reader.netdev) for reader in readers]
        return {
            key: Slot(reader, Task(key, partial(self._read_current, key)))
            for key, reader in zip(keys, readers, strict=True)
        }

    def _adopt(self, device: Device, netdevs: dict[str, int], slots: dict[ReadKey, Slot] | None) -> None:
        # An equal description keeps the old object: plans and templates are cached by identity.
        self._netdevs = netdevs
        if device != self.device:
            self.device = device
        if slots is not None:
            self._replace(slots)
            self.account.keep({self._inventory, *slots})

    def _replace(self, slots: dict[ReadKey, Slot]) -> None:
        old, first = self._slots, self._first
        self._slots, self._first = slots, {}
        self._slow = tuple(slot for key, slot in slots.items() if key.source in SLOW)
        self._close(old)
        if first is not slots:
            self._close(first)

    def _close(self, slots: Mapping[ReadKey, Slot]) -> None:
        for key, slot in slots.items():
            self._in_flight.when_idle(key, slot.reader.close)

    def _mine(self, outcomes: Mapping[ReadKey, Outcome]) -> Mapping[ReadKey, Outcome]:
        """The outcomes without those of sources that the device no longer has since it was described again."""
        if outcomes.keys() <= self._slots.keys():
            return outcomes
        gone = outcomes.keys() - self._slots.keys() - {self._inventory}
        return {key: outcome for key, outcome in outcomes.items() if key not in gone} if gone else outcomes

    def _read_current(self, key: ReadKey) -> Finished:
        # Read only now that the call is in flight: a slot replaced from here on is closed after the call.
        slot = self._slots.get(key) or self._first.get(key)
        if slot is None or self._retired:
            raise Absent(errno.ENODEV, "the device was removed", key.device)
        reader = slot.reader
        readings = reader.read(self._clock())
        return Finished(outcome_of((True, "", 0.0, readings, reader.quarantined, None, 0.0)))

    def _ages(self) -> list[Reading]:
        """The age of the values, for the slow sources that export it."""
        now = self._clock()
        return [
            Reading(source, self.listed.name, WHOLE_DEVICE, AGED[source], (int(now - slot.last.begun),))
            for slot in self._slow
            if (source := slot.task.key.source) in AGED and slot.last.readings
        ]


def _inventory_losses(device: Device) -> tuple[Reading, ...]:
    """A reading that lists the files that the inventory could not read; empty if it could read everything."""
    if not device.losses:
        return ()
    names = ("name", *[loss.name for loss in device.losses])
    return (Reading(INVENTORY, device.name, 0, names, (1, *[None] * len(device.losses)), device.losses),)


def _without_gids(device: Device) -> Device:
    return replace(device, ports=tuple(replace(port, gids=()) for port in device.ports))
