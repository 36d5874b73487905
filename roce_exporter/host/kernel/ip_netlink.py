"""Addresses, neighbours, routes and rules of a network device by rtnetlink. Needs no privilege.

Follows include/uapi/linux/rtnetlink.h, if_addr.h, neighbour.h and fib_rules.h. The kernel filters each list by the network
device (NETLINK_GET_STRICT_CHK, Linux 4.20), because a router on the host can have 100,000 routes. The rest of a list beyond
`MOST` entries is not read: the socket is closed. Some of these lists wait for the lock of
all network configuration, so this is only called by a source of the slow chain, in a worker thread.

Where a packet leaves is not computed here: the kernel is queried for it (RTM_GETROUTE), as by `ip route get`. So rules
of every kind and learned path MTUs count.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from struct import Struct

from roce_exporter.host.kernel import Absent, netlink, read_or
from roce_exporter.host.kernel.names import decode_name, encode_netdev
from roce_exporter.model import ip

MOST = 1000  # entries of one list that are read

FAMILIES = {4: int(socket.AF_INET), 6: int(socket.AF_INET6)}

RTM_GETADDR, RTM_GETROUTE, RTM_GETNEIGH, RTM_GETRULE = 22, 26, 30, 34
_ADDRESS = Struct("=4BI")
_NEIGHBOUR = Struct("=BxxxiHBB")
_ROUTE = Struct("=8BI")
"""struct ifaddrmsg, ndmsg, and rtmsg, whose layout struct fib_rule_hdr shares."""
_HOP = Struct("=HBBi")
_CACHE_INFO = Struct("=4I")

# include/uapi/linux/neighbour.h
NUD_INCOMPLETE, NUD_FAILED, NUD_NOARP, NTF_EXT_LEARNED = 0x01, 0x20, 0x40, 0x10
NUD_RESOLVED = 0x02 | 0x04 | 0x08 | 0x10 | 0x80
NDA_DST, NDA_CACHEINFO, NDA_IFINDEX = 1, 3, 8
HERTZ = 100  # USER_HZ, the unit of NDA_CACHEINFO

# include/uapi/linux/if_addr.h
IFA_ADDRESS, IFA_LOCAL, IFA_FLAGS = 1, 2, 8
IFA_F_DADFAILED, IFA_F_TENTATIVE = 0x08, 0x40
SCOPES = {0: "global", 200: "site", 253: "link", 254: "host", 255: "nowhere"}

# include/uapi/linux/rtnetlink.h
KINDS = {
    1: "unicast",
    2: "local",
    3: "broadcast",
    4: "anycast",
    5: "multicast",
    6: "blackhole",
    7: "unreachable",
    8: "prohibit",
    9: "throw",
}
RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_METRICS, RTA_MULTIPATH = 1, 2, 4, 5, 6, 8, 9
RTA_TABLE, RTA_VIA = 15, 18
RTAX_MTU, RTAX_ADVMSS = 2, 8
RTNH_F_DEAD = 1
RTM_F_CLONED = 0x200

# include/uapi/linux/fib_rules.h
ACTIONS = {1: "lookup", 2: "goto", 3: "nop", 6: "blackhole", 7: "unreachable", 8: "prohibit"}
FIB_RULE_INVERT = 2
FRA_DST, FRA_SRC, FRA_IIFNAME, FRA_GOTO, FRA_PRIORITY, FRA_FWMARK = 1, 2, 3, 4, 6, 10
FRA_SUPPRESS_PREFIXLEN, FRA_TABLE, FRA_FWMASK, FRA_OIFNAME = 14, 15, 16, 17
_OTHERS: Mapping[int, str] = {
    **dict.fromkeys((1, 2, 3, 4, 6, 10, 14, 15, 16, 17, 21), ""),
    11: "FRA_FLOW",
    12: "FRA_TUN_ID",
    13: "FRA_SUPPRESS_IFGROUP",
    18: "FRA_PAD",
    19: "FRA_L3MDEV",
    20: "FRA_UID_RANGE",
    22: "FRA_IP_PROTO",
    23: "FRA_SPORT_RANGE",
    24: "FRA_DPORT_RANGE",
}
"""Names of the selectors without a field in `IpRule`; empty for those with one, and for FRA_PROTOCOL (21), who made the rule."""

FAILURES = {
    errno.ENETUNREACH: "unreachable",
    errno.EHOSTUNREACH: "unreachable",
    errno.EACCES: "prohibited",
    errno.EINVAL: "blackhole",
}
"""What the errors of RTM_GETROUTE mean. The kernel returns EINVAL for a blackhole, and for a source that it does not have."""


Entry = tuple[int, tuple[int, ...], Mapping[int, bytes]]
"""An entry of a list: its version of IP, the numbers of its struct, its attributes."""


def read_ip_facts(netdev: str, open_socket: netlink.OpenSocket = netlink.open_strict_socket) -> ip.IpFacts:
    """Addresses, neighbours and routes of one network device of this network namespace, and all rules.

    Raises:
        Absent: there is no such network device.
        OSError: the kernel refuses, or its reply is malformed or lost.
    """
    try:
        index = socket.if_nametoindex(os.fsdecode(encode_netdev(netdev)))
    except OSError:
        raise Absent(errno.ENODEV, os.strerror(errno.ENODEV), netdev) from None
    requests = {
        "addr": (RTM_GETADDR, _ADDRESS, (0, 0, 0, index), b""),
        "neigh": (RTM_GETNEIGH, _NEIGHBOUR, (0, 0, 0, 0), netlink.encode_u32(NDA_IFINDEX, index)),
        "route": (RTM_GETROUTE, _ROUTE, (0,) * 8, netlink.encode_u32(RTA_OIF, index)),
        "rule": (RTM_GETRULE, _ROUTE, (0,) * 8, b""),
    }
    found: dict[str, list[Entry]] = {kind: [] for kind in requests}
    capped = {}
    with netlink.about(netdev), closing(netlink.Netlink(netlink.NETLINK_ROUTE, open_socket)) as query:
        for kind, (command, shape, fields, filters) in requests.items():
            for version, family in FAMILIES.items():
                payload = shape.pack(family, *fields) + filters
                entries = query.request(command, payload, dump=True, most=MOST)
                found[kind] += [(version, *_decode(shape, one)) for one in entries[:MOST]]
                if len(entries) > MOST:
                    capped[kind] = True
    # A kernel without strict checks ignores the filters.
    routes = [_route(*one) for one in found["route"] if not one[1][8] & RTM_F_CLONED]
    return ip.IpFacts(
        tuple(_address(*one) for one in found["addr"] if one[1][4] == index),
        tuple(_neighbours(one for one in found["neigh"] if one[1][1] == index)),
        tuple(route for route in routes if any(hop.netdev == netdev for hop in route.hops)),
        tuple(_rule(*one) for one in found["rule"]),
        tuple(capped),
    )


def read_ip_paths(
    pairs: Sequence[tuple[str, str]], open_socket: netlink.OpenSocket = netlink.open_strict_socket
) -> tuple[ip.IpPath, ...]:
    """How a packet from the first to the second address leaves, for each pair. OSError: a reply is malformed or lost."""
    with closing(netlink.Netlink(netlink.NETLINK_ROUTE, open_socket)) as query:
        return tuple(_path(query, source, destination) for source, destination in pairs)


def _path(query: netlink.Netlink, source: str, destination: str) -> ip.IpPath:
    version = ip.version_of(destination)
    ends = {RTA_DST: destination, RTA_SRC: source}
    raw = {kind: socket.inet_pton(FAMILIES[version], text) for kind, text in ends.items()}
    bits = 8 * len(raw[RTA_DST])
    request = _ROUTE.pack(FAMILIES[version], bits, bits, *bytes(6))
    request += b"".join(netlink.encode_attribute(kind, value) for kind, value in raw.items())
    try:
        fields, values = _decode(_ROUTE, netlink.only_payload(query.request(RTM_GETROUTE, request)))
    except netlink.Refused as error:
        failure = FAILURES.get(error.errno or 0)
        if failure is None:
            raise OSError(error.errno, error.strerror, destination) from None
        return ip.IpPath(failure=failure)
    kind = KINDS.get(fields[7], "")
    if kind not in ("unicast", "local", "anycast", "broadcast", "multicast"):
        return ip.IpPath(failure=kind or "unreachable")  # IPv6 replies with a route that rejects
    (hop, *_) = _hops(fields[8], values)
    return ip.IpPath(hop.netdev, hop.gateway, _metric(values, RTAX_MTU), kind == "local")


def _decode(shape: Struct, payload: bytes) -> tuple[tuple[int, ...], Mapping[int, bytes]]:
    return netlink.decode_struct(shape, payload, "of rtnetlink"), netlink.decode_values(payload, shape.size)


def _address(_: int, fields: tuple[int, ...], values: Mapping[int, bytes]) -> ip.IpAddress:
    _, length, low_flags, scope, _ = fields
    # IFA_LOCAL is this end of a point-to-point link, IFA_ADDRESS then the other.
    address = values[IFA_LOCAL] if IFA_LOCAL in values else netlink.required(values, IFA_ADDRESS)
    flags = netlink.number_or_zero(values, IFA_FLAGS) or low_flags
    return ip.IpAddress(
        netlink.decode_address(address),
        length,
        SCOPES.get(scope, str(scope)),
        bool(flags & IFA_F_DADFAILED),
        bool(flags & IFA_F_TENTATIVE and not flags & IFA_F_DADFAILED),
    )


def _neighbours(entries: Iterable[Entry]) -> Iterator[ip.IpNeighbour]:
    for _, (_, _, state, flags, _), values in entries:
        if state & NUD_NOARP or flags & NTF_EXT_LEARNED:
            continue  # multicast and broadcast need no resolution, and what a program such as Cilium enters, it resolves
        word = (
            ip.FAILED
            if state & NUD_FAILED
            else ip.INCOMPLETE
            if state & NUD_INCOMPLETE
            else ip.RESOLVED
            if state & NUD_RESOLVED
            else ""
        )
        if word:
            seconds = None
            if NDA_CACHEINFO in values:
                _, _, updated, _ = netlink.decode_struct(_CACHE_INFO, values[NDA_CACHEINFO], "nda_cacheinfo")
                seconds = updated / HERTZ
            yield ip.IpNeighbour(netlink.decode_address(netlink.required(values, NDA_DST)), word, seconds)


def _route(version: int, fields: tuple[int, ...], values: Mapping[int, bytes]) -> ip.IpRoute:
    _, length, source_length, tos, table, _, _, kind, flags = fields
    return ip.IpRoute(
        netlink.number_or_zero(values, RTA_TABLE) or table,
        _prefix(netlink.required(values, RTA_DST), length) if length else ip.EVERYWHERE[version],
        KINDS.get(kind, str(kind)),
        tuple(_hops(flags, values)),
        netlink.number_or_zero(values, RTA_PRIORITY),
        _metric(values, RTAX_MTU),
        _metric(values, RTAX_ADVMSS),
        tos,
        _prefix(netlink.required(values, RTA_SRC), source_length) if source_length else "",
    )


def _prefix(address: bytes, length: int) -> str:
    return f"{netlink.decode_address(address)}/{length}"


def _hops(flags: int, values: Mapping[int, bytes]) -> Iterator[ip.NextHop]:
    several = values.get(RTA_MULTIPATH, b"")
    if not several:
        yield _hop(netlink.number_or_zero(values, RTA_OIF), flags, values)
    start = 0
    while start < len(several):
        length, flags, _, index = netlink.decode_struct(_HOP, several[start:], "rtnexthop")
        if not _HOP.size <= length <= len(several) - start:
            raise netlink.Malformed(f"a next hop of {length} bytes with {len(several) - start} left")
        yield _hop(index, flags, netlink.decode_values(several, start + _HOP.size, start + length))
        start += (length + 3) & ~3


def _hop(index: int, flags: int, values: Mapping[int, bytes]) -> ip.NextHop:
    name = read_or("", socket.if_indextoname, index & 0xFFFFFFFF)
    # struct rtvia has the family before the address, which is of the other version of IP.
    gateway = values.get(RTA_GATEWAY) or values.get(RTA_VIA, b"")[2:]
    return ip.NextHop(
        decode_name(os.fsencode(name)),
        netlink.decode_address(gateway) if gateway else "",
        not flags & RTNH_F_DEAD,
    )


def _metric(values: Mapping[int, bytes], kind: int) -> int:
    return netlink.number_or_zero(netlink.decode_values(values.get(RTA_METRICS, b"")), kind)


def _rule(version: int, fields: tuple[int, ...], values: Mapping[int, bytes]) -> ip.IpRule:
    _, destination_length, source_length, tos, table, _, _, action, flags = fields
    others = sorted({_OTHERS.get(kind, "UNKNOWN") for kind in values} - {""})
    return ip.IpRule(
        netlink.number_or_zero(values, FRA_PRIORITY),
        version,
        netlink.number_or_zero(values, FRA_TABLE) or table,
        ACTIONS.get(action, str(action)),
        _prefix(values[FRA_SRC], source_length) if FRA_SRC in values else "",
        _prefix(values[FRA_DST], destination_length) if FRA_DST in values else "",
        bool(flags & FIB_RULE_INVERT),
        decode_name(values.get(FRA_IIFNAME, b"")),
        decode_name(values.get(FRA_OIFNAME, b"")),
        netlink.number_or_zero(values, FRA_FWMARK),
        netlink.number_or_zero(values, FRA_FWMASK),
        netlink.number_or_zero(values, FRA_GOTO),
        netlink.number_or_zero(values, FRA_SUPPRESS_PREFIXLEN)
        if FRA_SUPPRESS_PREFIXLEN in values
        else ip.NO_LIMIT,
        (*others, *(["tos"] if tos else [])),
    )
