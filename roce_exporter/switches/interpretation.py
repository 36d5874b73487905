"""Convert the readings of one switch to samples in base units by the catalogue, by the plan of `normalise`."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from roce_exporter.catalog import INDEX, named
from roce_exporter.catalog.named import SWITCH_LINK_UP, SWITCH_NEIGHBOR_INFO
from roce_exporter.normalise.series import Samples, Series, Value
from roce_exporter.normalise.series_plan import (
    Chosen,
    Place,
    Source,
    ValuePlan,
    ValuePosition,
    choose,
    value_plan,
    values_of,
)
from roce_exporter.switches.readings import SwitchFact, SwitchReading, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.catalog.row import Row
    from roce_exporter.switches.readings import SwitchReadings
    from roce_exporter.switches.targets import SwitchTarget

NEIGHBORS = "neighbors"
FILE = "file"
UP_NAMES = frozenset(name for spelling in SWITCH_LINK_UP.spellings for name in spelling.raw)
MOST_ABSENT = 4096
"""Series that a switch no longer has and whose choice is remembered."""


class FlatValues(NamedTuple):
    """The values of all readings of a round, one after the other; None is missing."""

    values: list[Value]


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """How the values of a switch's readings become the values of its series."""

    key: int = 0
    """A hash of the names of all readings and of the facts: a plan holds as long as these are the same."""
    facts: int = 0
    series: Sequence[Series] = ()
    values: ValuePlan = ValuePlan()  # noqa: RUF009 - frozen

    def samples(self, flat: list[Value]) -> Samples:
        """The samples of these values, which are in the order of the readings."""
        return Samples(self.series, (1,) * self.facts + values_of(self.values, (FlatValues(flat),)))


class SeriesTable(Sequence[Series]):
    """Series that are made when they are used: kept, each would take 72 bytes more than its labels, which many share."""

    __slots__ = ("_labels", "_rows")

    def __init__(self, series: Sequence[Series]) -> None:
        # Switches have no histograms, so no suffixes.
        self._rows = tuple([one.row for one in series])
        self._labels = tuple([one.labels for one in series])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Series]:
        return map(Series, self._rows, self._labels)

    @overload
    def __getitem__(self, place: int) -> Series: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Series, ...]: ...
    def __getitem__(self, place: int | slice) -> Series | tuple[Series, ...]:
        if isinstance(place, slice):
            return tuple(map(Series, self._rows[place], self._labels[place]))
        return Series(self._rows[place], self._labels[place])


class Interpreter:
    """The plan of one switch."""

    def __init__(self, dialect: str) -> None:
        """`dialect` is the catalogue's name of the operating system."""
        self.plan = SwitchPlan()
        self._dialect = dialect
        self._chosen: tuple[Sequence[Series], tuple[tuple[str, tuple[str, ...]], ...]] = (), ()
        """Series, and the source and raw names of each: a dictionary takes three times the memory."""

    def samples(self, device: str, readings: SwitchReadings) -> Samples:
        """The samples of one round of queries; `device` is the name of the switch."""
        key = hash(
            (
                device,
                tuple((fact.row.name, tuple(fact.labels.items())) for fact in readings.facts),
                tuple(
                    (reading.source, reading.labels, tuple(reading.values)) for reading in readings.readings
                ),
            )
        )
        if key != self.plan.key or not self.plan.series:
            self.plan = self._plan(key, device, readings)
        return self.plan.samples(flat_values(readings))

    def sources(self, device: str, readings: SwitchReadings) -> tuple[Source, ...]:
        """Where the values of the series after the facts come from, in their order."""
        return self._choose(device, readings, dict(zip(*self._chosen, strict=True)))

    def _choose(self, device: str, readings: SwitchReadings, chosen: Chosen) -> tuple[Source, ...]:
        places: dict[Place, dict[str, ValuePosition]] = {}
        for number, reading in enumerate(readings.readings):
            names = places.setdefault((reading.source, (*reading.labels, ("device", device))), {})
            for position, name in enumerate(reading.values):
                names.setdefault(name, ValuePosition(number, position))
        return choose(INDEX, self._dialect, places, chosen)

    def _plan(self, key: int, device: str, readings: SwitchReadings) -> SwitchPlan:
        facts = dict.fromkeys(
            Series(
                fact.row, tuple({**fact.labels, "device": device}.get(label, "") for label in fact.row.labels)
            )
            for fact in readings.facts
        )
        # Labels and raw names, once each: a switch of 64 ports has 7,000 series and 1,300 objects.
        shared: dict[Any, Any] = {}
        share = shared.setdefault
        found: list[Source] = []
        chosen: Chosen = dict(zip(*self._chosen, strict=True))
        starts = first_positions(readings)
        # In the order of the catalogue, as they are rendered.
        for source in self._choose(device, readings, chosen):
            row, labels, suffix = source.series
            flat = tuple(
                [ValuePosition(0, starts[place.reading] + place.position) for place in source.places]
            )
            found.append(
                Source(Series(row, share(labels, labels), suffix), source.spelling, source.raw, flat)
            )
        spelled = {one.series: share(chosen[one.series], chosen[one.series]) for one in found}
        if len(chosen) - len(found) <= MOST_ABSENT:
            # Beyond it the switch renames its objects: what it no longer has may be chosen anew.
            for series, one in chosen.items():
                spelled.setdefault(series, one)
        self._chosen = SeriesTable((*spelled,)), (*spelled.values(),)
        every = (*facts, *(source.series for source in found))
        return SwitchPlan(key, len(facts), SeriesTable(every) if every else (), value_plan(found))


