"""Which series an exposition has: those of a metric set, without excluded metrics.

Only text that leaves the process (`/metrics`, `once`) is selected; the verdict, the audit and debug pages see all samples. What
is served follows from the row and the labels of a series alone, never from its value, so a counter of a set is there from its
first 0 on. The rules of lean and standard, in addition to the set of each row:

1. A source has one series of a row in `OF_SOURCES` for all devices, without `device` and `netdev`: that of the worst device.
   Files in quarantine are one number for the host.
2. An owner has one series of a row in `SUMMED` for all devices, without `device` and `port`; with the set full one per device instead.
3. In its lowest set, a row with `only` has series for these values of the label only, and for the bucket `+Inf`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from roce_exporter.catalog.named import METRIC_SET_INFO, QUARANTINED, SOURCE_UP, UNREADABLE
from roce_exporter.catalog.owners import SUMMED
from roce_exporter.catalog.row import HISTOGRAM, MetricSet
from roce_exporter.normalise.series import Picker, Samples, Series, Value, picker

OF_SOURCES: dict[str, Callable[[list[int | float]], Value]] = {
    SOURCE_UP.name: min,
    UNREADABLE.name: sum,
    QUARANTINED.name: sum,
}
"""Rows about sources, and what stands for all devices. A sum of counters would fall when a device leaves, so no counter is here."""

MOST_CHOICES = 1000
"""Sets of series whose choice is kept: a host has one per device and a dozen more."""


class ServedChoice(NamedTuple):
    """What is served of one set of series."""

    whole: Sequence[Series]
    series: Sequence[Series]
    pick: Picker
    """The values of the first of `series`."""
    of_sources: tuple[tuple[Callable[[list[int | float]], Value], Picker], ...]
    """How the value of each of the last ones is made of the values of all devices."""

    def samples(self, values: Sequence[Value]) -> Samples:
        """What is served of these values."""
        of_sources = []
        for combine, pick in self.of_sources:
            known = [value for value in pick(values) if value is not None]
            of_sources.append(combine(known) if known else None)
        return Samples(self.series, (*self.pick(values), *of_sources))


class ServedSeries:
    """Selects what is served. Used from one event loop; the choice is made when a set of series changes."""

    def __init__(self, metric_set: MetricSet, excluded: Collection[str] = ()) -> None:
        """`excluded` are exact names of rows."""
        self._set = metric_set
        self._excluded = frozenset(excluded)
        self._choices: dict[int, ServedChoice] = {}
        self._last: dict[int, tuple[Samples, Samples]] = {}
        """By set of series the last samples, and what is served of them."""
        info = Samples((Series(METRIC_SET_INFO, (metric_set.value,)),), (1,))
        self._info = () if METRIC_SET_INFO.name in self._excluded else (info,)

    def select(self, parts: Sequence[Samples]) -> tuple[Samples, ...]:
        """What is served of these samples, and the name of the set."""
        if self._set is MetricSet.FULL and not self._excluded:
            return (*[part for part in parts if not part.series or not is_sum(part.series[0])], *self._info)
        return (*[self._serve(part) for part in parts], *self._info)

    def _serve(self, part: Samples) -> Samples:
        known = self._last.get(id(part.series))
        if known is None or known[0] is not part:
            if len(self._last) >= MOST_CHOICES:
                self._last.clear()
                self._choices.clear()
            choice = self._choices.get(id(part.series))
            if choice is None:
                # The choice holds a reference, so that the id is not used again.
                choice = self._choices[id(part.series)] = self._choose(part.series)
            known = self._last[id(part.series)] = (part, choice.samples(part.values))
        return known[1]

    def _choose(self, series: Sequence[Series]) -> ServedChoice:
        served: list[int] = []
        of_sources: dict[Series, list[int]] = {}
        for position, one in enumerate(series):
            row = one.row
            if not self._set.includes(row.metric_set) or row.name in self._excluded:
                continue
            if row.name in SUMMED and is_sum(one) is (self._set is MetricSet.FULL):
                continue
            if self._set is not MetricSet.FULL and row.name in OF_SOURCES:
                source = "" if row is QUARANTINED else one.labels[0]
                of_sources.setdefault(Series(row, (source, "", "")), []).append(position)
            elif self._set is not row.metric_set or self._set is MetricSet.FULL or is_listed(one):
                served.append(position)
        return ServedChoice(
            series,
            (*[series[position] for position in served], *of_sources),
            picker(served),
            tuple((OF_SOURCES[one.row.name], picker(places)) for one, places in of_sources.items()),
        )


def is_sum(series: Series) -> bool:
    """Whether it is the sum of an owner over all devices."""
    return series.row.name in SUMMED and not series.labels[0]


def is_listed(series: Series) -> bool:
    """Whether the row has series in its lowest set for the labels of this one."""
    label, *values = series.row.only or ("",)
    if not label:
        return True
    value = series.labels[series.row.labels.index(label)]
    return value in values or (series.row.kind == HISTOGRAM and value in ("", "+Inf"))
