"""Sends bursts and decides about each probe: answered, late, or lost.

A burst costs one wake-up, not one per packet: replies wait in the kernel, which has stamped them, until `collect` reads them. The
network's part of a round trip is what the two kernels measured, less the time that the responder held the packet:

    (arrival of the reply - sending of the request) - (sending of the reply - arrival of the request)

Each bracket is a difference of one clock. The sending of a reply is known from the follow-up of a later one, so that a probe is measured
one burst after it was answered. A reply that takes longer than `LATE` is late: a busy host, not the network. Only a probe that has no
reply after `LOST` is lost.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.probe.plan import Address, Probe
from roce_exporter.probe.stamp import FollowUp, StampError, StampRequest, pack_request, read_reply
from roce_exporter.probe.udp import ECT0, UNKNOWN, Packet, ProbeSocket, Times

if TYPE_CHECKING:
    from roce_exporter.probe.outcomes import PortTally

LATE = 2.0  # seconds after which a reply is late
LOST = 4.0  # seconds after which a probe without a reply is lost
REMEMBERED = 256  # answered probes of one socket whose reply's send time is not known yet
BATCH = 4096


class TrafficClass(NamedTuple):
    """What a probe looks like on the wire."""

    name: str
    """`roce`, `cnp` or `default`."""
    dscp: int
    is_ecn_capable: bool

    @property
    def tos(self) -> int:
        """The TOS or traffic class octet."""
        return self.dscp << 2 | (ECT0 if self.is_ecn_capable else 0)


@dataclass(slots=True)
class _Pending:
    """A probe that waits for its reply, or (with `received`) for the send time of that reply."""

    probe: Probe
    kind: TrafficClass
    to: tuple[str, int]
    begun: float
    """Monotonic seconds."""
    left: Times = UNKNOWN
    """When it was sent."""
    arrived: int = 0
    """When the responder received it, by the responder's clock."""
    took: int = 0
    """Nanoseconds from sending it to receiving its reply, by one clock."""


class Path:
    """One source port of one own address. The sequence number is that of the packet on its socket, so a reply and a send time name their probe."""

    def __init__(self, address: Address, session: int, key: bytes = b"") -> None:
        """Open its socket, on a port that the kernel chooses.

        Raises:
            OSError: the address is not of this host.
        """
        self.socket = ProbeSocket(address)
        self.session = session
        self._key = key
        self._waiting: OrderedDict[int, _Pending] = OrderedDict()
        self._answered: OrderedDict[int, _Pending] = OrderedDict()
        self._overflow = 0

    def send(
        self, probe: Probe, kind: TrafficClass, to: tuple[str, int], now: float, outcomes: PortTally
    ) -> None:
        """Send one probe to the target's address as text; `now` in monotonic seconds."""
        probe = Probe(probe.target, self.socket.port, probe.scope)
        request = StampRequest(self.socket.sent, time.time_ns(), self.session, kind.dscp)
        packet = pack_request(request, self._key)
        number = self.socket.send(packet, to, kind.tos)
        if number is None:
            outcomes.refused()
            return
        outcomes.sent(probe, kind)
        self._waiting[number] = _Pending(probe, kind, to, now)

    def collect(self, now: float, outcomes: PortTally) -> None:
        """Read what the kernel has: send times first, then replies; then decide about probes that have waited too long."""
        for one in self.socket.send_times(2 * len(self._waiting)):
            pending = self._waiting.get(one.number)
            if pending is not None:
                # each clock reports by itself
                old, new = pending.left, one.times
                pending.left = Times(new.software or old.software, new.hardware or old.hardware)
        for packet in self.socket.receive(BATCH):
            self._reply(packet, now, outcomes)
        if self.socket.dropped > self._overflow:
            outcomes.dropped("queue", self.socket.dropped - self._overflow)
            self._overflow = self.socket.dropped
        for sequence, pending in list(self._waiting.items()):
            if now - pending.begun < LOST:
                break
            del self._waiting[sequence]
            outcomes.lost(pending.probe, pending.kind)

    def _reply(self, packet: Packet, now: float, outcomes: PortTally) -> None:
        try:
            reply = read_reply(packet.content, self._key)
        except StampError as error:
            outcomes.dropped(str(error), 1)
            return
        pending = self._waiting.get(reply.sequence)
        if (
            pending is None
            or reply.session not in (0, self.session)
            or (packet.source[0].partition("%")[0], packet.source[1]) != pending.to
        ):
            outcomes.dropped("unknown", 1)
            return
        del self._waiting[reply.sequence]
        if reply.follow_up:
            self._measure(reply.follow_up, pending, outcomes)
        pending.took = _elapsed(pending.left, packet.received)
        if (pending.took / 1e9 if pending.took else now - pending.begun) > LATE:
            outcomes.late(pending.probe)
        else:
            outcomes.answered(pending.probe, pending.kind, reply.tos, packet.tos)
        if pending.took:
            pending.arrived = reply.received
            self._answered[reply.sequence] = pending
            if len(self._answered) > REMEMBERED:
                self._answered.popitem(last=False)

    def _measure(self, follow_up: FollowUp, of: _Pending, outcomes: PortTally) -> None:
        """The follow-up of a reply completes an earlier probe of the same session: one to the same responder."""
        earlier = self._answered.get(follow_up.sequence)
        if earlier is None or earlier.probe.target != of.probe.target:
            return
        del self._answered[follow_up.sequence]
        responder = (follow_up.sent - earlier.arrived) / 1e9
        network = earlier.took / 1e9 - responder
        if responder >= 0 and network >= 0:  # else a clock was set between the two times
            outcomes.measured(earlier.probe, network, responder)

    def close(self) -> None:
        """Close the socket; probes without a reply are forgotten."""
        self.socket.close()


def _elapsed(left: Times, received: Times) -> int:
    """Nanoseconds between two times of one clock, of the NIC's if it has both; 0 if no clock has both."""
    if left.hardware and received.hardware:
        return received.hardware - left.hardware
    return received.software - left.software if left.software and received.software else 0


class Sender:
    """The paths of one own port."""

    def __init__(self, address: Address, session: int, clock: Callable[[], float], key: bytes = b"") -> None:
        """`clock` returns monotonic seconds. Sockets are opened as probes need them."""
        self.address = address
        self._session = session
        self._clock = clock
        self._key = key
        self._paths: dict[int, Path] = {}

    def send(self, probes: Iterable[tuple[Probe, TrafficClass]], outcomes: PortTally) -> None:
        """Send a burst.

        Raises:
            OSError: the address is not of this host any more, or no socket can be opened.
        """
        target, to = None, ("", 0)
        for probe, kind in probes:
            if probe.target is not target:
                target, to = probe.target, (str(probe.target.address), probe.target.port)
            path = self._paths.get(probe.path)
            if path is None:
                path = self._paths[probe.path] = Path(self.address, self._session, self._key)
            path.send(probe, kind, to, self._clock(), outcomes)

    def collect(self, outcomes: PortTally) -> None:
        """Read replies and send times of all paths."""
        for path in self._paths.values():
            path.collect(self._clock(), outcomes)

    def close(self) -> None:
        """Close all sockets; probes without a reply are forgotten, and the next burst opens others."""
        for path in self._paths.values():
            path.close()
        self._paths.clear()
