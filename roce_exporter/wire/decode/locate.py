"""Where the RoCE packets of a batch are, behind VLAN tags and the tunnels of mirror ports.

Ethernet with VLAN tags (IEEE 802.1Q), the cooked headers of `tcpdump -i any`, IPv4 (RFC 791), IPv6 (RFC 8200; extension headers
are not followed), the GRH of RoCE v1 (InfiniBand specification 8.3), UDP (RFC 768), GRE (RFC 2890) with ERSPAN I, II, III
(draft-foschiano-erspan-03) or Ethernet, and VXLAN (RFC 7348).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.decode.infiniband import BTH_BYTES, ICRC_BYTES
from roce_exporter.wire.frames import ETHERNET, LINUX_COOKED, LINUX_COOKED_2, NO_TAG, big16, window

if TYPE_CHECKING:
    from roce_exporter.wire.frames import Bytes, Flags, Frames, Integers

IPV4, IPV6, ROCE_V1 = 0x0800, 0x86DD, 0x8915
MAC_CONTROL, LLDP = 0x8808, 0x88CC
TAG_TYPES = (0x8100, 0x88A8, 0x9100)
MOST_TAGS = 2
GRE_ETHERNET, ERSPAN, ERSPAN_3 = 0x6558, 0x88BE, 0x22EB
VXLAN_BYTES = 8
VXLAN_PORT = 4789
GRE = 47
MOST_TUNNELS = 2
UDP = 17
ROCE_PORT = 4791
IPV4_BYTES = 20
IPV6_BYTES = 40
UDP_BYTES = 8
GRH_NEXT = 0x1B
"""Next header of a GRH that is followed by a base transport header."""
TYPE_AT = {ETHERNET: 12, LINUX_COOKED: 14}
"""Offset of the EtherType in each link header with tags behind it."""


class Layer(NamedTuple):
    """Frames, or frames within tunnels, whose headers are followed together. One element per frame in every array."""

    rows: Integers
    """Position of the frame in the batch."""
    links: Integers
    """Offset of the link header."""
    starts: Integers
    limits: Integers
    """Offset behind the last byte captured."""
    tags: Integers
    """The outer VLAN tag's TCI, or -1."""
    kinds: Integers
    """EtherType of what begins at `starts`."""

    def where(self, chosen: Flags) -> Layer:
        """These frames of the layer."""
        return self if chosen.all() else Layer(*(part[chosen] for part in self))


class Located(NamedTuple):
    """The RoCE packets of a batch. One element per packet in every array."""

    rows: Integers
    links: Integers
    """Offset of the link header above the network header: that of the frame, or of the innermost one in a tunnel."""
    network: Integers
    """Offset of the IP header or GRH."""
    bth: Integers
    end: Integers
    """Offset behind the ICRC, by the stated length."""
    limits: Integers
    tags: Integers
    kinds: Integers
    """IPV4, IPV6 or ROCE_V1."""


class Inventory(NamedTuple):
    """What a batch holds."""

    roce: Located
    control: Integers
    """Rows of MAC control frames, and where their opcode is, in turn."""
    lldp: Integers


def locate(frames: Frames) -> Inventory:
    """The RoCE packets, MAC control frames and LLDP frames of a batch."""
    rows = np.arange(len(frames.starts))
    ends = frames.starts + frames.captured
    whole = Layer(rows, frames.starts, frames.starts, ends, frames.tags, np.zeros_like(rows))
    layer = _link(frames.data, whole, frames.link)
    control = _pairs(layer.where(layer.kinds == MAC_CONTROL))
    lldp = _pairs(layer.where(layer.kinds == LLDP))
    found: list[Located] = []
    for _ in range(MOST_TUNNELS + 1):
        roce, inner = _follow(frames.data, layer)
        found += roce
        if inner is None or not len(inner.rows):
            break
        layer = _link(frames.data, inner, ETHERNET)
    return Inventory(_in_order(found), control, lldp)


def _pairs(layer: Layer) -> Integers:
    return np.stack((layer.rows, layer.starts), axis=1)


def _in_order(found: list[Located]) -> Located:
    """Packets in the order of the capture: sequence numbers depend on it."""
    found = [one for one in found if len(one.rows)]
    if len(found) == 1 and (np.diff(found[0].rows) > 0).all():
        return found[0]
    if not found:
        return Located(*(np.zeros(0, np.int64) for _ in Located._fields))
    parts = [np.concatenate(part) for part in zip(*found, strict=True)]
    order = np.argsort(parts[0], kind="stable")
    return Located(*(part[order] for part in parts))


def _link(data: Bytes, layer: Layer, link: int) -> Layer:
    """The layer behind the link header and up to two VLAN tags; frames that end before it are left out."""
    if link in TYPE_AT:
        return _behind_tags(data, layer, TYPE_AT[link])
    if link == LINUX_COOKED_2:
        kinds = big16(window(data, layer.starts, 2), 0)
        moved = layer._replace(kinds=kinds, starts=layer.starts + 20)
    else:
        version = window(data, layer.starts, 1)[:, 0] >> 4
        moved = layer._replace(kinds=np.where(version == 4, IPV4, np.where(version == 6, IPV6, 0)))  # noqa: PLR2004
    return moved.where(moved.starts <= moved.limits)


def _behind_tags(data: Bytes, layer: Layer, at: int) -> Layer:
    head = window(data, layer.starts, at + 4 * MOST_TAGS + 2)
    kinds, starts, tags = big16(head, at), layer.starts + at + 2, layer.tags
    for level in range(MOST_TAGS):
        tagged = _is_tag(kinds) & (starts == layer.starts + at + 2 + 4 * level)
        if not tagged.any():
            break
        tags = np.where(tagged & (tags == NO_TAG), big16(head, at + 2 + 4 * level), tags)
        kinds = np.where(tagged, big16(head, at + 4 + 4 * level), kinds)
        starts = np.where(tagged, starts + 4, starts)
    return Layer(layer.rows, layer.links, starts, layer.limits, tags, kinds).where(starts <= layer.limits)


