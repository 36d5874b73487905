"""The conditions of a simulated port: each holds for a span of time, one span after the other. And its faults."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

RECEIVE, TRANSMIT = "receive", "transmit"
"""The direction of the pause frames: received pause blocks sending, transmitted pause blocks receiving."""
PRIORITIES = range(8)
WELL, HOT, UNPLUGGED = "well", "hot", "unplugged"
"""The state of a transceiver."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Active priority flow control for one priority in one direction."""

    priority: int
    direction: str
    """`RECEIVE` or `TRANSMIT`."""
    ratio: float
    """Share of the time for which the priority is paused; 1 is a storm: no packet passes and no XON arrives."""
    episode: float = 0.002
    """Seconds from one XOFF to its XON, for a ratio below 1."""

    @property
    def storm(self) -> bool:
        """Whether no packet passes."""
        return self.ratio == 1

    @property
    def where(self) -> tuple[int, str]:
        """Priority and direction."""
        return self.priority, self.direction


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a port. The defaults are a port without problems. None: as in the port's setup."""

    load: float = 0.3
    """RoCE traffic offered in each direction, as a share of the line rate, before congestion control and pause."""
    marked: float = 0.0
    """Share of the received RoCE packets with the ECN mark (CE) of a switch."""
    notified: float = 0.0
    """How much congestion notifications reduce this port's sending rate, 0 to 1."""
    notifies: bool = True
    """Whether the port responds to marks with CNPs: the notification point is on."""
    pauses: tuple[Pause, ...] = ()
    """At most one per priority and direction. A priority without PFC neither obeys nor sends pause."""
    lost: float = 0.0
    """Packets lost per second in each direction."""
    timeouts: float = 0.0
    """Acknowledgement timeouts per second."""
    not_ready: float = 0.0
    """Messages per second without a posted receive request, here and at the peer."""
    discards: float = 0.0
    """Packets of the RoCE priority per second that are dropped because the port's buffer is full."""
    wire_errors: float = 0.0
    """Damaged frames received per second, which FEC could not correct."""
    icrc_errors: float = 0.0
    """RoCE packets per second with damage that no Ethernet checksum detects."""
    corrected_blocks: float = 0.0
    """FEC blocks corrected per second."""
    aimed: float = 0.0
    """Share of congestion and loss that hits the training job alone; the rest hits all jobs by their traffic."""
    broken: int = 0
    """Queue pairs of the training job that gave up on a dead peer and are in state ERR."""
    failing: str = ""
    """The health reporter of devlink that reports an error."""
    pcie_stall: float = 0.0
    """Share of the time for which writes to memory wait for PCIe."""
    up: bool = True
    module: str = WELL
    """The transceiver: `WELL`, `HOT` or `UNPLUGGED`. Only the kernel log reports it; the link is `up`."""
    frozen: bool = False
    """`ethtool -S` does not change although traffic flows; afterwards it catches up."""
    reset: bool = False
    """The driver is reloaded when this becomes true: all counters begin at 0. Only once for consecutive spans."""
    lossless: tuple[int, ...] | None = None
    """Priorities with PFC."""
    priority: int | None = None
    """The priority of RoCE traffic."""
    speed: int | None = None
    """Bits per second."""

    def pause(self, priority: int, direction: str) -> Pause | None:
        """The pause of this priority in this direction, or None."""
        for pause in self.pauses:
            if pause.where == (priority, direction):
                return pause
        return None


class Span(NamedTuple):
    """Conditions, and the number of seconds for which they hold."""

    seconds: float
    conditions: Conditions = Conditions()


class TimedConditions(NamedTuple):
    """Settled conditions, and when they begin and end on the clock of the host."""

    conditions: Conditions
    start: float
    end: float


class Storm(NamedTuple):
    """One storm of the simulated host: the priority was blocked from `start` to `end` (the host's clock)."""

    netdev: str
    priority: int
    direction: str
    """`receive` or `transmit`: the direction of the pause frames."""
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Setup:
    """The setup of one port, correct or not."""

    lossless: tuple[int, ...] = (3,)
    """Priorities with PFC."""
    priority: int = 3
    """The priority of RoCE traffic."""
    trust_dscp: bool = True
    dscp: tuple[tuple[int, int], ...] = ((26, 3), (48, 6))
    """Pairs of a DSCP and its priority."""
    faults: frozenset[str] = frozenset()
    """Simulated faults of the port, of `faults.FAULTS`."""
    tos: int = 106
    """The ToS byte of RoCE packets: DSCP 26 with ECT(0)."""
    roce_version: int = 2
    """The RoCE version of RDMA-CM, 1 or 2."""
    notifies: bool = True
    """Whether the notification point is on: the port responds to marks with CNPs."""
    reacts: bool = True
    """Whether the reaction point is on: CNPs slow the port down."""
    cnp_dscp: int = 48
    cnp_priority: int = 6
    watchdog: int = 100
    """Milliseconds of transmitted pause after which the NIC stops it."""


@lru_cache(maxsize=4096)
def settle(conditions: Conditions, setup: Setup, speed: int) -> Conditions:
    """The conditions without None, and without impossible pauses: those without PFC or without a link."""
    lossless = setup.lossless if conditions.lossless is None else conditions.lossless
    return replace(
        conditions,
        lossless=lossless,
        priority=setup.priority if conditions.priority is None else conditions.priority,
        speed=speed if conditions.speed is None else conditions.speed,
        pauses=tuple(pause for pause in conditions.pauses if conditions.up and pause.priority in lossless),
    )


FILES, ETHTOOL, NETLINK = "files", "ethtool", "netlink"
FAULTS = (FILES, ETHTOOL, NETLINK)
"""Files of sysfs fail or contain garbage; every ethtool request fails; RDMA netlink has no statistics."""

_FAILING = {
    "counters/port_rcv_errors": errno.EIO,
    "hw_counters/out_of_buffer": errno.EINVAL,
    "statistics/rx_dropped": errno.EIO,
}

_GARBAGE = ("carrier_changes", "counters/port_xmit_discards", "ports/1/rate")


def spoil(faults: frozenset[str], path: str, content: bytes) -> bytes:
    """The content of a file of the port, given that it should be `content`. OSError: it cannot be read."""
    if FILES not in faults:
        return content
    for ending, number in _FAILING.items():
        if path.endswith(ending):
            raise OSError(number, os.strerror(number), path)
    return b"\xff\xfe?\n" if path.endswith(_GARBAGE) else content


def refuse(faults: frozenset[str], fault: str, what: str) -> None:
    """Fail if the port has this fault. OSError: EIO."""
    if fault in faults:
        raise OSError(errno.EIO, os.strerror(errno.EIO), what)
