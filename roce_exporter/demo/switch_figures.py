"""Answers of the probe become the ports of a switch in a scene: rates between two answers, and their history."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roce_exporter.catalog import named
from roce_exporter.demo.figures import (
    KEPT_MOMENTS,
    KEPT_SHARES,
    RATE_SECONDS,
    TimedValues,
    rate,
    wanted_values,
)
from roce_exporter.demo.scene import SwitchPriority

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.demo.figures import Labels
    from roce_exporter.normalise.series import Samples

QUEUES, NEIGHBORS = named.SWITCH_QUEUE_INFO, named.SWITCH_NEIGHBOR_INFO
PAUSED = "roce_switch_pfc_receive_pause_seconds_total"
ENABLED = "roce_switch_pfc_watchdog_enabled"
ACTS = "roce_switch_pfc_watchdog_acts"
TRIPPED = "roce_switch_pfc_watchdog_tripped"
TRIPS = "roce_switch_pfc_watchdog_trips_total"
MARKED = "roce_switch_queue_ecn_marked_packets_total"
HEADROOM = "roce_switch_buffer_headroom_bytes"
USED = "roce_switch_buffer_headroom_watermark_bytes"
WINDOW = "periodic"
SWITCH_WANTED = frozenset(
    {QUEUES.name, NEIGHBORS.name, PAUSED, ENABLED, ACTS, TRIPPED, TRIPS, MARKED, HEADROOM, USED}
)


def switch_values(samples: Iterable[Samples], time: float) -> TimedValues:
    """The values that the demo shows of a switch; `time` is when the switch counted them."""
    return wanted_values(samples, time, SWITCH_WANTED)


@dataclass(slots=True)
class SwitchFigures:
    """Keeps the last answers, from which `ports` computes rates and their history."""

    _moments: deque[TimedValues] = field(default_factory=lambda: deque(maxlen=KEPT_MOMENTS))
    _shares: dict[Labels, deque[float | None]] = field(default_factory=dict)

    def ports(self, now: TimedValues) -> tuple[SwitchPriority, ...]:
        """Each priority with PFC of each port, in the order of the switch. One call per moment."""
        self._moments.append(now)
        neighbors = neighbors_of(now)
        return tuple(
            self._port(labels, neighbors.get(labels[1], ""), now)
            for name, labels in now.values
            if name == QUEUES.name
        )

    def _port(self, labels: Labels, neighbor: str, now: TimedValues) -> SwitchPriority:
        device, port, priority, queue, group = labels
        of_queue = (device, port, queue)
        trips = now.values.get((TRIPS, of_queue))
        return SwitchPriority(
            port,
            priority,
            neighbor,
            self._pause((device, port, priority), now),
            watchdog_state(of_queue, now),
            None if trips is None else int(trips),
            rate(self._before(now), now, MARKED, of_queue),
            headroom_share((device, port, group), now),
        )

    def _pause(self, place: Labels, now: TimedValues) -> tuple[float | None, ...]:
        share = rate(self._before(now), now, PAUSED, place)
        shares = self._shares.setdefault(place, deque(maxlen=KEPT_SHARES))
        shares.append(None if share is None else min(1.0, share))
        return tuple(shares)

    def _before(self, now: TimedValues) -> TimedValues:
        """The newest moment that is at least `RATE_SECONDS` older, or the oldest."""
        old = [moment for moment in self._moments if moment.time <= now.time - RATE_SECONDS]
        return old[-1] if old else self._moments[0]


def neighbors_of(now: TimedValues) -> dict[str, str]:
    """Host and network device behind each port, in words."""
    found = {}
    for name, labels in now.values:
        if name == NEIGHBORS.name:
            known = dict(zip(NEIGHBORS.labels, labels, strict=True))
            # A port identifier that is a MAC address says less than its description.
            by_mac = known["port_id_kind"] == "mac" and known["neighbor_description"]
            netdev = known["neighbor_description" if by_mac else "neighbor_port"]
            found[known["port"]] = f"{known['neighbor']} {netdev}"
    return found


def watchdog_state(queue: Labels, now: TimedValues) -> str:
    """`tripped`, `ok`, `reports` (it only reports storms), `off`, or empty if the switch does not report it."""
    if now.values.get((TRIPPED, queue)):
        return "tripped"
    if not (enabled := now.values.get((ENABLED, queue))):
        return "" if enabled is None else "off"
    return "ok" if now.values.get((ACTS, queue), 1.0) else "reports"


def headroom_share(group: Labels, now: TimedValues) -> float | None:
    """The share of the headroom that was used at most in the periodic window; None if one of both is unknown."""
    used, size = now.values.get((USED, (*group, WINDOW))), now.values.get((HEADROOM, group))
    return used / size if used is not None and size else None
