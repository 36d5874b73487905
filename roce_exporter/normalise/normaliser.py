"""Convert readings to samples in base units, by a plan that is made once per device and kept.

A plan is replaced only when the device or the set of raw names changes, and the new plan keeps the spelling chosen for
each series: another choice would look like a counter reset that never happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import INDEX, Index, pattern_of
from roce_exporter.catalog.row import HISTOGRAM
from roce_exporter.model import WHOLE_DEVICE
from roce_exporter.normalise.info_metrics import device_facts
from roce_exporter.normalise.missing_facts import missing_facts
from roce_exporter.normalise.series import Picker, PlanKey, Samples, Series, Value, picker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from roce_exporter.catalog.row import Row, Spelling
    from roce_exporter.model import Device, DeviceReadings, Reading
    from roce_exporter.normalise.missing_facts import MissingFact

Chosen = dict[Series, tuple[str, tuple[str, ...]]]

Spot = tuple[str, str, str]
"""Source, `port` label and network device: a raw name is unique within these."""


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


@dataclass(slots=True)
class Plan:
    """How the values of one device's readings become the values of its series."""

    device: Device
    key: PlanKey
    sources: tuple[Source, ...]
    unmapped: tuple[tuple[str, int, str], ...]
    """Source, port and raw name of each name without a row."""
    missing: tuple[MissingFact, ...] = ()
    """Essential facts that no series has."""
    series: tuple[Series, ...] = ()
    constant: tuple[Value, ...] = ()
    picks: tuple[tuple[int, Picker], ...] = ()
    """Position of a reading, and a function that picks its values with a row: other values are never touched."""
    order: Picker = tuple
    """Sorts the picked values of all readings into the order of `sources`."""
    multiplied: tuple[tuple[int, int], ...] = ()
    """Position among the ordered values, and what the value is multiplied by."""
    scaled: tuple[tuple[int, tuple[ValuePosition, ...], Spelling], ...] = ()
    """Position among the ordered values, positions of the parts to add up, and the spelling with the scale."""


@dataclass(slots=True)
class Normaliser:
    """Keeps one plan per device."""

    index: Index = INDEX
    plans: dict[str, Plan] = field(default_factory=dict)
    _chosen: dict[str, tuple[int, Chosen]] = field(default_factory=dict)
    """Per device its incarnation and, per series, the source and raw names of the first value."""

    def normalise(self, found: DeviceReadings) -> Samples:
        """The samples of one device in one collection."""
        device, readings = found.device, found.readings
        plan = self.plans.get(device.name)
        if plan is None or plan.device is not device or not _is_of(plan.key, readings):
            key = tuple((reading.source, reading.port, reading.netdev, reading.names) for reading in readings)
            if plan is None or plan.device is not device or plan.key != key:
                plan = self.plans[device.name] = self._plan(device, key)
        return Samples(plan.series, plan.constant + _values(plan, readings))

    def forget(self, gone: Iterable[str]) -> None:
        """Drop the plans of removed devices."""
        for name in gone:
            self.plans.pop(name, None)
            self._chosen.pop(name, None)

    def _plan(self, device: Device, key: PlanKey) -> Plan:
        # A replugged device may choose again: its counters begin at 0 anyway.
        incarnation, chosen = self._chosen.get(device.name, (device.incarnation, {}))
        if incarnation != device.incarnation:
            chosen = {}
        self._chosen[device.name] = (device.incarnation, chosen)
        sources = tuple(_choose(self.index, device, key, chosen))
        chosen.update({source.series: (source.spelling.source, source.raw) for source in sources})
        plan = Plan(device, key, sources, tuple(_unmapped(self.index, device, key)))
        facts = device_facts(device)
        plan.constant = (1,) * len(facts)
        plan.series = (
            *(Series(row, labels) for row, labels in facts),
            *(source.series for source in sources),
        )
        plan.missing = missing_facts(device, key, plan.series, plan.unmapped)
        _compile(plan)
        return plan


