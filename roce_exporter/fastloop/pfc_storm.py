"""PFC storms: one priority of one network device, paused in one direction without progress for longer than switches tolerate.

A storm is pause that lets no packet through. Congestion also causes pause, but for milliseconds, and packets pass in
between. So a span of time counts as hot only when (nearly) all of it was paused and not one packet passed in the direction
that the pause blocks. Hot spans must add up to twice the time after which common switch watchdogs act (SONiC's pfcwd:
200 ms). Time is always the time that really passed between two samples, never the planned interval.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from roce_exporter.fastloop.episodes import Counts, Episodes

PAUSE_QUANTA = 65535  # the longest time that one pause frame can request (IEEE 802.1Qbb), in quanta
QUANTUM_BYTES = 64  # a quantum is the time that 512 bits take on the link


class Method(Enum):
    """What a driver counts that can reveal a storm, the best first."""

    DURATION = "duration"
    """Time paused, measured by the NIC: mlx5, mlx4, bnxt, ionic."""
    XOFF_XON = "xoff_xon"
    """XOFF frames and XON frames, counted separately: ice, i40e."""
    FRAMES = "frames"
    """Pause frames of either kind: mana, hns."""


class StormState(IntEnum):
    """The values of `roce_pfc_storm_detector_state`."""

    OK = 0
    SUSPECT = 1
    STORM = 2
    RECOVERING = 3
    UNKNOWN = 4


def method_of(counts: Counts) -> Method | None:
    """The method for this priority; None if the driver does not count enough."""
    if counts.paused is not None:
        return Method.DURATION
    if counts.stops is not None and counts.resumes is not None:
        return Method.XOFF_XON
    # Frames alone do not measure time: without packet counts a storm looks like a busy priority.
    return Method.FRAMES if counts.stops is not None and counts.packets is not None else None


@dataclass(frozen=True, slots=True)
class StormLimits:
    """When pause is a storm. Times in seconds, shares of the time from 0 to 1."""

    detect: float = 0.4
    """How long pause must block all packets: twice the 200 ms after which common switch watchdogs act."""
    restore: float = 0.8
    """How long pause must be gone for the storm to end: shorter gaps belong to it."""
    hot: float = 0.95
    """A span is hot from this share paused on."""
    quiet: float = 0.5
    """A span is quiet below this share."""
    slack: float = 0.99
    """This share of `detect` and `restore` is enough, so that a sample that is a millisecond early still counts."""
    most: float = 1.1
    """Pause cannot exceed the time that passed: above this share the counter is not in the expected unit."""
    implausible: int = 3
    """After this number of impossible spans in a row the counter is ignored."""


class CountedSpan(NamedTuple):
    """What was counted between two samples. `begin` and `end` are monotonic seconds."""

    begin: float
    end: float
    change: Counts
    speed: float | None
    """Link speed in bytes per second; None: not known."""

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end - self.begin


class Ended(NamedTuple):
    """A storm that is over. `reason` is `restored` only if the end of the pause was observed."""

    begin: float
    end: float
    reason: str


class Begun(NamedTuple):
    """A storm that was just detected; it began earlier."""

    begin: float


RESTORED = "restored"
IMPLAUSIBLE = "implausible"
KEEP = 10.0  # a storm continues over this number of seconds without a usable sample


class Recent:
    """The last spans that together are at least as long as requested.

    A NIC may update its time paused in steps of many milliseconds, so that one sample shows less than was paused and the
    next one more than passed. Over several samples this evens out.
    """

    __slots__ = ("_spans", "paused", "seconds")

    def __init__(self) -> None:
        self._spans: deque[tuple[float, float]] = deque()
        self.seconds = self.paused = 0.0

    def add(self, seconds: float, paused: float, least: float) -> None:
        """Add a span and drop the oldest ones that are not needed for `least` seconds."""
        self._spans.append((seconds, paused))
        self.seconds += seconds
        self.paused += paused
        while self.seconds - self._spans[0][0] >= least:
            seconds, paused = self._spans.popleft()
            self.seconds -= seconds
            self.paused -= paused

    def clear(self) -> None:
        """Drop all spans."""
        self._spans.clear()
        self.seconds = self.paused = 0.0


@dataclass(slots=True)
class Track:
    """The state machine of one priority in one direction, and its counters."""

    method: Method
    state: StormState = StormState.OK
    reason: str = ""
    """Why the state is UNKNOWN; empty otherwise."""
    evidence: float = 0.0
    """Seconds of evidence for the next state: spans without progress in SUSPECT, quiet spans in RECOVERING."""
    paused: float = 0.0
    """Seconds of `evidence` that were paused."""
    spans: int = 0
    """Number of spans in `evidence`."""
    recent: Recent = field(default_factory=Recent)
    began: float = 0.0
    """Start of the latest storm, in monotonic seconds."""
    seen: float = 0.0
    """End of the last usable span."""
    unbroken_pause: float = 0.0
    """Seconds of the current pause, or of the last span's longest pause: a lower bound."""
    episodes: Episodes = field(default_factory=Episodes)
    """The length of each pause, if the NIC measures the time paused."""
    impossible: int = 0
    storms: int = 0
    restored: int = 0
    storm_seconds: float = 0.0
    near_misses: int = 0
    congested_seconds: float = 0.0
    estimated_seconds: float = 0.0
    faults: int = 0

    def step(self, span: CountedSpan, limits: StormLimits) -> Begun | Ended | None:
        """Judge one span. Spans of no length are skipped."""
        if span.seconds <= 0 or self.reason == IMPLAUSIBLE:
            return None
        share = paused_share(self.method, span)
        if share is None:
            return self.mark_unknown("speed_unknown", span.end)
        self.recent.add(span.seconds, share * span.seconds, limits.slack * limits.detect)
        if self.recent.paused > limits.most * max(self.recent.seconds, limits.slack * limits.detect):
            return self._count_impossible(span, limits)
        self.impossible, self.seen, self.reason = 0, span.end, ""
        self._account(span, min(share, 1.0), limits)
        if self.state in (StormState.STORM, StormState.RECOVERING):
            return self._step_storm(span, share, limits)
        return self._step_calm(span, share, limits)

    def _step_calm(self, span: CountedSpan, share: float, limits: StormLimits) -> Begun | None:
        # Much of the span was paused, and no packet passed: it may be part of a storm.
        if is_hot(self.method, span, share, limits, least=limits.quiet):
            self.state = StormState.SUSPECT
            self.evidence += span.seconds
            self.paused += min(share, 1.0) * span.seconds
            self.spans += 1
            if self.evidence >= limits.slack * limits.detect and self._is_certain(limits):
                return self._begin(span.end - self.evidence, self.paused, StormState.STORM)
        elif self.state is StormState.SUSPECT:
            self.near_misses += self.paused >= limits.detect / 2
            self._enter(StormState.OK)
        if longest_pause(span.change) >= limits.detect:
            paused = min(span.change.paused or 0.0, span.seconds)
            return self._begin(span.end - paused, paused, StormState.RECOVERING)
        return None

    def _is_certain(self, limits: StormLimits) -> bool:
        if self.method is Method.DURATION:
            return self.recent.paused >= limits.hot * self.recent.seconds
        # An estimate from frames needs two spans: all frames of one may arrive at its very end.
        return self.spans > 1

    def _step_storm(self, span: CountedSpan, share: float, limits: StormLimits) -> Ended | None:
        if not is_quiet(self.method, span, share, limits):
            self._enter(StormState.STORM)
            self.storm_seconds += span.seconds
            return None
        if longest_pause(span.change) >= limits.detect:
            # Part of this span was the same storm.
            self._enter(StormState.RECOVERING)
            self.storm_seconds += min(span.change.paused or 0.0, span.seconds)
            return None
        self.state = StormState.RECOVERING
        self.evidence += span.seconds
        if self.evidence < limits.slack * limits.restore:
            return None
        self.restored += 1
        return self._end(span.end - self.evidence, RESTORED, StormState.OK)

    def link_changed(self, now: float) -> Ended | None:
        """Handle a link that went down or came back: any pause is over."""
        self.recent.clear()
        self._break_off()
        if self.state in (StormState.STORM, StormState.RECOVERING):
            return self._end(now, "link_down", StormState.OK)
        self._enter(StormState.OK)
        self.reason = ""
        return None

    def skip(self, now: float, reason: str, seen: CountedSpan | None = None) -> Ended | None:
        """Handle an unusable span: counters were reset, the link speed changed, or the sampler was not running.

        A storm is kept for `KEEP` seconds, because a missing sample does not prove that it is over. `seen` has the counts
        of a span with inexact begin and end, which are still good enough for the lengths of pauses.
        """
        self._break_off(seen)
        self.recent.clear()
        if self.state in (StormState.STORM, StormState.RECOVERING):
            if now - self.seen >= KEEP:
                return self._end(now, reason, StormState.OK)
            self._enter(StormState.STORM)
        elif self.state is StormState.SUSPECT:
            self._enter(StormState.OK)
        return None

    def mark_unknown(self, reason: str, now: float) -> Ended | None:
        """Set the state to UNKNOWN, for this reason. A storm ends by that, but does not count as restored."""
        self._break_off()
        self.reason = reason
        if self.state in (StormState.STORM, StormState.RECOVERING):
            return self._end(now, reason, StormState.UNKNOWN)
        self._enter(StormState.UNKNOWN)
        return None

    def clear_unknown(self) -> None:
        """Leave UNKNOWN and start without history, except after implausible counts."""
        self.recent.clear()
        if self.state is StormState.UNKNOWN and self.reason != IMPLAUSIBLE:
            self.reason = ""
            self._enter(StormState.OK)

    def _count_impossible(self, span: CountedSpan, limits: StormLimits) -> Ended | None:
        self.faults += 1
        self.impossible += 1
        if self.impossible >= limits.implausible:
            # The lengths so far are not in seconds.
            self.episodes = Episodes()
            return self.mark_unknown(IMPLAUSIBLE, span.end)
        # Counts may be late and in large steps, but still show how long a pause lasted.
        return self.skip(span.end, IMPLAUSIBLE, span)

    def _account(self, span: CountedSpan, share: float, limits: StormLimits) -> None:
        if self.state is StormState.UNKNOWN:
            self._enter(StormState.OK)
        if self.method is not Method.DURATION:
            self.estimated_seconds += share * span.seconds
        else:
            self.episodes.see(span.change, share, span.seconds)
            if share >= limits.hot and span.change.packets:
                self.congested_seconds += span.seconds
        self._follow_pause(span, share, limits)

    def _follow_pause(self, span: CountedSpan, share: float, limits: StormLimits) -> None:
        """Keep `unbroken_pause` a lower bound of the longest single pause that ends in or continues through this span."""
        unbroken = not span.change.resumes and not span.change.packets
        if share >= limits.hot and unbroken:
            self.unbroken_pause += share * span.seconds
        else:
            self.unbroken_pause = longest_pause(span.change)

    def _break_off(self, seen: CountedSpan | None = None) -> None:
        """Drop the pause under way. If counts are known (`seen`), the lengths of pauses are still followed."""
        self.unbroken_pause = 0.0
        if seen is not None and self.method is Method.DURATION:
            share = min(1.0, paused_share(self.method, seen) or 0.0)
            self.episodes.see(seen.change, share, seen.seconds)
        else:
            self.episodes.forget()

    def _begin(self, begin: float, seconds: float, state: StormState) -> Begun:
        self.storms += 1
        self.storm_seconds += seconds
        self.began = begin
        self._enter(state)
        return Begun(begin)

    def _end(self, end: float, reason: str, state: StormState) -> Ended:
        self._enter(state)
        return Ended(self.began, max(end, self.began), reason)

    def _enter(self, state: StormState) -> None:
        self.state, self.evidence, self.paused, self.spans = state, 0.0, 0.0, 0


