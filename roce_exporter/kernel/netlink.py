"""The netlink message layer: headers, attributes, and one question at a time. It knows no family's commands.

Follows include/uapi/linux/netlink.h and Documentation/userspace-api/netlink/intro.rst. All numbers are in the
host's byte order and everything is aligned to four bytes. Encoding and decoding are functions over bytes, and
`Reply` decides when an answer is whole; only `Netlink` does I/O.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from functools import lru_cache, wraps
from struct import Struct
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

P = ParamSpec("P")
T = TypeVar("T")

REQUEST = 0x1
MULTIPART = 0x2
DUMP_INTERRUPTED = 0x10
DUMP = 0x300

NOOP, ERROR, DONE, OVERRUN = 1, 2, 3, 4
"""The message types of netlink itself; a family's own begin at `FIRST_OF_FAMILY`."""

FIRST_OF_FAMILY = 0x10

MOST_DATAGRAMS = 1 << 16
"""An answer is never as long: more is talk that is not for us."""

DUMP_TRIES = 3
"""How often a list is asked for when it changes while the kernel tells it."""

BUFFER_BYTES = 128 * 1024
"""The kernel sends at most 32 KiB in one piece; the pages beyond are never touched."""

REMEMBERED = 64
"""Of two legs on each of 16 ports, twice. Most drivers say of most things what they said the last time."""

TRUNCATED = int(socket.MSG_TRUNC)
"""As a plain number: with an enumeration Python makes a new one for each `&`."""

_KIND_MASK = 0x3FFF
_LARGEST_ERRNO = 4095
_SEQUENCE_LIMIT = 0xFFFFFFFF

_HEADER = Struct("=IHHII")
_ATTRIBUTE = Struct("=HH")
_ERROR_CODE = Struct("=i")


class Malformed(OSError):  # noqa: N818 - it says what the answer is
    """An answer that breaks the message format. Its errno is EBADMSG."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EBADMSG, f"malformed netlink answer: {why}")


class Refused(OSError):  # noqa: N818 - it is an answer
    """The kernel's answer is an error; its errno is the kernel's."""


class Message(NamedTuple):
    """One netlink message."""

    kind: int
    flags: int
    sequence: int
    port_id: int
    payload: bytes


class NetlinkSocket(Protocol):
    """As much of a socket as is used here."""

    def send(self, data: bytes, /) -> int:
        """See `socket.socket.send`."""

    def recvmsg_into(
        self, buffers: Sequence[bytearray], /
    ) -> tuple[int, list[tuple[int, int, bytes]], int, tuple[int, int]]:
        """See `socket.socket.recvmsg_into`."""

    def getsockname(self) -> tuple[int, int]:
        """See `socket.socket.getsockname`: the port id and the groups."""

    def close(self) -> None:
        """See `socket.socket.close`."""


def remembered(decode: Callable[P, T]) -> Callable[P, T]:
    """A pure decoder that keeps what its last `REMEMBERED` answers mean: the same answer is the same object.

    All threads share that object, so it is immutable; see `model` for the rule. A dictionary is returned read-only.
    """

    def decode_frozen(*args: P.args, **kwargs: P.kwargs) -> T:
        found = decode(*args, **kwargs)
        return cast("T", MappingProxyType(found)) if isinstance(found, dict) else found

    return cast("Callable[P, T]", lru_cache(maxsize=REMEMBERED)(wraps(decode)(decode_frozen)))


def encode_attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def encode_u32(kind: int, value: int) -> bytes:
    """One attribute that holds a 32-bit number."""
    return encode_attribute(kind, value.to_bytes(4, sys.byteorder))


def encode_message(message: Message) -> bytes:
    """One message with its header."""
    length = _HEADER.size + len(message.payload)
    return _HEADER.pack(length, *message[:4]) + message.payload


def decode_messages(datagram: bytes) -> Iterator[Message]:
    """The messages of one datagram, in order.

    Raises:
        Malformed: a length that leaves the datagram or is shorter than a header.
    """
    start = 0
    while start < len(datagram):
        left = len(datagram) - start
        if left < _HEADER.size:
            raise Malformed(f"{left} bytes where a header of {_HEADER.size} should be")
        length, kind, flags, sequence, port_id = _HEADER.unpack_from(datagram, start)
        if not _HEADER.size <= length <= left:
            raise Malformed(f"a message of {length} bytes with {left} left")
        yield Message(kind, flags, sequence, port_id, datagram[start + _HEADER.size : start + length])
        start += (length + 3) & ~3


def decode_attributes(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Of each attribute in a part of `data`: its kind, and where its value starts and ends in `data`.

    Raises:
        Malformed: a length that leaves the part or is shorter than an attribute's header.
    """
    stop = len(data) if end is None else end
    while start < stop:
        left = stop - start
        if left < _ATTRIBUTE.size:
            raise Malformed(f"{left} bytes where an attribute should be")
        length, kind = _ATTRIBUTE.unpack_from(data, start)
        if not _ATTRIBUTE.size <= length <= left:
            raise Malformed(f"attribute {kind & _KIND_MASK} of {length} bytes with {left} left")
        yield kind & _KIND_MASK, start + _ATTRIBUTE.size, start + length
        start += (length + 3) & ~3


def decode_values(data: bytes, start: int = 0, end: int | None = None) -> dict[int, bytes]:
    """Kind to value of the attributes in a part of `data`. As in the kernel, the last of a kind counts."""
    return {kind: data[begin:stop] for kind, begin, stop in decode_attributes(data, start, end)}


