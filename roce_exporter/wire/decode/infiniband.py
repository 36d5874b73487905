"""Transport headers of InfiniBand as RoCE carries them: InfiniBand specification 1.2.1, chapter 9, and annexes A16 and A17.

One function per header. Each takes the bytes from the header's first byte on, and returns None where they are too few.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from roce_exporter.wire.decode import opcodes

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

BTH_BYTES = 12
RDETH_BYTES = 4
DETH_BYTES = 8
XRCETH_BYTES = 4
RETH_BYTES = 16
ATOMIC_BYTES = 28
AETH_BYTES = 4
ATOMIC_ACK_BYTES = 8
IMMEDIATE_BYTES = 4
ICRC_BYTES = 4

ACK, RNR, RESERVED, NAK = range(4)
"""Kinds of AETH syndromes: bits 5 and 6."""
NAK_CODES = (
    "psn_sequence_error",
    "invalid_request",
    "remote_access_error",
    "remote_operational_error",
    "invalid_rd_request",
)
RNR_MILLISECONDS = (
    655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92,
    2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
)  # fmt: skip
"""Time to wait for each RNR timer: table 45."""

_BTH = Struct(">BBHII")
_RETH = Struct(">QII")
_ATOMIC = Struct(">QIQQ")
_WORD = Struct(">I")


class Bth(NamedTuple):
    """Base transport header."""

    opcode: int
    solicited: bool
    migration: bool
    pad: int
    """Bytes added to the payload to reach a multiple of 4."""
    version: int
    partition_key: int
    fecn: bool
    becn: bool
    destination_qp: int
    acknowledge_request: bool
    psn: int


class Reth(NamedTuple):
    """RDMA extended transport header: where a write or read goes to."""

    address: int
    key: int
    length: int
    """Bytes of the whole operation."""


class AtomicEth(NamedTuple):
    """Atomic extended transport header."""

    address: int
    key: int
    swap: int
    compare: int


class Aeth(NamedTuple):
    """ACK extended transport header."""

    kind: int
    """ACK, RNR, RESERVED or NAK."""
    value: int
    """Credits of an ACK, timer of an RNR NAK, code of a NAK."""
    msn: int


class Deth(NamedTuple):
    """Datagram extended transport header."""

    key: int
    source_qp: int


class Extensions(NamedTuple):
    """The extended transport headers of one packet; None where the opcode has none."""

    rdeth: int | None = None
    deth: Deth | None = None
    xrceth: int | None = None
    reth: Reth | None = None
    atomic: AtomicEth | None = None
    aeth: Aeth | None = None
    atomic_ack: int | None = None
    immediate: int | None = None
    invalidate: int | None = None


def read_bth(data: bytes) -> Bth:
    """The base transport header, all fields of 9.2 and A17. It is complete: see `locate`."""
    opcode, flags, partition, queue, sequence = _BTH.unpack_from(data)
    return Bth(
        opcode=opcode,
        solicited=bool(flags & 0x80),
        migration=bool(flags & 0x40),
        pad=flags >> 4 & 3,
        version=flags & 0xF,
        partition_key=partition,
        fecn=bool(queue & 0x80000000),
        becn=bool(queue & 0x40000000),
        destination_qp=queue & 0xFFFFFF,
        acknowledge_request=bool(sequence & 0x80000000),
        psn=sequence & 0xFFFFFF,
    )


def read_reth(data: bytes) -> Reth | None:
    """The RETH (9.3.3)."""
    return Reth(*_RETH.unpack_from(data)) if len(data) >= RETH_BYTES else None


def read_atomic(data: bytes) -> AtomicEth | None:
    """The atomic header (9.3.4)."""
    return AtomicEth(*_ATOMIC.unpack_from(data)) if len(data) >= ATOMIC_BYTES else None


def read_aeth(data: bytes) -> Aeth | None:
    """The AETH (9.3.5, syndromes of table 44)."""
    if len(data) < AETH_BYTES:
        return None
    (word,) = _WORD.unpack_from(data)
    return Aeth(word >> 29 & 3, word >> 24 & 0x1F, word & 0xFFFFFF)


def read_atomic_ack(data: bytes) -> int | None:
    """The original value that an atomic acknowledge returns (9.5.3)."""
    return int.from_bytes(data[:ATOMIC_ACK_BYTES]) if len(data) >= ATOMIC_ACK_BYTES else None


def read_immediate(data: bytes) -> int | None:
    """Immediate data (9.3.6), or the key of an invalidate (9.3.7)."""
    return int.from_bytes(data[:IMMEDIATE_BYTES]) if len(data) >= IMMEDIATE_BYTES else None


def read_deth(data: bytes) -> Deth | None:
    """The DETH (9.3.2)."""
    if len(data) < DETH_BYTES:
        return None
    return Deth(int.from_bytes(data[:4]), int.from_bytes(data[5:8]))


def read_qp_word(data: bytes) -> int | None:
    """The 24-bit number of an RDETH (9.3.1, EE context) or XRCETH (annex A14, receive queue)."""
    return int.from_bytes(data[1:4]) if len(data) >= RDETH_BYTES else None


def read_extensions(opcode: int, data: bytes) -> Extensions:
    """The extended headers behind the BTH, in the order of figure 9.2."""
    transport, low = opcodes.transport_of(opcode), opcode & 0x1F
    if low not in opcodes.DEFINED.get(transport, ()):
        return Extensions()
    requests = low not in opcodes.RESPONSES
    cursor = _Cursor(data)
    return Extensions(
        rdeth=cursor.read(transport == opcodes.RD, read_qp_word, RDETH_BYTES),
        deth=cursor.read(
            transport == opcodes.UD or (transport == opcodes.RD and requests), read_deth, DETH_BYTES
        ),
        xrceth=cursor.read(transport == opcodes.XRC and requests, read_qp_word, XRCETH_BYTES),
        reth=cursor.read(
            low in opcodes.WRITES or low in (opcodes.READ_REQUEST, opcodes.ATOMIC_WRITE),
            read_reth,
            RETH_BYTES,
        ),
        atomic=cursor.read(low in (opcodes.COMPARE_SWAP, opcodes.FETCH_ADD), read_atomic, ATOMIC_BYTES),
        aeth=cursor.read(low in opcodes.WITH_AETH, read_aeth, AETH_BYTES),
        atomic_ack=cursor.read(low == opcodes.ATOMIC_ACKNOWLEDGE, read_atomic_ack, ATOMIC_ACK_BYTES),
        immediate=cursor.read(low in opcodes.WITH_IMMEDIATE, read_immediate, IMMEDIATE_BYTES),
        invalidate=cursor.read(low in opcodes.WITH_INVALIDATE, read_immediate, IMMEDIATE_BYTES),
    )


class _Cursor:
    """Reads one header after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, present: bool, reader: Callable[[bytes], T | None], size: int) -> T | None:
        if not present:
            return None
        found = reader(self._data)
        self._data = self._data[size:]
        return found


def nak_reason(code: int) -> str:
    """The reason of a NAK code; `reserved` for one that the specification does not define."""
    return NAK_CODES[code] if code < len(NAK_CODES) else "reserved"
