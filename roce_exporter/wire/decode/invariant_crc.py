"""The invariant CRC of RoCE: annexes A16.5.1 and A17.4.1 (RoCE v1 and v2).

CRC-32 of Ethernet over a dummy LRH of ones, the network header with the fields that routers change set to ones, and
everything behind it. It is sent with its least significant byte first.
"""

from __future__ import annotations

from zlib import crc32

LRH = b"\xff" * 8


def invariant_crc(network: bytes, rest: bytes, *, version: int) -> int:
    """The CRC of a packet: `network` is its IP header or GRH, `rest` what follows up to the CRC (for v2 from UDP on)."""
    transport = bytearray(rest)
    queue = 4
    if version == 2:  # noqa: PLR2004 - RoCE v2
        transport[6:8] = b"\xff\xff"
        queue = 12
    transport[queue] = 0xFF
    return crc32(transport, crc32(LRH + _masked(network)))


def _masked(network: bytes) -> bytes:
    masked = bytearray(network)
    if masked[0] >> 4 == 4:  # noqa: PLR2004 - IPv4: type of service, time to live, header checksum
        masked[1] = masked[8] = 0xFF
        masked[10:12] = b"\xff\xff"
    else:  # traffic class, flow label, hop limit
        masked[0] |= 0x0F
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF
    return bytes(masked)
