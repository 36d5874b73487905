"""Frames of the mirrored link itself.

MAC control with PFC (IEEE 802.1Qbb, 802.1Q clause 36) and global pause (IEEE 802.3, annex 31B), and LLDP (IEEE 802.1AB), which
names the sender.
"""

from __future__ import annotations

from typing import NamedTuple

PAUSE, PFC = 0x0001, 0x0101
PRIORITIES = 8
CHASSIS, PORT, NAME = 1, 2, 5
CHASSIS_MAC, PORT_MAC = 4, 3
MOST_TYPES = 64
MAC_BYTES = 6


class PauseFrame(NamedTuple):
    """A frame that pauses its receiver."""

    source: str
    """MAC address of the sender."""
    quanta: tuple[int | None, ...]
    """Pause per priority in units of 512 bit times, 0 to end it, None where the frame does not concern the priority; one
    value for global pause."""

    @property
    def per_priority(self) -> bool:
        """Whether it is PFC and not global pause."""
        return len(self.quanta) == PRIORITIES


def read_mac_control(frame: bytes, offset: int) -> PauseFrame | None:
    """A pause frame whose MAC control opcode is at `offset` of the frame; None for another or an incomplete one."""
    opcode = int.from_bytes(frame[offset : offset + 2])
    if opcode == PAUSE and len(frame) >= offset + 4:
        return PauseFrame(frame[6:12].hex(":"), (int.from_bytes(frame[offset + 2 : offset + 4]),))
    if opcode != PFC or len(frame) < offset + 4 + 2 * PRIORITIES:
        return None
    enabled = frame[offset + 3]
    times = [int.from_bytes(frame[at : at + 2]) for at in range(offset + 4, offset + 4 + 2 * PRIORITIES, 2)]
    return PauseFrame(
        frame[6:12].hex(":"),
        tuple(time if enabled >> priority & 1 else None for priority, time in enumerate(times)),
    )


class LinkNeighbour(NamedTuple):
    """The sender of an LLDP frame."""

    source: str
    """MAC address that sent the frame."""
    chassis: str
    port: str
    name: str
    """System name; empty where the frame has none."""


def read_lldp(frame: bytes, offset: int) -> LinkNeighbour | None:
    """The sender of a frame whose first TLV is at `offset`; None without a chassis and a port."""
    fields: dict[int, bytes] = {}
    for _ in range(MOST_TYPES):
        header = int.from_bytes(frame[offset : offset + 2])
        kind, length = header >> 9, header & 0x1FF
        value = frame[offset + 2 : offset + 2 + length]
        if kind == 0 or len(frame) < offset + 2 or len(value) < length:
            break
        fields.setdefault(kind, value)
        offset += 2 + length
    if not fields.get(CHASSIS) or not fields.get(PORT):
        return None
    return LinkNeighbour(
        frame[6:12].hex(":"),
        _identifier(fields[CHASSIS], CHASSIS_MAC),
        _identifier(fields[PORT], PORT_MAC),
        _text(fields.get(NAME, b"")),
    )


def _identifier(value: bytes, mac: int) -> str:
    """The text behind the subtype; a MAC address where the subtype says so."""
    return value[1:].hex(":") if value[0] == mac and len(value) == 1 + MAC_BYTES else _text(value[1:])


def _text(value: bytes) -> str:
    """Printable text: what a switch sends goes to a terminal."""
    text = value.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:255]
