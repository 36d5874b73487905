"""MAC control frames: PFC (IEEE 802.1Qbb, 802.1Q clause 36) and global pause (IEEE 802.3, annex 31B)."""

from __future__ import annotations

from typing import NamedTuple

PAUSE, PFC = 0x0001, 0x0101
PRIORITIES = 8


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
        return PauseFrame(mac_text(frame[6:12]), (int.from_bytes(frame[offset + 2 : offset + 4]),))
    if opcode != PFC or len(frame) < offset + 4 + 2 * PRIORITIES:
        return None
    enabled = frame[offset + 3]
    times = [int.from_bytes(frame[at : at + 2]) for at in range(offset + 4, offset + 4 + 2 * PRIORITIES, 2)]
    return PauseFrame(
        mac_text(frame[6:12]),
        tuple(time if enabled >> priority & 1 else None for priority, time in enumerate(times)),
    )


def mac_text(address: bytes) -> str:
    """A MAC address as text."""
    return address.hex(":")
