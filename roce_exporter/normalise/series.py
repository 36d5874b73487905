"""What normalisation produces: series, and their values now."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from roce_exporter.catalog.row import Row

Value = int | float | None

Picker = Callable[[Sequence[Value]], tuple[Value, ...]]
"""Picks some of the values, in its own order."""

PlanKey = tuple[tuple[str, int, str, tuple[str, ...]], ...]
"""Source, port, network device and names of each reading of a device: the input of a plan."""


class Series(NamedTuple):
    """The identity of one time series: `labels[i]` is the value of the row's label `row.labels[i]`."""

    row: Row
    labels: tuple[str, ...]
    suffix: str = ""
    """The suffix of the sample's name after the row's: `_bucket`, `_sum` or `_count` of a histogram."""


class Samples(NamedTuple):
    """Series and their values now, position by position; None: no sample now.

    `series` is the same object as long as the set of series has not changed.
    """

    series: Sequence[Series]
    values: tuple[Value, ...]

    def replace(self, found: Iterable[tuple[Series, Value]]) -> Samples:
        """These samples instead, with `series` the same object if the set has not changed."""
        pairs = tuple(found)
        series = tuple([one for one, _ in pairs])
        same = series == tuple(self.series)
        return Samples(self.series if same else series, tuple([value for _, value in pairs]))


class Histogram:
    """Cumulative counts of observations per upper bound, their sum and their number."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count one observation, or several of the same size."""
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    def values(self) -> tuple[float, ...]:
        """The cumulative count per bound and for `+Inf`, then the sum and the number of all observations."""
        cumulative = [*accumulate(self._counts)]
        return (*cumulative, self._sum, cumulative[-1])


def histogram_series(row: Row, labels: tuple[str, ...], bounds: Sequence[float]) -> Iterator[Series]:
    """The series of the values of a `Histogram`."""
    for bound in (*map(str, bounds), "+Inf"):
        yield Series(row, (*labels, bound), "_bucket")
    yield Series(row, (*labels, ""), "_sum")
    yield Series(row, (*labels, ""), "_count")


N = TypeVar("N", int, float)


def step(before: N, after: N, wraps: Sequence[N]) -> N:
    """How much a counter rose from one sample to the next.

    A counter that fell has wrapped if it was in the upper half of a known width and is now in the lower half by a short step;
    otherwise it started again from 0.
    """
    if after >= before:
        return after - before
    for full in wraps:
        if full / 2 < before < full and full - before + after < full / 4:
            return full - before + after
    return after


MOST_NUMBERS = 1000
NO_SAMPLES = Samples((), ())


def picker(positions: Sequence[int]) -> Picker:
    """A function that picks the values at these positions, in this order."""
    if len(positions) > MOST_NUMBERS:
        # A switch has thousands in one reading, and a number of its own takes nine times the memory.
        packed = array("i", positions)
        return lambda values: tuple(map(values.__getitem__, packed))
    if len(positions) > 1:
        return itemgetter(*positions)
    # An itemgetter of one position returns no tuple, and one of no position does not exist.
    return (lambda values: (values[positions[0]],)) if positions else (lambda _: ())
