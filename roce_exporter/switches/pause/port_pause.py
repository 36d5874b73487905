"""How one priority of one switch port is paused, how it pauses its neighbour, and how full its queue is.

Receive is pause that the switch received (IEEE 802.1Qbb): the neighbour stopped this queue. Everything is None where the
switch does not report it; nothing is estimated here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.named import SWITCH_QUEUE_INFO
from roce_exporter.switches.switch_view import natural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.switches.switch_view import ViewValues

RECEIVE_FRAMES = "roce_switch_pfc_receive_frames_total"
TRANSMIT_FRAMES = "roce_switch_pfc_transmit_frames_total"
PAUSE_SECONDS = "roce_switch_pfc_receive_pause_seconds_total"
ESTIMATED_SECONDS = "roce_switch_pfc_receive_pause_estimated_seconds_total"
QUEUE_PAUSED = "roce_switch_queue_paused"
TRIPPED = "roce_switch_pfc_watchdog_tripped"
OCCUPANCY = "roce_switch_queue_occupancy_bytes"
WATERMARK = "roce_switch_queue_watermark_bytes"
PAUSE_THRESHOLD = "roce_switch_buffer_pause_threshold_bytes"
ECN_MAXIMUM = "roce_switch_config_ecn_maximum_bytes"
ECN_MARKS = "roce_switch_queue_ecn_marked_packets_total"

RECENT = "periodic"
"""The window of a watermark that the switch itself restarts every few minutes. The others can be days old."""

LEAST_SHARE = 0.001
"""Less pause than one millisecond per second slows nothing down, and is not followed."""

FULL = 0.5
"""From this part of the pause threshold on a queue counts as full.

A port that sends pause has as many bytes as its threshold in the switch; they can lie in more than one queue.
"""


class PausePlace(NamedTuple):
    """One priority of one port of one switch."""

    switch: str
    port: str
    priority: str

    def __str__(self) -> str:
        """As in all sentences: `leaf1 Ethernet12`."""
        return f"{self.switch} {self.port}"


def place_order(place: PausePlace) -> tuple[object, ...]:
    """A key that sorts places as people read them."""
    return natural(place.switch), natural(place.port), natural(place.priority)


@dataclass(frozen=True, slots=True)
class QueueFill:
    """How full a queue is."""

    held: float | None = None
    """Bytes: the most of now and of the last few minutes."""
    recent: bool = False
    """Whether `held` covers the last few minutes, and not only the moment of the answer."""
    full_at: float | None = None
    """Bytes from which on the queue counts as full."""
    limit: str = ""
    """What `full_at` is, in words."""
    marks: float | None = None
    """Packets per second in which the queue sets the ECN mark."""

    @property
    def is_full(self) -> bool | None:
        """Whether the queue is full; None if the switch does not report enough.

        Marks show a filled queue only where its fill level is known for no more than the moment of the answer.
        """
        if self.held is not None and self.full_at is not None and self.held >= self.full_at:
            return True
        if not self.recent and self.marks is not None and self.marks > 0:
            return True
        known = (self.held is not None and self.full_at is not None) or self.marks is not None
        return False if known else None


@dataclass(frozen=True, slots=True)
class PortPause:
    """One priority of one port."""

    receive_share: float | None = None
    """The part of the time for which the neighbour paused this queue, from 0 to 1."""
    estimated: bool = False
    """Whether `receive_share` is an estimate by the switch's software."""
    receive_frames: float | None = None
    """Pause frames per second from the neighbour."""
    transmit_frames: float | None = None
    """Pause frames per second to the neighbour."""
    queue_paused: bool | None = None
    tripped: bool | None = None
    fill: QueueFill = QueueFill()

    @property
    def is_paused(self) -> bool | None:
        """Whether the neighbour pauses this queue now; None if the switch does not report it."""
        if self.queue_paused or self.tripped:
            return True
        if self.receive_share is not None:
            return self.receive_share >= LEAST_SHARE
        if self.receive_frames is not None:
            return self.receive_frames > 0
        return self.queue_paused

    @property
    def transmits(self) -> bool | None:
        """Whether the switch pauses the neighbour; None if the switch does not report it, or answered only once."""
        return None if self.transmit_frames is None else self.transmit_frames > 0


def port_pauses(switch: str, values: ViewValues) -> dict[PausePlace, PortPause]:
    """All priorities of all ports of a switch on which it reports anything about pause, in natural order."""
    queues = {
        (port, priority): (queue, group)
        for port, priority, queue, group in values.labels(SWITCH_QUEUE_INFO.name)
    }
    thresholds = _thresholds(values, queues)
    found = set(queues)
    for row in (RECEIVE_FRAMES, TRANSMIT_FRAMES, PAUSE_SECONDS, ESTIMATED_SECONDS):
        found |= {(port, priority) for port, priority in values.labels(row)}
    places = sorted((PausePlace(switch, *labels) for labels in found), key=place_order)
    return {
        place: _port_pause(values, place, queues.get(place[1:], ("", ""))[0], thresholds.get(place.priority))
        for place in places
    }


def _thresholds(values: ViewValues, queues: Mapping[tuple[str, str], tuple[str, str]]) -> dict[str, float]:
    """By priority the lowest level at which a port of the switch sends pause."""
    found: dict[str, float] = {}
    for (port, priority), (_, group) in queues.items():
        level = values.value(PAUSE_THRESHOLD, port, group)
        if level:
            found[priority] = min(level, found.get(priority, level))
    return found


def _port_pause(values: ViewValues, place: PausePlace, queue: str, threshold: float | None) -> PortPause:
    here = place[1:]
    measured, estimated = values.rate(PAUSE_SECONDS, *here), values.rate(ESTIMATED_SECONDS, *here)
    share = estimated if measured is None else measured
    return PortPause(
        receive_share=None if share is None else min(1.0, share),
        estimated=measured is None and estimated is not None,
        receive_frames=values.rate(RECEIVE_FRAMES, *here),
        transmit_frames=values.rate(TRANSMIT_FRAMES, *here),
        queue_paused=values.flag(QUEUE_PAUSED, place.port, queue),
        tripped=values.flag(TRIPPED, place.port, queue),
        fill=_fill(values, place.port, queue, threshold),
    )


def _fill(values: ViewValues, port: str, queue: str, threshold: float | None) -> QueueFill:
    now, recent = values.value(OCCUPANCY, port, queue), values.value(WATERMARK, port, queue, RECENT)
    held = max((one for one in (now, recent) if one is not None), default=None)
    limits = [] if threshold is None else [(threshold * FULL, "half of the pause threshold")]
    if maximum := values.value(ECN_MAXIMUM, port, queue):
        # The threshold of a dynamic buffer is the highest that it can have, and so can be far above this.
        limits.append((maximum, "the ECN maximum"))
    full_at, limit = min(limits, default=(None, ""))
    return QueueFill(held, recent is not None, full_at, limit, values.rate(ECN_MARKS, port, queue))
