"""The surveyor: rounds over the RDMA objects of every device, between scrapes, and their results as samples and as JSON. See the package's docstring."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from roce_exporter.catalog import owners as rows
from roce_exporter.collect.rounds import ExporterPart, Rounds, every
from roce_exporter.collect.workers import CallThread, InFlight, call_in_worker
from roce_exporter.host.kernel import Kernel
from roce_exporter.model import Device, DeviceReadings, SourceState
from roce_exporter.model.owner import OTHER_OWNERS, ObjectKind, Owner
from roce_exporter.normalise.series import NO_SAMPLES, Samples, Series, Value
from roce_exporter.owners.identify import LIFE, KnownProcesses, ProcessOwners
from roce_exporter.owners.owner_scan import ObjectTotals, OwnerScan, take_round
from roce_exporter.owners.owner_totals import DeviceOwners, HostOwners, OwnerNumbers, Round
from roce_exporter.words import few

T = TypeVar("T")

OWNERS = "owners"  # the name of this source

SPREAD = 5.0
"""Seconds over which the first rounds are spread, so that not all devices are listed at the same time."""


@dataclass(frozen=True, slots=True)
class SurveyLimits:
    """The operator's settings. Times are in seconds."""

    interval: float = 60.0
    """Between the begins of two rounds over a device."""
    most: int = 32
    """Owners per device with series of their own."""
    peers: int = 16
    """Remote addresses per owner with a series of their own."""
    load: float = 0.02
    """The largest share of time that a driver spends on listing objects one by one."""
    anonymous: bool = False
    """Whether command and user are left out."""
    timeout: float = 5.0
    """After this time a call that has not returned is given up."""


class SurveyKey(NamedTuple):
    """One device in one incarnation: at most one call for it is in flight."""

    device: str
    incarnation: int


@dataclass(slots=True, eq=False)
class Surveyed:
    """One device, its owners, and the state of its last round."""

    key: SurveyKey
    device: Device
    owners: DeviceOwners
    rounds: Rounds
    has_ended: bool = False
    """Whether a round has ended, completely or not."""
    seconds: float | None = None
    """Duration of the last complete round."""
    ended: float | None = None
    """Unix time of its end."""
    reading: float = 0.0
    """Seconds that the steps of the round under way, or of the last one, took without its pauses."""


