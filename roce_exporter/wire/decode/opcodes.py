"""Opcodes of the base transport header: InfiniBand specification 1.2.1, table 35; the CNP is of annex A17.

The upper three bits are the transport, the lower five the operation.
"""

from __future__ import annotations

TRANSPORTS = ("RC", "UC", "RD", "UD", "CNP", "XRC", "manufacturer 6", "manufacturer 7")
RC, UC, RD, UD, CNP_TRANSPORT, XRC = range(6)
WITHOUT_OPERATIONS = (CNP_TRANSPORT, 6, 7)
CNP = 0x81

OPERATIONS = dict(
    enumerate(
        (
            *("send first", "send middle", "send last", "send last with immediate"),
            *("send only", "send only with immediate"),
            *("write first", "write middle", "write last", "write last with immediate"),
            *("write only", "write only with immediate", "read request"),
            *("read response first", "read response middle", "read response last", "read response only"),
            *("acknowledge", "atomic acknowledge", "compare and swap", "fetch and add", "resync"),
            *("send last with invalidate", "send only with invalidate"),
        )
    )
) | {0x1C: "flush", 0x1D: "atomic write"}
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
FLUSH = 0x1C
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


def group_of(opcode: int) -> int:
    """The group of an opcode: an index of GROUPS."""
    if opcode == CNP:
        return CNP_GROUP
    known = () if opcode >> 5 in WITHOUT_OPERATIONS else _MEMBERS
    return next((group for group, members in known if opcode & 0x1F in members), OTHER)


_MEMBERS = (
    (SEND, frozenset({0, 1, 2, 3, 4, 5, 0x16, 0x17})),
    (WRITE, frozenset({6, 7, 8, 9, 0x0A, 0x0B})),
    (READ, frozenset({READ_REQUEST})),
    (RESPONSE, frozenset({READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY})),
    (ACK, frozenset({ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE})),
    (ATOMIC, frozenset({COMPARE_SWAP, FETCH_ADD, ATOMIC_WRITE})),
)
