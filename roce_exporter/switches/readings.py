"""What is read from a switch: frozen data without I/O, the same for every operating system."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.catalog.row import Row

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels, without `device`: `(("port", "Ethernet0"), ("queue", "3"))`."""

RawNumber = int | float | None
"""None: the switch has the value, and it is not a valid number."""

LABEL_CHARACTERS = 256
"""Most characters of a text that becomes a label. Any host can choose the system name that it announces by LLDP."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply, for `/debug/probe`. Neither holds a credential."""

    source: str
    query: str
    """The command, path or keys, in the words of the protocol."""
    reply: str
    """The reply, or its beginning, as text."""


@dataclass(frozen=True, slots=True)
class Replies:
    """What one round of queries to a switch brought, before it is interpreted."""

    replies: Mapping[str, Any] = field(default_factory=dict)
    """Per source its decoded reply: JSON, or tables of SONiC."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Per source that did not answer, why not: one line."""
    exchanges: tuple[Exchange, ...] = ()
    """For the debug page only; empty unless it was requested."""


@dataclass(frozen=True, slots=True)
class SwitchReading:
    """Raw values of one object of a switch (a port, a queue, a priority group, a pool, the switch) from one source."""

    source: str
    """The catalogue's name of the source in the spellings of this dialect."""
    labels: Labels
    values: Mapping[str, RawNumber]
    """By raw name, as the catalogue's spellings have it. A value that the switch does not have is absent."""


@dataclass(frozen=True, slots=True)
class SwitchFact:
    """One info series: a row and its labels by name, without `device`. An unknown label is left out."""

    row: Row
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SwitchReadings:
    """Everything that one round of queries says about a switch."""

    name: str = ""
    """The switch's own host name; empty if no reply has it."""
    readings: tuple[SwitchReading, ...] = ()
    facts: tuple[SwitchFact, ...] = ()
    renewals: Mapping[str, float] = field(default_factory=dict)
    """Per source the interval in seconds at which the switch refreshes it, where it reports that."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Per source whose reply cannot be used, why not: one line."""
    sources: tuple[str, ...] = ()
    """All sources that were queried, also those that failed. What the switch does not have is no source."""


def label_text(text: object) -> str:
    """A text from the network as the value of a label: printable, at most `LABEL_CHARACTERS` characters."""
    plain = "".join(letter if letter.isprintable() else " " for letter in str(text)[: 4 * LABEL_CHARACTERS])
    return " ".join(plain.split())[:LABEL_CHARACTERS]
