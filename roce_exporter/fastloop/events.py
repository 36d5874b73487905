"""What the fast loop reports: the last storms in detail, with their probable cause, and samples of the rows in `catalog.storm`."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from roce_exporter.catalog import INDEX, storm
from roce_exporter.catalog.row import Row
from roce_exporter.fastloop.episodes import BOUNDS
from roce_exporter.fastloop.pfc_storm import Ended, Method, StormState
from roce_exporter.fastloop.target import DURATIONS, RATIOS, Hot, Target
from roce_exporter.fastloop.watch import PauseKey, difference
from roce_exporter.normalise.series import Histogram, Samples, Series, Value, histogram_series
from roce_exporter.words import word_list

LOG = logging.getLogger(__name__)
KEPT = 256
STALLS = 0.3  # from this share on, mlx5 counts a second as one with a PCIe stall


class StormPlace(NamedTuple):
    """The location of a storm."""

    device: str
    port: int
    netdev: str
    priority: str
    direction: str


@dataclass(slots=True)
class Event:
    """One storm. Times are Unix seconds; `end` and `duration` are None while it continues."""

    place: StormPlace
    method: str
    hint: str
    start: float
    end: float | None = None
    duration: float | None = None
    reason: str = ""
    """How it ended: `restored`, or the reason why it could no longer be followed."""
    pause_frames: float | None = None
    """XOFF frames from the detection of the storm to the last sample within it; None: not counted. The fields below cover
    the same time."""
    paused_seconds: float | None = None
    packets: float | None = None
    """Packets of the priority in the direction that the pause blocks."""
    pcie_stalled_seconds: float | None = None


class _Open(NamedTuple):
    """A storm under way, the counters when it was detected, and those of the last sample within it."""

    event: Event
    first: Hot
    latest: Hot


class Events:
    """The last `KEPT` storms of the host, newest last."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        """The offset from monotonic to Unix time."""
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._open: dict[StormPlace, _Open] = {}

    def begin(self, place: StormPlace, start: float, method: str, hint: str, hot: Hot) -> None:
        """Enter a detected storm that began at `start` (Unix seconds). `hot` has the counters at detection."""
        event = Event(place, method, hint, start)
        self._kept.append(event)
        self._open[place] = _Open(event, hot, hot)
        LOG.warning("PFC storm begins", extra={"fields": _fields(event)})

    def follow(self, place: StormPlace, hot: Hot) -> None:
        """Update the storm at this location, if there is one, with the latest counters."""
        if place in self._open:
            self._open[place] = self._open[place]._replace(latest=hot)

    def end(self, place: StormPlace, what: Ended) -> None:
        """Enter the end of a storm."""
        if place not in self._open:
            return
        event, first, latest = self._open.pop(place)
        event.end, event.duration, event.reason = what.end + self._wall(), what.end - what.begin, what.reason
        key = PauseKey(place.priority, place.direction)
        if key in first.counts and key in latest.counts:
            change = difference(first.counts[key], latest.counts[key])
            event.paused_seconds, event.pause_frames, _, event.packets = change
        if first.stalled is not None and latest.stalled is not None:
            event.pcie_stalled_seconds = latest.stalled - first.stalled
        LOG.warning("PFC storm ends", extra={"fields": _fields(event)})

    def hint(self, place: StormPlace) -> str:
        """The probable cause of the storm at this location; empty without a storm."""
        return self._open[place].event.hint if place in self._open else ""

    def documents(self) -> list[dict[str, Any]]:
        """All kept storms, newest first, for JSON. Times are RFC 3339 in UTC, durations in seconds."""
        return [_document(event) for event in reversed(self._kept)]


def guess(
    key: PauseKey, before: Hot | None, now: Hot, paused: Collection[str], ports: Collection[str]
) -> str:
    """The probable cause of a storm, with the values of `roce_pfc_storm_hint`.

    `before` is the sample before `now`. `paused` are the network devices of the host under a received storm, including this
    one, and `ports` are all polled ones. Follows the symptoms of Guo et al. (SIGCOMM 2016) and Gao et al. (NSDI 2021),
    which are not a proof.
    """
    if key.direction == "receive":
        everywhere = len(ports) > 1 and set(paused) >= set(ports)
        return "all_ports_paused" if everywhere else "paused_by_fabric"
    if (now.stalling or 0) >= STALLS or (before is not None and before.stalled != now.stalled):
        return "slow_receiver"
    silent = before is not None and now.received is not None and before.received == now.received
    return "host_stopped" if silent else "receiver_overwhelmed"


def _document(event: Event) -> dict[str, Any]:
    found = event.place._asdict() | asdict(event)
    del found["place"]
    for name in ("start", "end"):
        found[name] = found[name] and datetime.fromtimestamp(found[name], UTC).isoformat(
            timespec="milliseconds"
        )
    return found


def _fields(event: Event) -> dict[str, str]:
    return {
        name: f"{value:.3f}" if isinstance(value, float) else str(value)
        for name, value in _document(event).items()
        if value not in (None, "")
    }


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
    yield from histogram_series(storm.READ_DURATION, own, DURATIONS)
    for key, track in target.watch.tracks.items():
        labels = (*own, *key)
        yield from (Series(row, labels) for row in PER_TRACK)
        if track.method is Method.DURATION:
            yield from histogram_series(storm.RATIO, labels, RATIOS)
            yield from histogram_series(storm.EPISODES, labels, BOUNDS)
    yield from (Series(row, labels) for row, labels in shape[1])


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
