"""What a rule finds on one port, and how it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.view.host_view import PortView
from roce_exporter.words import duration, number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.checks.finding import Side
    from roce_exporter.view.host_view import Rise


SHORT, MEDIUM, LONG = 120.0, 300.0, 1800.0
"""Windows of rates, in seconds: those of the alerts at scrape intervals of 15 s and 30 s."""


class Symptom(NamedTuple):
    """A cause that the facts of one port support."""

    cause: str
    """Its name in the list of causes."""
    evidence: tuple[str, ...]
    against: tuple[str, ...] = ()
    side: Side | None = None
    """A better known side than the cause's own."""
    weight: float = 0.0
    """0 to 1: how bad it is among findings of the same cause."""
    note: bool = False
    """Whether it is too little to degrade a port: it is shown, and the health does not change."""
    until: float | None = None
    """Its last sign, where the rule sees that it has ended, so that it is not a failure now; 0: it lasts. None: follows from the counters."""
    direction: str = ""
    """`receive` or `transmit`, where only what the port receives or sends is affected."""


Rule = Callable[[PortView], Iterator[Symptom]]
"""One rule: pure, and silent where it sees too little."""


def rose(rise: Rise, what: str) -> str:
    """The sentence about a counter that rose."""
    return f"{number(rise.amount)} {what} within {duration(rise.seconds)}"


def texts(parts: Iterable[str | None]) -> tuple[str, ...]:
    """The parts that say something."""
    return tuple(part for part in parts if part)
