"""LLDP (IEEE 802.1AB): who sends on the mirrored link."""

from __future__ import annotations

from typing import NamedTuple

from roce_exporter.wire.decode.mac_control import mac_text

CHASSIS, PORT, NAME = 1, 2, 5
CHASSIS_MAC, PORT_MAC = 4, 3
MOST_TYPES = 64
MAC_BYTES = 6


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
        mac_text(frame[6:12]),
        _identifier(fields[CHASSIS], CHASSIS_MAC),
        _identifier(fields[PORT], PORT_MAC),
        _text(fields.get(NAME, b"")),
    )


def _identifier(value: bytes, mac: int) -> str:
    """The text behind the subtype; a MAC address where the subtype says so."""
    if value[0] == mac and len(value) == 1 + MAC_BYTES:
        return mac_text(value[1:])
    return _text(value[1:])


def _text(value: bytes) -> str:
    """Printable text: what a switch sends goes to a terminal."""
    text = value.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:255]
