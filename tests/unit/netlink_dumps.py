"""The replies of `netlink_dumps.txt` by their names, and a kernel that replays replies."""

from __future__ import annotations

import errno
import re
import struct
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from roce_exporter.host.kernel.netlink import Message, decode_messages, encode_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Replies = Iterable["bytes | Datagram | OSError"]

DUMPS = {
    name: bytes.fromhex(digits)
    for name, digits in re.findall(
        r"^(\w+):\n((?:  .+\n)+)", Path(__file__).with_suffix(".txt").read_text(), re.MULTILINE
    )
}
globals().update(DUMPS)

LITTLE_ENDIAN = pytest.mark.skipif(sys.byteorder != "little", reason="the dumps are of such a machine")


def payloads(datagram: bytes) -> list[bytes]:
    """The payloads of the messages of a dump, without netlink's own messages."""
    return [message.payload for message in decode_messages(datagram) if message.kind >= 0x10]


def refusal(code: int, kind: int = 2) -> bytes:
    """An error with this errno, or the end of a list (3)."""
    return encode_message(Message(kind, 0, 0, 0, struct.pack("=i", -code)))


class Datagram(NamedTuple):
    """A datagram to receive. Unless it is stamped already, its messages become replies to the request."""

    data: bytes
    sender: int = 0
    flags: int = 0
    stamped: bool = False


class FakeKernel:
    """Opens sockets, and answers each request with the result of `answer`. Without a reply the socket times out."""

    def __init__(self, answer: Callable[[Message], Replies], port_id: int = 4711) -> None:
        self.answer = answer
        self.port_id = port_id
        self.sockets: list[FakeSocket] = []
        self.asked: list[Message] = []

    def __call__(self, family: int) -> FakeSocket:
        self.sockets.append(FakeSocket(self, family))
        return self.sockets[-1]


class FakeSocket:
    """A socket to a `FakeKernel`."""

    def __init__(self, kernel: FakeKernel, family: int) -> None:
        self.kernel = kernel
        self.family = family
        self.closed = False
        self._replies: deque[bytes | Datagram | OSError] = deque()

    @property
    def unread(self) -> int:
        """Replies that no call has received."""
        return len(self._replies)

    def send(self, data: bytes, /) -> int:
        (request,) = decode_messages(data)
        self.kernel.asked.append(request)
        for reply in self.kernel.answer(request):
            self._replies.append(stamp(reply, request.sequence, self.kernel.port_id))
        return len(data)

    def recvmsg_into(self, buffers: Sequence[bytearray], /) -> tuple[int, list[object], int, tuple[int, int]]:
        reply = self._replies.popleft() if self._replies else BlockingIOError(errno.EAGAIN, "nothing there")
        if isinstance(reply, OSError):
            raise reply
        datagram = reply if isinstance(reply, Datagram) else Datagram(reply)
        size = min(len(datagram.data), len(buffers[0]))
        buffers[0][:size] = datagram.data[:size]
        return size, [], datagram.flags, (datagram.sender, 0)

    def getsockname(self) -> tuple[int, int]:
        return (self.kernel.port_id, 0)

    def close(self) -> None:
        self.closed = True


def stamp(reply: bytes | Datagram | OSError, sequence: int, port_id: int) -> bytes | Datagram | OSError:
    """The reply with sequence number and port id of its messages replaced, as far as it has any."""
    if isinstance(reply, OSError) or (isinstance(reply, Datagram) and reply.stamped):
        return reply
    datagram = reply if isinstance(reply, Datagram) else Datagram(reply)
    data, start = bytearray(datagram.data), 0
    while start + 16 <= len(data):
        struct.pack_into("=II", data, start + 8, sequence, port_id)
        start += max(struct.unpack_from("=I", data, start)[0] + 3 & ~3, 16)
    return datagram._replace(data=bytes(data))
