"""The model: how fast each quantity increases in given conditions, what happens when conditions change, and the totals.

Quantities are independent of drivers: `receive_bytes`, `transmit_pause_us_3`, `marks`. Directions are those of the packets
for traffic and those of the pause frames for pause. All rates are per second and exact, without random numbers. A total does
not depend on the times of earlier reads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from roce_exporter.host.simulated.conditions import (
    RECEIVE,
    TRANSMIT,
    Conditions,
    Pause,
    Setup,
    Span,
    TimedConditions,
    settle,
)
from roce_exporter.words import word_list

FactRates = dict[str, float]
MAX_PAUSE_BITS = 65535 * 512
"""Bit times that one pause frame lasts: 65,535 quanta of 512 (IEEE 802.3 annex 31B)."""
PACKET_BYTES = 4174
"""A RoCEv2 packet with 4,096 bytes of payload, Ethernet, IPv4, UDP, BTH and both checksums."""
CNP_BYTES = 78
HOST_PACKET_BYTES = 512
CNP_PRIORITY = 6
HOST_PRIORITY = 0
HOST_LOAD = 0.001  # traffic other than RoCE, as a share of the line rate
FLOWS = 8
CNP_PER_FLOW = 20_000  # CNPs per second and flow: at most one every 50 µs
STALL_THRESHOLD = 0.3  # from this share of a second on, mlx5 counts it as one with a PCIe stall
STORM_TIMEOUTS = 15.0  # acknowledgement timeouts per second while a priority is blocked: 67 ms each
STORM_DISCARDS = 40.0  # packets per second dropped for lack of buffer while this port pauses its switch

AIMED = "aimed_"  # prefix of the part of a quantity that hits the training job alone

TROUBLES = frozenset(
    word_list(
        """
        marks cnps_sent cnps_handled out_of_sequence sequence_errors implied_naks duplicates timeouts retransmits not_ready
        out_of_buffer retries_exceeded flushed
        """
    )
)
"""Quantities that can be aimed at one job."""

FLUSHED = 16  # requests that wait in a queue pair when it goes to state ERR


def refresh_rate(speed: int) -> float:
    """XOFF frames per second that keep a priority paused, each sent when half the time of the last one is over."""
    return 2 * speed / MAX_PAUSE_BITS


@lru_cache(maxsize=4096)
def rates(conditions: Conditions) -> Mapping[str, float]:
    """Quantities per second in settled conditions; those left out do not change."""
    if not conditions.up:
        return {}
    found = _traffic(conditions) | _losses(conditions) | _host(conditions)
    for pause in conditions.pauses:
        for name, rate in _pause(pause, conditions.speed or 0):
            found[name] = found.get(name, 0.0) + rate
    found |= {AIMED + name: found.get(name, 0.0) * conditions.aimed for name in TROUBLES}
    return {name: rate for name, rate in found.items() if rate}


def edges(before: Conditions, after: Conditions) -> Mapping[str, float]:
    """Quantities that increase once when conditions change."""
    found: Counter[str] = Counter()
    for pause in before.pauses:
        if pause.storm and not _storms(after, pause):
            names = ["storm_ends", f"pauses_{pause.priority}", f"halves_{pause.priority}"]
            names += [f"xon_{pause.priority}", f"frames_{pause.priority}", "frames"] if after.up else []
            found.update(f"{pause.direction}_{name}" for name in names)
    for pause in after.pauses:
        if pause.storm and not _storms(before, pause):
            names = ["storm_starts", f"storm_starts_{pause.priority}", f"halves_{pause.priority}"]
            found.update(f"{pause.direction}_{name}" for name in names)
    if before.up != after.up:
        found.update(("carrier_changes", "carrier_ups" if after.up else "carrier_downs"))
    if before.failing != after.failing:
        found.update({f"reporter_errors_{after.failing}": 1, f"reporter_recoveries_{before.failing}": 1})
    if (more := after.broken - before.broken) > 0:
        found.update({f"{part}{name}": more * many for part in ("", AIMED) for name, many in _BREAKS.items()})
    return found


_BREAKS = {"retries_exceeded": 1, "flushed": FLUSHED}  # what each queue pair counts that gives up


def levels(conditions: Conditions) -> FactRates:
    """Quantities that are levels and not totals."""
    return {"stalled_percent": round(100 * conditions.pcie_stall)}


def _storms(conditions: Conditions, pause: Pause) -> bool:
    other = conditions.pause(*pause.where)
    return other is not None and other.storm


def _pause(pause: Pause, speed: int) -> Iterator[tuple[str, float]]:
    episodes = 0.0 if pause.storm else pause.ratio / pause.episode
    xoff = pause.ratio * refresh_rate(speed) + episodes
    of_priority = {
        "pause_us": pause.ratio * 1e6,
        "pauses": episodes,
        "halves": 2 * episodes,
        "xoff": xoff,
        "xon": episodes,
    }
    for name, rate in of_priority.items():
        yield f"{pause.direction}_{name}_{pause.priority}", rate
    yield f"{pause.direction}_frames_{pause.priority}", xoff + episodes
    yield f"{pause.direction}_frames", xoff + episodes


def _passing(conditions: Conditions, priority: int, direction: str) -> float:
    """The share of a priority's packets in a direction that is not blocked by pause."""
    pause = conditions.pause(priority, RECEIVE if direction == TRANSMIT else TRANSMIT)
    return 1 - pause.ratio if pause else 1.0


