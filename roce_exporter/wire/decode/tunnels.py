"""What is inside tunnels: where it begins, and as which EtherType, for all tunnels of a kind at once.

GRE (RFC 2784, 2890) with IP, MPLS, Ethernet, and ERSPAN I, II, III (draft-foschiano-erspan-03); IP in IP (RFC 2003, 4213), MPLS in IP
(RFC 4023) and in UDP (RFC 7510), EtherIP (RFC 3378); VXLAN (RFC 7348), also on Linux' own port, VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe),
Geneve (RFC 8926). A kind of 0 is a header that is not valid, or a payload that is not followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roce_exporter.wire.frames import big16, window

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.wire.frames import Bytes, Integers

    Reader = Callable[[Bytes, Integers], tuple[Integers, Integers]]
    """From the bytes and where each header begins to where the payload begins, and its EtherType."""

IPV4, IPV6, BRIDGED = 0x0800, 0x86DD, 0x6558
"""BRIDGED is Transparent Ethernet Bridging: a whole Ethernet frame."""
MPLS = (0x8847, 0x8848)
ERSPAN, ERSPAN_3 = 0x88BE, 0x22EB
UDP_BYTES = 8
TUNNEL_BYTES = 8
"""Fixed part of VXLAN and Geneve."""
GPE_KINDS = np.zeros(256, np.int64)
"""EtherTypes of the next protocols of VXLAN-GPE."""
GPE_KINDS[[1, 2, 3, 5]] = IPV4, IPV6, BRIDGED, MPLS[0]


def _always(kind: int, size: int) -> Reader:
    """A header of a fixed size before one kind of payload."""

    def read(_: Bytes, headers: Integers) -> tuple[Integers, Integers]:
        return headers + size, np.full(len(headers), kind, np.int64)

    return read


def _vxlan(data: Bytes, headers: Integers) -> tuple[Integers, Integers]:
    valid = window(data, headers, 1)[:, 0] & 0x08 != 0
    return headers + TUNNEL_BYTES, np.where(valid, BRIDGED, 0)


def _vxlan_gpe(data: Bytes, headers: Integers) -> tuple[Integers, Integers]:
    head = window(data, headers, 4)
    named = head[:, 0] & 0x04 != 0  # the P bit: the header names the next protocol
    return headers + TUNNEL_BYTES, np.where(
        head[:, 0] & 0x08 != 0, np.where(named, GPE_KINDS[head[:, 3]], BRIDGED), 0
    )


def _geneve(data: Bytes, headers: Integers) -> tuple[Integers, Integers]:
    head = window(data, headers, 4)
    options = (head[:, 0] & 0x3F).astype(np.int64) * 4
    return headers + TUNNEL_BYTES + options, np.where(head[:, 0] >> 6 == 0, big16(head, 2), 0)


def _gre(data: Bytes, headers: Integers) -> tuple[Integers, Integers]:
    # ERSPAN I has no header and no sequence number in GRE. The last 16 bits of the header of ERSPAN III: P, frame type (5 bits,
    # 0 is Ethernet), hardware, direction, granularity, O (a subheader follows).
    head = window(data, headers, 4)
    flags, kinds = big16(head, 0), big16(head, 2)
    starts = headers + 4 + 4 * ((flags >> 15 & 1) + (flags >> 13 & 1) + (flags >> 12 & 1))
    third = big16(window(data, starts + 10, 2), 0)
    mirrored = np.select(
        [kinds == ERSPAN, kinds == ERSPAN_3], [np.where(flags & 0x1000, 8, 0), np.where(third & 1, 20, 12)], 0
    )
    valid = (flags & 7 == 0) & ((kinds != ERSPAN_3) | (third >> 10 & 0x1F == 0))
    kinds = np.where((kinds == ERSPAN) | (kinds == ERSPAN_3), BRIDGED, kinds)
    return starts + mirrored, np.where(valid, kinds, 0)


UDP_TUNNELS: dict[int, Reader] = {
    4789: _vxlan,
    8472: _vxlan,
    4790: _vxlan_gpe,
    6081: _geneve,
    6635: _always(MPLS[0], 0),
}
"""By destination port."""
IP_TUNNELS: dict[int, Reader] = {
    4: _always(IPV4, 0),
    41: _always(IPV6, 0),
    47: _gre,
    97: _always(BRIDGED, 2),
    137: _always(MPLS[0], 0),
}
"""By IP protocol."""
