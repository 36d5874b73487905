"""One port of the simulated switch: the other end of the link of a simulated network device.

It plays the same script as the network device, so both ends count the same events: what the host transmits the port
receives. In addition the port has what the host cannot see: its watchdog, its buffers, and what it discards.

As in SONiC (sonic-swss, orchagent/pfcwdorch and pfc_detect_mellanox.lua) the watchdog judges pause at polls: it trips when
pause has lasted for its detection time since a poll, and restores the queue when it has received no pause for its
restoration time. Both are exact here: they do not depend on when the switch is read. The fast loop judges samples instead.

Watermarks are those of SONiC (orchagent/watermarkorch): the highest fill level of a window. The periodic window begins again
every two minutes, the others last as long as no person clears them, so here without end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import tee
from typing import NamedTuple

from roce_exporter.host.simulated.conditions import (
    RECEIVE,
    TRANSMIT,
    Conditions,
    Setup,
    Span,
    TimedConditions,
)
from roce_exporter.host.simulated.rates import (
    PACKET_BYTES,
    STORM_TIMEOUTS,
    RunningTotals,
    hold,
    rates,
    refresh_rate,
)

DROP, ALERT = "drop", "alert"
"""What a tripped watchdog does: discard the packets of the queue, or only report the storm."""


@dataclass(frozen=True, slots=True)
class SwitchWatchdog:
    """The settings of one port's watchdog, in seconds."""

    priorities: tuple[int, ...] = (3,)
    """The priorities that it watches; the queue of each has its number."""
    action: str = DROP
    detection: float = 0.4
    restoration: float = 0.4
    poll: float = 0.2


class WatchedSpan(NamedTuple):
    """Settled conditions of the host at a switch port, with the state of the port's watchdog."""

    conditions: Conditions
    start: float
    end: float
    stormed: frozenset[int] = frozenset()
    """Priorities for which the watchdog is tripped."""


class _WatchedQueue(NamedTuple):
    """The watchdog of one queue."""

    stormed: bool = False
    since: float = math.inf
    """Since when the reason to change this state exists: pause without end, or no pause; infinite without a reason."""

    def observe(self, conditions: Conditions, priority: int, now: float) -> _WatchedQueue:
        pause = conditions.pause(priority, TRANSMIT)
        reason = pause is None if self.stormed else pause is not None and pause.storm
        return self._replace(since=min(self.since, now) if reason else math.inf)

    def due(self, watchdog: SwitchWatchdog, origin: float) -> float:
        """When this state ends, if the reason persists."""
        if math.isinf(self.since):
            return math.inf
        poll = origin + math.ceil((self.since - origin) / watchdog.poll) * watchdog.poll
        return poll + (watchdog.restoration if self.stormed else watchdog.detection)


def watched(
    spans: Iterable[TimedConditions], watchdog: SwitchWatchdog | None, origin: float
) -> Iterator[WatchedSpan]:
    """The spans, cut where the watchdog trips or restores a queue. `origin` is the time of its first poll."""
    if watchdog is None:
        yield from (WatchedSpan(*span) for span in spans)
        return
    queues: Mapping[int, _WatchedQueue] = {priority: _WatchedQueue() for priority in watchdog.priorities}
    for conditions, start, end in spans:
        now = start
        queues = {number: queue.observe(conditions, number, now) for number, queue in queues.items()}
        while (change := min(queue.due(watchdog, origin) for queue in queues.values())) < end:
            if change > now:
                yield WatchedSpan(conditions, now, change, _stormed(queues))
                now = change
            queues = {
                number: _WatchedQueue(not queue.stormed).observe(conditions, number, now)
                if queue.due(watchdog, origin) <= now
                else queue
                for number, queue in queues.items()
            }
        yield WatchedSpan(conditions, now, end, _stormed(queues))


def _stormed(queues: Mapping[int, _WatchedQueue]) -> frozenset[int]:
    return frozenset(number for number, queue in queues.items() if queue.stormed)


KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE
POOL_BYTES = 128 * MEBIBYTE
"""The shared buffer of the switch."""
XOFF_BYTES = 6 * MEBIBYTE
"""Fill level of a priority group at which the switch sends pause, while other ports use the pool as well."""
HEADROOM_BYTES = 288 * KIBIBYTE  # headroom of a priority group for 400 Gbit/s and 5 m of cable
QUEUE_BYTES = 8 * MEBIBYTE  # fill level of a queue whose port is paused without end
IDLE_BYTES = 64 * KIBIBYTE  # fill level of a queue without congestion at full load
PERIOD = 120.0  # seconds of the periodic window