def decode_number(value: bytes) -> int:
    """An unsigned number of 8, 16, 32 or 64 bits.

    Raises:
        Malformed: it has another width.
    """
    if len(value) not in (1, 2, 4, 8):
        raise Malformed(f"a number of {len(value)} bytes")
    return int.from_bytes(value, sys.byteorder)


class Reply:
    """What the kernel said to one request: give it datagrams until it is whole.

    Messages with another sequence number or port id belong to another request and are passed over.
    """

    def __init__(self, sequence: int, port_id: int) -> None:
        self.payloads: list[bytes] = []
        self.interrupted = False
        self._asked = (sequence, port_id)

    def take(self, datagram: bytes) -> bool:
        """Take one datagram in.

        Returns:
            Whether the answer is whole now.

        Raises:
            Refused: the answer is an error.
            Malformed: it breaks the message format.
            OSError: ENOBUFS, the kernel lost a part.
        """
        return any(self._is_last(message) for message in decode_messages(datagram) if self._is_mine(message))

    def _is_mine(self, message: Message) -> bool:
        return (message.sequence, message.port_id) == self._asked

    def _is_last(self, message: Message) -> bool:
        self.interrupted |= bool(message.flags & DUMP_INTERRUPTED)
        if message.kind >= FIRST_OF_FAMILY:
            self.payloads.append(message.payload)
            return not message.flags & MULTIPART
        if message.kind in (ERROR, DONE):
            _check_error_code(message.payload)
            return True
        if message.kind == OVERRUN:
            raise OSError(errno.ENOBUFS, "the kernel lost a part of a netlink answer")
        if message.kind != NOOP:
            raise Malformed(f"message type {message.kind}")
        return False


def _check_error_code(payload: bytes) -> None:
    if len(payload) < _ERROR_CODE.size:
        raise Malformed(f"an error code of {len(payload)} bytes")
    code = -_ERROR_CODE.unpack_from(payload)[0]
    if not 0 <= code <= _LARGEST_ERRNO:
        raise Malformed(f"error code {-code}")
    if code:
        raise Refused(code, os.strerror(code))


def open_kernel_socket(family: int) -> NetlinkSocket:
    """A socket to the kernel, with a port id of its own."""
    wire = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family)
    try:
        wire.bind((0, 0))
    except OSError:
        wire.close()
        raise
    # The kernel has answered when `send` returns, and makes the rest of a list while it is received
    # (netlink_unicast_kernel and netlink_dump in net/netlink/af_netlink.c): what is not there then was lost.
    wire.setblocking(False)
    return wire


class Netlink:
    """Questions to one netlink family, one at a time. Not to be shared between threads.

    The socket is opened by the first question. After every failure but a refusal it is closed and the next
    question opens another, so that a late answer can never be taken for a new one.
    """

    def __init__(self, family: int, open_socket: Callable[[int], NetlinkSocket] = open_kernel_socket) -> None:
        self._family = family
        self._open_socket = open_socket
        self._wire: NetlinkSocket | None = None
        self._port_id = 0
        self._sequence = 0
        self._buffer = bytearray(BUFFER_BYTES)

    def request(self, kind: int, payload: bytes, *, dump: bool = False) -> list[bytes]:
        """What the kernel answers: the payload of each message.

        The kernel works while the request is being sent. Where a driver waits for its firmware, so does this call: see
        `collect.workers` for who gives it up.

        Raises:
            Refused: the kernel answers with an error.
            Malformed: the answer breaks the message format.
            OSError: the socket failed; ENOBUFS: the answer was lost; EAGAIN: the list kept changing while it was read.
        """
        flags = REQUEST | DUMP if dump else REQUEST
        for _ in range(DUMP_TRIES):
            answer = self._exchange(kind, flags, payload)
            if not answer.interrupted:
                return answer.payloads
        raise OSError(errno.EAGAIN, f"the kernel's list changed {DUMP_TRIES} times while it was read")

    def close(self) -> None:
        """Close the socket. The next question opens another."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def __del__(self) -> None:
        # A worker thread that ends takes its sockets along.
        self.close()

    def _exchange(self, kind: int, flags: int, payload: bytes) -> Reply:
        wire = self._wire or self._open()
        # Never begun anew, not even with a new socket: it may get the port id of the old one.
        self._sequence = self._sequence % _SEQUENCE_LIMIT + 1
        answer = Reply(self._sequence, self._port_id)
        try:
            wire.send(encode_message(Message(kind, flags, self._sequence, 0, payload)))
            self._listen(wire, answer)
        except Refused:
            raise
        except BaseException:
            self.close()
            raise
        return answer

    def _open(self) -> NetlinkSocket:
        wire = self._wire = self._open_socket(self._family)
        self._port_id = wire.getsockname()[0]
        return wire

    def _listen(self, wire: NetlinkSocket, answer: Reply) -> None:
        for _ in range(MOST_DATAGRAMS):
            if answer.take(self._receive(wire)):
                return
        raise _lost()

    def _receive(self, wire: NetlinkSocket) -> bytes:
        try:
            size, _, flags, sender = wire.recvmsg_into([self._buffer])
        except BlockingIOError:
            raise _lost() from None
        if sender[0] != 0:
            return b""  # not from the kernel
        if flags & TRUNCATED:
            raise Malformed(f"a datagram of more than {BUFFER_BYTES} bytes")
        return bytes(memoryview(self._buffer)[:size])


def _lost() -> OSError:
    return OSError(errno.ENOBUFS, "the kernel lost a netlink answer")
