"""What there is to see at one moment of the demo: frozen, so that the views are pure functions of it."""

from __future__ import annotations

from dataclasses import dataclass

FIRING = "firing"


@dataclass(frozen=True, slots=True)
class Address:
    """Where something can be looked at."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Pause:
    """One direction of one priority."""

    history: tuple[float | None, ...]
    """Share of the time paused, 0 to 1, oldest first; None: not measured."""
    state: str
    """What the detector makes of it: `ok`, `suspect`, `storm`, `recovering`, `unknown`."""
    storms: int
    estimated: bool = False
    """Whether the shares are upper bounds, of a NIC that counts frames and no time."""

    @property
    def ratio(self) -> float | None:
        """The share of the time paused now."""
        return self.history[-1] if self.history else None


@dataclass(frozen=True, slots=True)
class Priority:
    """One priority of one port, with what congestion control does on the port, in packets per second; None: not counted."""

    device: str
    port: str
    netdev: str
    number: str
    up: bool | None
    receive: Pause | None
    transmit: Pause | None
    marked: float | None
    notified: float | None
    """CNPs sent."""
    reacted: float | None
    """CNPs handled."""


@dataclass(frozen=True, slots=True)
class Storm:
    """One PFC storm as the detector tells it."""

    device: str
    port: str
    netdev: str
    priority: str
    direction: str
    hint: str
    start: str
    """RFC 3339, in UTC."""
    duration: float | None = None
    """Seconds; None while it goes on."""
    reason: str = ""
    """How it ended."""

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.device}/{self.port} ({self.netdev}) priority {self.priority} {self.direction}"

    @property
    def identity(self) -> tuple[str, str]:
        """The same for one storm while it goes on and when it is over."""
        return self.place, self.start


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert as Prometheus tells it."""

    name: str
    severity: str
    state: str
    """`pending` or `firing`."""
    summary: str
    where: tuple[tuple[str, str], ...] = ()
    """Its labels, sorted: what makes it another alert than the next of the same name."""

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The same for as long as it is the same alert."""
        return self.name, self.where


@dataclass(frozen=True, slots=True)
class Scene:
    """The demo at one moment."""

    scenario: str
    description: str
    seconds: float
    """Since the demo began."""
    addresses: tuple[Address, ...] = ()
    priorities: tuple[Priority, ...] = ()
    storms: tuple[Storm, ...] = ()
    """Newest first."""
    alerts: tuple[Alert, ...] | None = None
    """None: nobody evaluates rules."""
    notes: tuple[str, ...] = ()
    """What the viewer should know, oldest first: what is missing, what broke."""

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire."""
        return tuple(alert for alert in self.alerts or () if alert.state == FIRING)
