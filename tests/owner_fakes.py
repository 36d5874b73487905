"""A host whose RDMA objects and processes a test sets, with a clock that only moves when something takes time."""

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from clock import EPOCH, Clock

from roce_exporter.exposition.served_series import is_sum
from roce_exporter.host.kernel import Absent
from roce_exporter.model import Device, DeviceReadings, Port, RdmaDevice
from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts, RdmaObject
from roce_exporter.owners import SurveyLimits, Surveyor

PART = 50
"""Queue pairs per part, as from a socket with a receive buffer of 8 KiB."""


def queue_pair(number: int, pid: int = 0, state: str = "RTS", remote: int = 0, **more: object) -> RdmaObject:
    """A queue pair of type RC."""
    return RdmaObject(
        ObjectKind.QUEUE_PAIR, pid=pid, number=number, type="RC", state=state, remote=remote, port=1, **more
    )  # type: ignore[arg-type]


def region(pid: int, size: int) -> RdmaObject:
    """A memory region."""
    return RdmaObject(ObjectKind.MEMORY_REGION, pid=pid, size=size)


def process(
    pid: int, cgroups: str, created: float = EPOCH, command: str = "python3", user: str = "ada"
) -> ProcessFacts:
    """A process."""
    return ProcessFacts(pid, created, command, user, cgroups)


@dataclass
class FakeList:
    """A list that calls `before_part` before each part."""

    parts: list[tuple[RdmaObject, ...]]
    before_part: Callable[[], None]
    closed: int = 0

    def next_part(self) -> tuple[RdmaObject, ...] | None:
        self.before_part()
        return self.parts.pop(0) if self.parts else None

    def close(self) -> None:
        self.closed += 1


@dataclass
class FakeHost:
    """An `ObjectKernel`; `Absent` for what is not set."""

    objects: dict[str, list[RdmaObject]] = field(default_factory=dict)
    """Per device."""
    processes: dict[int, ProcessFacts | OSError] = field(default_factory=dict)
    sets: dict[tuple[str, int], tuple[CounterSet, ...] | OSError] = field(default_factory=dict)
    """Per device and port."""
    uncounted: dict[str, int] = field(default_factory=dict)
    """Per kind, objects that are counted and not listed."""
    faults: dict[tuple[str, ObjectKind], OSError] = field(default_factory=dict)
    """Per device and kind, what opening its list raises."""
    before_part: Callable[[str, ObjectKind], None] = lambda *_: None
    processes_read: list[int] = field(default_factory=list)
    """Process IDs that were read, in order."""
    lists: list[FakeList] = field(default_factory=list)
    """All lists that were opened."""

    def open_objects(self, device: RdmaDevice, kind: ObjectKind) -> FakeList:
        if fault := self.faults.get((device.name, kind)):
            raise fault
        found = [one for one in self.objects.get(device.name, ()) if one.kind is kind]
        parts = [tuple(found[start : start + PART]) for start in range(0, len(found), PART)]
        self.lists.append(FakeList(parts, lambda: self.before_part(device.name, kind)))
        return self.lists[-1]

    def counter_sets(self, device: RdmaDevice, port: int) -> tuple[CounterSet, ...]:
        found = self.sets.get((device.name, port), Absent(errno.EOPNOTSUPP, "no counter sets"))
        if isinstance(found, OSError):
            raise found
        return found

    def object_limits(self, device: RdmaDevice) -> Mapping[str, int]:
        raise Absent(errno.EOPNOTSUPP, "no limits", device.name)

    def _found(self, pid: int) -> ProcessFacts:
        found = self.processes.get(pid, Absent(errno.ESRCH, "no such process"))
        if isinstance(found, OSError):
            raise found
        return found

    def process(self, pid: int) -> ProcessFacts:
        self.processes_read.append(self._found(pid).pid)
        return self._found(pid)

    def process_start(self, pid: int) -> float:
        return self._found(pid).created

    def rdma_resources(self, device: RdmaDevice) -> Mapping[str, int]:
        listed = self.objects.get(device.name, ())
        return {
            kind.value: sum(one.kind is kind for one in listed) + self.uncounted.get(kind.value, 0)
            for kind in ObjectKind
        }


def device(name: str, incarnation: int = 1, dialect: str = "mlx5") -> DeviceReadings:
    """A device with one port."""
    netlink = RdmaDevice(1, name, "", "roce", "")
    found = Device(
        name, "mlx5_core", dialect, netlink=netlink, incarnation=incarnation, ports=(Port(1, "Ethernet"),)
    )
    return DeviceReadings(found, ())


def surveyor(host: FakeHost, clock: Clock, limits: SurveyLimits = SurveyLimits(timeout=600)) -> Surveyor:  # noqa: B008 - frozen
    """A surveyor of this host, on this clock."""
    return Surveyor(host, limits, clock, clock.wall, clock.sleep)


def following(
    host: FakeHost,
    *names: str,
    clock: Clock | None = None,
    limits: SurveyLimits = SurveyLimits(timeout=600),  # noqa: B008 - frozen
) -> Surveyor:
    """A surveyor that follows these devices, or `mlx5_0`; on no machine does a call take too long."""
    found = surveyor(host, clock or Clock(), limits)
    found.follow([device(name) for name in names or ("mlx5_0",)])
    return found


async def survey(found: Surveyor) -> dict[str, float]:
    """What is shown after one more round."""
    await found.read_once()
    return shown(found)


def shown(found: Surveyor, *, sums: bool = False) -> dict[str, float]:
    """Each series of the surveyor as PromQL writes it, and its value: those per device, or the sums over all devices."""
    result: dict[str, float] = {}
    for samples in found.samples():
        for series, value in zip(samples.series, samples.values, strict=True):
            if is_sum(series) is not sums:
                continue
            pairs = zip(series.row.labels, series.labels, strict=True)
            labels = ",".join(f"{name}={text}" for name, text in pairs if text)
            name = f"{series.row.name.removeprefix('roce_owner_')}{{{labels}}}"
            assert name not in result
            assert value is not None
            result[name] = value
    return result
