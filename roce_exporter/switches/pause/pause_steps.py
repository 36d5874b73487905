"""One step of the pause tree, and the kinds of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roce_exporter.switches.pause.port_pause import PausePlace

PAUSES = "pauses"
"""A switch pauses what is behind its port: a start of the walk."""
NOT_PAUSED = "not_paused"
"""A port that was chosen, and is not paused now."""
PAUSED = "paused"
"""A queue that another switch pauses: the walk goes on there."""
SLOW_RECEIVER = "slow_receiver"
"""A host that sends pause and receives none: the pause starts there."""
PAUSED_RECEIVER = "paused_receiver"
"""A host that sends pause and receives pause as well."""
INCAST = "incast"
"""A full queue that is not paused: more packets arrive for the port than its link carries."""
LOOP = "loop"
"""A queue that the walk comes back to."""
LEAVES = "leaves_known"
"""A paused queue whose neighbour is not known, or is a switch that does not answer."""
UNEXPLAINED = "unexplained"
"""A switch sends pause, and none of its queues is known to be paused or full."""
SEEN = "seen"
"""Queues, or a switch without a known reason, that the tree already has elsewhere."""
CUT = "cut"
"""The tree is deeper than its bound."""

OPEN_ENDS = frozenset({LEAVES, UNEXPLAINED})
"""Ends of the walk without a reason for the pause."""

CAUSES = frozenset({SLOW_RECEIVER, PAUSED_RECEIVER, INCAST, LOOP}) | OPEN_ENDS
"""Ends of the walk that are findings."""


@dataclass(frozen=True, slots=True)
class PauseStep:
    """One line of the tree."""

    number: int
    parent: int | None
    """The number of the step above; None at a start."""
    depth: int
    kind: str
    sentence: str
    place: PausePlace
    neighbor: str
    neighbor_port: str
    share: float | None
    """The part of the time for which the neighbour paused the queue; in a loop that of its least paused port."""
    estimated: bool
    frames: float | None
    """Pause frames per second: to the neighbour at a start, else from it."""
    held: float | None
    """Bytes in the queue."""
    tripped: bool | None
    """Whether the watchdog holds the queue."""
    ports: tuple[str, ...] = ()
    """All queues of a loop; the first of the queues that are elsewhere in the tree."""
