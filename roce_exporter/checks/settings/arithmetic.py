"""The arithmetic of DSCP, ToS and ECN, of headroom, and of the RDMA MTU. Pure functions over integers."""

from __future__ import annotations

NOT_ECT, ECT_1, ECT_0, CE = 0, 1, 2, 3
"""The two low bits of the ToS byte, or of the IPv6 traffic class (RFC 3168, section 5)."""

MAX_DSCP, MAX_PRIORITY = 63, 7

RDMA_MTUS = (4096, 2048, 1024, 512, 256)

ROCE_HEADERS = 96
"""Bytes of a packet that the kernel reserves: GRH 40, UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4 (include/rdma/ib_addr.h)."""

SLOWEST = 5_000_000_000
"""The link speed in bytes per second (40 Gb/s) that mlx5 assumes when the link is slower or down."""


def tos_of(dscp: int, ecn: int = ECT_0) -> int:
    """The ToS byte of a DSCP and an ECN codepoint: DSCP 26 with ECT(0) is 26 << 2 | 2 = 106."""
    return dscp << 2 | ecn


def dscp_of(tos: int) -> int:
    """The DSCP of a ToS byte (RFC 2474): the upper six bits."""
    return tos >> 2


def precedence_of(tos: int) -> int:
    """The IP precedence of a ToS byte: its upper three bits. 0x60 has precedence 3."""
    return tos >> 5


def is_ect(tos: int) -> bool:
    """Whether switches may mark such packets. CE (3) is itself a mark, which no sender should set."""
    return tos & 3 in (ECT_0, ECT_1)


def headroom(mtu: int, speed: int, metres: int) -> int:
    """Bytes that a receive buffer needs above its XOFF threshold for the packets that are still in flight.

    `mtu` in bytes, `speed` in bytes per second, `metres` of cable. The formula, including its rounding, is that of
    drivers/net/ethernet/mellanox/mlx5/core/en/port_buffer.c: (301 + 2.16 x metres) x Gb/s + 2.72 x MTU.
    """
    megabits = max(speed, SLOWEST) * 8 // 1_000_000
    return (301 + 216 * metres // 100) * megabits // 1000 + 272 * mtu // 100


def rdma_mtu(mtu: int) -> int:
    """The largest RDMA MTU in bytes that fits into a network device's MTU; 0 if none fits.

    As iboe_get_mtu of include/rdma/ib_addr.h, with which drivers set the active MTU of a port: 1500 gives 1024.
    """
    return next((size for size in RDMA_MTUS if size <= mtu - ROCE_HEADERS), 0)


def least_mtu(rdma: int) -> int:
    """The smallest MTU of a network device, in bytes, for an RDMA MTU: 4096 needs 4192."""
    return rdma + ROCE_HEADERS
