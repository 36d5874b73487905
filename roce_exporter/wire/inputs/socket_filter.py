"""The filter that the kernel applies before it copies a frame: RoCE, tunnels, MPLS, sFlow, MAC control and LLDP.

Classic BPF (Documentation/networking/filter.rst of Linux). Where the NIC removes the outer VLAN tag, the filter sees the
frame without it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from roce_exporter.wire.decode import locate

LOAD_HALF, LOAD_BYTE, LOAD_HALF_INDEXED, LOAD_HEADER_LENGTH = 0x28, 0x30, 0x48, 0xB1
"""BPF_LD with BPF_ABS or BPF_IND, and BPF_LDX with BPF_MSH: the length of an IPv4 header into X."""
JUMP_EQUAL, RETURN = 0x15, 0x06
WHOLE = 0x40000  # bytes to copy: all of any frame

ACCEPT, REJECT = "accept", "reject"
TYPE_AT, NETWORK_AT = 12, 14
PROTOCOL_AT = {locate.IPV4: 9, locate.IPV6: 6}


class Instruction(NamedTuple):
    """One instruction; a jump names the label that it goes to when the values are equal."""

    code: int
    value: int
    target: str = ""
    label: str = ""


Program: TypeAlias = list[tuple[int, int, int, int]]
"""Code, jump if true, jump if false and value of each instruction (struct sock_filter)."""

NO_FRAME: Program = [(RETURN, 0, 0, 0)]  # accepts nothing


def socket_filter() -> Program:
    """The program that accepts what is decoded."""
    source: list[Instruction] = []
    for level in range(locate.MOST_TAGS + 1):
        source += _level(level)
    source += [Instruction(RETURN, 0, label=REJECT), Instruction(RETURN, WHOLE, label=ACCEPT)]
    places = {one.label: at for at, one in enumerate(source) if one.label}
    return [
        (one.code, places[one.target] - at - 1 if one.target else 0, 0, one.value)
        for at, one in enumerate(source)
    ]


def _level(level: int) -> list[Instruction]:
    """The frame behind `level` VLAN tags."""
    base = 4 * level
    following = f"type{level + 1}" if level < locate.MOST_TAGS else REJECT
    return [
        Instruction(LOAD_HALF, TYPE_AT + base, label=f"type{level}"),
        *(_equal(kind, ACCEPT) for kind in (locate.ROCE_V1, locate.MAC_CONTROL, locate.LLDP, *locate.MPLS)),
        _equal(locate.IPV4, f"ipv4{level}"),
        _equal(locate.IPV6, f"ipv6{level}"),
        *(_equal(kind, following) for kind in locate.TAG_TYPES),
        Instruction(RETURN, 0),
        *_network(locate.IPV4, f"ipv4{level}", NETWORK_AT + base),
        Instruction(LOAD_HEADER_LENGTH, NETWORK_AT + base),
        Instruction(LOAD_HALF_INDEXED, NETWORK_AT + base + 2),
        *_ports(),
        *_network(locate.IPV6, f"ipv6{level}", NETWORK_AT + base),
        Instruction(LOAD_HALF, NETWORK_AT + base + locate.IPV6_BYTES + 2),
        *_ports(),
    ]


def _network(kind: int, label: str, start: int) -> list[Instruction]:
    """Accept tunnels and, as they are rare, every packet with an extension header; continue behind this for UDP; reject the rest."""
    return [
        Instruction(LOAD_BYTE, start + PROTOCOL_AT[kind], label=label),
        *(
            _equal(protocol, ACCEPT)
            for protocol in (*locate.IP_TUNNELS, *(locate.EXTENSIONS if kind == locate.IPV6 else ()))
        ),
        _equal(locate.UDP, f"{label}udp"),
        Instruction(RETURN, 0),
        # A label needs an instruction: loading again changes nothing.
        Instruction(LOAD_BYTE, start + PROTOCOL_AT[kind], label=f"{label}udp"),
    ]


def _ports() -> list[Instruction]:
    return [
        *(_equal(port, ACCEPT) for port in (locate.ROCE_PORT, *locate.UDP_TUNNELS, locate.SFLOW_PORT)),
        Instruction(RETURN, 0),
    ]


def _equal(value: int, target: str) -> Instruction:
    return Instruction(JUMP_EQUAL, value, target)
