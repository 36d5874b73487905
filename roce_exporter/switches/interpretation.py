"""Convert the readings of one switch to samples in base units by the catalogue.

As on hosts a plan is made once and kept: it is replaced when the set of raw names changes, and the new plan keeps the
spelling that was chosen for each series, because another choice would look like a counter reset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import INDEX, pattern_of
from roce_exporter.normalise.series import Samples, Series, Value
from roce_exporter.switches.readings import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.catalog.row import Row
    from roce_exporter.switches.readings import Labels, SwitchFact, SwitchReading, SwitchReadings

Key = tuple[object, ...]


class Meaning(NamedTuple):
    """What a raw name of a dialect and source means."""

    row: Row
    rank: int
    """Position of the spelling in the row: the lowest is preferred."""
    extra: Mapping[str, str]
    """Labels that are in the raw name itself."""
    times: int
    per: int


class Origin(NamedTuple):
    """Where the value of a series comes from, and its scale."""

    series: Series
    reading: int
    """Position among the readings."""
    source: str
    raw: str
    times: int
    per: int


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """How the values of a switch's readings become the values of its series."""

    key: Key
    facts: int
    origins: tuple[Origin, ...]
    series: tuple[Series, ...]


class Interpreter:
    """The plan of one switch."""

    def __init__(self, dialect: str) -> None:
        """`dialect` is the catalogue's name of the operating system."""
        self.plan = SwitchPlan((), 0, (), ())
        self._dialect = dialect
        self._chosen: dict[Series, tuple[str, str]] = {}
        """Per series the source and raw name of its first value."""

    def samples(self, device: str, readings: SwitchReadings) -> Samples:
        """The samples of one round of queries; `device` is the name of the switch."""
        key = _key(device, readings)
        if key != self.plan.key:
            self.plan = self._plan(key, device, readings)
        plan = self.plan
        return Samples(plan.series, (1,) * plan.facts + tuple(_values(plan.origins, readings.readings)))

    def _plan(self, key: Key, device: str, readings: SwitchReadings) -> SwitchPlan:
        facts = dict.fromkeys(_series_of(fact, device) for fact in readings.facts)
        best: dict[Series, tuple[int, Origin]] = {}
        for rank, origin in self._candidates(device, readings.readings):
            known = self._chosen.get(origin.series, (origin.source, origin.raw))
            if known == (origin.source, origin.raw) and (
                origin.series not in best or rank < best[origin.series][0]
            ):
                best[origin.series] = rank, origin
        origins = tuple(origin for _, origin in best.values())
        for origin in origins:
            self._chosen.setdefault(origin.series, (origin.source, origin.raw))
        return SwitchPlan(key, len(facts), origins, (*facts, *(origin.series for origin in origins)))

    def _candidates(self, device: str, readings: Sequence[SwitchReading]) -> Iterator[tuple[int, Origin]]:
        for position, reading in enumerate(readings):
            for raw in reading.values:
                if meaning := meaning_of(self._dialect, reading.source, raw):
                    series = _series(meaning.row, device, reading.labels, meaning.extra)
                    yield (
                        meaning.rank,
                        Origin(series, position, reading.source, raw, meaning.times, meaning.per),
                    )


@cache
def meaning_of(dialect: str, source: str, raw: str) -> Meaning | None:
    """The row of a raw name with the scale of its spelling; None if no row of the catalogue has it.

    Modules put only names that they know into their readings, so the number of cached names is limited.
    """
    row = INDEX.claimed(dialect, source, raw)
    for rank, spelling in enumerate(row.spellings if row else ()):
        match = pattern_of(spelling.raw[0]).fullmatch(raw)
        if row and match and (spelling.dialect, spelling.source) == (dialect, source):
            return Meaning(row, rank, match.groupdict(), spelling.times, spelling.per)
    return None


def _key(device: str, readings: SwitchReadings) -> Key:
    return (
        device,
        tuple((fact.row.name, tuple(fact.labels.items())) for fact in readings.facts),
        tuple((reading.source, reading.labels, tuple(reading.values)) for reading in readings.readings),
    )


def _series_of(fact: SwitchFact, device: str) -> Series:
    return _series(fact.row, device, (), fact.labels)


def _series(row: Row, device: str, labels: Labels, extra: Mapping[str, str]) -> Series:
    known = {**dict(labels), **extra, "device": device}
    return Series(row, tuple(known.get(label, "") for label in row.labels))


def _values(origins: Sequence[Origin], readings: Sequence[SwitchReading]) -> Iterator[Value]:
    for origin in origins:
        value = readings[origin.reading].values[origin.raw]
        if isinstance(value, Unreadable):
            yield None
        elif origin.times == origin.per == 1:
            yield value
        elif origin.per == 1:
            yield value * origin.times
        else:
            yield value * origin.times / origin.per