def paused_share(method: Method, span: CountedSpan) -> float | None:
    """The share of the span that was paused: measured, or the most that the frames can have requested.

    None if the link speed is needed and unknown. May be above 1.
    """
    if method is Method.DURATION:
        return (span.change.paused or 0.0) / span.seconds
    if not span.change.stops:
        return 0.0
    if not span.speed:
        return None
    return min(1.0, span.change.stops * PAUSE_QUANTA * QUANTUM_BYTES / span.speed / span.seconds)


# The estimate from frames must reach this share. It is an upper bound, so XON frames and packets decide.
ESTIMATED_HOT = 0.9


def is_hot(
    method: Method, span: CountedSpan, share: float, limits: StormLimits, *, least: float = 0.0
) -> bool:
    """Whether (nearly) all of the span, or the share `least` of it where that is measured, was paused and no packet passed."""
    if span.change.packets:
        return False
    if method is Method.DURATION:
        return share >= (least or limits.hot)
    return share >= ESTIMATED_HOT and not (method is Method.XOFF_XON and span.change.resumes)


def is_quiet(method: Method, span: CountedSpan, share: float, limits: StormLimits) -> bool:
    """Whether the span shows that a storm is ending: packets passed, or the pause ended."""
    if span.change.packets:
        return True
    if method is Method.DURATION:
        return share < limits.quiet
    if method is Method.XOFF_XON and span.change.resumes:
        return True
    return not span.change.stops


def longest_pause(change: Counts) -> float:
    """A lower bound, in seconds, of the longest single pause in a span: 0 if unknown.

    `resumes` pauses ended and one may be under way: the longest is at least as long as their average.
    """
    if change.paused is None or change.resumes is None:
        return 0.0
    return change.paused / (change.resumes + 1)
