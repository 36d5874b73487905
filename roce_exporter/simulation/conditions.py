"""What a simulated port goes through: conditions that hold for a span of time, one span after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

RECEIVE, TRANSMIT = "receive", "transmit"
"""The direction of the pause frames: received pause stops what the port sends, transmitted pause what it is sent."""

PRIORITIES = range(8)


@dataclass(frozen=True, slots=True)
class Pause:
    """Priority flow control at work for one priority in one direction."""

    priority: int
    direction: str
    """`RECEIVE` or `TRANSMIT`."""
    ratio: float
    """Part of the time for which the priority is paused; 1 is a storm: nothing passes and no XON comes."""
    episode: float = 0.002
    """Seconds from one XOFF to its XON, where the ratio is below 1."""

    def __post_init__(self) -> None:
        if self.priority not in PRIORITIES or self.direction not in (RECEIVE, TRANSMIT):
            raise ValueError(
                f"pause of priority {self.priority!r}, direction {self.direction!r}: not possible"
            )
        if not 0 <= self.ratio <= 1 or self.episode <= 0:
            raise ValueError(
                f"pause ratio {self.ratio} is not in 0..1, or episode {self.episode} is not above 0"
            )

    @property
    def storm(self) -> bool:
        """Whether nothing passes."""
        return self.ratio == 1

    @property
    def where(self) -> tuple[int, str]:
        """Priority and direction."""
        return self.priority, self.direction


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a port goes through. The defaults are a port at ease. What is None is as the port is set up."""

    load: float = 0.3
    """RoCE traffic offered in each direction, as part of the line rate, before congestion control and pause."""
    marked: float = 0.0
    """Part of the received RoCE packets that carry the ECN mark (CE) of a switch."""
    notified: float = 0.0
    """How much of this port's sending is held back by congestion notifications, 0 to 1."""
    notifies: bool = True
    """Whether marks are answered with CNPs; not where the notification point is switched off."""
    pauses: tuple[Pause, ...] = ()
    """At most one of each priority and direction. A priority without PFC neither obeys nor sends pause."""
    lost: float = 0.0
    """Packets lost per second on the way here and on the way from here."""
    timeouts: float = 0.0
    """Acknowledgement timers that run out per second."""
    not_ready: float = 0.0
    """Messages per second that find no receive request posted, here and at the peer."""
    discards: float = 0.0
    """Packets of the RoCE priority per second that find no room in the port's buffer."""
    wire_errors: float = 0.0
    """Frames per second that arrive damaged: what FEC could not correct."""
    icrc_errors: float = 0.0
    """RoCE packets per second that were damaged where no Ethernet checksum sees it."""
    corrected_blocks: float = 0.0
    """FEC blocks corrected per second."""
    pcie_stall: float = 0.0
    """Part of the time for which writes to memory wait for PCIe."""
    up: bool = True
    frozen: bool = False
    """`ethtool -S` stands still although traffic flows; what was missed is told when it moves again."""
    reset: bool = False
    """The driver is loaded anew when this begins to hold: all counters begin at 0. Once, however many spans hold it."""
    lossless: tuple[int, ...] | None = None
    """Priorities with PFC."""
    priority: int | None = None
    """The priority that RoCE travels on."""
    speed: int | None = None
    """Bits per second."""

    def __post_init__(self) -> None:
        shares = (self.load, self.marked, self.notified, self.pcie_stall)
        if not all(0 <= share <= 1 for share in shares):
            raise ValueError(f"load, marked, notified and pcie_stall are parts of 1, not {shares}")
        if len({pause.where for pause in self.pauses}) < len(self.pauses):
            raise ValueError("two pauses of one priority in one direction")

    def pause(self, priority: int, direction: str) -> Pause | None:
        """The pause of this priority in this direction, or None."""
        for pause in self.pauses:
            if pause.where == (priority, direction):
                return pause
        return None


class Span(NamedTuple):
    """Conditions and for how many seconds they hold."""

    seconds: float
    conditions: Conditions = Conditions()


class Held(NamedTuple):
    """Settled conditions and from when until when they hold, on the clock of the host."""

    conditions: Conditions
    start: float
    end: float


class Storm(NamedTuple):
    """One storm that the simulated host made: the priority stood still from `start` to `end` (the host's clock)."""

    netdev: str
    priority: int
    direction: str
    """`receive` or `transmit`: of the pause frames."""
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Setup:
    """How one port is set up, rightly or wrongly."""

    lossless: tuple[int, ...] = (3,)
    """Priorities with PFC."""
    priority: int = 3
    """The priority that RoCE travels on."""
    trust_dscp: bool = True
    dscp: tuple[tuple[int, int], ...] = ((26, 3), (48, 6))
    """Which priority packets of a DSCP get."""
    faults: frozenset[str] = frozenset()
    """What is broken about the port, of `faults.FAULTS`."""
    tos: int = 106
    """The ToS byte of RoCE packets: DSCP 26 with ECT(0)."""
    roce_version: int = 2
    """The RoCE version of RDMA-CM, 1 or 2."""
    notifies: bool = True
    """Whether the notification point is on: marks are answered with CNPs."""
    reacts: bool = True
    """Whether the reaction point is on: CNPs slow the port down."""
    cnp_dscp: int = 48
    cnp_priority: int = 6
    watchdog: int = 100
    """Milliseconds of transmitted pause after which the NIC stops it."""


@lru_cache(maxsize=4096)
def settle(conditions: Conditions, setup: Setup, speed: int) -> Conditions:
    """The conditions with nothing left open and without what cannot be: pause without PFC or without a link."""
    lossless = setup.lossless if conditions.lossless is None else conditions.lossless
    return replace(
        conditions,
        lossless=lossless,
        priority=setup.priority if conditions.priority is None else conditions.priority,
        speed=speed if conditions.speed is None else conditions.speed,
        pauses=tuple(pause for pause in conditions.pauses if conditions.up and pause.priority in lossless),
    )