class Surveyor(ExporterPart):
    """Surveys the devices of a host. Used from one event loop."""

    name = "surveyor"

    def __init__(
        self,
        kernel: Kernel,
        limits: SurveyLimits,
        clock: Callable[[], float],
        wall: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`clock` returns monotonic seconds, `wall` Unix time."""
        self._kernel = kernel
        self.limits = limits
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        life = min(LIFE, limits.interval / 2)
        self.processes = KnownProcesses(kernel, clock, life, anonymous=limits.anonymous)
        self._in_flight: InFlight[SurveyKey] = InFlight(clock)
        self._devices: dict[SurveyKey, Surveyed] = {}
        self._changed = asyncio.Event()
        self._identities: dict[str, Owner] = {}
        self._info = NO_SAMPLES
        self._host = HostOwners(limits.most)
        self._sums = NO_SAMPLES

    def follow(self, devices: Iterable[DeviceReadings]) -> None:
        """Survey these devices and no others. Devices that RDMA netlink does not list are left out."""
        found = {
            SurveyKey(one.device.name, one.device.incarnation): one.device
            for one in devices
            if one.device.netlink is not None
        }
        if found.keys() != self._devices.keys():
            self._devices = {
                key: self._devices.get(key)
                or Surveyed(
                    key,
                    device,
                    DeviceOwners(self.limits.most, self.limits.peers),
                    Rounds(OWNERS, self._clock, key.device),
                )
                for key, device in found.items()
            }
            self._introduce()
            self._changed.set()
        for key, surveyed in self._devices.items():
            surveyed.device = found[key]

    async def run(self) -> None:
        """Survey every device again and again. Runs until cancelled."""
        tasks: dict[SurveyKey, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                for key in tasks.keys() - self._devices.keys():
                    tasks.pop(key).cancel()
                fresh = [surveyed for key, surveyed in self._devices.items() if key not in tasks]
                for position, surveyed in enumerate(fresh):
                    delay = min(SPREAD, self.limits.interval) * position / len(fresh)
                    tasks[surveyed.key] = group.create_task(self._repeat(surveyed, delay))
                await self._changed.wait()

    async def read_once(self) -> None:
        """Survey every device once, without pauses; a round not finished after `SurveyLimits.timeout` is given up."""
        await asyncio.gather(*map(self._bounded, self._devices.values()))

    def samples(self) -> tuple[Samples, ...]:
        """The samples of the last rounds."""
        return (*[one.rounds.samples for one in self._devices.values()], self._info, self._sums)

    def states(self) -> tuple[SourceState, ...]:
        """The state of each device as of its last round."""
        return tuple([one.rounds.state for one in self._devices.values() if one.has_ended])

    def documents(self) -> list[dict[str, Any]]:
        """Per device its owners and the state of the last round, for JSON."""
        return [
            device_document(
                one.device.name,
                one.rounds.state if one.has_ended else None,
                one.owners.last,
                self._identities,
                one.ended,
            )
            for one in self._devices.values()
        ]

    async def _repeat(self, surveyed: Surveyed, delay: float) -> None:
        await self._sleep(delay)
        survey = partial(self._round, surveyed, 1 / self.limits.load - 1)
        await every(self.limits.interval, survey, self._clock, self._sleep)

    async def _bounded(self, surveyed: Surveyed) -> None:
        timeout = self.limits.timeout
        try:
            async with asyncio.timeout(timeout):
                await self._round(surveyed, 0.0)
        except TimeoutError:
            self._enter_failure(surveyed, f"not finished after {timeout:g} s")

    async def _round(self, surveyed: Surveyed, pause: float) -> None:
        begun, surveyed.reading = self._clock(), 0.0
        known = ProcessOwners(self.processes.find, surveyed.owners.created)
        netlink = surveyed.device.netlink
        assert netlink is not None  # noqa: S101 - `follow` takes no others
        scan = OwnerScan(self._kernel, netlink, known, self._clock, self._wall)
        # One thread for all steps: starting one takes longer than most steps.
        thread = CallThread()
        ports = [port.number for port in surveyed.device.ports]
        try:
            errors = await take_round(
                scan,
                partial(self._call, surveyed, thread),
                ports,
                lambda seconds: self._sleep(seconds * pause),
            )
            surveyed.owners.enter(scan, surveyed.device.dialect)
            if scan.censuses and not errors:
                surveyed.seconds, surveyed.ended = self._clock() - begun, self._wall()
            up = not errors if scan.censuses or errors else None
            self._settle(surveyed, up, few(errors, 1), len(errors))
        except Exception as error:  # noqa: BLE001 - what fails at one device must not cost the others
            self._enter_failure(surveyed, surveyed.rounds.failure(error))
        finally:
            # A list is closed as soon as no step uses it, also after a step that is stuck and when this task is cancelled.
            self._in_flight.when_idle(surveyed.key, scan.close)
            thread.retire()
            self.processes.forget()

    async def _call(self, surveyed: Surveyed, thread: CallThread, step: Callable[[], T]) -> T:
        begun = self._clock()
        try:
            return await call_in_worker(self._in_flight, surveyed.key, step, self.limits.timeout, thread)
        finally:
            surveyed.reading += self._clock() - begun

    def _enter_failure(self, surveyed: Surveyed, error: str) -> None:
        """Enter a round that was given up. A step of it can still be under way, so nothing it found is used."""
        surveyed.owners.fail()
        self._settle(surveyed, up=False, error=error, errors=1)

    def _settle(self, surveyed: Surveyed, up: bool | None, error: str, errors: int) -> None:
        surveyed.has_ended = True
        surveyed.rounds.settle(up, surveyed.reading, error, errors)
        surveyed.rounds.samples = surveyed.rounds.samples.replace(
            device_samples(surveyed.key.device, surveyed.owners.last, surveyed.seconds, surveyed.ended)
        )
        self._introduce()

    def _introduce(self) -> None:
        """Say who the owners are that any device shows, and what each has on all devices."""
        results = [one.owners.last for one in self._devices.values()]
        self._identities = identities(results, self._identities)
        known = self._identities.values()
        self._info = self._info.replace((Series(rows.OWNER_INFO, tuple(owner)), 1) for owner in known)
        self._host.enter({key: one.owners for key, one in self._devices.items()})
        self._sums = self._sums.replace(host_samples(self._host))


Sample = tuple[Series, "Value"]


def device_samples(
    device: str, result: Round, seconds: float | None, ended: float | None
) -> Iterator[Sample]:
    """The samples of one device. `seconds` is the duration of the last complete round, `ended` the Unix time of its end."""
    for name, shown in result.owners.items():
        yield from _owner_samples((device, name), shown, result.kinds)
    for total, value in sorted(result.totals.items(), key=lambda item: (item[0].row.name, *item[0][1:])):
        yield Series(total.row, (device, total.owner, str(total.port))), value
    if result.kinds:
        yield Series(rows.FOLDED, (device,)), len(result.folded)
        yield Series(rows.HIDDEN_PROCESSES, (device,)), result.hidden
    for kind, count in result.unseen.items():
        yield Series(rows.UNSEEN, (device, kind.value)), count
    if seconds is not None:
        yield Series(rows.SURVEY_SECONDS, (device,)), seconds
        yield Series(rows.SURVEY_TIME, (device,)), ended


def host_samples(result: HostOwners) -> Iterator[Sample]:
    """The sums of each owner over all devices, which have no device, port and peer."""
    for name, held in result.held.items():
        peers = {"": held.connections.total()} if held.connections else {}
        for series, value in _owner_samples(("", name), OwnerNumbers(held, peers), result.kinds):
            if series.row is not rows.QUEUE_PAIRS:
                yield series, value
    for (row, name), count in sorted(result.counts.items(), key=lambda item: (item[0][0].name, item[0][1])):
        yield Series(row, ("", name, "")), count


def _owner_samples(
    labels: tuple[str, str], shown: OwnerNumbers, kinds: frozenset[ObjectKind]
) -> Iterator[Sample]:
    held = shown.held
    if ObjectKind.QUEUE_PAIR in kinds:
        for (state, transport), count in sorted(held.queue_pairs.items()):
            yield Series(rows.QUEUE_PAIRS, (*labels, state, transport)), count
        yield Series(rows.QUEUE_PAIRS_IN_ERROR, labels), held.in_error
    for kind, row, name in OF_KIND:
        if kind in kinds:
            yield Series(row, labels), held.numbers[name]
    for peer, count in shown.peers.items():
        yield Series(rows.CONNECTIONS, (*labels, peer)), count
    yield Series(rows.PROCESSES, labels), len(held.processes)


def identities(results: Iterable[Round], before: Mapping[str, Owner]) -> dict[str, Owner]:
    """One identity per owner with series on any device; the one shown `before` as long as a process has it."""
    found: defaultdict[str, Counter[Owner]] = defaultdict(Counter)
    for result in results:
        for name in result.owners.keys() & result.identities.keys():
            found[name].update(result.identities[name])
    return {
        name: before[name] if before.get(name) in per else min(per, key=lambda owner: (-per[owner], owner))
        for name, per in sorted(found.items())
    }


STATES = {True: "up", False: "down", None: "absent"}
OF_KIND = (
    (ObjectKind.QUEUE_PAIR, rows.REMOTE_QUEUE_PAIRS, "remote_queue_pairs"),
    (ObjectKind.COMPLETION_QUEUE, rows.COMPLETION_QUEUES, "completion_queues"),
    (ObjectKind.MEMORY_REGION, rows.MEMORY_REGIONS, "memory_regions"),
    (ObjectKind.MEMORY_REGION, rows.MEMORY_REGION_BYTES, "memory_region_bytes"),
    (ObjectKind.CONTEXT, rows.CONTEXTS, "contexts"),
)
"""Rows of one number of `ObjectTotals` each."""


def device_document(
    device: str, state: SourceState | None, result: Round, shown: Mapping[str, Owner], ended: float | None
) -> dict[str, Any]:
    """One device as JSON. Owners beyond the configured number are listed, too, each with `shown_as: other`."""
    held = {name: one.held for name, one in result.owners.items() if name != OTHER_OWNERS.name}
    return {
        "device": device,
        "state": STATES[state.up] if state else "not surveyed yet",
        "error": state.error if state else "",
        "errors_total": state.errors_total if state else 0,
        "seconds": state.seconds if state else None,
        "last_complete_survey": ended,
        "listed": sorted(kind.value for kind in result.kinds),
        "hidden_processes": result.hidden,
        "unseen_objects": {kind.value: count for kind, count in result.unseen.items()},
        "owners": [
            _owner_document(name, shown.get(name), result, one)
            for name, one in {**held, **result.folded}.items()
        ],
    }


def _owner_document(name: str, owner: Owner | None, result: Round, held: ObjectTotals) -> dict[str, Any]:
    known = owner or max(result.identities[name], default=None)
    facts = known._asdict() if known else {}
    return {
        "owner": name,
        "shown_as": OTHER_OWNERS.name if name in result.folded else name,
        **{fact: text for fact, text in facts.items() if text and fact != "name"},
        "pids": sorted(held.processes),
        "queue_pairs": [
            {"state": state, "type": kind, "count": count}
            for (state, kind), count in sorted(held.queue_pairs.items())
            if count
        ],
        **{name: held.numbers[name] for _, _, name in OF_KIND},
        "connections": dict(sorted(held.connections.items())),
        "counters": {
            f"{total.row.name}/{total.port}": value
            for total, value in result.totals.items()
            if total.owner == name
        },
    }
