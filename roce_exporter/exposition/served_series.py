"""Which series an exposition has: those of a metric set, without excluded metrics.

Only text that leaves the process (`/metrics`, `once`) is filtered; the verdict, the audit and debug pages see all samples. All
decisions are made when the set of series changes or a hidden series begins; a scrape only picks values, and checks with `any`
whether one begins. The rules of lean and standard, in addition to the set of each row:

1. A series of a row with a `usual` value begins when its value is another one; a histogram begins with its sum.
2. Series of a priority begin when PFC is on for it or pause of it is counted. Before, only its counters above 0 have series.
3. A source has one `roce_exporter_source_up` for all devices on which it has always worked, without `device` and `netdev`, and one
   duration, that of the slowest device. Sources that belong to no device always have a series of their own.
4. In its lowest set, a row with `only` has series for these values of the label only, and for the bucket `+Inf`.
5. What was served once is served as long as its device and source exist, so no set makes a series come and go, and again when
   the device comes back within `MEMORY`. After that its entries are dropped, so devices under ever new names need no more memory.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.named import METRIC_SET_INFO, SOURCE_DURATION, SOURCE_LABELS, SOURCE_UP
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, PRIORITY_LABELS, MetricSet
from roce_exporter.catalog.storm import STORMS
from roce_exporter.normalise.series import Picker, Samples, Series, Value, picker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

    from roce_exporter.normalise.series import Value


PFC_ENABLED = "roce_pfc_enabled"
PFC = "roce_pfc_"
"""How the names of counters of pause begin."""

PriorityPlace = tuple[str, ...]
"""Device, port, network device and priority."""

SeriesKey = tuple[str, tuple[str, ...]]
"""Name of the row and labels, of a histogram without `le`: its series begin together."""


def key_of(series: Series) -> SeriesKey:
    """What is remembered of a series that has begun."""
    row, labels, _ = series
    return row.name, labels[:-1] if row.kind == HISTOGRAM else labels


def place_of(series: Series) -> PriorityPlace | None:
    """The priority that a series belongs to; None if it belongs to none.

    Storms are not hidden with their priority: where a driver does not report PFC, the first pause can be a storm, and a page
    needs the 0 before it.
    """
    if series.row is STORMS:
        return None
    size = len(PRIORITY_LABELS)
    return series.labels[:size] if series.row.labels[:size] == PRIORITY_LABELS else None


def is_activity(series: Series) -> bool:
    """Whether a value above 0 means that the priority of the series has PFC."""
    name = series.row.name
    return place_of(series) is not None and (
        name == PFC_ENABLED or (series.row.kind == COUNTER and name.startswith(PFC))
    )


def is_of_device(series: Series) -> bool:
    """Whether a series about a source belongs to a device."""
    return series.row.labels == SOURCE_LABELS and bool(series.labels[1])


def device_of(series: Series) -> str:
    """The device that a series belongs to; empty for those of the host."""
    row = series.row
    return series.labels[row.labels.index("device")] if "device" in row.labels else ""


def is_begun(series: Series, begun: Container[SeriesKey]) -> bool:
    """Whether a series is not hidden because of its usual value."""
    if series.row.usual is None or (series.row is SOURCE_UP and not is_of_device(series)):
        return True
    return key_of(series) in begun


def can_begin(series: Series) -> bool:
    """Whether the value of a hidden series decides when it begins."""
    if series.row.kind == HISTOGRAM:
        return series.row.usual is not None and series.suffix == "_sum"
    return series.row.usual is not None or (series.row.kind == COUNTER and place_of(series) is not None)


def begins(series: Series, value: Value) -> bool:
    """Whether a series begins with this value."""
    return value is not None and can_begin(series) and value != (series.row.usual or 0)


def is_listed(series: Series) -> bool:
    """Whether the row has series in its lowest set for the labels of this one."""
    label, *values = series.row.only or ("",)
    if not label:
        return True
    value = series.labels[series.row.labels.index(label)]
    return value in values or (series.row.kind == HISTOGRAM and value in ("", "+Inf"))


MEMORY = 3600.0
"""Seconds for which a device that has left is remembered: longer than a reset, a firmware update or a reboot of the card takes."""


class BegunSeries:
    """Which series and priorities of a host have begun."""

    def __init__(self) -> None:
        self.series: dict[SeriesKey, str] = {}
        """Each series that has begun, with its device; empty for those of the host."""
        self.priorities: set[PriorityPlace] = set()
        """The priorities that have PFC or had pause."""
        self._left: dict[str, float] = {}
        """Since when a device with entries is not there."""

    def note(self, parts: Iterable[Samples]) -> bool:
        """Remember what begins with these samples; whether anything did."""
        before = len(self.series), len(self.priorities)
        for part in parts:
            for series, value in zip(part.series, part.values, strict=True):
                if value and is_activity(series) and (place := place_of(series)):
                    self.priorities.add(place)
                if begins(series, value):
                    self.series[key_of(series)] = device_of(series)
        return before != (len(self.series), len(self.priorities))

    def forget(self, present: Collection[str], now: float) -> bool:
        """Drop the entries of devices that are not there for `MEMORY` seconds; whether there were any.

        A device is missing from the first call on without it, not from its last sample: between them it may have been there.
        """
        missing = {*self.series.values(), *(place[0] for place in self.priorities)} - {"", *present}
        self._left = {device: self._left.get(device, now) for device in missing}
        gone = {device for device, since in self._left.items() if now - since >= MEMORY}
        if gone:
            self.series = {key: device for key, device in self.series.items() if device not in gone}
            self.priorities = {place for place in self.priorities if place[0] not in gone}
            self._left = {device: since for device, since in self._left.items() if device not in gone}
        return bool(gone)


MOST_CHOICES = 1000
"""Sets of series whose choice is kept: a host has one per device and a dozen more."""

CHECK = 60.0
"""Seconds between two checks for devices that have left."""


def _never() -> float:
    return 0.0


class ServedChoice(NamedTuple):
    """What is served of one set of series, and which hidden ones can begin."""

    whole: tuple[Series, ...]
    series: tuple[Series, ...]
    pick: Picker
    """The values of the first of `series`."""
    working: tuple[Value, ...]
    """The values of the next ones, each for all devices on which a source works: always 1."""
    durations: tuple[Picker, ...]
    """The durations of which each of the last ones is the longest."""
    zeros: Picker
    """The hidden values that are usually 0."""
    ones: Picker
    """The hidden values that are usually 1."""
    devices: frozenset[str]
    """The devices whose sources have states: all that are there, also where every read hangs. Other series may outlive a device."""

    def samples(self, values: Sequence[Value]) -> Samples:
        """What is served of these values."""
        longest = [
            max((value for value in pick(values) if value is not None), default=None)
            for pick in self.durations
        ]
        return Samples(self.series, (*self.pick(values), *self.working, *longest))

    def is_unusual(self, values: Sequence[Value]) -> bool:
        """Whether a hidden series may begin."""
        ones = self.ones(values)
        return any(self.zeros(values)) or ones.count(1) != len(ones)


class ServedSeries:
    """Selects what is served. Used from one event loop; remembers which series have begun."""

    def __init__(
        self, metric_set: MetricSet, excluded: Collection[str] = (), clock: Callable[[], float] = _never
    ) -> None:
        """`excluded` are exact names of rows; without `clock` (monotonic seconds) removed devices are remembered for good."""
        self._set = metric_set
        self._excluded = frozenset(excluded)
        self._clock = clock
        self._check_due = clock() + CHECK
        self._begun = BegunSeries()
        self._choices: dict[int, ServedChoice] = {}
        self._last: dict[int, tuple[Samples, Samples]] = {}
        """By set of series the last samples, and what is served of them."""
        info = Samples((Series(METRIC_SET_INFO, (metric_set.value,)),), (1,))
        self._info = () if METRIC_SET_INFO.name in self._excluded else (info,)

    def select(self, parts: Sequence[Samples]) -> tuple[Samples, ...]:
        """What is served of these samples, and the name of the set."""
        if self._set is MetricSet.FULL and not self._excluded:
            return (*parts, *self._info)
        if (now := self._clock()) >= self._check_due:
            self._check_due = now + CHECK
            self._forget(parts, now)
        fresh = [part for part in parts if not self._is_last(part)]
        unusual = [part for part in fresh if self._choice(part.series).is_unusual(part.values)]
        if self._begun.note(unusual):
            self._choices.clear()
            self._last.clear()
        return (*[self._serve(part) for part in parts], *self._info)

    def _is_last(self, part: Samples) -> bool:
        known = self._last.get(id(part.series))
        return known is not None and known[0] is part

    def _serve(self, part: Samples) -> Samples:
        known = self._last.get(id(part.series))
        if known is None or known[0] is not part:
            if len(self._last) >= MOST_CHOICES:
                self._last.clear()
            # The samples hold a reference to their series, so that the id is not used again.
            known = self._last[id(part.series)] = (part, self._choice(part.series).samples(part.values))
        return known[1]

    def _forget(self, parts: Sequence[Samples], now: float) -> None:
        present = frozenset[str]().union(*[self._choice(part.series).devices for part in parts])
        if self._begun.forget(present, now):
            self._choices.clear()
            self._last.clear()

    def _choice(self, series: tuple[Series, ...]) -> ServedChoice:
        choice = self._choices.get(id(series))
        if choice is None:
            if len(self._choices) >= MOST_CHOICES:
                self._choices.clear()
            # The choice holds a reference, so that the id is not used again.
            choice = self._choices[id(series)] = self._choose(series)
        return choice

    def _choose(self, series: tuple[Series, ...]) -> ServedChoice:
        allowed = [one for one in enumerate(series) if self._is_allowed(one[1])]
        if self._set is MetricSet.FULL:
            return _choice_of(series, [position for position, _ in allowed])
        hidden = [position for position, one in enumerate(series) if self._can_begin(one)]
        return _choice_of(
            series,
            [position for position, one in allowed if self._is_served(one)],
            self._working([one for _, one in allowed]),
            _durations(allowed),
            hidden,
        )

    def _is_allowed(self, series: Series) -> bool:
        return self._set.includes(series.row.metric_set) and series.row.name not in self._excluded

    def _is_served(self, series: Series) -> bool:
        """Whether an allowed series is served as it is."""
        if series.row is SOURCE_DURATION:
            return False
        return self._is_begun(series) and (self._set is not series.row.metric_set or is_listed(series))

    def _is_begun(self, series: Series) -> bool:
        if (place := place_of(series)) is not None and place not in self._begun.priorities:
            return key_of(series) in self._begun.series
        return is_begun(series, self._begun.series)

    def _can_begin(self, series: Series) -> bool:
        if is_activity(series) and place_of(series) not in self._begun.priorities:
            return True
        return self._is_allowed(series) and can_begin(series) and not self._is_begun(series)

    def _working(self, allowed: Sequence[Series]) -> list[str]:
        """The sources with a device on which they have always worked, except those that the host has without a device, too."""
        states = [one for one in allowed if one.row is SOURCE_UP]
        own = {one.labels[0] for one in states if not is_of_device(one)}
        working = dict.fromkeys(one.labels[0] for one in states if not is_begun(one, self._begun.series))
        return [source for source in working if source not in own]


def _durations(allowed: Iterable[tuple[int, Series]]) -> dict[str, list[int]]:
    """By source, the positions of its durations."""
    found: dict[str, list[int]] = {}
    for position, one in allowed:
        if one.row is SOURCE_DURATION:
            found.setdefault(one.labels[0], []).append(position)
    return found


def _choice_of(
    series: tuple[Series, ...],
    served: Sequence[int],
    working: Sequence[str] = (),
    durations: Mapping[str, Sequence[int]] = MappingProxyType({}),
    hidden: Sequence[int] = (),
) -> ServedChoice:
    kept = [series[position] for position in served]
    kept += [Series(SOURCE_UP, (source, "", "")) for source in working]
    kept += [Series(SOURCE_DURATION, (source, "", "")) for source in durations]
    return ServedChoice(
        series,
        tuple(kept),
        picker(served),
        (1,) * len(working),
        tuple(map(picker, durations.values())),
        picker([position for position in hidden if series[position].row.usual != 1]),
        picker([position for position in hidden if series[position].row.usual == 1]),
        frozenset(device_of(one) for one in series if one.row is SOURCE_UP) - {""},
    )