def _roce_packets(conditions: Conditions, direction: str) -> float:
    line = (conditions.speed or 0) / 8 / PACKET_BYTES
    held_back = conditions.notified / 2 if direction == TRANSMIT else 0.0
    passing = _passing(conditions, conditions.priority or 0, direction)
    return line * conditions.load * (1 - held_back) * passing


def _cnps(conditions: Conditions, direction: str) -> float:
    if direction == RECEIVE:
        return conditions.notified * FLOWS * CNP_PER_FLOW
    marks = conditions.marked * _roce_packets(conditions, RECEIVE)
    return min(marks, FLOWS * CNP_PER_FLOW) if conditions.notifies else 0.0


def _traffic(conditions: Conditions) -> FactRates:
    found: FactRates = {}
    for direction in (RECEIVE, TRANSMIT):
        roce, cnps = _roce_packets(conditions, direction), _cnps(conditions, direction)
        host = (conditions.speed or 0) / 8 * HOST_LOAD / HOST_PACKET_BYTES
        host *= _passing(conditions, HOST_PRIORITY, direction)
        streams = (
            (conditions.priority or 0, roce, PACKET_BYTES),
            (CNP_PRIORITY, cnps, CNP_BYTES),
            (HOST_PRIORITY, host, HOST_PACKET_BYTES),
        )
        found[f"{direction}_rdma_packets"] = roce + cnps
        found[f"{direction}_rdma_bytes"] = roce * PACKET_BYTES + cnps * CNP_BYTES
        found |= _streams(direction, streams)
    return found


def _streams(direction: str, streams: tuple[tuple[int, float, int], ...]) -> FactRates:
    found: FactRates = dict.fromkeys((f"{direction}_{unit}" for unit in ("packets", "bytes", "bits")), 0.0)
    for priority, packets, size in streams:
        for unit, amount in (("packets", packets), ("bytes", packets * size)):
            of_priority = f"{direction}_{unit}_{priority}"
            found[of_priority] = found.get(of_priority, 0.0) + amount
            found[f"{direction}_{unit}"] += amount
        found[f"{direction}_bits"] += packets * size * 8
    return found


