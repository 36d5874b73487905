"""One port of the simulated switch: the other end of the link of a simulated network device.

It plays the same script as the network device, so both ends count the same events: what the host transmits the port
receives. In addition the port has what the host cannot see: its watchdog, its buffers, and what it discards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import tee
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.simulated.conditions import Conditions, Span
from roce_exporter.host.simulated.leaf_buffers import (
    QUEUE_BYTES,
    BufferPeaks,
    LeafWred,
    group_levels,
    obeys,
    queue_level,
)
from roce_exporter.host.simulated.leaf_watchdog import DROP, LeafWatchdog, WatchedSpan, watched
from roce_exporter.host.simulated.meter import Meter, hold
from roce_exporter.host.simulated.rates import PACKET_BYTES, STORM_TIMEOUTS, rates, refresh_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roce_exporter.host.simulated.conditions import Setup

ROCE_DSCP = 26
ROCE_QUEUE, DEFAULT_QUEUE = 3, 0
"""The queue of RoCE packets with the DSCP that the switch expects, and that of all others."""

RETRIED_PACKETS = 64
"""Packets that the senders repeat per timeout, into a queue that discards them."""

VAIN_PAUSE = 0.1
"""Share of the time for which the switch pauses a host that does not obey."""

QUEUE, SHARED, HEADROOM = "queue", "shared", "headroom"
"""Buffers with a watermark: the queue toward the host, and both parts of the priority group from it."""


@dataclass(frozen=True, slots=True)
class LeafNeighbor:
    """The host behind a port, as it announces itself by LLDP."""

    host: str
    chassis: str
    """A MAC address of the host."""
    netdev: str
    mac: str
    by_mac: bool = True
    """Whether its port identifier is the MAC address; otherwise the name of the network device."""


USUAL_WATCHDOG = LeafWatchdog()
USUAL_WRED = LeafWred()


@dataclass(frozen=True, slots=True)
class LeafPlan:
    """How a port is set up."""

    name: str
    neighbor: LeafNeighbor
    speed: int
    """Bits per second."""
    lossless: tuple[int, ...] = (3,)
    """Priorities with PFC; queue and priority group have the number of the priority."""
    watchdog: LeafWatchdog | None = USUAL_WATCHDOG
    wred: LeafWred = USUAL_WRED


class LeafPortState(NamedTuple):
    """A port at one moment."""

    plan: LeafPlan
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


class LeafPort:
    """A port over time. Times never decrease."""

    def __init__(
        self, plan: LeafPlan, setup: Setup, spans: Iterable[Span], start: float, afterwards: Conditions
    ) -> None:
        self.plan = plan
        self._roce = roce_queue(setup)
        # A reset of the host's driver does not reset the counters of the switch.
        lasting = (Span(seconds, replace(conditions, reset=False)) for seconds, conditions in spans)
        timed, again = tee(hold(lasting, start, setup, plan.speed, afterwards))
        self._host = Meter(timed)
        self._coming = watched(again, plan.watchdog, start)
        self._current = next(self._coming)
        self._totals: dict[str, float] = {}
        self._at_trip: dict[str, float] | None = None
        self._peaks = BufferPeaks(start)

    def state(self, now: float) -> LeafPortState:
        """The port at `now`."""
        while now >= self._current.end:
            self._change(next(self._coming))
        span, levels = self._current, self._levels(self._current)
        extra = self._until(now)
        before = self._at_trip
        return LeafPortState(
            self.plan,
            span.conditions.up,
            self._host.totals(now),
            extra,
            {} if before is None else {name: extra[name] - before.get(name, 0.0) for name in extra},
            span.stormed,
            self._roce,
            span.conditions.priority or 0,
            levels[QUEUE],
            self._peaks.ever(levels),
            self._peaks.periodic(levels, now),
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


def extra_rates(span: WatchedSpan, plan: LeafPlan, queue: int) -> dict[str, float]:
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
