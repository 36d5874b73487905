"""The netlink message layer: headers, attributes, and one request at a time. It is independent of families.

Follows include/uapi/linux/netlink.h and Documentation/userspace-api/netlink/intro.rst. All numbers are in the
host's byte order and everything is aligned to four bytes. Encoding and decoding are functions over bytes, and
`Reply` decides when a reply is complete; only `Netlink` does I/O.

Here and in the families every function `decode_...` raises `Malformed` where bytes violate the format: a length beyond the message, a
struct that is too short, a number of an unknown width, an attribute that every reply has and this one has not.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, wraps
from struct import Struct
from types import MappingProxyType
from typing import NamedTuple, ParamSpec, Protocol, TypeVar, cast

from roce_exporter.host.kernel import Absent

P = ParamSpec("P")
T = TypeVar("T")

REQUEST = 0x1
MULTIPART = 0x2
DUMP_INTERRUPTED = 0x10
DUMP = 0x300

NOOP, ERROR, DONE, OVERRUN = 1, 2, 3, 4
"""The message types of netlink itself; those of a family begin at `FIRST_OF_FAMILY`."""

FIRST_OF_FAMILY = 0x10

# No reply is this long: more datagrams belong to other requests.
MOST_DATAGRAMS = 1 << 16

DUMP_TRIES = 3  # number of attempts to read a list that changes while the kernel sends it

# The kernel sends at most 32 KiB at once; the pages beyond are never touched.
BUFFER_BYTES = 128 * 1024

# For two member ports of each of 16 ports, twice. Most replies equal the previous one.
REMEMBERED = 64

# As a plain number: with an enumeration, Python makes a new object for each `&`.
TRUNCATED = int(socket.MSG_TRUNC)

_KIND_MASK = 0x3FFF
_LARGEST_ERRNO = 4095
_SEQUENCE_LIMIT = 0xFFFFFFFF

NETLINK_ROUTE, NETLINK_GENERIC = 0, 16

CONTROL_FAMILY, GET_FAMILY, FAMILY_ID, FAMILY_NAME = 16, 3, 1, 2

FAMILY_BYTES = 2  # the number of a generic family is used as a message type, which has two bytes

_SOL_NETLINK, _STRICT_CHECK = 270, 12

_HEADER = Struct("=IHHII")
_GENERIC = Struct("=BBH")
_ATTRIBUTE = Struct("=HH")
_ERROR_CODE = Struct("=i")


class Malformed(OSError):  # noqa: N818 - it describes the reply
    """A reply that violates the message format. Its errno is EBADMSG."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EBADMSG, f"malformed netlink reply: {why}")


class Refused(OSError):  # noqa: N818 - it is a valid reply
    """The kernel replied with an error; its errno is the kernel's."""


class Message(NamedTuple):
    """One netlink message."""

    kind: int
    flags: int
    sequence: int
    port_id: int
    payload: bytes


class NetlinkSocket(Protocol):
    """The methods of a socket that are used here."""

    def send(self, data: bytes, /) -> int: ...

    def recvmsg_into(
        self, buffers: Sequence[bytearray], /
    ) -> tuple[int, list[tuple[int, int, bytes]], int, tuple[int, int]]: ...

    def getsockname(self) -> tuple[int, int]:
        """See `socket.socket.getsockname`: the port id and the groups."""

    def close(self) -> None: ...


OpenSocket = Callable[[int], NetlinkSocket]
"""Opens a socket of this netlink family."""


