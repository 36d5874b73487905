"""The counters that the detectors evaluate."""

from __future__ import annotations

from typing import NamedTuple


class Counts(NamedTuple):
    """The counters of one priority in one direction since the driver was loaded; None: not counted by the driver."""

    paused: float | None = None
    """Seconds."""
    stops: float | None = None
    """XOFF frames; with `Method.FRAMES` all pause frames."""
    resumes: float | None = None
    """Ends of pause: XON frames, or transitions of the NIC's own state."""
    packets: float | None = None
    """Packets of the priority in the direction that the pause blocks."""
