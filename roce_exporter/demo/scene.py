"""What the demo shows at one moment: frozen, so that the views are pure functions of it."""

from __future__ import annotations

from dataclasses import dataclass

FIRING = "firing"


@dataclass(frozen=True, slots=True)
class Address:
    """A page that the viewer can open."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class PauseHistory:
    """One direction of one priority."""

    shares: tuple[float | None, ...]
    """Share of the time paused, 0 to 1, oldest first; None: not measured."""
    state: str
    """The detector's state: `ok`, `suspect`, `storm`, `recovering`, `unknown`."""
    storms: int
    estimated: bool = False
    """Whether the shares are upper bounds, because the NIC counts frames and no time."""


@dataclass(frozen=True, slots=True)
class Priority:
    """One priority of one port, and the port's congestion control in packets per second; None: not counted."""

    device: str
    port: str
    netdev: str
    number: str
    up: bool | None
    receive: PauseHistory | None
    transmit: PauseHistory | None
    marked: float | None
    notified: float | None
    """CNPs sent."""
    reacted: float | None
    """CNPs handled."""


@dataclass(frozen=True, slots=True)
class StormEvent:
    """One PFC storm that the detector found."""

    device: str
    port: str
    netdev: str
    priority: str
    direction: str
    hint: str
    start: str
    """RFC 3339, in UTC."""
    duration: float | None = None
    """Seconds; None while it lasts."""
    reason: str = ""
    """How it ended."""

    @property
    def place(self) -> str:
        """Port, priority and direction in words."""
        return f"{self.device}/{self.port} ({self.netdev}) priority {self.priority} {self.direction}"

    @property
    def identity(self) -> tuple[str, str]:
        """The same for one storm while it lasts and after it."""
        return self.place, self.start


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of Prometheus."""

    name: str
    severity: str
    state: str
    """`pending` or `firing`."""
    summary: str
    labels: tuple[tuple[str, str], ...] = ()
    """Sorted. They distinguish alerts of the same name."""

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The same for as long as it is the same alert."""
        return self.name, self.labels


@dataclass(frozen=True, slots=True)
class SwitchPriority:
    """One priority with PFC of one switch port."""

    port: str
    priority: str
    neighbor: str
    """Host and network device behind the port; empty without one."""
    shares: tuple[float | None, ...]
    """Share of the time for which received pause stopped the port, 0 to 1, oldest first; None: not measured."""
    watchdog: str
    """`ok`, `tripped`, `reports` (it only reports storms), `off`; empty if unknown."""
    trips: int | None
    marked: float | None
    """Packets per second that the queue marked with ECN."""
    headroom: float | None
    """Share of the headroom that was used at most, in the switch's periodic window."""

    @property
    def place(self) -> str:
        """Port, neighbour and priority in words."""
        return f"{self.port} ({self.neighbor or 'no neighbour'}) priority {self.priority}"


@dataclass(frozen=True, slots=True)
class ShownSwitch:
    """The switch at one moment."""

    name: str
    ports: tuple[SwitchPriority, ...]


@dataclass(frozen=True, slots=True)
class ShownOwner:
    """A pod, job or service that uses the host's RDMA devices; None: not counted."""

    owner: str
    command: str
    queue_pairs: int
    in_error: int
    """Queue pairs in state ERR."""
    cnps: float | None
    """CNPs received per second."""
    retries: float | None
    """Timeouts and NAKs per second after which the owner transmits again."""

    @property
    def place(self) -> str:
        """The owner in words."""
        return f"{self.owner} ({self.command})" if self.command else self.owner


@dataclass(frozen=True, slots=True)
class Scene:
    """The demo at one moment."""

    scenario: str
    description: str
    seconds: float
    """Since the demo began."""
    addresses: tuple[Address, ...] = ()
    priorities: tuple[Priority, ...] = ()
    storms: tuple[StormEvent, ...] = ()
    """Newest first."""
    alerts: tuple[Alert, ...] | None = None
    """None: no Prometheus evaluates the rules."""
    notes: tuple[str, ...] = ()
    """Messages for the viewer, oldest first: what is missing, what failed."""
    switch: ShownSwitch | None = None
    """None: there is no switch, or it does not answer."""
    owners: tuple[ShownOwner, ...] = ()
    """Those that suffer most first."""

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire."""
        return tuple(alert for alert in self.alerts or () if alert.state == FIRING)