@dataclass(frozen=True, slots=True)
class WredProfile:
    """A WRED profile: the fill levels between which packets are marked with growing probability."""

    name: str = "AZURE_LOSSLESS"
    ecn: bool = True
    minimum: int = MEBIBYTE
    maximum: int = 2 * MEBIBYTE
    percent: int = 10
    """Probability of a mark at the maximum."""

    def level(self, marked: float) -> float:
        """The fill level at which this share of the packets is marked; 0 without marks."""
        share = min(1.0, 100 * marked / self.percent)
        return self.minimum + share * (self.maximum - self.minimum) if marked else 0.0


def queue_level(span: WatchedSpan, priority: int, wred: WredProfile, *, drops: bool) -> float:
    """Bytes in the queue toward the host for its RoCE traffic; `drops`: the tripped watchdog discards its packets."""
    conditions = span.conditions
    if not conditions.up or (drops and priority in span.stormed):
        return 0.0
    pause = conditions.pause(priority, TRANSMIT)
    held_back = pause.ratio * QUEUE_BYTES if pause else 0.0
    return max(IDLE_BYTES * conditions.load, wred.level(conditions.marked), held_back)


def obeys(conditions: Conditions, priority: int) -> bool:
    """Whether the host obeys pause of this priority."""
    return priority in (conditions.lossless or ())


def group_levels(conditions: Conditions, priority: int) -> tuple[float, float]:
    """Bytes of the shared buffer and of the headroom that hold lossless packets from the host."""
    if not conditions.up:
        return 0.0, 0.0
    if not obeys(conditions, priority) and conditions.lost:
        return XOFF_BYTES, HEADROOM_BYTES
    pause = conditions.pause(priority, RECEIVE)
    if pause is None:
        return IDLE_BYTES * conditions.load, 0.0
    # The host stops within the time for which the headroom is dimensioned, so half of it is never used.
    return XOFF_BYTES, HEADROOM_BYTES * (0.1 + 0.4 * pause.ratio)