def _is_of(key: PlanKey, readings: Sequence[Reading]) -> bool:
    """Whether these readings certainly have this key: it is not made, and names are compared by identity."""
    if len(key) != len(readings):
        return False
    for (source, port, netdev, names), reading in zip(key, readings, strict=True):
        if (
            reading.names is not names
            or reading.port != port
            or reading.source != source
            or reading.netdev != netdev
        ):
            return False
    return True


def _values(plan: Plan, readings: Sequence[Reading]) -> tuple[Value, ...]:
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


def _compile(plan: Plan) -> None:
    wanted: dict[int, list[int]] = {}
    for position, source in enumerate(plan.sources):
        wanted.setdefault(source.places[0].reading, []).append(position)
    plan.picks = tuple(
        (reading, picker([plan.sources[position].places[0].position for position in positions]))
        for reading, positions in wanted.items()
    )
    came = {
        position: place
        for place, position in enumerate(p for positions in wanted.values() for p in positions)
    }
    plan.order = picker([came[position] for position in range(len(came))])
    numbered = [(position, source.places, source.spelling) for position, source in enumerate(plan.sources)]
    simple = {
        position
        for position, places, spelling in numbered
        if len(places) == 1 and spelling.per == 1 and not spelling.difference
    }
    plan.multiplied = tuple(
        (position, spelling.times)
        for position, _, spelling in numbered
        if position in simple and spelling.times != 1
    )
    plan.scaled = tuple(
        one
        for one in numbered
        if one[0] not in simple and (len(one[1]) > 1 or one[2].times != 1 or one[2].per != 1)
    )


def _choose(
    index: Index,
    device: Device,
    key: PlanKey,
    chosen: Chosen,
) -> Iterator[Source]:
    """One source per series: the one chosen before, else the first spelling whose raw names all exist."""
    places = _places(device, key)
    for row in index.rows:
        done: set[Series] = set()
        for candidate in _candidates(index, row, device, places):
            series = candidate.series
            before = chosen.get(series, (candidate.spelling.source, candidate.raw))
            if series not in done and before == (candidate.spelling.source, candidate.raw):
                done.add(series)
                yield candidate


def _candidates(
    index: Index, row: Row, device: Device, places: dict[Spot, dict[str, ValuePosition]]
) -> Iterator[Source]:
    for spelling in row.spellings:
        if not index.speaks(device.dialect, spelling):
            continue
        for (source, port, netdev), names in places.items():
            if source == spelling.source:
                for extra, raw in _matches(spelling, names):
                    known = {"device": device.name, "port": port, "netdev": netdev, **extra}
                    labels = tuple(known[label] for label in row.labels)
                    series = Series(row, labels, "_bucket" if row.kind == HISTOGRAM else "")
                    yield Source(series, spelling, raw, tuple(names[name] for name in raw))


def _matches(
    spelling: Spelling, names: dict[str, ValuePosition]
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


def _places(device: Device, key: PlanKey) -> dict[Spot, dict[str, ValuePosition]]:
    """The position of each raw name per source and `port` label. Names of a port override those of the whole device."""
    found: dict[Spot, dict[str, ValuePosition]] = {}
    order = sorted(range(len(key)), key=lambda reading: key[reading][1] == WHOLE_DEVICE)
    for reading in order:
        source, port, netdev, names = key[reading]
        of_port = found.setdefault((source, port_label(device, port), netdev), {})
        for position, name in enumerate(names):
            of_port.setdefault(name, ValuePosition(reading, position))
    return found


def port_label(device: Device, port: int) -> str:
    """The label `port`; for a value of the whole device its only port, or `all` if it has several."""
    if port != WHOLE_DEVICE:
        return str(port)
    return str(device.ports[0].number) if len(device.ports) == 1 else "all"


def _unmapped(index: Index, device: Device, key: PlanKey) -> Iterator[tuple[str, int, str]]:
    for source, port, _, names in key:
        for name in names:
            if not index.claimed(device.dialect, source, name) and not index.left_out(
                device.dialect, source, name
            ):
                yield source, port, name
