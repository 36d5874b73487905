"""The PFC watchdog of the simulated switch: it trips when pause does not end, and restores the queue when pause is gone.

As in SONiC (sonic-swss, orchagent/pfcwdorch and pfc_detect_mellanox.lua) pause is judged at polls: the watchdog trips when
pause has lasted for its detection time since a poll, and restores the queue when it has received no pause for its
restoration time. Both are exact here: they do not depend on when the switch is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.simulated.conditions import TRANSMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roce_exporter.host.simulated.conditions import Conditions, TimedConditions

DROP, ALERT = "drop", "alert"
"""What a tripped watchdog does: discard the packets of the queue, or only report the storm."""


@dataclass(frozen=True, slots=True)
class LeafWatchdog:
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

    def due(self, watchdog: LeafWatchdog, origin: float) -> float:
        """When this state ends, if the reason persists."""
        if math.isinf(self.since):
            return math.inf
        poll = origin + math.ceil((self.since - origin) / watchdog.poll) * watchdog.poll
        return poll + (watchdog.restoration if self.stormed else watchdog.detection)


def watched(
    spans: Iterable[TimedConditions], watchdog: LeafWatchdog | None, origin: float
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