def _losses(conditions: Conditions) -> FactRates:
    """Marks, notifications, losses and what follows from them."""
    stormy = any(pause.storm and pause.priority == conditions.priority for pause in conditions.pauses)
    held_up = any(pause.storm and pause.direction == TRANSMIT for pause in conditions.pauses)
    timeouts = conditions.timeouts + STORM_TIMEOUTS * stormy
    discards = conditions.discards + STORM_DISCARDS * held_up
    return {
        "marks": conditions.marked * _roce_packets(conditions, RECEIVE),
        "cnps_sent": _cnps(conditions, TRANSMIT),
        "cnps_handled": _cnps(conditions, RECEIVE),
        "out_of_sequence": conditions.lost,
        "sequence_errors": conditions.lost,
        "implied_naks": conditions.lost / 20,
        "duplicates": conditions.lost / 4 + STORM_TIMEOUTS * stormy,  # a stuck peer sends nothing again
        "timeouts": timeouts,
        "retransmits": conditions.lost + timeouts,
        "not_ready": conditions.not_ready,
        "out_of_buffer": conditions.not_ready,
        "icrc_errors": conditions.icrc_errors,
        "discards": discards,
        f"discards_{conditions.priority}": discards,
    }


def _host(conditions: Conditions) -> FactRates:
    return {
        "stalled_seconds": float(conditions.pcie_stall > STALL_THRESHOLD),
        "buffer_passed_threshold": 100 * conditions.pcie_stall,
        "crc_errors": conditions.wire_errors,
        "symbol_errors": 3 * conditions.wire_errors,
        "uncorrectable_blocks": conditions.wire_errors,
        "corrected_blocks": conditions.corrected_blocks,
        "corrected_bits": 2 * conditions.corrected_blocks,
    }


def hold(spans: Iterable[Span], start: float, setup: Setup, speed: int) -> Iterator[TimedConditions]:
    """The spans on the host's clock, one after the other; after the last one no problem without end.

    Conditions change only between two spans, so the last one never ends.
    """
    for seconds, conditions in spans:
        end = start + seconds
        if end > start:
            yield TimedConditions(settle(conditions, setup, speed), start, end)
            start = end
    if start < math.inf:
        yield TimedConditions(settle(Conditions(), setup, speed), start, math.inf)


class RunningTotals:
    """The totals of one port, read at times that never decrease."""

    def __init__(
        self,
        current: Iterator[TimedConditions],
        watch: Callable[[TimedConditions, TimedConditions], None] | None = None,
    ) -> None:
        self._coming = current
        self._watch = watch
        self._totals: dict[str, float] = {}
        self._frozen: Mapping[str, float] | None = None
        self.current = next(current)
        self._freeze(self.current.conditions, self.current.conditions)

    def advance(self, now: float) -> None:
        """Advance to `now`."""
        while now >= self.current.end:
            self._change(next(self._coming))

    def totals(self, now: float) -> dict[str, float]:
        """The total of every quantity that has changed, at `now`."""
        self.advance(now)
        found = dict(self._totals)
        _add(found, rates(self.current.conditions), now - self.current.start)
        return found | levels(self.current.conditions)

    def shown(self, now: float) -> Mapping[str, float]:
        """The totals at `now`, or those at the time when the counters were frozen."""
        self.advance(now)
        return self._frozen if self._frozen is not None else self.totals(now)

    def _change(self, new: TimedConditions) -> None:
        old = self.current
        _add(self._totals, rates(old.conditions), old.end - old.start)
        _add(self._totals, edges(old.conditions, new.conditions), 1)
        if new.conditions.reset and not old.conditions.reset:
            self._totals = {}
            self._frozen = None
        self._freeze(old.conditions, new.conditions)
        self.current = new
        if self._watch:
            self._watch(old, new)

    def _freeze(self, old: Conditions, new: Conditions) -> None:
        if not new.frozen:
            self._frozen = None
        elif self._frozen is None:
            self._frozen = self._totals | levels(old)


def _add(totals: dict[str, float], per_second: Mapping[str, float], seconds: float) -> None:
    for name, rate in per_second.items():
        totals[name] = totals.get(name, 0.0) + rate * seconds
