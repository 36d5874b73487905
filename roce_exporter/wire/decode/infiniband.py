"""Transport headers of InfiniBand as RoCE carries them: InfiniBand specification 1.2.1, chapter 9, and annexes A14, A16 and A17.

An opcode (table 35) is a transport in its upper three bits and an operation in the lower five. A header is a row of HEADERS, which both
decoders follow: the one of a batch takes from it where a header begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from roce_exporter.words import word_list

if TYPE_CHECKING:
    from roce_exporter.wire.frames import Flags

TRANSPORTS = ("RC", "UC", "RD", "UD", "CNP", "XRC", "manufacturer 6", "manufacturer 7")
RC, UC, RD, UD, CNP_TRANSPORT, XRC = range(6)
WITHOUT_OPERATIONS = (CNP_TRANSPORT, 6, 7)
CNP = 0x81

_NAMES = (
    "send first, send middle, send last, send last with immediate, send only, send only with immediate, "
    "write first, write middle, write last, write last with immediate, write only, write only with immediate, read request, "
    "read response first, read response middle, read response last, read response only, acknowledge, atomic acknowledge, "
    "compare and swap, fetch and add, resync, send last with invalidate, send only with invalidate"
)
OPERATIONS = dict(enumerate(_NAMES.split(", "))) | {0x1C: "flush", 0x1D: "atomic write"}
DEFINED = {
    RC: frozenset(OPERATIONS) - {0x15},
    UC: frozenset(range(0x0C)),
    RD: frozenset(OPERATIONS) - {0x16, 0x17, 0x1D},
    UD: frozenset({0x04, 0x05}),
    XRC: frozenset(OPERATIONS) - {0x15},
}
"""The operations of each transport. What follows the BTH of another opcode is unknown."""
WRITES = frozenset({0x06, 0x0A, 0x0B})
"""Operations with a RETH in addition to the read request and flush: the first or only packet of a write."""
READ_REQUEST = 0x0C
READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY = 0x0D, 0x0E, 0x0F, 0x10
ACKNOWLEDGE = 0x11
ATOMIC_ACKNOWLEDGE = 0x12
COMPARE_SWAP, FETCH_ADD = 0x13, 0x14
ATOMIC_WRITE = 0x1D
RESPONSES = frozenset({READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE})
WITH_AETH = frozenset({READ_FIRST, READ_LAST, READ_ONLY, ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE})
WITH_IMMEDIATE = frozenset({0x03, 0x05, 0x09, 0x0B})
WITH_INVALIDATE = frozenset({0x16, 0x17})

GROUPS = ("send", "write", "read_request", "read_response", "acknowledge", "atomic", "cnp", "other")
"""Groups of operations that packets and bytes are counted by."""
SEND, WRITE, READ, RESPONSE, ACK, ATOMIC, CNP_GROUP, OTHER = range(8)


def operation_of(opcode: int) -> str:
    """The operation in words; `opcode 0x..` for one that the specification does not define."""
    if opcode == CNP:
        return "congestion notification"
    known = {} if opcode >> 5 in WITHOUT_OPERATIONS else OPERATIONS
    return known.get(opcode & 0x1F, f"opcode {opcode:#04x}")


_MEMBERS = (
    (SEND, (0, 1, 2, 3, 4, 5, 0x16, 0x17)),
    (WRITE, (6, 7, 8, 9, 0x0A, 0x0B)),
    (READ, (READ_REQUEST,)),
    (RESPONSE, (READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY)),
    (ACK, (ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE)),
    (ATOMIC, (COMPARE_SWAP, FETCH_ADD, ATOMIC_WRITE)),
)


def opcodes_of(transports: Iterable[int], operations: Iterable[int]) -> Flags:
    """Which of the 256 opcodes are these operations of these transports."""
    codes = np.arange(256)
    return np.isin(codes >> 5, list(transports)) & np.isin(codes & 0x1F, list(operations))


GROUP_OF = np.full(256, OTHER, np.int64)
"""The group of each opcode: an index of GROUPS."""
for _group, _operations in _MEMBERS:
    GROUP_OF[opcodes_of(DEFINED, _operations)] = _group
GROUP_OF[CNP] = CNP_GROUP

ICRC_BYTES = 4

RNR, NAK = 1, 3  # kinds of AETH syndromes, bits 5 and 6; 0 is an ACK
NAK_CODES = word_list(
    "psn_sequence_error invalid_request remote_access_error remote_operational_error invalid_rd_request"
)
RNR_MILLISECONDS = (
    655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92,
    2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
)  # fmt: skip
"""Time to wait for each RNR timer: table 45."""

Fields = tuple[tuple[str, int], ...]


def _fields(text: str) -> Fields:
    """`name:bits` in the order of the header; reserved bits have no name."""
    return tuple((name, int(bits)) for name, _, bits in (one.partition(":") for one in text.split()))


HEADERS: dict[str, Fields] = {
    "bth": _fields(
        "opcode:8 solicited:1 migration:1 pad:2 version:4 partition_key:16"
        " fecn:1 becn:1 :6 destination_qp:24 acknowledge_request:1 :7 psn:24"
    ),
    "rdeth": _fields(":8 rdeth:24"),
    "deth": _fields("key:32 :8 source_qp:24"),
    "xrceth": _fields(":8 xrceth:24"),
    "reth": _fields("address:64 key:32 length:32"),
    "atomic": _fields("address:64 key:32 swap:64 compare:64"),
    "aeth": _fields(":1 kind:2 value:5 msn:24"),
    "atomic_ack": _fields("atomic_ack:64"),
    "immediate": _fields("immediate:32"),
    "invalidate": _fields("invalidate:32"),
}
"""A header with one field is that number: a receive queue, a key. A field of one bit is true or false."""
BYTES = {name: sum(bits for _, bits in fields) // 8 for name, fields in HEADERS.items()}
BTH_BYTES, AETH_BYTES, RETH_BYTES = BYTES["bth"], BYTES["aeth"], BYTES["reth"]


def extensions_of(opcode: int) -> tuple[str, ...]:
    """The extended headers behind the BTH, in the order of figure 9.2; none for an opcode that is not defined."""
    transport, low = opcode >> 5, opcode & 0x1F
    if low not in DEFINED.get(transport, ()):
        return ()
    requests = low not in RESPONSES
    present = {
        "rdeth": transport == RD,
        "deth": transport == UD or (transport == RD and requests),
        "xrceth": transport == XRC and requests,
        "reth": low in WRITES or low in (READ_REQUEST, ATOMIC_WRITE),
        "atomic": low in (COMPARE_SWAP, FETCH_ADD),
        "aeth": low in WITH_AETH,
        "atomic_ack": low == ATOMIC_ACKNOWLEDGE,
        "immediate": low in WITH_IMMEDIATE,
        "invalidate": low in WITH_INVALIDATE,
    }
    return tuple(name for name, here in present.items() if here)


def read_header(name: str, data: bytes) -> Any:
    """The fields of a complete header by name, or its only field."""
    found: dict[str, int] = {}
    word, left = int.from_bytes(data[: BYTES[name]]), 8 * BYTES[name]
    for field, bits in HEADERS[name]:
        left -= bits
        value = word >> left & ((1 << bits) - 1)
        if field:
            found[field] = bool(value) if bits == 1 else value
    return found.get(name, found)


def read_extensions(opcode: int, data: bytes) -> dict[str, Any]:
    """The extended headers in the bytes behind the BTH, as far as they are complete."""
    found = {}
    for name in extensions_of(opcode):
        if len(data) < BYTES[name]:
            break
        found[name] = read_header(name, data)
        data = data[BYTES[name] :]
    return found


def offset_of(name: str, opcode: int) -> int:
    """Bytes from the end of the BTH to an extended header; -1 where the opcode has none."""
    names = extensions_of(opcode)
    return sum(BYTES[one] for one in names[: names.index(name)]) if name in names else -1
