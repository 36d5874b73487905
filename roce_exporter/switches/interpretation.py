"""Convert the readings of one switch to samples in base units by the catalogue, by the plan of `normalise`."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, starmap
from math import nan
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple, overload
from weakref import WeakValueDictionary

from roce_exporter.catalog import INDEX, named
from roce_exporter.catalog.named import SWITCH_LINK_UP, SWITCH_NEIGHBOR_INFO
from roce_exporter.net import meaning_of
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
from roce_exporter.switches.readings import REACH, SwitchFact, SwitchReading, SwitchReadings, Unreadable

if TYPE_CHECKING:
    from roce_exporter.catalog.row import Row
    from roce_exporter.switches.targets import SwitchTarget

NEIGHBORS = "neighbors"
FILE = "file"
FROM_FILE = {"port_id_kind": "name", "source": FILE}
UP_NAMES = frozenset(name for spelling in SWITCH_LINK_UP.spellings for name in spelling.raw)
MOST_PORTS = 4096
MANY_VALUES = 10_000
"""More than these are interpreted and rendered in a thread, so that a large switch does not hold up others."""
MOST_ABSENT = 4096
"""Series that a switch no longer has and whose choice is remembered."""


class FlatValues(NamedTuple):
    """The values of all readings of a round, one after the other; None is missing."""

    values: list[Value]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ReadingPlan:
    """How the values of readings become those of series, for all switches whose readings have the same names."""

    key: int = 0
    """A hash of these names: the plan holds as long as they are the same."""
    rows: tuple[Row, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    """Of each series, without the first one, which is `device`."""
    spelled: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The source and raw names of each series."""
    values: ValuePlan = ValuePlan()  # noqa: RUF009 - frozen


PLANS: WeakValueDictionary[int, ReadingPlan] = WeakValueDictionary()
"""Plans that owe nothing to what a switch had before, by key: switches of one kind share them, as each takes a megabyte."""


NO_PLAN = ReadingPlan()


class SeriesTable(Sequence[Series]):
    """The series of a switch, which are made when they are used: kept, they would take half a megabyte."""

    __slots__ = ("_device", "_facts", "_plan", "derived")

    def __init__(self, device: str, facts: tuple[Series, ...], plan: ReadingPlan) -> None:
        self._device, self._facts, self._plan = device, facts, plan
        self.derived: object = None
        """What the pause tree derives from the series, whatever their values are."""

    def __len__(self) -> int:
        return len(self._facts) + len(self._plan.rows)

    def __iter__(self) -> Iterator[Series]:
        # Switches have no histograms, so no suffixes.
        return (Series(row, (self._device, *labels)) for row, labels in self.short())

    def short(self) -> Iterator[tuple[Row, tuple[str, ...]]]:
        """Row and labels without the first one, which is `device`, of each series."""
        yield from ((one.row, one.labels[1:]) for one in self._facts)
        yield from zip(self._plan.rows, self._plan.labels, strict=True)

    @overload
    def __getitem__(self, place: int) -> Series: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Series, ...]: ...
    def __getitem__(self, place: int | slice) -> Series | tuple[Series, ...]:
        return tuple(self)[place]


class Interpreter:
    """The plan of one switch."""

    def __init__(self, dialect: str) -> None:
        """`dialect` is the catalogue's name of the operating system."""
        self.facts: tuple[Series, ...] = ()
        """The first series."""
        self.absent: Chosen = {}
        """What was chosen for series that the switch no longer has."""
        self._dialect = dialect
        self._plan = self._shown = NO_PLAN
        self._series: Sequence[Series] = ()
        self._device = ""

    def samples(self, device: str, readings: SwitchReadings) -> Samples:
        """The samples of one round of queries; `device` is the name of the switch."""
        before = self._shown
        self._shown = self._plan_of(readings) if readings.readings else NO_PLAN
        labelled = ((one.row, {**one.labels, "device": device}) for one in readings.facts)
        both = ((row, tuple([intern(of.get(label, "")) for label in row.labels])) for row, of in labelled)
        facts = tuple(dict.fromkeys(starmap(Series, both)))
        if self._shown is not before or (device, facts) != (self._device, self.facts):
            self.facts, self._device = facts, device
            self._series = SeriesTable(device, facts, self._shown) if facts or self._shown.rows else ()
        return self.again(flat_values(readings))

    def again(self, flat: list[Value]) -> Samples:
        """The samples of other values of the same readings, in the order of these."""
        return Samples(
            self._series, (1,) * len(self.facts) + values_of(self._shown.values, (FlatValues(flat),))
        )

    def sources(self, readings: SwitchReadings) -> tuple[Source, ...]:
        """Where the values of the series after the facts come from, in their order."""
        return tuple(
            source._replace(series=Series(source.series.row, (self._device, *source.series.labels[1:])))
            for source in self._choose(readings, self._chosen())
        )

    def _chosen(self) -> Chosen:
        named = map(Series, self._plan.rows, (("", *labels) for labels in self._plan.labels))
        return {**self.absent, **dict(zip(named, self._plan.spelled, strict=True))}

    def _choose(self, readings: SwitchReadings, chosen: Chosen) -> tuple[Source, ...]:
        places: dict[Place, dict[str, ValuePosition]] = {}
        for number, reading in enumerate(readings.readings):
            names = places.setdefault((reading.source, reading.labels), {})
            for position, name in enumerate(reading.values):
                names.setdefault(name, ValuePosition(number, position))
        return choose(INDEX, self._dialect, places, chosen)

    def _plan_of(self, readings: SwitchReadings) -> ReadingPlan:
        names = ((one.source, one.labels, tuple(one.values)) for one in readings.readings)
        key = hash((self._dialect, *names))
        if key != self._plan.key:
            known, chosen = PLANS.get(key), self._chosen()
            if known is None or chosen:
                new = self._new_plan(key, readings, chosen)
                # With another choice of a series in its past a switch has a plan of its own.
                is_known = known is not None and (known.spelled, known.labels) == (new.spelled, new.labels)
                known = known if known is not None and is_known else new
            self._plan = known
        return self._plan

    def _new_plan(self, key: int, readings: SwitchReadings, chosen: Chosen) -> ReadingPlan:
        is_first, starts = not chosen, first_positions(readings)
        # Labels and raw names, once each: a switch of 64 ports has 7,000 series and 1,300 objects.
        shared: dict[Any, Any] = {}
        share = shared.setdefault
        # In the order of the catalogue, as they are rendered.
        found = [
            source._replace(
                places=tuple(
                    [ValuePosition(0, starts[place.reading] + place.position) for place in source.places]
                )
            )
            for source in self._choose(readings, chosen)
        ]
        spelled = tuple([share(one, one) for one in map(chosen.pop, (source.series for source in found))])
        # Beyond it the switch renames its objects: what it no longer has may be chosen anew.
        self.absent = chosen if len(chosen) <= MOST_ABSENT else {}
        rows, labels, _ = zip(*(source.series for source in found), strict=True) if found else ((), (), ())
        short = tuple([share(one[1:], one[1:]) for one in labels])
        plan = ReadingPlan(key, rows, short, spelled, value_plan(found))
        if is_first:
            PLANS[key] = plan
        return plan


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


