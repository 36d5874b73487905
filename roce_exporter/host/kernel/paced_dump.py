"""One list of the kernel, read at the pace of the caller.

The kernel produces a part of a list while the part before is received (netlink_recvmsg and netlink_dump in
net/netlink/af_netlink.c), so a caller that waits between parts decides how fast a driver is queried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel.netlink import (
    DUMP,
    REQUEST,
    Message,
    NetlinkSocket,
    Reply,
    encode_message,
    open_kernel_socket,
    receive_datagram,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ONLY_SEQUENCE = 1
"""The sequence number on a socket that is used for one request."""


class PacedDump:
    """A list, one datagram per `next_part`, on a socket of its own. Not thread-safe.

    The flag of a list that changed meanwhile is ignored. The socket is closed at the end of the list, after any error,
    and by `close`.
    """

    def __init__(
        self,
        family: int,
        kind: int,
        payload: bytes,
        size: int,
        open_socket: Callable[[int], NetlinkSocket] = open_kernel_socket,
    ) -> None:
        """Send the request. `size` is the most bytes of a part: the kernel fills a buffer of that size, up to 32 KiB.

        Raises:
            OSError: the socket failed.
        """
        self._wire: NetlinkSocket | None = None
        self._buffer = bytearray(size)
        wire = self._wire = open_socket(family)
        try:
            self._answer = Reply(ONLY_SEQUENCE, wire.getsockname()[0])
            wire.send(encode_message(Message(kind, REQUEST | DUMP, ONLY_SEQUENCE, 0, payload)))
        except BaseException:
            self.close()
            raise

    def next_part(self) -> list[bytes] | None:
        """The payloads of the next datagram, none if another process sent it. None at the end of the list.

        Raises:
            Refused: the kernel replies with an error.
            Malformed: the reply violates the message format.
            OSError: the socket failed; ENOBUFS: a part was lost.
        """
        wire = self._wire
        if wire is None:
            return None
        try:
            ended = self._answer.take(receive_datagram(wire, self._buffer))
        except BaseException:
            self.close()
            raise
        payloads, self._answer.payloads = self._answer.payloads, []
        if ended:
            self.close()
        return payloads if payloads or not ended else None

    def close(self) -> None:
        """Give up the rest of the list. May be called again."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def __del__(self) -> None:
        # A list that is dropped before its end must not keep its socket.
        self.close()
