"""PFC storms: one priority of one network device, held in one direction without any progress for longer than a switch bears.

A storm is pause that lets nothing through. Congestion pauses too, but for milliseconds, and packets pass in between. So a
span of time counts as hot only when (nearly) all of it was paused and not one packet passed in the direction that the
pause blocks; hot spans must add up to the time after which common switch watchdogs act (SONiC's pfcwd: 200 ms, twice).
Time is always the time that really passed between two looks, never what it should have been.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from roce_exporter.detectors.episodes import Episodes

PAUSE_QUANTA = 65535
"""The longest that one pause frame can ask for (IEEE 802.1Qbb), in quanta."""

QUANTUM_BYTES = 64
"""A quantum is the time that 512 bits take on the link."""


class Method(Enum):
    """What a driver gives to judge by, the best first."""

    DURATION = "duration"
    """Time paused, measured by the NIC: mlx5, mlx4, bnxt, ionic."""
    XOFF_XON = "xoff_xon"
    """Frames that stop and frames that let go, told apart: ice, i40e."""
    FRAMES = "frames"
    """Pause frames of either kind: mana, hns."""


class StormState(IntEnum):
    """As `roce_pfc_storm_detector_state` shows it."""

    OK = 0
    SUSPECT = 1
    STORM = 2
    RECOVERING = 3
    UNKNOWN = 4


class Counts(NamedTuple):
    """One priority in one direction since the driver began; None: the driver does not count it."""

    paused: float | None = None
    """Seconds."""
    stops: float | None = None
    """Frames that stop the priority; of FRAMES all pause frames."""
    resumes: float | None = None
    """Times the priority was let go: XON frames, or transitions of the NIC's own state."""
    packets: float | None = None
    """Packets of the priority in the direction that the pause blocks."""


def method_of(counts: Counts) -> Method | None:
    """By what this priority can be judged; None where the driver does not give enough."""
    if counts.paused is not None:
        return Method.DURATION
    if counts.stops is not None and counts.resumes is not None:
        return Method.XOFF_XON
    # Frames alone are no measure of time: without the packets nothing tells a storm from a busy priority.
    return Method.FRAMES if counts.stops is not None and counts.packets is not None else None


@dataclass(frozen=True, slots=True)
class StormLimits:
    """When pause is a storm. Times in seconds, shares of the time from 0 to 1."""

    detect: float = 0.4
    """How long nothing may pass: twice the 200 ms after which common switch watchdogs act."""
    restore: float = 0.8
    """How long pause must be over before the storm is: shorter gaps belong to it."""
    hot: float = 0.95
    """A span is hot from this share paused on."""
    quiet: float = 0.5
    """And quiet below this."""
    slack: float = 0.99
    """What of `detect` and `restore` is enough, so that a look that comes a millisecond early needs no further one."""
    most: float = 1.1
    """Nothing is paused for longer than the time that passed: above this share a counter is not in the unit we think."""
    implausible: int = 3
    """That many impossible spans in a row, and the counter is not believed any more."""


class CountedSpan(NamedTuple):
    """What changed between two looks. `begin` and `end` in monotonic seconds."""

    begin: float
    end: float
    change: Counts
    speed: float | None
    """Of the link, in bytes per second; None: not known."""

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end - self.begin


class Ended(NamedTuple):
    """A storm that is over, and how long it lasted. `reason` is `restored` only where the pause was seen to end."""

    begin: float
    end: float
    reason: str


class Begun(NamedTuple):
    """A storm that was just recognised; it began earlier."""

    begin: float


RESTORED = "restored"
IMPLAUSIBLE = "implausible"

KEEP = 10.0
"""Seconds without a usable look for which a storm is still the same storm."""


class Recent:
    """The last spans that are together no shorter than asked for.

    A NIC may add to its count of time paused in lumps of many milliseconds, so that one look sees less than was paused
    and the next one more than passed. Over some looks together that evens out.
    """

    __slots__ = ("_spans", "paused", "seconds")

    def __init__(self) -> None:
        self._spans: deque[tuple[float, float]] = deque()
        self.seconds = self.paused = 0.0

    def add(self, seconds: float, paused: float, least: float) -> None:
        """One more span; those that `least` seconds do not need are forgotten."""
        self._spans.append((seconds, paused))
        self.seconds += seconds
        self.paused += paused
        while self.seconds - self._spans[0][0] >= least:
            seconds, paused = self._spans.popleft()
            self.seconds -= seconds
            self.paused -= paused

    def clear(self) -> None:
        """Forget all."""
        self._spans.clear()
        self.seconds = self.paused = 0.0


