"""Counts of observations by size, as Prometheus counts them."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

INFINITY = "+Inf"


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
        running, cumulative = 0, []
        for count in self._counts:
            running += count
            cumulative.append(running)
        return (*cumulative, self._sum, running)
