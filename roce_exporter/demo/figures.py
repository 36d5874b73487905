"""What the exporter observed becomes the priorities of a scene: rates between two observations, and their history."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import storm
from roce_exporter.demo.scene import Pause, Priority, Storm
from roce_exporter.detectors.pfc_storm import StormState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from roce_exporter.normalise.normaliser import Samples

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
"""What is above 0 once a priority was paused."""
WANTED = frozenset({PORT_UP, MARKED, NOTIFIED, REACTED, STATE, REFRESH} | PAUSES)

SPAN = 2.0
"""Seconds that a rate of packets is taken over."""

RENEWALS = 2.0
"""A share paused is taken over so many of the driver's renewals, of which one may have been missed."""

BRIEFEST = 0.25
"""Seconds that a share paused is taken over at the least."""

KEPT = 16
"""Looks that are kept: at two a second more than any span."""

REMEMBERED = 120
"""So many shares paused are kept per priority and direction, at two a second those of the last minute."""

Labels = tuple[str, ...]
Values = dict[tuple[str, Labels], float]


class Look(NamedTuple):
    """The values that the demo shows, at one moment of the monotonic clock."""

    time: float
    values: Values


def take(samples: Iterable[Samples], time: float) -> Look:
    """The wanted values among all samples."""
    return Look(
        time,
        {
            (series.row.name, series.labels): float(value)
            for group in samples
            for series, value in zip(group.series, group.values, strict=True)
            if series.row.name in WANTED and value is not None
        },
    )


def rate(before: Look, now: Look, name: str, labels: Labels) -> float | None:
    """The rise per second; None where it is not counted, was reset, or no time has passed."""
    old, new = before.values.get((name, labels)), now.values.get((name, labels))
    seconds = now.time - before.time
    return None if old is None or new is None or new < old or seconds <= 0 else (new - old) / seconds


def worth_showing(places: Iterable[Labels], look: Look) -> list[Labels]:
    """Of a network device that counts all its priorities those that were paused, or the first: a port is never left out."""
    paused = {labels[:4] for (name, labels), value in look.values.items() if name in PAUSES and value > 0}
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
    """Remembers the last looks, so that `priorities` can tell rates and their history."""

    _looks: deque[Look] = field(default_factory=lambda: deque(maxlen=KEPT))
    _history: dict[Labels, deque[float | None]] = field(default_factory=dict)

    def priorities(self, look: Look) -> tuple[Priority, ...]:
        """The priorities that were ever paused, of a network device without any its first. One call per look."""
        self._looks.append(look)
        followed = [labels[:-1] for name, labels in look.values if name == STATE]
        return tuple(self._priority(place, look) for place in worth_showing(dict.fromkeys(followed), look))

    def _before(self, look: Look, seconds: float) -> Look:
        """The newest look that is at least so much older, or the oldest."""
        old = [found for found in self._looks if found.time <= look.time - seconds]
        return old[-1] if old else self._looks[0]

    def _priority(self, place: Labels, look: Look) -> Priority:
        device, port, netdev, number = place
        up = look.values.get((PORT_UP, (device, port)))
        before = self._before(look, SPAN)
        marked, notified, reacted = (
            rate(before, look, name, (device, port)) for name in (MARKED, NOTIFIED, REACTED)
        )
        return Priority(
            device,
            port,
            netdev,
            number,
            None if up is None else up > 0,
            self._pause(place, "receive", look),
            self._pause(place, "transmit", look),
            marked,
            notified,
            reacted,
        )

    def _pause(self, place: Labels, direction: str, look: Look) -> Pause | None:
        labels = (*place, direction)
        state = look.values.get((STATE, labels))
        if state is None:
            return None
        renewed = look.values.get((REFRESH, place[:-1]), 0.0)
        before = self._before(look, max(BRIEFEST, RENEWALS * renewed))
        estimated = (ESTIMATED, labels) in look.values
        counted = (ESTIMATED, labels) if estimated else (PAUSED[direction], place)
        share = rate(before, look, *counted)
        history = self._history.setdefault(labels, deque(maxlen=REMEMBERED))
        # The moment of a look is known less well than the counter, so a priority that is paused throughout may pass 1.
        history.append(None if share is None else min(1.0, share))
        storms = look.values.get((STORMS, labels), 0.0)
        return Pause(tuple(history), StormState(int(state)).name.lower(), int(storms), estimated)


def storms(documents: Iterable[Mapping[str, Any]]) -> tuple[Storm, ...]:
    """The sampler's events as the scene wants them, in the same order."""
    return tuple(
        Storm(
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
