"""A UDP socket whose kernel reports when each packet left and arrived, and with which TOS octet.

`SO_TIMESTAMPING` (Documentation/networking/timestamping.rst): the time of arrival comes with the packet, the time of sending over the
socket's error queue, named by the number of the packet on this socket (`OPT_ID`). No privilege is needed. Hardware times are used where
somebody else has switched them on (ptp4l, for example); this module changes no NIC.

The send time is taken by the driver, after the queueing discipline of the own host, so a full queue of the own host is not counted as
the network.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.probe.stamp import LARGEST

if TYPE_CHECKING:
    from roce_exporter.probe.plan import Address

# include/uapi/linux/net_tstamp.h and asm-generic/socket.h; Python 3.11 has no names for them.
SO_TIMESTAMPING = 37
SO_RXQ_OVFL = 40
TX_HARDWARE, TX_SOFTWARE, RX_HARDWARE, RX_SOFTWARE, SOFTWARE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4
RAW_HARDWARE, OPT_ID, OPT_TSONLY, OPT_TX_SWHW = 1 << 6, 1 << 7, 1 << 11, 1 << 14
SOURCES = TX_SOFTWARE | TX_HARDWARE | RX_SOFTWARE | RX_HARDWARE | SOFTWARE | RAW_HARDWARE
WANTED = SOURCES | OPT_ID | OPT_TSONLY | OPT_TX_SWHW
"""With TX_SWHW a NIC that stamps what it sends does not hide the kernel's time: it may stamp only PTP of what arrives, as for ptp4l."""
IP_RECVTTL, IP_RECVTOS, IP_RECVERR = 12, 13, 11
IPV6_RECVHOPLIMIT, IPV6_HOPLIMIT, IPV6_RECVERR, IPV6_RECVTCLASS, IPV6_TCLASS = 51, 52, 25, 66, 67

TIMES = struct.Struct("@qqqqqq")
"""`struct scm_timestamping`: software, unused, raw hardware; each seconds and nanoseconds."""
ERROR = struct.Struct("@IBBBBII")
"""`struct sock_extended_err`: errno, origin, type, code, padding, info, data."""
TIMESTAMP_ORIGIN = 4
"""`SO_EE_ORIGIN_TIMESTAMPING`: the entry is a send time; `data` is the number of the packet."""
INT = struct.Struct("@i")
UINT = struct.Struct("@I")
ECT0, CE = 2, 3
"""ECN in the TOS octet: capable, and marked."""
CONTROL_BYTES = 512
QUEUE_BYTES = 1 << 18
"""Asked of the kernel for the receive queue; it may give less (net.core.rmem_max)."""


class Times(NamedTuple):
    """When a packet passed, in nanoseconds of two clocks; 0: not reported."""

    software: int = 0
    """By the kernel's clock."""
    hardware: int = 0
    """By the clock of the NIC."""


UNKNOWN = Times()


class Packet(NamedTuple):
    """One packet that arrived."""

    content: bytes
    source: tuple[str, int]
    received: Times
    ttl: int
    tos: int | None


class Sent(NamedTuple):
    """When a packet left. One packet may be reported twice, by each clock."""

    number: int
    """Of the packet on its socket, from 0 on."""
    times: Times


class ProbeSocket:
    """One bound, non-blocking UDP socket. Only one task uses it."""

    def __init__(self, address: Address, port: int = 0, *, with_ttl: bool = False) -> None:
        """Bind to this address; port 0 is one that the kernel chooses. `with_ttl`: what arrives is reported with its TTL.

        Raises:
            OSError: the address is not of this host, or the port is in use.
        """
        self.is_ipv4 = isinstance(address, ipaddress.IPv4Address)
        self._tos_option = (
            (socket.IPPROTO_IP, socket.IP_TOS) if self.is_ipv4 else (socket.IPPROTO_IPV6, IPV6_TCLASS)
        )
        self._tos = 0
        self.dropped = 0
        """Packets that arrived while the receive queue was full, as the kernel has reported them so far."""
        self.sent = 0
        """Packets sent, which is the number of the next one."""
        self._socket = socket.socket(
            socket.AF_INET if self.is_ipv4 else socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        )
        try:
            self._prepare(with_ttl=with_ttl)
            self._socket.bind((str(address), port))
            self.port = int(self._socket.getsockname()[1])
            """The port that it is bound to."""
        except BaseException:
            self._socket.close()
            raise

    def _prepare(self, *, with_ttl: bool) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, QUEUE_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, WANTED)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
        if self.is_ipv4:
            for option in (IP_RECVTTL, IP_RECVTOS) if with_ttl else (IP_RECVTOS,):
                self._socket.setsockopt(socket.IPPROTO_IP, option, 1)
        else:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            for option in (IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS) if with_ttl else (IPV6_RECVTCLASS,):
                self._socket.setsockopt(socket.IPPROTO_IPV6, option, 1)

    def fileno(self) -> int:
        """The descriptor, for the event loop."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, content: bytes, to: tuple[str, int], tos: int) -> int | None:
        """Send one packet; returns its number on this socket, or None if the kernel refused it (no route, a full queue)."""
        try:
            if tos != self._tos:
                self._socket.setsockopt(*self._tos_option, tos)
                self._tos = tos
            self._socket.sendto(content, to)
        except OSError:
            return None
        self.sent += 1
        return self.sent - 1

    def receive(self, most: int) -> Iterator[Packet]:
        """The packets that wait, at most so many; none if none waits."""
        for _ in range(most):
            try:
                content, control, _, source = self._socket.recvmsg(LARGEST + 1, CONTROL_BYTES)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error of an earlier packet; the next call returns packets again
            times, ttl, tos = UNKNOWN, 0, None
            for level, kind, data in control:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING:
                    times = _times(data)
                elif level == socket.SOL_SOCKET and kind == SO_RXQ_OVFL:
                    self.dropped = UINT.unpack(data)[0]
                elif kind in (socket.IP_TTL, IPV6_HOPLIMIT) and level != socket.SOL_SOCKET:
                    (ttl,) = INT.unpack(data)
                elif level == socket.IPPROTO_IP and kind == socket.IP_TOS:
                    tos = data[0]
                elif level == socket.IPPROTO_IPV6 and kind == IPV6_TCLASS:
                    (tos,) = INT.unpack(data)
            yield Packet(content, source[:2], times, ttl, tos)

    def send_times(self, most: int) -> Iterator[Sent]:
        """The send times that have become known since the last call, at most so many."""
        for _ in range(most):
            try:
                _, control, _, _ = self._socket.recvmsg(0, CONTROL_BYTES, socket.MSG_ERRQUEUE)
            except OSError:
                return
            times, number = UNKNOWN, None
            for level, kind, data in control:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING:
                    times = _times(data)
                elif kind in (IP_RECVERR, IPV6_RECVERR) and len(data) >= ERROR.size:
                    _, origin, _, _, _, _, value = ERROR.unpack_from(data)
                    number = value if origin == TIMESTAMP_ORIGIN else None
            if times != UNKNOWN and number is not None:
                yield Sent(number, times)


def _times(data: bytes) -> Times:
    seconds, rest, _, _, hardware_seconds, hardware_rest = TIMES.unpack_from(data)
    return Times(seconds * 1_000_000_000 + rest, hardware_seconds * 1_000_000_000 + hardware_rest)