def within_limits(readings: SwitchReadings, most: int) -> SwitchReadings:
    """The readings; none, and a fault of the whole target, if they have more ports or values than a switch has."""
    ports = {dict(one.labels).get("port") for one in readings.readings} - {None}
    values = sum(len(one.values) for one in readings.readings) + len(readings.facts)
    for found, bound, what in ((len(ports), MOST_PORTS, "ports"), (values, most, "values")):
        if found > bound:
            return SwitchReadings(
                faults={REACH: f"the switch has {found:,} {what}, and at most {bound:,} are read"}
            )
    return readings


def with_links(readings: SwitchReadings, target: SwitchTarget) -> SwitchReadings:
    """The readings with a neighbour for each configured link. What LLDP reports for a port takes precedence."""
    reported = {fact.labels.get("port") for fact in readings.facts if fact.row is SWITCH_NEIGHBOR_INFO}
    facts = tuple(
        SwitchFact(
            SWITCH_NEIGHBOR_INFO,
            {"port": link.port, "neighbor": link.host, "neighbor_port": link.netdev, **FROM_FILE},
        )
        for link in target.links
        if link.port not in reported
    )
    return replace(readings, facts=(*readings.facts, *facts)) if facts else readings


def intended_readings(readings: SwitchReadings, target: SwitchTarget) -> Iterator[SwitchReading]:
    """Per priority whether the file means it to have PFC; nothing where it does not say, or of a switch without an answer."""
    for one in range(8) if readings.readings and target.lossless is not None else ():
        yield SwitchReading(
            FILE, (("priority", str(one)),), {"lossless": int(one in (target.lossless or ()))}
        )


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
    device: str, readings: SwitchReadings, seconds: float, unreadable: Mapping[str, int], *, refused: bool
) -> Samples:
    """The samples of one round of queries that took this long; `refused`: the switch does not accept the credentials."""
    sources = sorted({*readings.sources, *readings.faults})
    usable = [source for source in sources if source not in readings.faults]
    reasons = ((source, meaning_of("reasons", line, "unusable")) for source, line in readings.faults.items())
    found: list[tuple[Row, tuple[str, ...], Value]] = [
        (named.PROBE_SUCCESS, (), int(is_success(readings))),
        (named.PROBE_SECONDS, (), seconds),
        (named.ANSWER_AGE, (), 0.0),
        (named.LOGIN_REFUSED, (), int(refused)),
        *((named.SWITCH_SOURCE_UP, (source,), int(source in usable)) for source in sources),
        *((named.SWITCH_SOURCE_MISSING, one, 1) for one in sorted({*readings.missing, *reasons})),
        *((named.SOURCE_UNREADABLE, (source,), unreadable[source]) for source in usable),
        *((named.SOURCE_RENEWAL, (source,), each) for source, each in sorted(readings.renewals.items())),
    ]
    return Samples(
        tuple(Series(row, (device, *labels)) for row, labels, _ in found),
        tuple(value for _, _, value in found),
    )


def with_times(samples: Samples, seconds: float, age: float = 0.0) -> Samples:
    """Those of `probe_samples` of another round with the same sources, or of one that is older now."""
    return samples._replace(values=(samples.values[0], seconds, age, *samples.values[3:]))


def is_success(readings: SwitchReadings) -> bool:
    """Whether the switch answered and something of it could be used.

    Several ASICs share the names of their sources: one that is away makes them faults, and the others still have readings.
    """
    return bool(readings.readings or set(readings.sources) - set(readings.faults))


class Earlier(NamedTuple):
    """What is kept of the answer before the last one, for rates, which need no more digits than a float has."""

    ended: float
    series: Sequence[Series]
    numbers: array[float]
    """NaN is missing."""


def earlier(ended: float, samples: Samples) -> Earlier:
    """What is kept of an answer that ended at this time."""
    series, values = samples
    return Earlier(ended, series, array("d", [nan if one is None else one for one in values]))
