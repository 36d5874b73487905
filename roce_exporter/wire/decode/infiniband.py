"""Transport headers of InfiniBand as RoCE carries them: InfiniBand specification 1.2.1, chapter 9, and annexes A14, A16 and A17.

A header is a row of HEADERS, which both decoders follow: the one of a batch takes from it where a header begins.
"""

from __future__ import annotations

from typing import Any

from roce_exporter.wire.decode import opcodes
from roce_exporter.words import word_list

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
    if low not in opcodes.DEFINED.get(transport, ()):
        return ()
    requests = low not in opcodes.RESPONSES
    present = {
        "rdeth": transport == opcodes.RD,
        "deth": transport == opcodes.UD or (transport == opcodes.RD and requests),
        "xrceth": transport == opcodes.XRC and requests,
        "reth": low in opcodes.WRITES or low in (opcodes.READ_REQUEST, opcodes.ATOMIC_WRITE),
        "atomic": low in (opcodes.COMPARE_SWAP, opcodes.FETCH_ADD),
        "aeth": low in opcodes.WITH_AETH,
        "atomic_ack": low == opcodes.ATOMIC_ACKNOWLEDGE,
        "immediate": low in opcodes.WITH_IMMEDIATE,
        "invalidate": low in opcodes.WITH_INVALIDATE,
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