def remembered(decode: Callable[P, T]) -> Callable[P, T]:
    """Cache the results of a pure decoder for its last `REMEMBERED` replies: an equal reply returns the same object.

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
    """The messages of one datagram, in order."""
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
    """The kind of each attribute in a part of `data`, and the start and end of its value in `data`."""
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
    """Kind to value of the attributes in a part of `data`. As in the kernel, the last of a kind wins."""
    return {kind: data[begin:stop] for kind, begin, stop in decode_attributes(data, start, end)}


def required(values: Mapping[int, bytes], kind: int) -> bytes:
    """The value of an attribute that every reply has."""
    if kind not in values:
        raise Malformed(f"no attribute {kind}")
    return values[kind]


def decode_struct(shape: Struct, value: bytes, what: str) -> tuple[int, ...]:
    """The numbers of the struct at the begin of `value`; a newer kernel may have appended more."""
    if len(value) < shape.size:
        raise Malformed(f"a struct {what} of {len(value)} bytes instead of {shape.size}")
    return shape.unpack_from(value)


def decode_address(value: bytes) -> str:
    """The text of an IPv4 or IPv6 address."""
    if len(value) not in (4, 16):
        raise Malformed(f"an address of {len(value)} bytes")
    return socket.inet_ntop(socket.AF_INET if len(value) == 4 else socket.AF_INET6, value)  # noqa: PLR2004 - bytes of IPv4


def decode_number(value: bytes) -> int:
    """An unsigned number of 8, 16, 32 or 64 bits."""
    if len(value) not in (1, 2, 4, 8):
        raise Malformed(f"a number of {len(value)} bytes")
    return int.from_bytes(value, sys.byteorder)


def number_or_zero(values: Mapping[int, bytes], kind: int) -> int:
    """The number in an attribute; 0 without it."""
    return decode_number(values[kind]) if kind in values else 0


class Reply:
    """The kernel's reply to one request: pass datagrams to `take` until it is complete.

    Messages with another sequence number or port id belong to another request and are ignored.
    """

    def __init__(self, sequence: int, port_id: int) -> None:
        self.payloads: list[bytes] = []
        self.interrupted = False
        self._expected = (sequence, port_id)

    def take(self, datagram: bytes) -> bool:
        """Process one datagram.

        Returns:
            Whether the reply is complete.

        Raises:
            Refused: the reply is an error.
            Malformed: it violates the message format.
            OSError: ENOBUFS, the kernel lost a part.
        """
        return any(
            self._is_last(message)
            for message in decode_messages(datagram)
            if (message.sequence, message.port_id) == self._expected
        )

    def _is_last(self, message: Message) -> bool:
        self.interrupted |= bool(message.flags & DUMP_INTERRUPTED)
        if message.kind >= FIRST_OF_FAMILY:
            self.payloads.append(message.payload)
            return not message.flags & MULTIPART
        if message.kind in (ERROR, DONE):
            if (
                message.payload or message.kind == ERROR
            ):  # devlink ends a diagnosis by DONE without a code (devlink_fmsg_snd)
                _check_error_code(message.payload)
            return True
        if message.kind == OVERRUN:
            raise OSError(errno.ENOBUFS, "the kernel lost a part of a netlink reply")
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
    """A socket to the kernel with its own port id."""
    wire = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family)
    try:
        wire.bind((0, 0))
    except OSError:
        wire.close()
        raise
    # The kernel has replied when `send` returns, and produces the rest of a list while it is received
    # (netlink_unicast_kernel and netlink_dump in net/netlink/af_netlink.c). A missing datagram was lost.
    wire.setblocking(False)
    return wire


def open_strict_socket(family: int) -> NetlinkSocket:
    """The same, and the kernel filters lists as requested (NETLINK_GET_STRICT_CHK, Linux 4.20); an older one ignores it."""
    wire = open_kernel_socket(family)
    with suppress(OSError):
        cast("socket.socket", wire).setsockopt(_SOL_NETLINK, _STRICT_CHECK, 1)
    return wire


class Netlink:
    """Requests to one netlink family, one at a time. Not thread-safe.

    The first request opens the socket. After every failure except `Refused` it is closed and the next request opens
    another, so that a late reply cannot be taken for a new one.
    """

    def __init__(self, family: int, open_socket: OpenSocket = open_kernel_socket) -> None:
        self._family = family
        self._open_socket = open_socket
        self._wire: NetlinkSocket | None = None
        self._port_id = 0
        self._sequence = 0
        self._buffer = bytearray(BUFFER_BYTES)

    def request(
        self, kind: int, payload: bytes, *, dump: bool = False, most: int = sys.maxsize
    ) -> list[bytes]:
        """The kernel's reply: the payload of each message. The rest of a list with more than `most` is not read.

        The kernel works while the request is being sent. If a driver waits for its firmware, this call waits, too;
        `collect.workers` gives it up.

        Raises:
            Refused: the kernel replies with an error.
            Malformed: the reply violates the message format.
            OSError: the socket failed; ENOBUFS: the reply was lost; EAGAIN: the list kept changing while it was read.
        """
        flags = REQUEST | DUMP if dump else REQUEST
        for _ in range(DUMP_TRIES):
            answer = self._exchange(kind, flags, payload, most)
            if not answer.interrupted:
                return answer.payloads
        raise OSError(errno.EAGAIN, f"the kernel's list changed {DUMP_TRIES} times while it was read")

    def close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def __del__(self) -> None:
        # Closes the sockets of a worker thread that ends.
        self.close()

    def _exchange(self, kind: int, flags: int, payload: bytes, most: int) -> Reply:
        wire = self._wire
        if wire is None:
            wire = self._wire = self._open_socket(self._family)
            self._port_id = wire.getsockname()[0]
        # Never reset: a new socket may be given the old port id.
        self._sequence = self._sequence % _SEQUENCE_LIMIT + 1
        answer = Reply(self._sequence, self._port_id)
        try:
            wire.send(encode_message(Message(kind, flags, self._sequence, 0, payload)))
            for _ in range(MOST_DATAGRAMS):
                if answer.take(receive_datagram(wire, self._buffer)):
                    return answer
                if len(answer.payloads) > most:
                    self.close()  # the rest would be in the way of the next reply
                    return answer
        except Refused:
            raise
        except BaseException:
            self.close()
            raise
        self.close()
        raise _lost()


class GenericNetlink:
    """Requests to one family of generic netlink, by name, as `Netlink`. Refused, with ENOENT: the kernel has no such family."""

    def __init__(self, name: str, open_socket: OpenSocket = open_kernel_socket) -> None:
        self._netlink = Netlink(NETLINK_GENERIC, open_socket)
        self._name = name
        self._family = 0

    def request(self, command: int, attributes: bytes, *, dump: bool = False) -> list[bytes]:
        """The attributes of each message of the reply."""
        answers = self._netlink.request(
            self._family_id(), _GENERIC.pack(command, 1, 0) + attributes, dump=dump
        )
        if any(len(answer) < _GENERIC.size for answer in answers):
            self.close()
            raise Malformed(f"a message without the header of {self._name}")
        return [answer[_GENERIC.size :] for answer in answers]

    def close(self) -> None:
        self._netlink.close()

    def _family_id(self) -> int:
        # A family keeps the number that it gets when it registers.
        if not self._family:
            request = _GENERIC.pack(GET_FAMILY, 1, 0)
            request += encode_attribute(FAMILY_NAME, self._name.encode() + b"\0")
            answers = self._netlink.request(CONTROL_FAMILY, request)
            values = decode_values(answers[0], _GENERIC.size) if answers else {}
            number = values.get(FAMILY_ID, b"")
            if len(number) != FAMILY_BYTES:
                raise Malformed(f"no number of the {self._name} family")
            self._family = decode_number(number)
        return self._family


@contextmanager
def about(what: str, absent: Collection[int] = ()) -> Iterator[None]:
    """Add what a refused request was about; `Absent` where the kernel's number is in `absent`."""
    try:
        yield
    except Refused as error:
        raise (Absent if error.errno in absent else OSError)(error.errno, error.strerror, what) from None


def receive_datagram(wire: NetlinkSocket, buffer: bytearray) -> bytes:
    """The next datagram of the kernel; empty if another process sent it.

    Raises:
        Malformed: it is longer than the buffer.
        OSError: ENOBUFS, it was lost; any other errno is the socket's.
    """
    try:
        size, _, flags, sender = wire.recvmsg_into([buffer])
    except BlockingIOError:
        raise _lost() from None
    if sender[0] != 0:
        return b""  # not from the kernel
    if flags & TRUNCATED:
        raise Malformed(f"a datagram of more than {len(buffer)} bytes")
    return bytes(memoryview(buffer)[:size])


def only_payload(payloads: list[bytes]) -> bytes:
    """The payload of a reply of one message."""
    if len(payloads) != 1:
        raise Malformed(f"{len(payloads)} messages instead of one")
    return payloads[0]


def _lost() -> OSError:
    return OSError(errno.ENOBUFS, "the kernel lost a netlink reply")
