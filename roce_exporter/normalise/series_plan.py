"""The plan by which raw values become the values of series, for hosts and switches alike.

It is made once for a set of raw names and kept. A new plan keeps the spelling chosen for each series: another choice would look
like a counter reset that never happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from roce_exporter.catalog import Index, pattern_of
from roce_exporter.catalog.row import HISTOGRAM, Row, Spelling
from roce_exporter.normalise.series import Picker, Series, Value, picker

Chosen = dict[Series, tuple[str, tuple[str, ...]]]
"""Per series the source and raw names of its first value."""

Place = tuple[str, tuple[tuple[str, str], ...]]
"""Source, and labels with their values: a raw name is unique within these."""


class HasValues(Protocol):
    """A reading: its values are in the order of its names, and None is missing."""

    @property
    def values(self) -> Sequence[Value]:
        """One value per name."""


class ValuePosition(NamedTuple):
    """Where a raw value is: the position of its reading among the device's, and its position in the reading."""

    reading: int
    position: int


class Source(NamedTuple):
    """Where the value of a series comes from: the spelling, the raw names that it matched, and their positions."""

    series: Series
    spelling: Spelling
    raw: tuple[str, ...]
    places: tuple[ValuePosition, ...]


@dataclass(frozen=True, slots=True)
class ValuePlan:
    """How the values of readings become those of sources. Values without a row are never touched."""

    picks: tuple[tuple[int, Picker], ...] = ()
    """Position of a reading, and a function that picks its values with a row."""
    order: Picker = tuple
    """Sorts the picked values of all readings into the order of the sources."""
    multiplied: tuple[tuple[int, int], ...] = ()
    """Position among the ordered values, and what the value is multiplied by."""
    scaled: tuple[tuple[int, tuple[ValuePosition, ...], Spelling], ...] = ()
    """Position among the ordered values, positions of the parts to add up, and the spelling with the scale."""


def choose(
    index: Index, dialect: str, places: Mapping[Place, Mapping[str, ValuePosition]], chosen: Chosen
) -> tuple[Source, ...]:
    """One source per series: the one chosen before, else the first spelling whose raw names all exist; adds it to `chosen`."""
    by_source: dict[str, list[tuple[dict[str, str], Mapping[str, ValuePosition]]]] = {}
    for (source, labels), names in places.items():
        by_source.setdefault(source, []).append((dict(labels), names))
    found: list[Source] = []
    for row in index.rows:
        done: set[tuple[str, ...]] = set()
        for candidate in _candidates(index, row, dialect, by_source):
            spelled = (candidate.spelling.source, candidate.raw)
            values = candidate.series.labels
            if values not in done and chosen.setdefault(candidate.series, spelled) == spelled:
                done.add(values)
                found.append(candidate)
    return tuple(found)


def _candidates(
    index: Index,
    row: Row,
    dialect: str,
    by_source: Mapping[str, Sequence[tuple[dict[str, str], Mapping[str, ValuePosition]]]],
) -> Iterator[Source]:
    suffix = "_bucket" if row.kind == HISTOGRAM else ""
    for spelling in row.spellings:
        places = by_source.get(spelling.source)
        if places is None or not index.speaks(dialect, spelling):
            continue
        for known, names in places:
            for extra, raw in _matches(spelling, names):
                labels = tuple(extra.get(label) or known.get(label, "") for label in row.labels)
                yield Source(Series(row, labels, suffix), spelling, raw, tuple(names[name] for name in raw))


def _matches(
    spelling: Spelling, names: Mapping[str, ValuePosition]
) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """The values of a spelling's placeholders, and the raw names, for each match among the names."""
    if not any("{" in raw for raw in spelling.raw):
        if all(raw in names for raw in spelling.raw):
            yield {}, spelling.raw
        return
    first = pattern_of(spelling.raw[0])
    for name in names:
        if match := first.fullmatch(name):
            extra = match.groupdict()
            raw = tuple(part.format(**extra) for part in spelling.raw)
            if all(part in names for part in raw):
                yield extra, raw


def value_plan(sources: Sequence[Source]) -> ValuePlan:
    """The plan for these sources."""
    wanted: dict[int, list[int]] = {}
    for position, source in enumerate(sources):
        wanted.setdefault(source.places[0].reading, []).append(position)
    came = {
        position: place
        for place, position in enumerate(p for positions in wanted.values() for p in positions)
    }
    numbered = [(position, source.places, source.spelling) for position, source in enumerate(sources)]
    simple = {
        position
        for position, places, spelling in numbered
        if len(places) == 1 and spelling.per == 1 and not spelling.difference
    }
    return ValuePlan(
        picks=tuple(
            (reading, picker([sources[position].places[0].position for position in positions]))
            for reading, positions in wanted.items()
        ),
        order=picker([came[position] for position in range(len(came))]) if [*came] != sorted(came) else tuple,
        multiplied=tuple(
            (position, spelling.times)
            for position, _, spelling in numbered
            if position in simple and spelling.times != 1
        ),
        scaled=tuple(
            one
            for one in numbered
            if one[0] not in simple and (len(one[1]) > 1 or one[2].times != 1 or one[2].per != 1)
        ),
    )


def values_of(plan: ValuePlan, readings: Sequence[HasValues]) -> tuple[Value, ...]:
    """The values of the plan's sources in base units."""
    picked: list[Value] = []
    for reading, pick in plan.picks:
        picked.extend(pick(readings[reading].values))
    values = plan.order(picked)
    if not (plan.multiplied or plan.scaled):
        return values
    changed = list(values)
    for position, times in plan.multiplied:
        if (value := changed[position]) is not None:
            changed[position] = value * times
    for position, places, spelling in plan.scaled:
        parts = [readings[place.reading].values[place.position] for place in places]
        changed[position] = _scale(parts, spelling)
    return tuple(changed)


def _scale(parts: Sequence[Value], spelling: Spelling) -> Value:
    total: int | float = 0
    for part in parts:
        if part is None:
            return None
        total += part
    if spelling.difference:
        # Both counters wrap at the same width, so the difference is correct across a wrap.
        total = (2 * (parts[0] or 0) - total) % 2**spelling.bits
    return total * spelling.times if spelling.per == 1 else total * spelling.times / spelling.per
