"""Add up rates over time to totals. Exact: a total does not depend on the times of earlier reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from roce_exporter.host.simulated.conditions import Span, TimedConditions, settle
from roce_exporter.host.simulated.rates import edges, levels, rates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from roce_exporter.host.simulated.conditions import Conditions, Setup


def hold(
    spans: Iterable[Span], start: float, setup: Setup, speed: int, afterwards: Conditions
) -> Iterator[TimedConditions]:
    """The spans on the host's clock, one after the other; after the last one, `afterwards` without end.

    Conditions change only between two spans, so the last one never ends.
    """
    for seconds, conditions in spans:
        end = start + seconds
        if end > start:
            yield TimedConditions(settle(conditions, setup, speed), start, end)
            start = end
    yield TimedConditions(settle(afterwards, setup, speed), start, math.inf)


class Meter:
    """The totals of one port, read at times that never decrease."""

    def __init__(
        self,
        current: Iterator[TimedConditions],
        watch: Callable[[TimedConditions, TimedConditions], None] | None = None,
    ) -> None:
        self._coming = current
        self._watch = watch
        self._totals: dict[str, float] = {}
        self._frozen: Mapping[str, float] | None = None
        self.current = next(current)
        self._freeze(self.current.conditions, self.current.conditions)

    def advance(self, now: float) -> None:
        """Advance to `now`."""
        while now >= self.current.end:
            self._change(next(self._coming))

    def totals(self, now: float) -> dict[str, float]:
        """The total of every quantity that has changed, at `now`."""
        self.advance(now)
        found = dict(self._totals)
        _add(found, rates(self.current.conditions), now - self.current.start)
        return found | levels(self.current.conditions)

    def shown(self, now: float) -> Mapping[str, float]:
        """The totals at `now`, or those at the time when the counters were frozen."""
        self.advance(now)
        return self._frozen if self._frozen is not None else self.totals(now)

    def _change(self, new: TimedConditions) -> None:
        old = self.current
        _add(self._totals, rates(old.conditions), old.end - old.start)
        _add(self._totals, edges(old.conditions, new.conditions), 1)
        if new.conditions.reset and not old.conditions.reset:
            self._totals = {}
            self._frozen = None
        self._freeze(old.conditions, new.conditions)
        self.current = new
        if self._watch:
            self._watch(old, new)

    def _freeze(self, old: Conditions, new: Conditions) -> None:
        if not new.frozen:
            self._frozen = None
        elif self._frozen is None:
            self._frozen = self._totals | levels(old)


def _add(totals: dict[str, float], per_second: Mapping[str, float], seconds: float) -> None:
    for name, rate in per_second.items():
        totals[name] = totals.get(name, 0.0) + rate * seconds
