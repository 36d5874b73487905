"""All priorities of one network device: which looks can be used, what changed between them, and what each track says.

A look that cannot be used is dropped and the next one starts anew; nothing is ever made up for the time in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.detectors.pfc_storm import (
    Begun,
    CountedSpan,
    Counts,
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
from roce_exporter.detectors.refresh import Refresh

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class PauseKey(NamedTuple):
    """One priority in one direction: `receive` is pause that this host must obey, `transmit` pause that it sends."""

    priority: str
    direction: str


@dataclass(frozen=True, slots=True)
class CounterSample:
    """The counters of one network device at one moment."""

    time: float
    """Monotonic seconds, the middle of the read."""
    counts: Mapping[PauseKey, Counts]
    poll: float
    """Seconds that were planned between this look and the one before."""
    seconds: float = 0.0
    """How long the read took."""
    up: bool = True
    downs: int = 0
    """Times the link went down since the driver began."""
    speed: float | None = None
    """Of the link, in bytes per second."""
    scope: frozenset[str] | None = None
    """Priorities for which PFC is on; None: not told."""
    cross_check: int | None = None
    """Some other counter of the same port, read when `Watch.wants_cross_check`; None: not read."""
    shape: object = None
    """The same object as long as the driver gives the same counters; None: not known."""


class Change(NamedTuple):
    """A storm that began or ended."""

    key: PauseKey
    what: Begun | Ended


GAP = 3.0
"""So many times the planned interval, or the driver's own, is a sampler that did not run."""

STALE = 1.0
"""Seconds without any change of a device that was busy, at the least, before its counters are suspected to be frozen."""

BUSY = 1000.0
"""Packets per second from which on a device that renews its counters at every read changes them at every look."""

SLOW = 0.25
"""A read that takes a larger share than this of the span does not say which moment it is of."""

NOTHING = Counts()

STALE_REASON = "stale"
SLOW_READ = "slow_read"


@dataclass(slots=True)
class Watch:
    """The detectors of one network device. `see` is called with one look after the other."""

    limits: StormLimits = field(default_factory=StormLimits)
    tracks: dict[PauseKey, Track] = field(default_factory=dict)
    refresh: Refresh = field(default_factory=Refresh)
    active: bool = False
    """Whether the last look saw any pause."""
    wants_cross_check: bool = False
    """Whether the next look should bring a witness: all stands still, which is idleness or frozen counters."""
    shares: tuple[tuple[PauseKey, float], ...] = ()
    """Share paused of each priority and direction in the last span, where it is measured; empty where there was none."""
    _last: CounterSample | None = None
    """The look that the next span begins at."""
    _changed: float = 0.0
    """When the counters last changed."""
    _busy: bool = False
    _cross_check: int | None = None

    def see(self, sample: CounterSample) -> list[Change]:
        """Take the next look; returns the storms that began or ended by it."""
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
        """The counters could not be read, for this reason: nothing is known until they can be read again."""
        self._last, self.shares, self.active, self.wants_cross_check = None, (), False, False
        return self._for_all(lambda _, track: track.mark_unknown(reason, now))

    def _settle_scope(self, sample: CounterSample) -> list[Change]:
        """Make tracks for new priorities, and let those go blind that cannot be judged now."""
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
            spans = _counted(last, sample) if reason == SLOW_READ else {}
            return self._for_all(lambda key, track: track.skip(now, reason, spans.get(key)))
        if sample.counts.items() <= last.counts.items():
            return self._judge_unchanged(last, sample)
        return self._move(last, sample)

    def _start(self, sample: CounterSample) -> None:
        """The next span begins here, and what came before is not known."""
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
            self.refresh.note(interval, sample.poll)
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
            what = self._step(track, span, limits, self._is_gap(span, sample))
            if what is not None:
                changes.append(Change(key, what))
        self._note_shares(steps, sample.time - begin)
        return changes

    def _step(self, track: Track, span: CountedSpan, limits: StormLimits, gap: bool) -> Begun | Ended | None:
        # Over a gap only what was measured for the whole of it counts: that it was paused throughout, and that one pause
        # was long. What is estimated from frames, or was not paused, says nothing of the moments in between.
        if gap:
            hot = track.method is Method.DURATION and is_hot(track.method, span, _share(span), limits)
            if not hot and longest_pause(span.change) < limits.detect:
                return track.skip(span.end, "gap", span)
        return track.step(span, limits)

    def _judge_unchanged(self, last: CounterSample, sample: CounterSample) -> list[Change]:
        """Nothing at all has changed: idleness, a copy that was not renewed yet, or counters that are frozen."""
        still = sample.time - self._changed
        # A driver that counts pause frames and nothing else stands still whenever there is no pause.
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
            # Silence does not end a storm: only what moves shows that the pause is over.
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
        """When the span began that these changes happened in, and what to judge it by.

        The changes of a copy happened since the copy before was made, which is known as exactly as we look.
        """
        passed = sample.time - last.time
        most = max([step.paused or 0.0 for step in steps.values()], default=0.0)
        cached = self.refresh.is_cached(sample.poll)
        if self._changed >= last.time or (not cached and most <= self.limits.most * passed):
            return last.time, self.limits
        interval = sample.time - self._changed
        doubt = min(1.0, sample.poll / interval)
        return self._changed, replace(
            self.limits,
            hot=max(LEAST_HOT, self.limits.hot - doubt),
            most=self.limits.most + doubt,
        )

    def _is_gap(self, span: CountedSpan, sample: CounterSample) -> bool:
        return span.seconds > GAP * max(sample.poll, self.refresh.seconds)

    def _note_shares(self, steps: Mapping[PauseKey, Counts], seconds: float) -> None:
        self.shares = tuple(
            [
                (key, min(1.0, step.paused / seconds))
                for key, step in steps.items()
                if step.paused is not None and key in self.tracks and not self.tracks[key].reason
            ]
        )

    def _for_all(self, judge: Callable[[PauseKey, Track], Ended | None]) -> list[Change]:
        found = (
            (key, judge(key, track)) for key, track in self.tracks.items() if track.reason not in OUT_OF_SCOPE
        )
        return [Change(key, ended) for key, ended in found if ended]


