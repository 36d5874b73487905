"""Convert the results of the fast loop to samples of the rows in `catalog.storm`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog import storm
from roce_exporter.fastloop.episodes import BOUNDS, INFINITY, Histogram
from roce_exporter.fastloop.events import StormPlace
from roce_exporter.fastloop.pfc_storm import Method, StormState
from roce_exporter.fastloop.target import DURATIONS, RATIOS
from roce_exporter.normalise.series import Samples, Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.catalog.row import Row
    from roce_exporter.fastloop.events import Events
    from roce_exporter.fastloop.pfc_storm import Track
    from roce_exporter.fastloop.target import Target
    from roce_exporter.fastloop.watch import PauseKey
    from roce_exporter.normalise.series import Value

PER_TRACK = (
    storm.ACTIVE,
    storm.STORMS,
    storm.RESTORED,
    storm.SECONDS,
    storm.NEAR_MISSES,
    storm.STATE,
    storm.LONGEST,
    storm.LAST_START,
    storm.FAULTS,
    storm.CONGESTED,
    storm.ESTIMATED,
)
"""The rows that `_track_values` fills, in this order."""

PER_TARGET = (
    storm.TICKS,
    storm.LATE_TICKS,
    storm.MISSED_TICKS,
    storm.SAMPLER_ERRORS,
    storm.INTERVAL,
    storm.STUCK,
    storm.REFRESH,
)
"""The rows that `_target_values` fills, in this order."""

_UNSEEN = Histogram(RATIOS)


class SamplerSamples:
    """Makes the samples and keeps their series for as long as the set of series does not change."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._series: tuple[Series, ...] = ()

    def samples(self, targets: Sequence[Target], events: Events, now: float) -> Samples:
        """The samples of all targets at `now` (monotonic seconds)."""
        facts = tuple(_facts(target, events) for target in targets)
        if facts != self._key:
            self._key = facts
            self._series = tuple(
                series
                for target, labels in zip(targets, facts, strict=True)
                for series in _series(target, labels)
            )
        return Samples(
            self._series,
            tuple(
                value
                for target, labels in zip(targets, facts, strict=True)
                for value in self._values(target, labels, now)
            ),
        )

    def _values(self, target: Target, facts: SeriesShape, now: float) -> Iterator[Value]:
        yield from _target_values(target)
        yield from target.reads.values()
        for key, track in target.watch.tracks.items():
            longest = target.longest[key].value(now) if key in target.longest else 0.0
            yield from _track_values(track, longest, target.starts.get(key))
            if track.method is Method.DURATION:
                yield from target.ratios.get(key, _UNSEEN).values()
                yield from track.episodes.lengths.values()
        yield from (1 for _ in facts[1])


SeriesShape = tuple[tuple["PauseKey | str | Method", ...], tuple[tuple["Row", tuple[str, ...]], ...]]
"""The properties that determine a target's set of series, and its series that are always 1."""


def _facts(target: Target, events: Events) -> SeriesShape:
    always_one: list[tuple[Row, tuple[str, ...]]] = []
    shape: list[PauseKey | str | Method] = [target.device.name, str(target.port), target.netdev]
    for key, track in target.watch.tracks.items():
        shape += [key, track.method]
        labels = _labels(target, key)
        always_one.append((storm.INFO, (*labels, track.method.value)))
        if track.reason:
            always_one.append((storm.UNKNOWN, (*labels, track.reason)))
        if hint := events.hint(StormPlace(target.device.name, target.port, target.netdev, *key)):
            always_one.append((storm.HINT, (*labels, hint)))
    return tuple(shape), tuple(always_one)


def _series(target: Target, facts: SeriesShape) -> Iterator[Series]:
    own = (target.device.name, str(target.port), target.netdev)
    yield from (Series(row, own) for row in PER_TARGET)
    yield from _histogram(storm.READ_DURATION, own, DURATIONS)
    for key, track in target.watch.tracks.items():
        labels = _labels(target, key)
        yield from (Series(row, labels) for row in PER_TRACK)
        if track.method is Method.DURATION:
            yield from _histogram(storm.RATIO, labels, RATIOS)
            yield from _histogram(storm.EPISODES, labels, BOUNDS)
    yield from (Series(row, labels) for row, labels in facts[1])


def _histogram(row: Row, labels: tuple[str, ...], bounds: Sequence[float]) -> Iterator[Series]:
    for bound in (*map(str, bounds), INFINITY):
        yield Series(row, (*labels, bound), "_bucket")
    yield Series(row, (*labels, ""), "_sum")
    yield Series(row, (*labels, ""), "_count")


def _labels(target: Target, key: PauseKey) -> tuple[str, ...]:
    return (target.device.name, str(target.port), target.netdev, key.priority, key.direction)


def _track_values(track: Track, longest: float, begun: float | None) -> tuple[Value, ...]:
    measured = track.method is Method.DURATION
    return (
        int(track.state in (StormState.STORM, StormState.RECOVERING)),
        track.storms,
        track.restored,
        track.storm_seconds,
        track.near_misses,
        int(track.state),
        longest,
        begun,
        track.faults,
        track.congested_seconds if measured else None,
        None if measured else track.estimated_seconds,
    )


def _target_values(target: Target) -> tuple[Value, ...]:
    return (
        target.ticks,
        target.late,
        target.missed,
        target.errors,
        target.interval,
        int(target.stuck),
        target.watch.refresh.seconds or None,
    )
