"""Observations of the exporter become the priorities of a scene: rates between two observations, and their history."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import storm
from roce_exporter.demo.scene import PauseHistory, Priority, StormEvent
from roce_exporter.fastloop.pfc_storm import StormState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from roce_exporter.normalise.series import Samples

PORT_UP = "roce_port_up"
MARKED = "roce_ecn_marked_packets_total"
NOTIFIED = "roce_cnp_sent_total"
REACTED = "roce_cnp_handled_total"
PAUSED = {
    "receive": "roce_pfc_receive_pause_seconds_total",
    "transmit": "roce_pfc_transmit_pause_seconds_total",
}
STATE, STORMS = storm.STATE.name, storm.STORMS.name
ESTIMATED, REFRESH = storm.ESTIMATED.name, storm.REFRESH.name
PAUSES = frozenset({STORMS, ESTIMATED, *PAUSED.values()})
"""Metrics that are above 0 once a priority was paused."""
WANTED = frozenset({PORT_UP, MARKED, NOTIFIED, REACTED, STATE, REFRESH} | PAUSES)

RATE_SECONDS = 2.0
"""Window of a rate of packets."""

REFRESHES = 2.0
"""Window of a share paused, in refreshes of the driver's copy: one of them may have been missed."""

SHORTEST_WINDOW = 0.25
"""Seconds; the least window of a share paused."""

KEPT_MOMENTS = 16
"""At two a second they cover every window."""

KEPT_SHARES = 120
"""Per priority and direction: at two a second the last minute."""

Labels = tuple[str, ...]


class TimedValues(NamedTuple):
    """The values that the demo shows, at one moment of the monotonic clock."""

    time: float
    values: dict[tuple[str, Labels], float]


def wanted_values(samples: Iterable[Samples], time: float, wanted: frozenset[str] = WANTED) -> TimedValues:
    """The values of these metrics, among all samples."""
    return TimedValues(
        time,
        {
            (series.row.name, series.labels): float(value)
            for group in samples
            for series, value in zip(group.series, group.values, strict=True)
            if series.row.name in wanted and value is not None
        },
    )


def rate(before: TimedValues, now: TimedValues, name: str, labels: Labels) -> float | None:
    """The increase per second; None where the metric is missing, was reset, or no time has passed."""
    old, new = before.values.get((name, labels)), now.values.get((name, labels))
    seconds = now.time - before.time
    return None if old is None or new is None or new < old or seconds <= 0 else (new - old) / seconds


def shown_places(places: Iterable[Labels], now: TimedValues) -> list[Labels]:
    """Per network device the priorities that were ever paused, or else its first: no port is left out."""
    paused = {labels[:4] for (name, labels), value in now.values.items() if name in PAUSES and value > 0}
    groups: dict[Labels, list[Labels]] = {}
    for place in places:
        groups.setdefault(place[:-1], []).append(place)
    return [
        place
        for group in groups.values()
        for place in [place for place in group if place in paused] or group[:1]
    ]


@dataclass(slots=True)
class Figures:
    """Keeps the last moments, from which `priorities` computes rates and their history."""

    _moments: deque[TimedValues] = field(default_factory=lambda: deque(maxlen=KEPT_MOMENTS))
    _shares: dict[Labels, deque[float | None]] = field(default_factory=dict)

    def priorities(self, now: TimedValues) -> tuple[Priority, ...]:
        """The priorities to show (`shown_places`). One call per moment."""
        self._moments.append(now)
        followed = [labels[:-1] for name, labels in now.values if name == STATE]
        return tuple(self._priority(place, now) for place in shown_places(dict.fromkeys(followed), now))

    def _before(self, now: TimedValues, seconds: float) -> TimedValues:
        """The newest moment that is at least `seconds` older, or the oldest."""
        old = [moment for moment in self._moments if moment.time <= now.time - seconds]
        return old[-1] if old else self._moments[0]

    def _priority(self, place: Labels, now: TimedValues) -> Priority:
        device, port, netdev, number = place
        up = now.values.get((PORT_UP, (device, port)))
        before = self._before(now, RATE_SECONDS)
        marked, notified, reacted = (
            rate(before, now, name, (device, port)) for name in (MARKED, NOTIFIED, REACTED)
        )
        return Priority(
            device,
            port,
            netdev,
            number,
            None if up is None else up > 0,
            self._pause(place, "receive", now),
            self._pause(place, "transmit", now),
            marked,
            notified,
            reacted,
        )

    def _pause(self, place: Labels, direction: str, now: TimedValues) -> PauseHistory | None:
        labels = (*place, direction)
        state = now.values.get((STATE, labels))
        if state is None:
            return None
        refresh = now.values.get((REFRESH, place[:-1]), 0.0)
        before = self._before(now, max(SHORTEST_WINDOW, REFRESHES * refresh))
        estimated = (ESTIMATED, labels) in now.values
        share = rate(before, now, *((ESTIMATED, labels) if estimated else (PAUSED[direction], place)))
        shares = self._shares.setdefault(labels, deque(maxlen=KEPT_SHARES))
        # The time of a read is less exact than the counter, so a priority that is paused throughout may exceed 1.
        shares.append(None if share is None else min(1.0, share))
        storms = now.values.get((STORMS, labels), 0.0)
        return PauseHistory(tuple(shares), StormState(int(state)).name.lower(), int(storms), estimated)


def storm_events(documents: Iterable[Mapping[str, Any]]) -> tuple[StormEvent, ...]:
    """The sampler's events as a scene holds them, in the same order."""
    return tuple(
        StormEvent(
            found["device"],
            str(found["port"]),
            found["netdev"],
            found["priority"],
            found["direction"],
            found["hint"],
            found["start"],
            found["duration"],
            found["reason"],
        )
        for found in documents
    )
