"""Which series an exposition has: those of a metric set, without excluded metrics.

Only text that leaves the process (`/metrics`, `once`) is filtered; the verdict, the audit and debug pages see all samples.
`served_rules` has the rules. All decisions are made when the set of series changes or a hidden series begins; a scrape only
picks values, and checks with `any` whether one begins. What was served once is served as long as its device and source exist,
so no set makes a series come and go; `begun_series` remembers it for an hour after the device has left.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.named import METRIC_SET_INFO, SOURCE_DURATION, SOURCE_UP
from roce_exporter.catalog.row import MetricSet
from roce_exporter.exposition.begun_series import BegunSeries
from roce_exporter.exposition.served_rules import (
    can_begin,
    device_of,
    is_activity,
    is_begun,
    is_listed,
    is_of_device,
    key_of,
    place_of,
)
from roce_exporter.normalise.series import Picker, Samples, Series, Value, picker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