OUT_OF_SCOPE = frozenset({"counters_vanished", "pfc_disabled"})

LEAST_HOT = 0.8
"""However inexact the time of a span is, less than this share paused is no storm."""


def _out_of_scope(key: PauseKey, sample: CounterSample) -> str:
    """Why a priority cannot be judged at all now; empty where it can."""
    if key not in sample.counts or method_of(sample.counts[key]) is None:
        return "counters_vanished"
    # mlx5 lists a priority only while PFC is on for it. Others list all, and count nothing for those without.
    return "pfc_disabled" if sample.scope is not None and key.priority not in sample.scope else ""


def _unusable(last: CounterSample, sample: CounterSample) -> str:
    """Why what happened between two looks cannot be used; empty where it can."""
    if _went_back(last.counts, sample.counts):
        return "counters_reset"
    if sample.speed != last.speed:
        return "speed_changed"
    return SLOW_READ if sample.seconds > SLOW * (sample.time - last.time) else ""


def _counted(last: CounterSample, sample: CounterSample) -> dict[PauseKey, CountedSpan]:
    """What was counted between two looks, although one of them took so long that it is not known when."""
    return {
        key: CountedSpan(last.time, sample.time, difference(last.counts[key], counts), sample.speed)
        for key, counts in sample.counts.items()
        if key in last.counts and sample.time > last.time
    }


def _went_back(before: Mapping[PauseKey, Counts], after: Mapping[PauseKey, Counts]) -> bool:
    for key, counts in after.items():
        if key in before:
            for old, new in zip(before[key], counts, strict=True):
                if old is not None and new is not None and new < old:
                    return True
    return False


def difference(before: Counts, after: Counts) -> Counts:
    """What was counted between two moments; None where either is not known."""
    return Counts(
        *[None if old is None or new is None else new - old for old, new in zip(before, after, strict=True)]
    )


def _share(span: CountedSpan) -> float:
    return paused_share(Method.DURATION, span) or 0.0
