"""Convert the results of the fast loop to samples of the rows in `catalog.storm`."""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from roce_exporter.catalog import INDEX, storm
from roce_exporter.fastloop.episodes import BOUNDS, INFINITY, Histogram
from roce_exporter.fastloop.events import StormPlace
from roce_exporter.fastloop.pfc_storm import Method, StormState
from roce_exporter.fastloop.target import DURATIONS, RATIOS
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.words import word_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.catalog.row import Row
    from roce_exporter.fastloop.events import Events
    from roce_exporter.fastloop.target import Target
    from roce_exporter.fastloop.watch import PauseKey
    from roce_exporter.normalise.series import Value


def _rows(names: str) -> tuple[Row, ...]:
    return tuple(INDEX.named[name] for name in word_list(names))


_COUNTED = attrgetter(*word_list("storms restored storm_seconds near_misses faults"))
PER_TRACK = _rows(
    """
    roce_pfc_storms_total roce_pfc_storms_restored_total roce_pfc_storm_seconds_total
    roce_pfc_storm_near_misses_total roce_pfc_detector_faults_total
    roce_pfc_storm_active roce_pfc_storm_detector_state roce_pfc_longest_pause_seconds
    roce_pfc_storm_last_start_timestamp_seconds
    roce_pfc_congested_seconds_total roce_pfc_pause_estimated_max_seconds_total
    """
)
"""In the order of their values: first those that the track counts."""

_POLLED = attrgetter(*word_list("ticks late missed errors interval"))
PER_TARGET = _rows(
    """
    roce_exporter_sampler_ticks_total roce_exporter_sampler_late_ticks_total
    roce_exporter_sampler_missed_ticks_total roce_exporter_sampler_errors_total
    roce_exporter_sampler_interval_seconds roce_exporter_sampler_stuck roce_exporter_sampler_refresh_seconds
    """
)

_UNSEEN = Histogram(RATIOS)


class SamplerSamples:
    """Makes the samples and keeps their series for as long as the set of series does not change."""

    def __init__(self) -> None:
        self._key: tuple[SeriesShape, ...] = ()
        self._series: tuple[Series, ...] = ()

    def samples(self, targets: Sequence[Target], events: Events, now: float) -> Samples:
        """The samples of all targets at `now` (monotonic seconds)."""
        shapes = tuple(_shape(target, events) for target in targets)
        if shapes != self._key:
            self._key = shapes
            self._series = tuple(chain.from_iterable(map(_series, targets, shapes)))
        values = (_values(target, shape, now) for target, shape in zip(targets, shapes, strict=True))
        return Samples(self._series, tuple(chain.from_iterable(values)))


SeriesShape = tuple[tuple["PauseKey | str | Method", ...], tuple[tuple["Row", tuple[str, ...]], ...]]
"""The properties that determine a target's set of series, and its series that are always 1."""


def _own(target: Target) -> tuple[str, ...]:
    return target.device.name, str(target.port), target.netdev


def _shape(target: Target, events: Events) -> SeriesShape:
    always_one: list[tuple[Row, tuple[str, ...]]] = []
    shape: list[PauseKey | str | Method] = [*_own(target)]
    for key, track in target.watch.tracks.items():
        shape += [key, track.method]
        labels = (*_own(target), *key)
        always_one.append((storm.INFO, (*labels, track.method.value)))
        if track.reason:
            always_one.append((storm.UNKNOWN, (*labels, track.reason)))
        if hint := events.hint(StormPlace(target.device.name, target.port, target.netdev, *key)):
            always_one.append((storm.HINT, (*labels, hint)))
    return tuple(shape), tuple(always_one)


def _series(target: Target, shape: SeriesShape) -> Iterator[Series]:
    own = _own(target)
    yield from (Series(row, own) for row in PER_TARGET)
    yield from _histogram(storm.READ_DURATION, own, DURATIONS)
    for key, track in target.watch.tracks.items():
        labels = (*own, *key)
        yield from (Series(row, labels) for row in PER_TRACK)
        if track.method is Method.DURATION:
            yield from _histogram(storm.RATIO, labels, RATIOS)
            yield from _histogram(storm.EPISODES, labels, BOUNDS)
    yield from (Series(row, labels) for row, labels in shape[1])


def _histogram(row: Row, labels: tuple[str, ...], bounds: Sequence[float]) -> Iterator[Series]:
    for bound in (*map(str, bounds), INFINITY):
        yield Series(row, (*labels, bound), "_bucket")
    yield Series(row, (*labels, ""), "_sum")
    yield Series(row, (*labels, ""), "_count")


def _values(target: Target, shape: SeriesShape, now: float) -> Iterator[Value]:
    yield from _POLLED(target)
    yield int(target.stuck)
    yield target.watch.refresh.seconds or None
    yield from target.reads.values()
    for key, track in target.watch.tracks.items():
        measured = track.method is Method.DURATION
        yield from _COUNTED(track)
        yield int(track.state in (StormState.STORM, StormState.RECOVERING))
        yield int(track.state)
        yield target.longest[key].value(now) if key in target.longest else 0.0
        yield target.starts.get(key)
        yield track.congested_seconds if measured else None
        yield None if measured else track.estimated_seconds
        if measured:
            yield from target.ratios.get(key, _UNSEEN).values()
            yield from track.episodes.lengths.values()
    yield from (1 for _ in shape[1])
