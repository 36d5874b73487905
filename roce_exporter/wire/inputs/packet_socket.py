"""Frames of a network device: a packet socket with a TPACKET_V3 ring (Documentation/networking/packet_mmap.rst of Linux).

The kernel fills blocks of memory that it shares with us; a block is one batch. Nothing is ever sent. Needs CAP_NET_RAW.
A filter (classic BPF, Documentation/networking/filter.rst) has RoCE, tunnels, MPLS, sFlow, MAC control and LLDP copied and no other frame.
Where the NIC removes the outer VLAN tag, the filter sees the frame without it.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import select
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from roce_exporter.wire.decode import locate
from roce_exporter.wire.frames import NO_TAG, Frames, InputError, window

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOL_PACKET = 263
ADD_MEMBERSHIP, RX_RING, STATISTICS, VERSION, IGNORE_OUTGOING = 1, 5, 6, 10, 23
LOOPBACK = "lo"
SO_ATTACH_FILTER = 26
TPACKET_V3 = 2
PROMISCUOUS = 1
EVERY_PROTOCOL = 3  # ETH_P_ALL

BLOCK_BYTES = 1 << 22
BLOCKS = 16
FRAME_BYTES = 1 << 11
"""The kernel requires a size that divides a block; frames of any length are stored."""
RETIRE_MILLISECONDS = 100  # a block that is not full is handed over after this time

KERNEL, USER = 0, 1  # who may use a block
STATUS_AT = 8
BLOCK_HEAD = struct.Struct("=III")
"""Status, number of frames, offset of the first, from STATUS_AT on."""
FRAME_HEAD = 40
"""Bytes of struct tpacket3_hdr that are used: next, seconds, nanoseconds, captured, length, status, offsets, hash, TCI."""
TAG_VALID = 0x10
NEXT = struct.Struct("=I")


class PacketSocket:
    """The frames that a network device receives and sends."""

    def __init__(self, interface: str, *, blocks: int = BLOCKS, block_bytes: int = BLOCK_BYTES) -> None:
        """Open the device in promiscuous mode; the kernel ends that mode when the socket is closed.

        Raises:
            InputError: the device does not exist, or the privilege is missing.
        """
        self._interface = interface
        self._block_bytes = block_bytes
        self._blocks = blocks
        self._next = 0
        self._held = False
        self._received = self._dropped = self._returned = 0
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        except PermissionError:
            raise InputError(
                f"{interface}: capturing needs CAP_NET_RAW; run as root, or `setcap cap_net_raw+ep` the interpreter"
            ) from None
        try:
            self._ring = self._set_up(interface)
        except OSError as error:
            self._socket.close()
            raise InputError(f"{interface}: {_remedy(error)}") from None
        self._data: NDArray[np.uint8] = np.frombuffer(self._ring, np.uint8)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN | select.POLLERR)

    def _set_up(self, interface: str) -> mmap.mmap:
        opened = self._socket
        opened.setsockopt(SOL_PACKET, VERSION, TPACKET_V3)
        _attach(opened, socket_filter())
        size = self._block_bytes * self._blocks
        request = (self._block_bytes, self._blocks, FRAME_BYTES, size // FRAME_BYTES, RETIRE_MILLISECONDS)
        opened.setsockopt(SOL_PACKET, RX_RING, struct.pack("=5I8x", *request))
        ring = mmap.mmap(opened.fileno(), size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        index = socket.if_nametoindex(interface)
        if interface == LOOPBACK:  # what it sends it also receives
            opened.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
        opened.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, struct.pack("=iHH8s", index, PROMISCUOUS, 0, b""))
        opened.bind((interface, EVERY_PROTOCOL))
        return ring

    def read(self, seconds: float) -> Frames | None:
        """The next block of frames; None after `seconds` without one. The kernel gets the last block back.

        Raises:
            InputError: the device was removed or is down.
        """
        if self._held:
            self._held = False
            NEXT.pack_into(self._ring, self._next * self._block_bytes + STATUS_AT, KERNEL)
            self._next = (self._next + 1) % self._blocks
        start = self._next * self._block_bytes
        if not self._ready(start):
            for _, events in self._poll.poll(seconds * 1000):
                if events & (select.POLLERR | select.POLLHUP):
                    code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    error = OSError(code, errno.errorcode.get(code, "error"))
                    raise InputError(f"{self._interface}: {_remedy(error)}")
            if not self._ready(start):
                return None
        self._held = True
        _, count, first = BLOCK_HEAD.unpack_from(self._ring, start + STATUS_AT)
        self._returned += count
        return self._frames(start + first, count)

    def _ready(self, start: int) -> bool:
        return bool(BLOCK_HEAD.unpack_from(self._ring, start + STATUS_AT)[0] & USER)

    def _frames(self, position: int, count: int) -> Frames:
        places = []
        for _ in range(count):
            places.append(position)
            position += NEXT.unpack_from(self._ring, position)[0]
        heads = np.array(places, np.int64)
        rows = window(self._data, heads, FRAME_HEAD)
        words = rows.view("=u4").astype(np.int64)
        offsets = rows.view("=u2")[:, 12].astype(np.int64)
        return Frames(
            data=self._data,
            starts=heads + offsets,
            captured=words[:, 3],
            lengths=words[:, 4],
            times=words[:, 1] * 1_000_000_000 + words[:, 2],
            tags=np.where(words[:, 5] & TAG_VALID, words[:, 8] & 0xFFFF, NO_TAG),
        )

    def drops(self) -> tuple[int, int]:
        """Frames received, with those dropped, and frames dropped because the ring was full, since opening."""
        received, dropped, _ = struct.unpack("=3I", self._socket.getsockopt(SOL_PACKET, STATISTICS, 12))
        self._received += received
        self._dropped += dropped
        return self._received, self._dropped

    def end(self) -> None:
        """Receive no more frames; those in the ring can still be read."""
        _attach(self._socket, NO_FRAME)

    def left(self) -> int:
        """Frames in the ring that `read` has not returned yet."""
        received, dropped = self.drops()
        return received - dropped - self._returned

    def close(self) -> None:
        """Release the device. Frames that were returned must not be used any more."""
        self._socket.close()
        self._data = np.zeros(0, np.uint8)


def _attach(opened: socket.socket, program: Program) -> None:
    packed = b"".join(struct.pack("=HBBI", *one) for one in program)
    room = ctypes.create_string_buffer(packed, len(packed))
    # struct sock_fprog: the number of instructions and a pointer to them, with the padding of the machine
    opened.setsockopt(
        socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(room))
    )


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENODEV, errno.ENXIO, None):  # if_nametoindex sets no number
        return "no such network device; `ip link` lists them"
    if error.errno == errno.ENETDOWN:
        return "the network device is down; `ip link set DEV up`"
    if error.errno == errno.ENOMEM:
        return "no memory for the ring buffer"
    return f"cannot capture: {error.strerror}"


LOAD_HALF, LOAD_BYTE, LOAD_HALF_INDEXED, LOAD_HEADER_LENGTH = 0x28, 0x30, 0x48, 0xB1
"""BPF_LD with BPF_ABS or BPF_IND, and BPF_LDX with BPF_MSH: the length of an IPv4 header into X."""
JUMP_EQUAL, RETURN = 0x15, 0x06
WHOLE = 0x40000  # bytes to copy: all of any frame

ACCEPT, REJECT = "accept", "reject"
TYPE_AT, NETWORK_AT = 12, 14
PROTOCOL_AT = {locate.IPV4: 9, locate.IPV6: 6}


class Instruction(NamedTuple):
    """One instruction; a jump names the label that it goes to when the values are equal."""

    code: int
    value: int
    target: str = ""
    label: str = ""


Program: TypeAlias = list[tuple[int, int, int, int]]
"""Code, jump if true, jump if false and value of each instruction (struct sock_filter)."""

NO_FRAME: Program = [(RETURN, 0, 0, 0)]  # accepts nothing


def socket_filter() -> Program:
    """The program that accepts what is decoded."""
    source: list[Instruction] = []
    for level in range(locate.MOST_TAGS + 1):
        source += _level(level)
    source += [Instruction(RETURN, 0, label=REJECT), Instruction(RETURN, WHOLE, label=ACCEPT)]
    places = {one.label: at for at, one in enumerate(source) if one.label}
    return [
        (one.code, places[one.target] - at - 1 if one.target else 0, 0, one.value)
        for at, one in enumerate(source)
    ]


def _level(level: int) -> list[Instruction]:
    """The frame behind `level` VLAN tags."""
    base = 4 * level
    following = f"type{level + 1}" if level < locate.MOST_TAGS else REJECT
    return [
        Instruction(LOAD_HALF, TYPE_AT + base, label=f"type{level}"),
        *(_equal(kind, ACCEPT) for kind in (locate.ROCE_V1, locate.MAC_CONTROL, locate.LLDP, *locate.MPLS)),
        _equal(locate.IPV4, f"ipv4{level}"),
        _equal(locate.IPV6, f"ipv6{level}"),
        *(_equal(kind, following) for kind in locate.TAG_TYPES),
        Instruction(RETURN, 0),
        *_network(locate.IPV4, f"ipv4{level}", NETWORK_AT + base),
        Instruction(LOAD_HEADER_LENGTH, NETWORK_AT + base),
        Instruction(LOAD_HALF_INDEXED, NETWORK_AT + base + 2),
        *_ports(),
        *_network(locate.IPV6, f"ipv6{level}", NETWORK_AT + base),
        Instruction(LOAD_HALF, NETWORK_AT + base + locate.IPV6_BYTES + 2),
        *_ports(),
    ]


def _network(kind: int, label: str, start: int) -> list[Instruction]:
    """Accept tunnels and, as they are rare, every packet with an extension header; continue behind this for UDP; reject the rest."""
    return [
        Instruction(LOAD_BYTE, start + PROTOCOL_AT[kind], label=label),
        *(
            _equal(protocol, ACCEPT)
            for protocol in (*locate.IP_TUNNELS, *(locate.EXTENSIONS if kind == locate.IPV6 else ()))
        ),
        _equal(locate.UDP, f"{label}udp"),
        Instruction(RETURN, 0),
        # A label needs an instruction: loading again changes nothing.
        Instruction(LOAD_BYTE, start + PROTOCOL_AT[kind], label=f"{label}udp"),
    ]


def _ports() -> list[Instruction]:
    return [
        *(_equal(port, ACCEPT) for port in (locate.ROCE_PORT, *locate.UDP_TUNNELS, locate.SFLOW_PORT)),
        Instruction(RETURN, 0),
    ]


def _equal(value: int, target: str) -> Instruction:
    return Instruction(JUMP_EQUAL, value, target)
