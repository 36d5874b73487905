"""All priorities of one network device: which samples are usable, what changed between them, and what each track detects.

An unusable sample is dropped and the next one starts a new span. Nothing is assumed about the time in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from roce_exporter.fastloop.episodes import Counts, RecentMedian
from roce_exporter.fastloop.pfc_storm import (
    Begun,
    CountedSpan,
    Ended,
    Method,
    StormLimits,
    StormState,
    Track,
    is_hot,
    longest_pause,
    method_of,
    paused_share,
)

REMEMBERED = 32
NEEDED = 4
CACHED = 1.5  # counters that stay the same for more than this number of samples are a copy
FINE = 0.3  # samples further apart than this, in seconds, cannot show a refresh interval of one second


class Refresh(RecentMedian):
    """The refresh interval of one network device: the median time between two refreshes, 0 while it is not known."""

    def __init__(self) -> None:
        super().__init__(REMEMBERED, NEEDED)

    def changed(self, interval: float, poll: float) -> None:
        """Enter that counters changed under traffic `interval` seconds after the last change, polled every `poll` seconds."""
        if poll <= FINE:
            self.note(interval)

    def is_cached(self, poll: float) -> bool:
        """Whether samples `poll` seconds apart contain the same copy more than once."""
        return self.seconds > CACHED * poll


class PauseKey(NamedTuple):
    """One priority in one direction: `receive` is pause that this host must obey, `transmit` pause that it sends itself."""

    priority: str
    direction: str


@dataclass(frozen=True, slots=True)
class CounterSample:
    """The counters of one network device at one moment."""

    time: float
    """Monotonic seconds, the middle of the read."""
    counts: Mapping[PauseKey, Counts]
    poll: float
    """Planned seconds between this sample and the previous one."""
    seconds: float = 0.0
    """How long the read took."""
    up: bool = True
    downs: int = 0
    """Times the link went down since the driver was loaded."""
    speed: float | None = None
    """Link speed in bytes per second."""
    scope: frozenset[str] | None = None
    """Priorities with PFC enabled; None: not reported."""
    cross_check: int | None = None
    """An independent counter of the same port, read if `Watch.wants_cross_check`; None: not read."""
    shape: object = None
    """The same object as long as the driver has the same counters; None: not known."""


class Change(NamedTuple):
    """A storm that began or ended."""

    key: PauseKey
    what: Begun | Ended


GAP = 3.0
"""A span longer than this many intervals (planned, or the driver's own) means that the sampler did not run."""
STALE = 1.0
"""Minimum seconds without any change before the counters of a busy device are suspected to be frozen."""
BUSY = 1000.0
"""From this many packets per second, a device that refreshes its counters at every read changes them in every sample."""
SLOW = 0.25  # if a read takes a larger share of the span than this, the moment of its values is too uncertain
NOTHING = Counts()
STALE_REASON = "stale"
SLOW_READ = "slow_read"


@dataclass(slots=True)
class Watch:
    """The detectors of one network device. `see` takes one sample after the other."""

    limits: StormLimits = field(default_factory=StormLimits)
    tracks: dict[PauseKey, Track] = field(default_factory=dict)
    refresh: Refresh = field(default_factory=Refresh)
    active: bool = False
    """Whether the last sample contained any pause."""
    wants_cross_check: bool = False
    """Whether the next sample needs a cross-check: nothing changes, because of idleness or frozen counters."""
    shares: tuple[tuple[PauseKey, float], ...] = ()
    """Share paused of each priority and direction in the last span, if measured; empty without a span."""
    _last: CounterSample | None = None
    """The sample at which the next span begins."""
    _changed: float = 0.0
    """Time of the last change of the counters."""
    _busy: bool = False
    _cross_check: int | None = None

    def see(self, sample: CounterSample) -> list[Change]:
        """Process the next sample; returns the storms that began or ended."""
        last, self.shares, self.active = self._last, (), False
        same = (
            last is not None
            and sample.shape is not None
            and sample.shape is last.shape
            and sample.scope == last.scope
        )
        changes = [] if same else self._settle_scope(sample)
        if last is None:
            self._start(sample)
            return changes
        return changes + self._judge(last, sample)

    def miss(self, now: float, reason: str) -> list[Change]:
        """Handle a failed read: the state is unknown, for this reason, until the counters can be read again."""
        self._last, self.shares, self.active, self.wants_cross_check = None, (), False, False
        return self._for_all(lambda _, track: track.mark_unknown(reason, now))

    def _settle_scope(self, sample: CounterSample) -> list[Change]:
        """Create tracks for new priorities, and mark those as unknown that cannot be judged now."""
        for key, counts in sample.counts.items():
            method = method_of(counts)
            track = self.tracks.get(key)
            if method is None or _out_of_scope(key, sample):
                continue
            if track is None:
                track = self.tracks[key] = Track(method)
            if track.reason in OUT_OF_SCOPE:
                track.clear_unknown()
            track.method = method
        changes = []
        for key, track in self.tracks.items():
            reason = _out_of_scope(key, sample)
            if reason and track.reason != reason and (ended := track.mark_unknown(reason, sample.time)):
                changes.append(Change(key, ended))
        return changes

    def _judge(self, last: CounterSample, sample: CounterSample) -> list[Change]:
        now = sample.time
        if not sample.up or not last.up or sample.downs != last.downs:
            self._start(sample)
            return self._for_all(lambda _, track: track.link_changed(now))
        if reason := _unusable(last, sample):
            self._start(sample)
            # One of both took too long to know the exact time.
            spans = {
                key: CountedSpan(last.time, now, difference(last.counts[key], counts), sample.speed)
                for key, counts in sample.counts.items()
                if reason == SLOW_READ and key in last.counts and now > last.time
            }
            return self._for_all(lambda key, track: track.skip(now, reason, spans.get(key)))
        if sample.counts.items() <= last.counts.items():
            return self._judge_unchanged(last, sample)
        return self._move(last, sample)

    def _start(self, sample: CounterSample) -> None:
        """Begin the next span here, without history."""
        self._last, self._changed, self._busy = sample, sample.time, False
        self.wants_cross_check, self._cross_check = False, None
        for track in self.tracks.values():
            if track.reason not in OUT_OF_SCOPE:
                track.clear_unknown()

    def _move(self, last: CounterSample, sample: CounterSample) -> list[Change]:
        steps = {
            key: difference(last.counts[key], counts)
            for key, counts in sample.counts.items()
            if key in last.counts
        }
        self.active = any([step.paused or step.stops for step in steps.values()])  # noqa: C419 - for two items a generator takes longer than all of them
        begin, limits = self._begin_of_span(last, sample, steps)
        interval, self._changed, self._last = sample.time - self._changed, sample.time, sample
        packets = sum([step.packets or 0 for step in steps.values()])
        self._busy = self.active or packets >= BUSY * interval
        if self._busy:
            self.refresh.changed(interval, sample.poll)
        self.wants_cross_check, self._cross_check = False, None
        changes = []
        for key, step in steps.items():
            track = self.tracks.get(key)
            if track is None or track.reason in OUT_OF_SCOPE:
                continue
            if track.reason == STALE_REASON:
                track.clear_unknown()
                continue
            span = CountedSpan(begin, sample.time, step, sample.speed)
            gap = span.seconds > GAP * max(sample.poll, self.refresh.seconds)
            what = self._step(track, span, limits, gap)
            if what is not None:
                changes.append(Change(key, what))
        self.shares = tuple(
            [
                (key, min(1.0, step.paused / (sample.time - begin)))
                for key, step in steps.items()
                if step.paused is not None and key in self.tracks and not self.tracks[key].reason
            ]
        )
        return changes

    def _step(self, track: Track, span: CountedSpan, limits: StormLimits, gap: bool) -> Begun | Ended | None:
        # Of a gap only measurements of its whole length count: that it was paused throughout, or that one pause was long.
        # An estimate from frames, or a partly paused gap, does not show when within the gap the pause was.
        if gap:
            share = paused_share(Method.DURATION, span) or 0.0
            hot = track.method is Method.DURATION and is_hot(track.method, span, share, limits)
            if not hot and longest_pause(span.change) < limits.detect:
                return track.skip(span.end, "gap", span)
        return track.step(span, limits)

    def _judge_unchanged(self, last: CounterSample, sample: CounterSample) -> list[Change]:
        """Judge a sample without any change: an idle device, a copy that was not refreshed yet, or frozen counters."""
        still = sample.time - self._changed
        # The counters of a driver that counts only pause frames do not change while there is no pause.
        mute = all(counts.packets is None for counts in sample.counts.values())
        if not mute and still >= max(STALE, GAP * sample.poll, GAP * self.refresh.seconds):
            return self._suspect_frozen(sample)
        if self.refresh.is_cached(sample.poll):
            return []
        self._last = sample
        changes = []
        for key, track in self.tracks.items():
            counts = sample.counts.get(key, NOTHING)
            span = CountedSpan(last.time, sample.time, difference(counts, counts), sample.speed)
            # Unchanged counters do not end a storm: only packets or a resumed pause count show that it is over.
            ends = mute or track.state in (StormState.OK, StormState.SUSPECT)
            if ends and not track.reason and (what := track.step(span, self.limits)):
                changes.append(Change(key, what))
        return changes

    def _suspect_frozen(self, sample: CounterSample) -> list[Change]:
        self._last = sample
        self.wants_cross_check = self._busy
        moved = (
            None not in (sample.cross_check, self._cross_check) and sample.cross_check != self._cross_check
        )
        if self._cross_check is None:
            self._cross_check = sample.cross_check

        def judge(_: PauseKey, track: Track) -> Ended | None:
            blind = moved or track.state in (StormState.STORM, StormState.RECOVERING)
            return track.mark_unknown(STALE_REASON, sample.time) if blind else None

        return self._for_all(judge)

    def _begin_of_span(
        self, last: CounterSample, sample: CounterSample, steps: Mapping[PauseKey, Counts]
    ) -> tuple[float, StormLimits]:
        """The begin of the span in which these changes happened, and the limits to judge it with.

        The changes of a copy happened since the previous copy, whose time is known as exactly as the polling interval.
        """
        passed = sample.time - last.time
        most = max([step.paused or 0.0 for step in steps.values()], default=0.0)
        cached = self.refresh.is_cached(sample.poll)
        if self._changed >= last.time or (not cached and most <= self.limits.most * passed):
            return last.time, self.limits
        interval = sample.time - self._changed
        doubt = min(1.0, sample.poll / interval)
        return self._changed, replace(
            self.limits, hot=max(LEAST_HOT, self.limits.hot - doubt), most=self.limits.most + doubt
        )

    def _for_all(self, judge: Callable[[PauseKey, Track], Ended | None]) -> list[Change]:
        found = (
            (key, judge(key, track)) for key, track in self.tracks.items() if track.reason not in OUT_OF_SCOPE
        )
        return [Change(key, ended) for key, ended in found if ended]


OUT_OF_SCOPE = frozenset({"counters_vanished", "pfc_disabled"})
LEAST_HOT = 0.8
"""A smaller share paused is never a storm, however inexact the length of the span is."""


def _out_of_scope(key: PauseKey, sample: CounterSample) -> str:
    """The reason why a priority cannot be judged at all now; empty if it can."""
    if key not in sample.counts or method_of(sample.counts[key]) is None:
        return "counters_vanished"
    # mlx5 lists a priority only while PFC is enabled for it. Others list all priorities.
    return "pfc_disabled" if sample.scope is not None and key.priority not in sample.scope else ""


def _unusable(last: CounterSample, sample: CounterSample) -> str:
    """The reason why the span between two samples is unusable; empty if it is usable."""
    if _went_back(last.counts, sample.counts):
        return "counters_reset"
    if sample.speed != last.speed:
        return "speed_changed"
    return SLOW_READ if sample.seconds > SLOW * (sample.time - last.time) else ""


def _went_back(before: Mapping[PauseKey, Counts], after: Mapping[PauseKey, Counts]) -> bool:
    for key, counts in after.items():
        if key in before:
            for old, new in zip(before[key], counts, strict=True):
                if old is not None and new is not None and new < old:
                    return True
    return False


def difference(before: Counts, after: Counts) -> Counts:
    """The difference of each counter; None if either value is not known."""
    return Counts(
        *[None if old is None or new is None else new - old for old, new in zip(before, after, strict=True)]
    )