@dataclass(slots=True)
class Track:
    """The state machine of one priority in one direction, and what it counted."""

    method: Method
    state: StormState = StormState.OK
    reason: str = ""
    """Why the state is UNKNOWN; empty otherwise."""
    held: float = 0.0
    """Seconds of spans without progress in SUSPECT, of quiet ones in RECOVERING."""
    paused: float = 0.0
    """Seconds of `held` that were paused."""
    spans: int = 0
    """How many spans make up `held`."""
    recent: Recent = field(default_factory=Recent)
    began: float = 0.0
    """When the latest storm began, monotonic."""
    seen: float = 0.0
    """End of the last span that could be used."""
    unbroken_pause: float = 0.0
    """Seconds paused without a pause that ended in between, so far as can be told."""
    episodes: Episodes = field(default_factory=Episodes)
    """How long each pause lasted, where the time paused is measured."""
    impossible: int = 0
    storms: int = 0
    restored: int = 0
    storm_seconds: float = 0.0
    near_misses: int = 0
    congested_seconds: float = 0.0
    estimated_seconds: float = 0.0
    faults: int = 0

    def step(self, span: CountedSpan, limits: StormLimits) -> Begun | Ended | None:
        """Judge one span. Spans of no length are passed over."""
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
        if is_blocked(self.method, span, share, limits):
            self.state = StormState.SUSPECT
            self.held += span.seconds
            self.paused += min(share, 1.0) * span.seconds
            self.spans += 1
            if self.held >= limits.slack * limits.detect and self._is_certain(limits):
                return self._begin(span.end - self.held, self.paused, StormState.STORM)
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
        # What is only estimated from frames must be seen twice: frames may all come in a span's last moment.
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
        self.held += span.seconds
        if self.held < limits.slack * limits.restore:
            return None
        self.restored += 1
        return self._end(span.end - self.held, RESTORED, StormState.OK)

    def link_changed(self, now: float) -> Ended | None:
        """The link went down or came back: whatever was paused is not any more."""
        self.recent.clear()
        self._break_off()
        if self.state in (StormState.STORM, StormState.RECOVERING):
            return self._end(now, "link_down", StormState.OK)
        self._enter(StormState.OK)
        self.reason = ""
        return None

    def skip(self, now: float, reason: str, seen: CountedSpan | None = None) -> Ended | None:
        """A span could not be used: counters were reset, the link's speed changed, or the sampler was not running.

        A storm is kept for `KEEP` seconds, for a moment that was not seen is no evidence that it is over. `seen` is what
        was counted in a span whose begin and end are not exact: how long pauses lasted follows from that all the same.
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
        """Nothing can be said of this priority from now on, for this reason. A storm does not count as restored by that."""
        self._break_off()
        self.reason = reason
        if self.state in (StormState.STORM, StormState.RECOVERING):
            return self._end(now, reason, StormState.UNKNOWN)
        self._enter(StormState.UNKNOWN)
        return None

    def clear_unknown(self) -> None:
        """It can be judged again; what came before is not known."""
        self.recent.clear()
        if self.state is StormState.UNKNOWN and self.reason != IMPLAUSIBLE:
            self.reason = ""
            self._enter(StormState.OK)

    def _count_impossible(self, span: CountedSpan, limits: StormLimits) -> Ended | None:
        self.faults += 1
        self.impossible += 1
        if self.impossible >= limits.implausible:
            # Lengths in a unit that is not seconds are worth nothing.
            self.episodes = Episodes()
            return self.mark_unknown(IMPLAUSIBLE, span.end)
        # Counts may come late and in lumps: how long a pause lasted follows from them all the same.
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
        """Keep `unbroken_pause` a lower bound of the longest single pause that this span ends or goes on with."""
        unbroken = not span.change.resumes and not span.change.packets
        if share >= limits.hot and unbroken:
            self.unbroken_pause += share * span.seconds
        else:
            self.unbroken_pause = longest_pause(span.change)

    def _break_off(self, seen: CountedSpan | None = None) -> None:
        """What was paused so far cannot be joined to what comes, but for lengths of pauses where the counts are known."""
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
        self.state, self.held, self.paused, self.spans = state, 0.0, 0.0, 0


def paused_share(method: Method, span: CountedSpan) -> float | None:
    """The share of the span that was paused: measured, or the most that the frames can have asked for.

    None where the speed of the link would be needed and is not known. May be above 1.
    """
    if method is Method.DURATION:
        return (span.change.paused or 0.0) / span.seconds
    if not span.change.stops:
        return 0.0
    if not span.speed:
        return None
    return min(1.0, span.change.stops * PAUSE_QUANTA * QUANTUM_BYTES / span.speed / span.seconds)


ESTIMATED_HOT = 0.9
"""The share that the estimate from frames must reach: it is an upper bound, so what lets go and what passes decides."""


def is_blocked(method: Method, span: CountedSpan, share: float, limits: StormLimits) -> bool:
    """Whether the span may be part of a storm: much of it was paused, and nothing passed."""
    if method is Method.DURATION:
        return share >= limits.quiet and not span.change.packets
    return is_hot(method, span, share, limits)


def is_hot(method: Method, span: CountedSpan, share: float, limits: StormLimits) -> bool:
    """Whether (nearly) all of the span was paused and nothing passed."""
    if span.change.packets:
        return False
    if method is Method.DURATION:
        return share >= limits.hot
    return share >= ESTIMATED_HOT and not (method is Method.XOFF_XON and span.change.resumes)


def is_quiet(method: Method, span: CountedSpan, share: float, limits: StormLimits) -> bool:
    """Whether the span shows that a storm goes away: packets passed, or the pause was let go."""
    if span.change.packets:
        return True
    if method is Method.DURATION:
        return share < limits.quiet
    if method is Method.XOFF_XON and span.change.resumes:
        return True
    return not span.change.stops


def longest_pause(change: Counts) -> float:
    """A lower bound, in seconds, of the longest single pause in a span that may be longer than many: 0 where none is known.

    So many pauses ended, and one may still go on: the longest is no shorter than their average.
    """
    if change.paused is None or change.resumes is None:
        return 0.0
    return change.paused / (change.resumes + 1)
