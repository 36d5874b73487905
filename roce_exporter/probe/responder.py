"""Answers requests at one address: a stateless reflector of RFC 8762 with the send times of earlier replies.

The sequence number of a reply is that of its request (RFC 8762 section 4.3). A reply is as long as its request and goes to its source.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from roce_exporter.probe import stamp
from roce_exporter.probe.udp import ECT0, Packet, ProbeSocket, Times

if TYPE_CHECKING:
    from collections import deque

    from roce_exporter.probe.guard import Guard
    from roce_exporter.probe.plan import Address

BATCH = 256  # requests per turn of the event loop, so that a flood does not stop the process
PENDING = 1024  # replies whose send time the kernel has not reported yet


class Responder:
    """The responder at one address and port."""

    def __init__(
        self,
        address: Address,
        port: int,
        guard: Guard,
        key: bytes = b"",
        held: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`guard` may be that of several responders; with a `key` only requests of the authenticated mode are answered.

        `held` gets the seconds from the arrival of a request until its reply left.

        Raises:
            OSError: the address is not of this host, or the port is in use.
        """
        self.socket = ProbeSocket(address, port, with_ttl=True)
        self.answered = 0
        self._own_port = self.socket.port
        self._address = str(address)
        self._guard = guard
        self._key = key
        self._held = held
        self._sends_hardware = False
        """Whether the NIC has stamped a reply: only then the time of arrival by its clock is of use."""
        self._pending: dict[int, tuple[deque[stamp.FollowUp], int, Times]] = {}
        """By number of the packet on this socket: where its send time belongs, the sequence number, and when the request arrived."""

    def work(self) -> None:
        """Answer what waits. The event loop calls it when the socket is readable, also for send times."""
        for packet in self.socket.receive(BATCH):
            self._answer(packet)
        for one in self.socket.send_times(BATCH):
            self._sends_hardware |= bool(one.times.hardware)
            if found := self._pending.pop(one.number, None):
                waiting, sequence, received = found
                time_sent, arrived, method = (
                    (one.times.hardware, received.hardware, stamp.HARDWARE_ASSIST)
                    if received.hardware
                    else (one.times.software, received.software, stamp.SOFTWARE_LOCAL)
                )
                if time_sent:
                    if arrived:
                        self._held(max(0, time_sent - arrived) / 1e9)
                    waiting.append(stamp.FollowUp(sequence, time_sent, method))
                else:
                    self._pending[one.number] = found  # the time by the other clock comes by itself

    def _answer(self, packet: Packet) -> None:
        address, port = packet.source
        guard = self._guard
        if port == self._own_port:
            guard.dropped["port"] += 1
            return
        if not guard.admit_address(address, port):
            return
        try:
            request = stamp.read_request(packet.content, self._key)
        except stamp.StampError as error:
            guard.dropped[str(error)] += 1
            return
        source = guard.admit(address)
        if source is None:
            return
        received = packet.received if self._sends_hardware else Times(packet.received.software)
        waiting = source.session(address, port, request.session, self._address)
        reply = stamp.pack_reply(
            packet.content,
            request,
            received=received.hardware or received.software or time.time_ns(),
            sent=time.time_ns(),
            ttl=packet.ttl,
            tos=packet.tos,
            follow_up=waiting.popleft() if waiting else None,
            key=self._key,
        )
        # RFC 8972 section 4.4: the reply has the DSCP that the request asks for. It is ECN-capable if the request was.
        tos = packet.tos or 0
        dscp = tos >> 2 if request.dscp is None else request.dscp
        number = self.socket.send(reply, packet.source, dscp << 2 | (ECT0 if tos & 3 else 0))
        if number is None:
            guard.dropped["send"] += 1
            return
        self.answered += 1
        if len(self._pending) >= PENDING:
            del self._pending[next(iter(self._pending))]
        self._pending[number] = waiting, request.sequence, received

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()