def first_positions(readings: SwitchReadings) -> list[int]:
    """The position of the first value of each reading among all values."""
    return [0, *accumulate(len(reading.values) for reading in readings.readings)]


def flat_values(readings: SwitchReadings) -> list[Value]:
    """The values of all readings, in order; None is unreadable."""
    return [
        None if isinstance(value, Unreadable) else value
        for reading in readings.readings
        for value in reading.values.values()
    ]


def with_links(readings: SwitchReadings, target: SwitchTarget) -> SwitchReadings:
    """The readings with a neighbour for each configured link. What LLDP reports for a port takes precedence."""
    reported = {fact.labels.get("port") for fact in readings.facts if fact.row is SWITCH_NEIGHBOR_INFO}
    facts = tuple(
        SwitchFact(
            SWITCH_NEIGHBOR_INFO,
            {
                "port": link.port,
                "neighbor": link.host,
                "neighbor_port": link.netdev,
                "port_id_kind": "name",
                "source": FILE,
            },
        )
        for link in target.links
        if link.port not in reported
    )
    return replace(readings, facts=(*readings.facts, *facts)) if facts else readings


def neighbor_readings(readings: SwitchReadings) -> Iterator[SwitchReading]:
    """Per port that is up whether its neighbour is known, and how many are not.

    Nothing if the states of the ports or their neighbours could not be read: unknown is not missing.
    """
    if any("lldp" in source for source in readings.faults) or not any(
        reading.values.keys() & UP_NAMES for reading in readings.readings
    ):
        return
    known = {fact.labels.get("port") for fact in readings.facts if fact.row is SWITCH_NEIGHBOR_INFO}
    # Two sources of a switch can have the state of the same port.
    up = {
        reading.labels: dict(reading.labels).get("port") in known
        for reading in readings.readings
        if any(reading.values.get(name) == 1 for name in UP_NAMES)
    }
    for labels, is_known in up.items():
        yield SwitchReading(NEIGHBORS, labels, {"neighbor_known": int(is_known)})
    yield SwitchReading(NEIGHBORS, (), {"ports_without_neighbor": sum(not one for one in up.values())})


def unreadable_values(readings: SwitchReadings) -> Counter[str]:
    """How many values of each source cannot be read."""
    return Counter(
        reading.source
        for reading in readings.readings
        for value in reading.values.values()
        if isinstance(value, Unreadable)
    )


def probe_samples(
    device: str, readings: SwitchReadings, seconds: float, unreadable: Mapping[str, int]
) -> Samples:
    """The samples of one round of queries that took this long."""
    sources = sorted({*readings.sources, *readings.faults})
    usable = [source for source in sources if source not in readings.faults]
    found: list[tuple[Row, tuple[str, ...], Value]] = [
        (named.PROBE_SUCCESS, (), int(is_success(readings))),
        (named.PROBE_SECONDS, (), seconds),
        *((named.SWITCH_SOURCE_UP, (source,), int(source in usable)) for source in sources),
        *((named.SOURCE_UNREADABLE, (source,), unreadable[source]) for source in usable),
        *(
            (named.SOURCE_RENEWAL, (source,), interval)
            for source, interval in sorted(readings.renewals.items())
        ),
    ]
    return Samples(
        tuple(Series(row, (device, *labels)) for row, labels, _ in found),
        tuple(value for _, _, value in found),
    )


def is_success(readings: SwitchReadings) -> bool:
    """Whether the switch answered and something of it could be used.

    Several ASICs share the names of their sources: one that is away makes them faults, and the others still have readings.
    """
    return bool(readings.readings or set(readings.sources) - set(readings.faults))


class RareCollections:
    """While any task is inside, old objects are collected a hundred times less often.

    A switch of 1,024 ports has a million objects while it is read: a collection of all of them holds every thread for up to half a
    second, would happen dozens of times, and finds nothing.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._usual = gc.get_threshold()

    def __enter__(self) -> None:
        if not self._inside:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], 100 * self._usual[2])
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
        if not self._inside:
            gc.set_threshold(*self._usual)


RARE_COLLECTIONS = RareCollections()
"""Only the event loop enters and leaves it."""