class BufferPeaks:
    """The highest fill levels of one port, per buffer: since the start, and in the periodic window."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._ever: dict[str, float] = {}
        self._window = 0
        self._periodic: dict[str, float] = {}

    def note(self, levels: Mapping[str, float], end: float) -> None:
        """These levels hold until `end`; calls are in order of time."""
        window = self._window_of(end)
        if window > self._window:
            self._window, self._periodic = window, {}
        _raise_to(self._ever, levels)
        _raise_to(self._periodic, levels)

    def now(self, levels: Mapping[str, float], now: float) -> tuple[dict[str, float], dict[str, float]]:
        """The highest levels since the start and in the window of `now`, given those of now."""
        known = self._periodic if self._window == self._window_of(now) else {}
        return _raise_to(dict(self._ever), levels), _raise_to(dict(known), levels)

    def _window_of(self, time: float) -> int:
        return 0 if math.isinf(time) else int((time - self._start) // PERIOD)


def _raise_to(peaks: dict[str, float], levels: Mapping[str, float]) -> dict[str, float]:
    for name, level in levels.items():
        peaks[name] = max(level, peaks.get(name, 0.0))
    return peaks


ROCE_DSCP = 26
ROCE_QUEUE, DEFAULT_QUEUE = 3, 0
"""The queue of RoCE packets with the DSCP that the switch expects, and that of all others."""
RETRIED_PACKETS = 64  # packets that the senders repeat per timeout, into a queue that discards them
VAIN_PAUSE = 0.1  # share of the time for which the switch pauses a host that does not obey
QUEUE, SHARED, HEADROOM = "queue", "shared", "headroom"
"""Buffers with a watermark: the queue toward the host, and both parts of the priority group from it."""


@dataclass(frozen=True, slots=True)
class SwitchPortNeighbor:
    """The host behind a port, as it announces itself by LLDP."""

    host: str
    chassis: str
    """A MAC address of the host."""
    netdev: str
    mac: str
    by_mac: bool = True
    """Whether its port identifier is the MAC address; otherwise the name of the network device."""


USUAL_WATCHDOG = SwitchWatchdog()
USUAL_WRED = WredProfile()


@dataclass(frozen=True, slots=True)
class SwitchPortPlan:
    """How a port is set up."""

    name: str
    neighbor: SwitchPortNeighbor
    speed: int
    """Bits per second."""
    lossless: tuple[int, ...] = (3,)
    """Priorities with PFC; queue and priority group have the number of the priority."""
    watchdog: SwitchWatchdog | None = USUAL_WATCHDOG
    wred: WredProfile = USUAL_WRED


class SwitchPortState(NamedTuple):
    """A port at one moment."""

    plan: SwitchPortPlan
    up: bool
    facts: Mapping[str, float]
    """The quantities of `rates`, as the host counts them, since the start: without resets, and directions of the host."""
    extra: Mapping[str, float]
    """What only the switch counts, since the start."""
    last: Mapping[str, float]
    """The same since the last trip of the watchdog; empty before the first one."""
    stormed: frozenset[int]
    roce_queue: int
    host_priority: int
    """The priority that the host gives to RoCE packets; the switch gives them `roce_queue`."""
    occupancy: float
    """Bytes in the queue for RoCE packets."""
    ever: Mapping[str, float]
    """Watermarks since the start."""
    periodic: Mapping[str, float]
    """Watermarks of the periodic window."""


class SimulatedSwitchPort:
    """A port over time. Times never decrease."""

    def __init__(self, plan: SwitchPortPlan, setup: Setup, spans: Iterable[Span], start: float) -> None:
        self.plan = plan
        self._roce = roce_queue(setup)
        # A reset of the host's driver does not reset the counters of the switch.
        lasting = (Span(seconds, replace(conditions, reset=False)) for seconds, conditions in spans)
        timed, again = tee(hold(lasting, start, setup, plan.speed))
        self._host = RunningTotals(timed)
        self._coming = watched(again, plan.watchdog, start)
        self._current = next(self._coming)
        self._totals: dict[str, float] = {}
        self._at_trip: dict[str, float] | None = None
        self._peaks = BufferPeaks(start)

    def state(self, now: float) -> SwitchPortState:
        """The port at `now`."""
        while now >= self._current.end:
            self._change(next(self._coming))
        span, levels = self._current, self._levels(self._current)
        extra = self._until(now)
        before = self._at_trip
        return SwitchPortState(
            self.plan,
            span.conditions.up,
            self._host.totals(now),
            extra,
            {} if before is None else {name: extra[name] - before.get(name, 0.0) for name in extra},
            span.stormed,
            self._roce,
            span.conditions.priority or 0,
            levels[QUEUE],
            *self._peaks.now(levels, now),
        )

    def _change(self, new: WatchedSpan) -> None:
        old = self._current
        self._totals = self._until(old.end)
        self._peaks.note(self._levels(old), old.end)
        self._current = new
        for priority in sorted(new.stormed - old.stormed):
            self._trip(priority)
        for priority in sorted(old.stormed - new.stormed):
            self._add(f"restores_{priority}", 1)

    def _trip(self, priority: int) -> None:
        self._at_trip = dict(self._totals)
        self._add(f"trips_{priority}", 1)
        if self._drops:
            self._add(f"watchdog_transmit_{priority}", QUEUE_BYTES // PACKET_BYTES)

    @property
    def _drops(self) -> bool:
        """Whether a tripped watchdog discards packets."""
        return self.plan.watchdog is not None and self.plan.watchdog.action == DROP

    def _add(self, name: str, amount: float) -> None:
        self._totals[name] = self._totals.get(name, 0.0) + amount

    def _until(self, now: float) -> dict[str, float]:
        found = dict(self._totals)
        for name, rate in extra_rates(self._current, self.plan, self._roce).items():
            found[name] = found.get(name, 0.0) + rate * (now - self._current.start)
        return found

    def _levels(self, span: WatchedSpan) -> dict[str, float]:
        shared, headroom = group_levels(span.conditions, ROCE_QUEUE)
        queue = queue_level(span, self._roce, self.plan.wred, drops=self._drops)
        return {QUEUE: queue, SHARED: shared, HEADROOM: headroom}


def roce_queue(setup: Setup) -> int:
    """The queue for the host's RoCE packets: by their DSCP, which RoCE v1 does not have."""
    dscp = setup.tos >> 2
    return ROCE_QUEUE if setup.roce_version != 1 and dscp == ROCE_DSCP else DEFAULT_QUEUE


def extra_rates(span: WatchedSpan, plan: SwitchPortPlan, queue: int) -> dict[str, float]:
    """What only the switch counts, per second; `queue` is that of the host's RoCE packets."""
    conditions, watchdog = span.conditions, plan.watchdog
    found: dict[str, float] = {}
    for priority in sorted(span.stormed) if watchdog and watchdog.action == DROP else ():
        found[f"watchdog_transmit_{priority}"] = STORM_TIMEOUTS * RETRIED_PACKETS
        found[f"watchdog_receive_{priority}"] = rates(conditions).get(f"transmit_packets_{priority}", 0.0)
    if queue in plan.lossless and not obeys(conditions, queue) and conditions.up:
        found[f"group_discards_{queue}"] = conditions.lost
        found[f"vain_frames_{queue}"] = VAIN_PAUSE * refresh_rate(plan.speed)
    elif queue not in plan.lossless:
        found[f"queue_discards_{queue}"] = conditions.lost
    return found
