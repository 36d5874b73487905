"""Pause frames and neighbours of the mirrored link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roce_exporter.wire.decode.columns import Decoded
    from roce_exporter.wire.decode.link_frames import LinkNeighbour, PauseFrame

GLOBAL = -1
"""Instead of a priority: global pause."""
MOST_SENDERS = 1024
MOST_NEIGHBOURS = 64
OTHER_SENDER = "other"


@dataclass(slots=True)
class WirePauseCounts:
    """Pause frames of one sender for one priority."""

    frames: int = 0
    xoff: int = 0
    """Frames that pause; the others end a pause."""
    quanta: int = 0
    """Sum of the requested pauses in units of 512 bit times."""


class LinkEvents:
    """Counts per sender and priority, and the last LLDP frame of each sender."""

    def __init__(self) -> None:
        self.pauses: dict[tuple[str, int], WirePauseCounts] = {}
        self.neighbours: dict[str, LinkNeighbour] = {}

    def add(self, decoded: Decoded) -> None:
        """The pause frames and neighbours of a batch."""
        for _, frame in decoded.pauses:
            self._pause(frame)
        for neighbour in decoded.neighbours:
            if neighbour.source in self.neighbours or len(self.neighbours) < MOST_NEIGHBOURS:
                self.neighbours[neighbour.source] = neighbour

    def _pause(self, frame: PauseFrame) -> None:
        for priority, quanta in enumerate(frame.quanta):
            if quanta is None:
                continue
            key = (frame.source, priority if frame.per_priority else GLOBAL)
            if key not in self.pauses and len(self.pauses) >= MOST_SENDERS:
                key = (OTHER_SENDER, key[1])
            counts = self.pauses.setdefault(key, WirePauseCounts())
            counts.frames += 1
            counts.xoff += quanta > 0
            counts.quanta += quanta
