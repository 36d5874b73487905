"""What a module of a switch operating system must offer. `probe` knows modules only by this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from roce_exporter.net.login import Login
    from roce_exporter.switches.readings import Replies, SwitchReadings
    from roce_exporter.switches.targets import Route, SwitchTarget


@dataclass(frozen=True, slots=True)
class Visit:
    """One round of queries to one switch."""

    target: SwitchTarget
    route: Route
    login: Login
    deadline: float
    """By the clock of the event loop. Sources that have not answered by then are faults; the others are kept."""
    record: bool = False
    """Whether to keep queries and replies for the debug page."""


@dataclass(frozen=True, slots=True)
class Module:
    """One operating system over one protocol."""

    name: str
    """As in the configuration file: sonic, sonic_gnmi, nxos, eos, cumulus."""
    dialect: str
    """The catalogue's name of the operating system."""
    query: Callable[[Visit], Awaitable[Replies]]
    """Query the switch. Faults of sources are in the replies; any exception but cancellation is a defect.

    Ends by `deadline` by itself: what has not answered is a fault. Leaves no connection, task or descriptor behind, also
    when it is cancelled. State between rounds (a session cookie) belongs to the module's door, keyed by target name.
    """
    read: Callable[[Replies, SwitchTarget], SwitchReadings]
    """Interpret replies: pure, and total: no reply makes it raise. A source whose reply is of no use is a fault."""
