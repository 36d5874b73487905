"""The last storms in detail: when, where, how long, which counters changed, and the probable cause."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.fastloop.watch import PauseKey, difference

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from roce_exporter.fastloop.pfc_storm import Ended
    from roce_exporter.fastloop.target import Hot

LOG = logging.getLogger(__name__)

KEPT = 256

STALLS = 0.3
"""From this share on, mlx5 counts a second as one with a PCIe stall."""


class StormPlace(NamedTuple):
    """The location of a storm."""

    device: str
    port: int
    netdev: str
    priority: str
    direction: str


@dataclass(slots=True)
class Event:
    """One storm. Times are Unix seconds; `end` and `duration` are None while it continues."""

    place: StormPlace
    method: str
    hint: str
    start: float
    end: float | None = None
    duration: float | None = None
    reason: str = ""
    """How it ended: `restored`, or the reason why it could no longer be followed."""
    pause_frames: float | None = None
    """XOFF frames from the detection of the storm to the last sample within it; None: not counted. The fields below cover
    the same time."""
    paused_seconds: float | None = None
    packets: float | None = None
    """Packets of the priority in the direction that the pause blocks."""
    pcie_stalled_seconds: float | None = None


class _Open(NamedTuple):
    """A storm under way, the counters when it was detected, and those of the last sample within it."""

    event: Event
    first: Hot
    latest: Hot


class Events:
    """The last `KEPT` storms of the host, newest last."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        """The offset from monotonic to Unix time."""
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._open: dict[StormPlace, _Open] = {}

    def begin(self, place: StormPlace, start: float, method: str, hint: str, hot: Hot) -> None:
        """Enter a detected storm that began at `start` (Unix seconds). `hot` has the counters at detection."""
        event = Event(place, method, hint, start)
        self._kept.append(event)
        self._open[place] = _Open(event, hot, hot)
        LOG.warning("PFC storm begins", extra={"fields": _fields(event)})

    def follow(self, place: StormPlace, hot: Hot) -> None:
        """Update the storm at this location, if there is one, with the latest counters."""
        if place in self._open:
            self._open[place] = self._open[place]._replace(latest=hot)

    def end(self, place: StormPlace, what: Ended) -> None:
        """Enter the end of a storm."""
        if place not in self._open:
            return
        event, first, latest = self._open.pop(place)
        event.end, event.duration, event.reason = what.end + self._wall(), what.end - what.begin, what.reason
        key = PauseKey(place.priority, place.direction)
        if key in first.counts and key in latest.counts:
            change = difference(first.counts[key], latest.counts[key])
            event.paused_seconds, event.pause_frames, _, event.packets = change
        if first.stalled is not None and latest.stalled is not None:
            event.pcie_stalled_seconds = latest.stalled - first.stalled
        LOG.warning("PFC storm ends", extra={"fields": _fields(event)})

    def hint(self, place: StormPlace) -> str:
        """The probable cause of the storm at this location; empty without a storm."""
        return self._open[place].event.hint if place in self._open else ""

    def documents(self) -> list[dict[str, Any]]:
        """All kept storms, newest first, for JSON. Times are RFC 3339 in UTC, durations in seconds."""
        return [_document(event) for event in reversed(self._kept)]


def guess(
    key: PauseKey, before: Hot | None, now: Hot, paused: Collection[str], ports: Collection[str]
) -> str:
    """The probable cause of a storm, with the values of `roce_pfc_storm_hint`.

    `before` is the sample before `now`. `paused` are the network devices of the host under a received storm, including this
    one, and `ports` are all polled ones. Follows the symptoms of Guo et al. (SIGCOMM 2016) and Gao et al. (NSDI 2021),
    which are not a proof.
    """
    if key.direction == "receive":
        everywhere = len(ports) > 1 and set(paused) >= set(ports)
        return "all_ports_paused" if everywhere else "paused_by_fabric"
    if (now.stalling or 0) >= STALLS or (before is not None and before.stalled != now.stalled):
        return "slow_receiver"
    silent = before is not None and now.received is not None and before.received == now.received
    return "host_stopped" if silent else "receiver_overwhelmed"


def _document(event: Event) -> dict[str, Any]:
    found = event.place._asdict() | asdict(event)
    del found["place"]
    for name in ("start", "end"):
        found[name] = found[name] and datetime.fromtimestamp(found[name], UTC).isoformat(
            timespec="milliseconds"
        )
    return found


def _fields(event: Event) -> dict[str, str]:
    return {
        name: f"{value:.3f}" if isinstance(value, float) else str(value)
        for name, value in _document(event).items()
        if value not in (None, "")
    }