def _is_tag(kinds: Integers) -> Flags:
    """As np.isin, which costs more than the rest of a small batch."""
    found: Flags = kinds == TAG_TYPES[0]
    for kind in TAG_TYPES[1:]:
        found |= kinds == kind
    return found


class _Payload(NamedTuple):
    """What the network headers of a layer carry."""

    layer: Layer
    protocol: Integers
    transport: Integers
    end: Integers


def _follow(data: Bytes, layer: Layer) -> tuple[list[Located], Layer | None]:
    """The RoCE packets of a layer, and the Ethernet frames in its tunnels."""
    found: list[Located] = []
    inner: list[Layer] = []
    for kind, read in ((IPV4, _ipv4), (IPV6, _ipv6), (ROCE_V1, _ipv6)):
        mine = layer.where(layer.kinds == kind)
        if not len(mine.rows):
            continue
        payload = read(data, mine)
        if kind == ROCE_V1:
            found.append(
                _complete(payload.layer, payload.transport, payload.end, payload.protocol == GRH_NEXT)
            )
            continue
        datagrams = _chosen(
            payload, (payload.protocol == UDP) & (payload.transport + UDP_BYTES <= payload.layer.limits)
        )
        head = window(data, datagrams.transport, UDP_BYTES)
        ports = big16(head, 2)
        end = datagrams.transport + big16(head, 4)
        whole = (ports == ROCE_PORT) & (end <= datagrams.end)
        found.append(_complete(datagrams.layer, datagrams.transport + UDP_BYTES, end, whole))
        if (tunnels := ports == VXLAN_PORT).any():
            inner.append(_vxlan(data, _chosen(datagrams, tunnels)))
        if (tunnels := payload.protocol == GRE).any():
            inner.append(_gre(data, _chosen(payload, tunnels)))
    return found, Layer(*(np.concatenate(part) for part in zip(*inner, strict=True))) if inner else None


def _chosen(payload: _Payload, flags: Flags) -> _Payload:
    if flags.all():
        return payload
    return _Payload(
        payload.layer.where(flags), payload.protocol[flags], payload.transport[flags], payload.end[flags]
    )


def _ipv4(data: Bytes, layer: Layer) -> _Payload:
    layer = layer.where(layer.starts + IPV4_BYTES <= layer.limits)
    head = window(data, layer.starts, IPV4_BYTES)
    size, total = (head[:, 0] & 0xF).astype(np.int64) * 4, big16(head, 2)
    whole = (head[:, 0] >> 4 == 4) & (big16(head, 6) & 0x3FFF == 0) & (size >= IPV4_BYTES) & (total >= size)  # noqa: PLR2004
    return _chosen(
        _Payload(layer, head[:, 9].astype(np.int64), layer.starts + size, layer.starts + total), whole
    )


def _ipv6(data: Bytes, layer: Layer) -> _Payload:
    layer = layer.where(layer.starts + IPV6_BYTES <= layer.limits)
    head = window(data, layer.starts, IPV6_BYTES)
    transport = layer.starts + IPV6_BYTES
    payload = _Payload(layer, head[:, 6].astype(np.int64), transport, transport + big16(head, 4))
    return _chosen(payload, head[:, 0] >> 4 == 6)  # noqa: PLR2004


def _complete(layer: Layer, bth: Integers, end: Integers, flags: Flags) -> Located:
    """Those with room for a BTH and an ICRC whose BTH was captured."""
    found = Located(layer.rows, layer.links, layer.starts, bth, end, layer.limits, layer.tags, layer.kinds)
    enough = (found.end - found.bth >= BTH_BYTES + ICRC_BYTES) & (found.bth + BTH_BYTES <= found.limits)
    chosen = flags & enough
    return found if chosen.all() else Located(*(part[chosen] for part in found))


def _vxlan(data: Bytes, payload: _Payload) -> Layer:
    start = payload.transport + UDP_BYTES
    valid = (window(data, start, 1)[:, 0] & 0x08 != 0) & (start + VXLAN_BYTES <= payload.layer.limits)
    return payload.layer._replace(
        links=start + VXLAN_BYTES, starts=start + VXLAN_BYTES, tags=_untagged(start)
    ).where(valid)


def _gre(data: Bytes, payload: _Payload) -> Layer:
    # ERSPAN I has no header and no sequence number in GRE. The last 16 bits of the header of ERSPAN III: P, frame type (5 bits,
    # 0 is Ethernet), hardware, direction, granularity, O (a subheader follows).
    head = window(data, payload.transport, 4)
    flags, kind = big16(head, 0), big16(head, 2)
    start = payload.transport + 4 + 4 * ((flags >> 15 & 1) + (flags >> 13 & 1) + (flags >> 12 & 1))
    limits = payload.layer.limits
    third = big16(window(data, start + 10, 2), 0)
    behind = np.select(
        [kind == GRE_ETHERNET, kind == ERSPAN, kind == ERSPAN_3],
        [start, start + np.where(flags & 0x1000, 8, 0), start + np.where(third & 1, 20, 12)],
        -1,
    )
    valid = (behind >= 0) & (flags & 7 == 0) & (payload.transport + 4 <= limits)
    valid &= (kind != ERSPAN_3) | ((third >> 10 & 0x1F == 0) & (start + 12 <= limits))
    return payload.layer._replace(links=behind, starts=behind, tags=_untagged(behind)).where(valid)


def _untagged(rows: Integers) -> Integers:
    return np.full(len(rows), NO_TAG, np.int64)
