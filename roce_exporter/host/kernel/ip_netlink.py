"""Addresses, neighbours, routes and rules of a network device by rtnetlink, through pyroute2. Needs no privilege.

Follows include/uapi/linux/rtnetlink.h, if_addr.h, neighbour.h and fib_rules.h. The kernel filters each list by the network
device (NETLINK_GET_STRICT_CHK, Linux 4.20), because a router on the host can have 100,000 routes. The rest of a list beyond
`MOST` entries is not read: the socket is closed. Some of these lists wait for the lock of
all network configuration, so this is only called by a source of the slow chain, in a worker thread.

Where a packet leaves is not computed here: the kernel is queried for it (RTM_GETROUTE), as by `ip route get`. So rules
of every kind and learned path MTUs count.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from roce_exporter.host.kernel import Absent, read_or
from roce_exporter.host.kernel.names import decode_name, encode_netdev
from roce_exporter.host.kernel.pyroute import open_route_socket, os_errors
from roce_exporter.model import ip
from roce_exporter.words import word_list

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence

T = TypeVar("T")

MOST = 1000
"""Entries of one list that are read."""

REPLY_TIMEOUT = 10.0
"""Seconds after which a reply counts as lost. The kernel replies while the request is sent; a wait in there is not counted."""

FAMILIES = {4: int(socket.AF_INET), 6: int(socket.AF_INET6)}

# include/uapi/linux/neighbour.h
NUD_INCOMPLETE, NUD_FAILED, NUD_NOARP = 0x01, 0x20, 0x40
NUD_RESOLVED = 0x02 | 0x04 | 0x08 | 0x10 | 0x80
HERTZ = 100
"""USER_HZ, the unit of NDA_CACHEINFO."""

# include/uapi/linux/if_addr.h
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
RTNH_F_DEAD = 1
RTM_F_CLONED = 0x200


# include/uapi/linux/fib_rules.h
ACTIONS = {1: "lookup", 2: "goto", 3: "nop", 6: "blackhole", 7: "unreachable", 8: "prohibit"}
FIB_RULE_INVERT = 2
_SIMPLE = frozenset(
    word_list(
        """
    FRA_TABLE FRA_SUPPRESS_PREFIXLEN FRA_PROTOCOL FRA_PRIORITY FRA_SRC FRA_DST FRA_IIFNAME FRA_OIFNAME
    FRA_FWMARK FRA_FWMASK FRA_GOTO
    """
    )
)

FAILURES = {
    errno.ENETUNREACH: "unreachable",
    errno.EHOSTUNREACH: "unreachable",
    errno.EACCES: "prohibited",
    errno.EINVAL: "blackhole",
}
"""What the errors of RTM_GETROUTE mean. The kernel returns EINVAL for a blackhole, and for a source that it does not have."""


RouteSocket = Any
"""pyroute2's `AsyncIPRoute`, which has no types: `addr`, `neigh`, `rule` and `route` with the commands `dump` (a list) and `get` (one
entry). They raise NetlinkError where the kernel replies with an error, its `code`."""

OpenSocket = Callable[[], AbstractAsyncContextManager[RouteSocket]]


def read_ip_facts(netdev: str, open_socket: OpenSocket = open_route_socket) -> ip.IpFacts:
    """Addresses, neighbours and routes of one network device of this network namespace, and all rules.

    Raises:
        Absent: there is no such network device.
        OSError: the kernel refuses, or its reply is malformed or lost.
    """
    try:
        index = socket.if_nametoindex(os.fsdecode(encode_netdev(netdev)))
    except OSError:
        raise Absent(errno.ENODEV, os.strerror(errno.ENODEV), netdev) from None
    return _run(_facts(open_socket, netdev, index), netdev)


def read_ip_paths(
    pairs: Sequence[tuple[str, str]],
    open_socket: OpenSocket = open_route_socket,
) -> tuple[ip.IpPath, ...]:
    """How a packet from the first to the second address leaves, for each pair. OSError: a reply is malformed or lost."""
    return _run(_paths(open_socket, pairs), "RTM_GETROUTE") if pairs else ()


def _run(work: Coroutine[Any, Any, T], what: str) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(REPLY_TIMEOUT):
            return await work

    try:
        with os_errors(what, "of rtnetlink"):
            return asyncio.run(bounded())
    except TimeoutError:
        raise OSError(errno.ENOBUFS, "the kernel lost a reply of rtnetlink", what) from None
    finally:
        work.close()


async def _facts(open_socket: OpenSocket, netdev: str, index: int) -> ip.IpFacts:
    requests: dict[str, dict[str, object]] = {
        "addr": {"index": index},
        "neigh": {"NDA_IFINDEX": index},
        "route": {"oif": index},
        "rule": {},
    }
    found, capped = await _lists(open_socket, requests)
    # A kernel without strict checks ignores the filters.
    mine = [(version, one) for version, one in found["neigh"] if one["ifindex"] == index]
    return ip.IpFacts(
        tuple(_address(one) for _, one in found["addr"] if one["index"] == index),
        tuple(_neighbours(one for _, one in mine)),
        tuple(
            route
            for version, one in found["route"]
            if not one["flags"] & RTM_F_CLONED
            for route in [_route(version, one)]
            if any(hop.netdev == netdev for hop in route.hops)
        ),
        tuple(_rule(version, one) for version, one in found["rule"]),
        capped,
    )


async def _lists(
    open_socket: OpenSocket,
    requests: Mapping[str, Mapping[str, object]],
) -> tuple[dict[str, list[tuple[int, Any]]], tuple[str, ...]]:
    """The entries of each list with their version of IP, and the names of the lists that were cut."""
    found: dict[str, list[tuple[int, Any]]] = {kind: [] for kind in requests}
    capped: list[str] = []
    left = [(kind, version) for kind in requests for version in FAMILIES]
    while left:
        # The rest of a list that is cut would be in the way of the next one, so that needs another socket.
        async with open_socket() as query:
            whole = True
            while left and whole:
                kind, version = left.pop(0)
                # `dump_filter=None` makes pyroute2 send the filter to the kernel.
                fields = {"dump_filter": None, "family": FAMILIES[version], **requests[kind]}
                messages, whole = await _first(await getattr(query, kind)("dump", **fields))
                found[kind] += [(version, message) for message in messages]
                if not whole:
                    capped.append(kind)
    return found, tuple(dict.fromkeys(capped))


async def _first(listed: Any) -> tuple[list[Any], bool]:
    """The first `MOST` entries of a list, and whether these are all."""
    found: list[Any] = []
    async for message in listed:
        if len(found) == MOST:
            return found, False
        found.append(message)
    return found, True


async def _paths(open_socket: OpenSocket, pairs: Sequence[tuple[str, str]]) -> tuple[ip.IpPath, ...]:
    async with open_socket() as query:
        return tuple([await _path(query, source, destination) for source, destination in pairs])


async def _path(query: RouteSocket, source: str, destination: str) -> ip.IpPath:
    family = FAMILIES[ip.version_of(destination)]
    try:
        (message,) = await query.route("get", family=family, src=source, dst=destination)
    except Exception as error:
        failure = FAILURES.get(getattr(error, "code", -1))
        if failure is None:
            raise
        return ip.IpPath(failure=failure)
    kind = KINDS.get(message["type"], "")
    if kind not in ("unicast", "local", "anycast", "broadcast", "multicast"):
        return ip.IpPath(failure=kind or "unreachable")  # IPv6 replies with a route that rejects
    (hop, *_) = _hops(message)
    return ip.IpPath(hop.netdev, hop.gateway, _metric(message, "RTAX_MTU"), kind == "local")


def _address(message: Any) -> ip.IpAddress:
    # IFA_LOCAL is this end of a point-to-point link, IFA_ADDRESS then the other.
    address = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
    flags = message.get_attr("IFA_FLAGS") or message["flags"]
    scope = SCOPES.get(message["scope"], str(message["scope"]))
    return ip.IpAddress(
        str(address),
        message["prefixlen"],
        scope,
        bool(flags & IFA_F_DADFAILED),
        bool(flags & IFA_F_TENTATIVE and not flags & IFA_F_DADFAILED),
    )


def _neighbours(messages: Iterable[Any]) -> Iterable[ip.IpNeighbour]:
    for message in messages:
        state = message["state"]
        if state & NUD_NOARP:
            continue  # multicast and broadcast need no resolution
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
            times = message.get_attr("NDA_CACHEINFO")
            seconds = times["ndm_updated"] / HERTZ if times else None
            yield ip.IpNeighbour(str(message.get_attr("NDA_DST")), word, seconds)


def _route(version: int, message: Any) -> ip.IpRoute:
    length = message["dst_len"]
    destination = f"{message.get_attr('RTA_DST')}/{length}" if length else ip.EVERYWHERE[version]
    return ip.IpRoute(
        message.get_attr("RTA_TABLE") or message["table"],
        destination,
        KINDS.get(message["type"], str(message["type"])),
        tuple(_hops(message)),
        message.get_attr("RTA_PRIORITY") or 0,
        _metric(message, "RTAX_MTU"),
        _metric(message, "RTAX_ADVMSS"),
        message["tos"],
        f"{message.get_attr('RTA_SRC')}/{message['src_len']}" if message["src_len"] else "",
    )


def _hops(message: Any) -> Iterable[ip.NextHop]:
    several = message.get_attr("RTA_MULTIPATH")
    for one in several or (message,):
        index = one["oif"] if several else message.get_attr("RTA_OIF")
        name = read_or("", socket.if_indextoname, index or 0)
        via = one.get_attr("RTA_VIA")
        gateway = one.get_attr("RTA_GATEWAY") or (via["addr"] if via else "")
        yield ip.NextHop(decode_name(os.fsencode(name)), str(gateway), not one["flags"] & RTNH_F_DEAD)


def _metric(message: Any, name: str) -> int:
    metrics = message.get_attr("RTA_METRICS")
    return (metrics.get_attr(name) or 0) if metrics else 0


def _rule(version: int, message: Any) -> ip.IpRule:
    names = {name for name, _ in message["attrs"]}
    others = sorted(names - _SIMPLE) + (["tos"] if message["tos"] else [])
    source, destination = message.get_attr("FRA_SRC"), message.get_attr("FRA_DST")
    limit = message.get_attr("FRA_SUPPRESS_PREFIXLEN")
    mark = message.get_attr("FRA_FWMARK") or 0
    return ip.IpRule(
        message.get_attr("FRA_PRIORITY") or 0,
        version,
        message.get_attr("FRA_TABLE") or message["table"],
        ACTIONS.get(message["action"], str(message["action"])),
        f"{source}/{message['src_len']}" if source else "",
        f"{destination}/{message['dst_len']}" if destination else "",
        bool(message["flags"] & FIB_RULE_INVERT),
        message.get_attr("FRA_IIFNAME") or "",
        message.get_attr("FRA_OIFNAME") or "",
        mark,
        message.get_attr("FRA_FWMASK") or 0,
        message.get_attr("FRA_GOTO") or 0,
        ip.NO_LIMIT if limit is None else limit,
        tuple(others),
    )
