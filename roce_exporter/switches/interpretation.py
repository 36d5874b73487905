"""Convert the readings of one switch to samples in base units by the catalogue, by the plan of `normalise`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import INDEX
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
from roce_exporter.switches.readings import Unreadable

if TYPE_CHECKING:
    from roce_exporter.switches.readings import SwitchReadings

Key = tuple[object, ...]
MOST_ABSENT = 4096
"""Series that a switch no longer has and whose choice is remembered."""


class ValuesOfReading(NamedTuple):
    """The values of one reading in their order; None is missing."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """How the values of a switch's readings become the values of its series."""

    key: Key = ()
    facts: int = 0
    sources: tuple[Source, ...] = ()
    """In the order of the readings."""
    series: tuple[Series, ...] = ()
    values: ValuePlan = ValuePlan()  # noqa: RUF009 - frozen


class Interpreter:
    """The plan of one switch."""

    def __init__(self, dialect: str) -> None:
        """`dialect` is the catalogue's name of the operating system."""
        self.plan = SwitchPlan()
        self._dialect = dialect
        self._chosen: Chosen = {}

    def samples(self, device: str, readings: SwitchReadings) -> Samples:
        """The samples of one round of queries; `device` is the name of the switch."""
        key: Key = (
            device,
            tuple((fact.row.name, tuple(fact.labels.items())) for fact in readings.facts),
            tuple((reading.source, reading.labels, tuple(reading.values)) for reading in readings.readings),
        )
        if key != self.plan.key:
            self.plan = self._plan(key, device, readings)
        found = [
            ValuesOfReading(
                tuple(None if isinstance(value, Unreadable) else value for value in reading.values.values())
            )
            for reading in readings.readings
        ]
        return Samples(self.plan.series, (1,) * self.plan.facts + values_of(self.plan.values, found))

    def _plan(self, key: Key, device: str, readings: SwitchReadings) -> SwitchPlan:
        own = ("device", device)
        facts = dict.fromkeys(
            Series(
                fact.row, tuple({**fact.labels, "device": device}.get(label, "") for label in fact.row.labels)
            )
            for fact in readings.facts
        )
        places: dict[Place, dict[str, ValuePosition]] = {}
        for number, reading in enumerate(readings.readings):
            names = places.setdefault((reading.source, (*reading.labels, own)), {})
            for position, name in enumerate(reading.values):
                names.setdefault(name, ValuePosition(number, position))
        found = choose(INDEX, self._dialect, places, self._chosen)
        if len(self._chosen) > len(found) + MOST_ABSENT:
            # The switch renames its objects: what it no longer has may be chosen anew.
            self._chosen = {source.series: self._chosen[source.series] for source in found}
        sources = tuple(sorted(found, key=lambda source: source.places[0]))
        series = (*facts, *(source.series for source in sources))
        return SwitchPlan(key, len(facts), sources, series, value_plan(sources))
