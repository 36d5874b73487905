"""Where the RoCE packets of a batch are, behind VLAN tags, MPLS labels and tunnels.

Every header says what follows it, as an EtherType; one step of `locate` reads the header that each frame is at, for all frames of
a kind at once, and yields RoCE packets and what is inside tunnels. Ethernet with VLAN tags (IEEE 802.1Q), the cooked headers of
`tcpdump -i any`, MPLS (RFC 3032, 4385), IPv4 (RFC 791), IPv6 with its extension headers (RFC 8200, 4302, 8754), the GRH of RoCE v1
(InfiniBand specification 8.3), UDP (RFC 768). What is not followed is counted by its name.

Tunnels: GRE (RFC 2784, 2890) with IP, MPLS, Ethernet, and ERSPAN I, II, III (draft-foschiano-erspan-03); IP in IP (RFC 2003, 4213),
MPLS in IP (RFC 4023) and in UDP (RFC 7510), EtherIP (RFC 3378); VXLAN (RFC 7348), also on Linux' own port, VXLAN-GPE
(draft-ietf-nvo3-vxlan-gpe), Geneve (RFC 8926). A kind of 0 is a header that is not valid, or a payload that is not followed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from roce_exporter.wire.decode.infiniband import BTH_BYTES, ICRC_BYTES
from roce_exporter.wire.frames import (
    ETHERNET,
    LINK_NAMES,
    LINUX_COOKED,
    LINUX_COOKED_2,
    LOOPBACK,
    NO_TAG,
    RAW_IP,
    Bytes,
    Flags,
    Frames,
    Integers,
    big16,
    window,
)

Reader = Callable[[Bytes, Integers], tuple[Integers, Integers]]
"""From the bytes and where each header begins to where the payload begins, and its EtherType."""

IPV4, IPV6, BRIDGED = 0x0800, 0x86DD, 0x6558
"""BRIDGED is Transparent Ethernet Bridging: a whole Ethernet frame."""
MPLS = (0x8847, 0x8848)
ERSPAN, ERSPAN_3 = 0x88BE, 0x22EB
UDP_BYTES = 8
TUNNEL_BYTES = 8  # fixed part of VXLAN and Geneve
GPE_KINDS = np.zeros(256, np.int64)  # EtherTypes of the next protocols of VXLAN-GPE
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

ROCE_V1 = 0x8915
MAC_CONTROL, LLDP = 0x8808, 0x88CC
FOLLOWED = (IPV4, IPV6, ROCE_V1, BRIDGED, *MPLS, MAC_CONTROL, LLDP)
TAG_TYPES = (0x8100, 0x88A8, 0x9100)
MOST_TAGS = 2
MOST_LABELS = 8
MOST_HEADERS = 8
"""Steps: a frame in a tunnel takes two (link, network), and nobody nests more than three tunnels."""
UDP = 17
ROCE_PORT = 4791
IPV4_BYTES = 20
IPV6_BYTES = 40
GRH_NEXT = 0x1B  # next header of a GRH that is followed by a base transport header
AUTHENTICATION, FRAGMENT = 51, 44
EXTENSIONS = (0, 43, 60, AUTHENTICATION, FRAGMENT, 135, 139, 140)
"""IPv6 extension headers that another header follows."""
MOST_EXTENSIONS = 4
TYPE_AT = {ETHERNET: 12, LINUX_COOKED: 14}
"""Offset of the EtherType in each link header with tags behind it."""

FRAGMENTS, TOO_DEEP, CUT = "IP fragments", "too many headers", "RoCE packets that are cut off"
SFLOW = "sFlow samples (UDP 6343)"
HIDING_TYPES = {0x8863: "PPPoE", 0x8864: "PPPoE", 0x88E5: "MACsec (encrypted)", 0x894F: "NSH"}
HIDING_PROTOCOLS = {50: "IPsec ESP (encrypted)"}
SFLOW_PORT = 6343
PORT_NAMES = {SFLOW_PORT: SFLOW, 51820: "WireGuard (encrypted)", 2152: "GTP-U (UDP 2152)"}
ETHERTYPE_NAMES = {0x0806: "ARP", 0x8906: "FCoE"} | HIDING_TYPES
PROTOCOL_NAMES = {1: "ICMP", 2: "IGMP", 6: "TCP", 58: "ICMPv6", 89: "OSPF", 132: "SCTP"} | HIDING_PROTOCOLS
HIDDEN = {FRAGMENTS, TOO_DEEP, CUT}.union(
    HIDING_TYPES.values(), HIDING_PROTOCOLS.values(), PORT_NAMES.values()
)


def may_hide(name: str) -> bool:
    """Whether frames of this kind may hold RoCE packets: in a tunnel, samples or a link type that are not decoded."""
    return name in HIDDEN or name.startswith("frames of link type")


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
    others: Counter[str]
    """Frames without a RoCE packet that are neither, by what they are."""


def locate(frames: Frames) -> Inventory:
    """The RoCE packets, MAC control frames and LLDP frames of a batch, and what the other frames are."""
    others: Counter[str] = Counter()
    rows = np.arange(len(frames.starts))
    if frames.link not in TYPE_AT and frames.link not in UNTAGGED_LINKS:
        others[f"frames of link type {frames.link}{LINK_NAMES.get(frames.link, '')}"] = len(rows)
        rows = rows[:0]
    starts, captured, tags = (part[: len(rows)] for part in (frames.starts, frames.captured, frames.tags))
    whole = Layer(rows, starts, starts, starts + captured, tags, np.zeros_like(rows))
    layer = _link(frames.data, whole, frames.link)
    control = _pairs(layer.where(layer.kinds == MAC_CONTROL))
    lldp = _pairs(layer.where(layer.kinds == LLDP))
    found: list[Located] = []
    for _ in range(MOST_HEADERS):
        roce, inner = _follow(frames.data, layer, others)
        found += roce
        inner = [one for one in inner if len(one.rows)]
        if not inner:
            break
        layer = inner[0] if len(inner) == 1 else Layer(*map(np.concatenate, zip(*inner, strict=True)))
    else:
        others[TOO_DEEP] += len(layer.rows)
    return Inventory(_in_order(found), control, lldp, +others)


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


UNTAGGED_LINKS = {LINUX_COOKED_2: 20, RAW_IP: 0, LOOPBACK: 4}
"""Bytes of the link headers without tags."""


def _link(data: Bytes, layer: Layer, link: int) -> Layer:
    """The layer behind the link header and up to two VLAN tags; frames that end before it are left out."""
    if link in TYPE_AT:
        return _behind_tags(data, layer, TYPE_AT[link])
    moved = layer._replace(starts=layer.starts + UNTAGGED_LINKS.get(link, 0))
    if link == LINUX_COOKED_2:
        moved = moved._replace(kinds=big16(window(data, layer.starts, 2), 0))
    else:
        moved = moved._replace(kinds=by_version(window(data, moved.starts, 1)[:, 0]))
    return moved.where(moved.starts <= moved.limits)


def _behind_tags(data: Bytes, layer: Layer, at: int) -> Layer:
    head = window(data, layer.starts, at + 4 * MOST_TAGS + 2)
    kinds, starts, tags = big16(head, at), layer.starts + at + 2, layer.tags
    for level in range(MOST_TAGS):
        # As np.isin, which costs more than the rest of a small batch.
        is_tag = np.logical_or.reduce([kinds == kind for kind in TAG_TYPES])
        tagged = is_tag & (starts == layer.starts + at + 2 + 4 * level)
        if not tagged.any():
            break
        tags = np.where(tagged & (tags == NO_TAG), big16(head, at + 2), tags)
        kinds = np.where(tagged, big16(head, at + 4 + 4 * level), kinds)
        starts = np.where(tagged, starts + 4, starts)
    return Layer(layer.rows, layer.links, starts, layer.limits, tags, kinds).where(starts <= layer.limits)


class _Payload(NamedTuple):
    """What the network headers of a layer carry."""

    layer: Layer
    protocol: Integers
    transport: Integers
    end: Integers


def _follow(data: Bytes, layer: Layer, others: Counter[str]) -> tuple[list[Located], list[Layer]]:
    """The RoCE packets of a layer, and what is behind its labels and in its tunnels."""
    found: list[Located] = []
    inner: list[Layer] = []
    known = 0
    for kind in FOLLOWED:
        mine = layer.where(layer.kinds == kind)
        if not len(mine.rows):
            continue
        known += len(mine.rows)
        if kind in (IPV4, IPV6):
            payload = (_ipv4 if kind == IPV4 else _ipv6)(data, mine, others)
            _follow_ip(data, payload, found, inner, others)
        elif kind == ROCE_V1:
            head = window(data, mine.starts, IPV6_BYTES)
            bth = mine.starts + IPV6_BYTES
            # The GRH has the form of IPv6.
            whole = (by_version(head[:, 0]) == IPV6) & (head[:, 6] == GRH_NEXT)
            found.append(_complete(mine, bth, bth + big16(head, 4), whole, others))
        elif kind == BRIDGED:
            inner.append(_link(data, mine, ETHERNET))
        elif kind in MPLS:
            inner.append(_behind_labels(data, mine))
    if known < len(layer.rows):
        _count(others, layer.kinds, ETHERTYPE_NAMES, "other EtherTypes", FOLLOWED)
    return found, inner


def _follow_ip(
    data: Bytes, payload: _Payload, found: list[Located], inner: list[Layer], others: Counter[str]
) -> None:
    whole = payload.transport + UDP_BYTES <= payload.layer.limits
    datagrams = _chosen(payload, (payload.protocol == UDP) & whole)
    head = window(data, datagrams.transport, UDP_BYTES)
    ports = big16(head, 2)
    end = datagrams.transport + big16(head, 4)
    roce = ports == ROCE_PORT
    bth, whole = datagrams.transport + UDP_BYTES, roce & (end <= datagrams.end)
    found.append(_complete(datagrams.layer, bth, end, whole, others))
    if not roce.all():
        for port, read in UDP_TUNNELS.items():
            if (tunnels := ports == port).any():
                start, kinds = read(data, datagrams.transport[tunnels] + UDP_BYTES)
                inner.append(_inside(datagrams.layer.where(tunnels), start, kinds))
        _count(others, ports, PORT_NAMES, "UDP of other ports", (ROCE_PORT, *UDP_TUNNELS))
    if len(datagrams.layer.rows) == len(payload.layer.rows):
        return
    for protocol, read in IP_TUNNELS.items():
        if (tunnels := payload.protocol == protocol).any():
            start, kinds = read(data, payload.transport[tunnels])
            inner.append(_inside(payload.layer.where(tunnels), start, kinds))
    _count(others, payload.protocol, PROTOCOL_NAMES, "other IP protocols", (UDP, *IP_TUNNELS))


def _inside(layer: Layer, starts: Integers, kinds: Integers, tags: Integers | None = None) -> Layer:
    """What is in tunnels: `kinds` begin at `starts`, a kind of 0 is not valid. An IP packet has no tag between its link header and itself."""
    links = np.where(kinds == BRIDGED, starts, starts - TYPE_AT[ETHERNET] - 2)
    tags = np.full(len(starts), NO_TAG, np.int64) if tags is None else tags
    moved = Layer(layer.rows, links, starts, layer.limits, tags, kinds)
    return moved.where((kinds != 0) & (starts <= layer.limits))


def _count(
    others: Counter[str], values: Integers, names: dict[int, str], rest: str, followed: tuple[int, ...]
) -> None:
    """Count frames that are not followed by the names of their values."""
    for value, count in zip(*np.unique(values, return_counts=True), strict=True):
        if value not in followed:
            others[names.get(int(value), rest)] += int(count)


def by_version(first: Bytes) -> Integers:
    """The EtherType of IP packets by their first byte; 0 for others."""
    return np.where(first >> 4 == 4, IPV4, np.where(first >> 4 == 6, IPV6, 0))  # noqa: PLR2004 - versions of IP


def _behind_labels(data: Bytes, layer: Layer) -> Layer:
    """What is behind a stack of labels, which do not say it: IP by its version, else Ethernet, with a control word (RFC 4385) or without."""
    starts, bottom = layer.starts, np.zeros(len(layer.rows), np.bool_)
    for _ in range(MOST_LABELS):
        last = window(data, starts + 2, 1)[:, 0] & 1 != 0
        starts = np.where(bottom, starts, starts + 4)
        bottom |= last
    kinds = by_version(window(data, starts, 1)[:, 0])
    plain = big16(window(data, starts + TYPE_AT[ETHERNET], 2), 0)
    word = (kinds == 0) & (window(data, starts, 1)[:, 0] >> 4 == 0)
    word &= ~np.isin(plain, (IPV4, IPV6, ROCE_V1, *MPLS, *TAG_TYPES))
    kinds = np.where(bottom, np.where(kinds == 0, BRIDGED, kinds), 0)
    return _inside(layer, np.where(word, starts + 4, starts), kinds, layer.tags)


def _chosen(payload: _Payload, flags: Flags) -> _Payload:
    if flags.all():
        return payload
    return _Payload(payload.layer.where(flags), *(part[flags] for part in payload[1:]))


def _ipv4(data: Bytes, layer: Layer, others: Counter[str]) -> _Payload:
    layer = layer.where(layer.starts + IPV4_BYTES <= layer.limits)
    head = window(data, layer.starts, IPV4_BYTES)
    size, total = (head[:, 0] & 0xF).astype(np.int64) * 4, big16(head, 2)
    fragments = big16(head, 6) & 0x3FFF != 0
    others[FRAGMENTS] += int(np.count_nonzero(fragments))
    whole = (head[:, 0] >> 4 == 4) & ~fragments & (size >= IPV4_BYTES) & (total >= size)  # noqa: PLR2004 - version 4
    protocol = head[:, 9].astype(np.int64)
    return _chosen(_Payload(layer, protocol, layer.starts + size, layer.starts + total), whole)


def _ipv6(data: Bytes, layer: Layer, others: Counter[str]) -> _Payload:
    layer = layer.where(layer.starts + IPV6_BYTES <= layer.limits)
    head = window(data, layer.starts, IPV6_BYTES)
    transport, protocol = layer.starts + IPV6_BYTES, head[:, 6].astype(np.int64)
    payload = _chosen(_Payload(layer, protocol, transport, transport + big16(head, 4)), head[:, 0] >> 4 == 6)  # noqa: PLR2004 - version 6
    for _ in range(MOST_EXTENSIONS):
        extended = np.isin(payload.protocol, EXTENSIONS) & (payload.transport + 8 <= payload.layer.limits)
        if not extended.any():
            break
        head = window(data, payload.transport, 4)
        fragment = extended & (payload.protocol == FRAGMENT)
        # Offset and M; a whole packet may have the header as well (RFC 6946).
        parts = fragment & (big16(head, 2) & 0xFFF9 != 0)
        others[FRAGMENTS] += int(np.count_nonzero(parts))
        size = np.where(fragment, 8, (head[:, 1].astype(np.int64) + 1) * 8)
        size = np.where(payload.protocol == AUTHENTICATION, (head[:, 1].astype(np.int64) + 2) * 4, size)
        payload = payload._replace(
            protocol=np.where(extended, head[:, 0], payload.protocol),
            transport=np.where(extended, payload.transport + size, payload.transport),
        )
        payload = _chosen(payload, ~parts)
    return payload


def _complete(layer: Layer, bth: Integers, end: Integers, flags: Flags, others: Counter[str]) -> Located:
    """Those with room for a BTH and an ICRC whose BTH was captured."""
    found = Located(layer.rows, layer.links, layer.starts, bth, end, layer.limits, layer.tags, layer.kinds)
    room, captured = found.end - found.bth, found.limits - found.bth
    chosen = flags & (room >= BTH_BYTES + ICRC_BYTES) & (captured >= BTH_BYTES)
    if chosen.all():
        return found
    others[CUT] += int(np.count_nonzero(flags & ~chosen))
    return Located(*(part[chosen] for part in found))
