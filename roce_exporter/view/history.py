"""The samples of one host or switch at several times, the only input of the rules; and how those of a host are taken.

A host is this one, a recording or a simulation. The latter two have clocks of their own, so nothing waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from roce_exporter.fastloop import Sampler
    from roce_exporter.normalise.series import Samples

LabelValues = tuple[str, ...]
"""The values of a row's labels, in the order of `Row.labels`."""

SPACINGS = ((0.0, 0.0), (330.0, 60.0), (960.0, 300.0))
"""From this age on, in seconds, kept moments are at least this far apart. Rules have windows of 5 minutes, 15 minutes and an hour."""
MOST_AGE = 3660.0
"""Seconds for which a moment is kept."""


class TimedSamples(NamedTuple):
    """The samples at one time. Absent series are missing, never 0."""

    time: float
    """Seconds since 1970, or of another clock that all moments of a history have."""
    values: Mapping[str, Mapping[LabelValues, float]]
    """By name of the metric, then by label values. Histograms are left out."""

    def value(self, name: str, labels: LabelValues) -> float | None:
        """The value of one series; None if it is absent."""
        return self.values.get(name, {}).get(labels)


History = tuple[TimedSamples, ...]
"""From oldest to newest. Counters are cumulative and may start again at a reset."""


def timed_samples(
    parts: Iterable[Samples], time: float, wanted: Collection[str] | None = None
) -> TimedSamples:
    """The samples of one collection, without histograms and without missing values; of the wanted metrics, or of all."""
    values: dict[str, dict[LabelValues, float]] = {}
    for part in parts:
        for series, value in zip(part.series, part.values, strict=True):
            if value is not None and not series.suffix:
                name = series.row.name
                if wanted is None or name in wanted:
                    values.setdefault(name, {})[series.labels] = value
    return TimedSamples(time, values)


def kept(history: History, newest: TimedSamples) -> History:
    """The history with its newest moment, thinned out so that memory stays small: all of the last minutes, fewer of the last hour.

    A clock that was set back makes every difference meaningless, so the history begins again.
    """
    if history and newest.time <= history[-1].time:
        return (newest,)
    result = [newest]
    for moment in reversed(history):
        age = newest.time - moment.time
        if age > MOST_AGE:
            break
        # Measured from a fixed origin, so that a moment that is kept once is kept until it enters the next spacing.
        spacing = max(apart for begin, apart in SPACINGS if age >= begin)
        if not spacing or moment.time // spacing != result[-1].time // spacing:
            result.append(moment)
    return tuple(reversed(result))


class HostClock:
    """The clock of a host that is not this one, in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Seconds on this clock."""
        return self.now

    async def play(self, sampler: Sampler | None, time: float) -> None:
        """Let time pass up to this one; the fast loop of a simulated host polls as often as it would meanwhile."""
        while sampler is not None and (due := sampler.tick()) is not None and due < time:
            self.now = due
        self.now = time
