"""What the module of a switch operating system must offer, and what it reads from a switch: frozen data without I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from roce_exporter.net.login import Login, LoginGate

if TYPE_CHECKING:
    from roce_exporter.catalog.row import Row
    from roce_exporter.normalise.series import Value
    from roce_exporter.switches.stream import SwitchStream
    from roce_exporter.switches.targets import Route, SwitchTarget

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels, without `device`: `(("port", "Ethernet0"), ("queue", "3"))`."""

Origin = tuple[str, str, object]
"""A module's own name of an object of a switch: a part of the switch, a table, and the object."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value that the switch has and that is not a valid number. It is false, as a value that the switch does not have."""

    reason: str
    """As the losses of hosts have it: `garbage`, `out_of_range`, `not_available`; or `unknown_word`."""

    def __bool__(self) -> Literal[False]:
        return False


RawNumber = int | float | Unreadable

REACH = "target"
"""The source of a fault that concerns the whole target: no address, no credentials, no answer in time."""

LABEL_CHARACTERS = 256
"""Most characters of a text that becomes a label. Any host can choose the system name that it announces by LLDP."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request and its reply, for `/debug/probe`. Neither holds a credential."""

    source: str
    query: str
    """The command, path or keys, in the words of the protocol."""
    reply: str
    """The reply, or its beginning, as text."""


@dataclass(frozen=True, slots=True)
class ProbeReply:
    """What one round of queries to a switch brought, before it is interpreted."""

    replies: Mapping[str, Any] = field(default_factory=dict)
    """Per source its decoded reply: JSON, or tables of SONiC."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Per source that did not answer, why not: one line."""
    logged: tuple[LoggedRequest, ...] = ()
    """For the debug page only; empty unless it was requested."""
    absent: frozenset[str] = frozenset()
    """The sources that were queried, and that the switch does not have."""
    again: Callable[[SwitchReadings], Repeat] | None = field(default=None, repr=False)
    """Makes what reads the same again, from the readings of this reply; None: the next round is as whole as this one."""


@dataclass(frozen=True, slots=True)
class SwitchReading:
    """Raw values of one object of a switch (a port, a queue, a priority group, a pool, the switch) from one source."""

    source: str
    """The catalogue's name of the source in the spellings of this dialect."""
    labels: Labels
    values: Mapping[str, RawNumber]
    """By raw name, as the catalogue's spellings have it. A value that the switch does not have is absent."""
    origin: Origin | None = None
    """The module's own name of the object, by which it can read the values again; None: it cannot."""


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
    missing: frozenset[tuple[str, str]] = frozenset()
    """Sources of which something is missing although they have not failed, each with the reason in one word: `disabled` or `unsupported`."""


def label_text(text: object) -> str:
    """A text from the network as the value of a label: printable, at most `LABEL_CHARACTERS` characters."""
    plain = str(text)[: 4 * LABEL_CHARACTERS]
    if not plain.isprintable():
        plain = "".join(letter if letter.isprintable() else " " for letter in plain)
    return " ".join(plain.split())[:LABEL_CHARACTERS]


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """One round of queries to one switch."""

    target: SwitchTarget
    route: Route
    login: Login
    deadline: float
    """By the clock of the event loop. Sources that have not answered by then are faults; the others are kept."""
    record: bool = False
    """Whether to keep queries and replies for the debug page."""
    gate: LoginGate = field(default_factory=LoginGate)
    held: Mapping[str, Any] = field(default_factory=dict)
    """By source what a stream has brought, as the reply of a round has it; these sources need no request."""

    @property
    def server_name(self) -> str:
        """The name to verify in the certificate of the switch."""
        return self.target.tls.server_name or self.route.server_name or self.route.address


class Repeat(Protocol):
    """Reads the values of a whole round again, and nothing else, as long as nothing else has changed."""

    async def read(self, probe: ProbeRequest) -> list[Value] | None:
        """The values in the order of the readings; None: something else has changed, or failed, so a whole round is due."""


class StreamPlan(NamedTuple):
    """What a switch is to send by itself."""

    paths: Mapping[str, Sequence[tuple[str, float]]]
    """By source its paths, each with the seconds between two samples; 0: with each change."""
    absent: tuple[str, ...] = ()
    """Sources that the switch does not have, and that are not queried while the stream is held."""
    origin: str = ""
    databases: Mapping[str, str] = MappingProxyType({})
    """By source the database that it is in; each database has a subscription of its own."""
    tables: tuple[str, ...] = ()
    """Sources that are one document of rows each, of which the switch does not always say what it has deleted."""


@dataclass(frozen=True, slots=True)
class Module:
    """One operating system over one protocol."""

    name: str
    """As in the configuration file: sonic, sonic_gnmi, nxos, eos, cumulus."""
    dialect: str
    """The catalogue's name of the operating system."""
    query: Callable[[ProbeRequest], Awaitable[ProbeReply]]
    """Query the switch. Faults of sources are in the replies; any exception but cancellation is a defect.

    Ends by `deadline` by itself: what has not answered is a fault. Leaves no connection, task or descriptor behind, also
    when it is cancelled. State between rounds (a session cookie) belongs to the module's client, keyed by target name.
    """
    read: Callable[[ProbeReply, SwitchTarget], SwitchReadings]
    """Interpret replies: pure, and total: no reply makes it raise. A source whose reply is of no use is a fault."""
    stream: Callable[[], SwitchStream] | None = None
    """Makes the stream of one switch; None: the module has none."""
    is_repeated: bool = False
    """Whether most rounds read values alone, by `ProbeReply.again`."""
