"""The buffers of the simulated switch: how full they are in given conditions, and watermarks.

Watermarks are those of SONiC (sonic-swss, orchagent/watermarkorch): the highest fill level of a window. The periodic
window begins again every two minutes, the others last as long as no person clears them, so here without end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.host.simulated.conditions import Conditions
    from roce_exporter.host.simulated.leaf_watchdog import WatchedSpan

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE

POOL_BYTES = 128 * MEBIBYTE
"""The shared buffer of the switch."""

XOFF_BYTES = 6 * MEBIBYTE
"""Fill level of a priority group at which the switch sends pause, while other ports use the pool as well."""

HEADROOM_BYTES = 288 * KIBIBYTE
"""Headroom of a priority group for 400 Gbit/s and 5 m of cable."""

QUEUE_BYTES = 8 * MEBIBYTE
"""Fill level of a queue whose port is paused without end."""

IDLE_BYTES = 64 * KIBIBYTE
"""Fill level of a queue without congestion at full load."""

PERIOD = 120.0
"""Seconds of the periodic window."""


@dataclass(frozen=True, slots=True)
class LeafWred:
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


def queue_level(span: WatchedSpan, priority: int, wred: LeafWred, *, drops: bool) -> float:
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

    def ever(self, levels: Mapping[str, float]) -> dict[str, float]:
        """The highest levels since the start, given those of now."""
        return _raise_to(dict(self._ever), levels)

    def periodic(self, levels: Mapping[str, float], now: float) -> dict[str, float]:
        """The highest levels in the window of `now`, given those of now."""
        known = self._periodic if self._window == self._window_of(now) else {}
        return _raise_to(dict(known), levels)

    def _window_of(self, time: float) -> int:
        return 0 if math.isinf(time) else int((time - self._start) // PERIOD)


def _raise_to(peaks: dict[str, float], levels: Mapping[str, float]) -> dict[str, float]:
    for name, level in levels.items():
        peaks[name] = max(level, peaks.get(name, 0.0))
    return peaks
