"""What a set of metrics serves of a history that is being made, so that one history shows what each set would show."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.health.from_samples import timed_samples
from roce_exporter.health.usual_values import with_usual_values
from roce_exporter.introspection import host_history

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roce_exporter.catalog.row import MetricSet
    from roce_exporter.health.history import History, TimedSamples
    from roce_exporter.normalise.series import Samples


class ServedHistory:
    """Takes what one exporter would serve at each moment of a history."""

    def __init__(self, metric_set: MetricSet) -> None:
        self._served = ServedSeries(metric_set)
        self._moments: list[TimedSamples] = []

    def follow(self, parts: Iterable[Samples], time: float) -> None:
        self._moments.append(timed_samples(self._served.select(tuple(parts)), time))

    def history(self) -> History:
        """As Prometheus returns it."""
        return with_usual_values(tuple(self._moments))


@contextmanager
def served_too(*metric_sets: MetricSet) -> Iterator[dict[MetricSet, ServedHistory]]:
    """What these sets serve of the history that is made in the block."""
    served = {one: ServedHistory(one) for one in metric_sets}

    def sample(parts: Iterable[Samples], time: float) -> TimedSamples:
        for one in served.values():
            one.follow(parts, time)
        return timed_samples(parts, time)

    with mock.patch.object(host_history, "timed_samples", sample):
        yield served
