"""The IP side of each port: addresses, neighbours, where packets leave, and the settings of ARP and the reverse path filter.

RoCE finds its peers by the kernel's routes and neighbours, and these can be wrong while every counter is 0. Documentation/
networking/ip-sysctl.rst has the settings. They are those of the exporter's own network namespace, and so is the rest.

Facts are text, and a reading has names and numbers, so most names contain the fact:

    address CIDR SCOPE                  1 if duplicate address detection failed, else 0
    neighbours STATE                    how many neighbours have the state
    gateway ADDRESS STATE               1; STATE is `unused` if the neighbour table does not have it
    failing ADDRESS STATE               1, for at most 16 other neighbours that failed within 10 minutes
    rule PRIORITY SOURCE TABLE          routes by this network device in the table to which packets from SOURCE are led
    unled TABLE                         routes by this network device in a table to which no rule leads
    path SOURCE PREFIX NETDEV GATEWAY   the known path MTU or 0; NETDEV is `-` if the packet does not leave, `?` if unknown
    limit PREFIX                        what a route to PREFIX says about the MTU
    NAME.all, NAME.own                  a setting in conf/all and in that of the network device
    capped LIST                         1 if the list has more entries than are read
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from roce_exporter.host.kernel import Absent, Kernel, read_or
from roce_exporter.host.sources.query_reader import SeveralReadings
from roce_exporter.model import Port
from roce_exporter.model.ip import (
    DEFAULT,
    EVERYWHERE,
    FAILED,
    LOCAL,
    MAIN,
    NEIGHBOUR_STATES,
    RESOLVED,
    IpAddress,
    IpFacts,
    IpPath,
    IpRoute,
    network_of,
    version_of,
)
from roce_exporter.model.values import GARBAGE, reason_of

ANYWHERE = {4: "203.0.113.1", 6: "3fff:fff::1"}
MOST_ADDRESSES, MOST_PREFIXES, MOST_CANDIDATES = 8, 8, 3
"""Addresses of a network device, and prefixes behind its gateways, that are followed."""
REACHABLE = ("global", "site")  # scopes of the addresses that peers on other links can use


class PathEnds(NamedTuple):
    """Packets from one address to one prefix."""

    source: str
    prefix: str
    candidates: tuple[str, ...]
    """Addresses that represent the prefix."""


def gateway_routes(facts: IpFacts, netdev: str) -> tuple[IpRoute, ...]:
    """The routes that lead to a gateway by this network device."""
    return tuple(
        route
        for route in facts.routes
        if route.kind == "unicast" and any(hop.netdev == netdev and hop.gateway for hop in route.hops)
    )


def targets(facts: IpFacts, netdev: str) -> tuple[PathEnds, ...]:
    """The packets of a network device that are followed."""
    peers = [one.address for one in facts.neighbours if one.state == RESOLVED]
    behind = tuple(dict.fromkeys(route.destination for route in gateway_routes(facts, netdev)))
    usable = [one for one in facts.addresses if one.scope in REACHABLE and not one.failed]
    return tuple(
        target
        for address in usable[:MOST_ADDRESSES]
        for target in _of_address(address, peers, behind)
        if target.candidates
    )


def _of_address(address: IpAddress, peers: Sequence[str], behind: Sequence[str]) -> Iterator[PathEnds]:
    subnet = str(network_of(f"{address.address}/{address.length}"))
    own = {address.address}
    known = [one for one in peers if version_of(one) == version_of(subnet) and is_in(one, subnet)]
    yield PathEnds(address.address, subnet, _candidates(subnet, own, known))
    same_version = (
        prefix for prefix in behind if version_of(prefix) == version_of(subnet) and prefix != subnet
    )
    for prefix in tuple(same_version)[:MOST_PREFIXES]:
        yield PathEnds(address.address, prefix, _candidates(prefix, own, ()))


def _candidates(prefix: str, own: set[str], known: Sequence[str]) -> tuple[str, ...]:
    network = network_of(prefix)
    if network.prefixlen == 0:
        return (ANYWHERE[network.version],)
    last = network.num_addresses - 1
    # Without the network's and the broadcast address, where there are such.
    ends = (1, last - 1) if last > 1 else (0, last)
    offsets = dict.fromkeys((ends[1], last // 2, ends[0], ends[1] - 1, ends[0] + 1))
    chosen = [str(network[offset]) for offset in offsets if 0 <= offset <= last]
    return tuple(dict.fromkeys(one for one in (*known, *chosen) if one not in own))[:MOST_CANDIDATES]


def decisive(paths: Sequence[IpPath], netdev: str) -> IpPath | None:
    """The path that represents a prefix: one by the network device itself, else one that is known; None: all are local."""
    elsewhere = [path for path in paths if not path.local]
    order = sorted(elsewhere, key=lambda path: (path.netdev != netdev, path.unknown, not path.netdev))
    return order[0] if order else None


def is_everywhere(prefix: str) -> bool:
    """Whether a prefix has all addresses."""
    return prefix in EVERYWHERE.values()


def is_in(address: str, prefix: str) -> bool:
    """Whether an address is in a prefix of the same version of IP."""
    return ipaddress.ip_address(address) in network_of(prefix)


ADDRESSES = "addresses"
FACTS, PATHS = "facts", "paths"
"""Names without value where the kernel could not report them."""
CONF = "../proc/sys/net/ipv4/conf"
"""Relative to /sys; below a foreign root, that host's /proc must be mounted next to its /sys."""
SYSCTLS = ("rp_filter", "arp_ignore", "arp_announce", "arp_filter")
RECENT = 600.0
"""Seconds. An entry that failed earlier may be of a peer that is long gone: the kernel keeps up to 128 of them."""
MOST_FAILING = 16
MOST_UPPERS = 16  # network devices above a port, such as VLANs, that are read
NOWHERE, UNKNOWN, UNUSED, NO_GATEWAY = "-", "?", "unused", "-"
TCP_HEADERS = {4: 40, 6: 60}
"""Bytes of the IP and TCP headers, by which a path's MTU exceeds the segment size."""
Found = dict[str, "int | str"]


def addresses_reader(kernel: Kernel, device: str, port: Port) -> SeveralReadings:
    """The IP side of one port, which has a network device: one reading per network device that has one."""

    def query() -> dict[tuple[int, str], Found]:
        found = {(port.number, netdev): read_ip_side(kernel, netdev) for netdev in ip_netdevs(kernel, port)}
        return {place: facts for place, facts in found.items() if facts is not None}

    return SeveralReadings(ADDRESSES, query, device, port.netdevs[0].name, missing="no IP addresses")


def ip_netdevs(kernel: Kernel, port: Port) -> tuple[str, ...]:
    """The port's network device (the bond, for a RoCE LAG), and those above it: a VLAN has addresses, and GIDs, of its own."""
    if not port.netdevs:
        return ()
    own = port.netdevs[0].name
    entries = read_or((), kernel.entries, f"class/net/{own}")
    uppers = (entry.removeprefix("upper_") for entry in entries if entry.startswith("upper_"))
    members = {one.name for one in port.netdevs}
    of_gids = (gid.netdev for gid in port.gids if gid.netdev and gid.netdev not in members)
    return tuple(dict.fromkeys((own, *uppers, *of_gids)))[: MOST_UPPERS + 1]


def read_ip_side(kernel: Kernel, netdev: str) -> Found | None:
    """The names and numbers of one network device; None if the host does not report its IP side.

    A part that fails is a name without value, so that it is not taken for one that is absent.
    """
    try:
        facts = kernel.ip_facts(netdev)
    except Absent:
        return None
    except OSError as error:
        return {FACTS: reason_of(error)}
    found: Found = dict(_own(facts, netdev))
    found |= dict(_neighbours(facts, netdev))
    try:
        found |= dict(_paths(kernel, facts, netdev))
    except OSError as error:
        found[PATHS] = reason_of(error)
    return found | dict(_sysctls(kernel, netdev))


def _own(facts: IpFacts, netdev: str) -> Iterator[tuple[str, int]]:
    for one in facts.addresses:
        yield f"address {one.address}/{one.length} {one.scope}", int(one.failed)
    for rule in facts.rules:
        if rule.source and rule.action == "lookup" and not rule.inverted:
            routes = sum(route.table == rule.table for route in facts.routes)
            same_version = (
                one.address for one in facts.addresses if version_of(one.address) == version_of(rule.source)
            )
            if any(is_in(address, rule.source) for address in same_version):
                yield f"rule {rule.priority} {rule.source} {rule.table}", routes
    for version in (4, 6):
        rules = [rule for rule in facts.rules if rule.version == version]
        # A VRF has one rule for the tables of all VRFs.
        led = {MAIN, LOCAL, DEFAULT, *(rule.table for rule in rules)}
        tables = Counter(one.table for one in facts.routes if version_of(one.destination) == version)
        for table in sorted(tables.keys() - led) if rules and not any(rule.others for rule in rules) else ():
            yield f"unled {table}", tables[table]
    for route in facts.routes:
        headers = TCP_HEADERS[version_of(route.destination)]
        limits = [route.mtu, route.advmss + headers if route.advmss else 0]
        if any(limits) and any(hop.netdev == netdev for hop in route.hops):
            yield f"limit {route.destination}", min(filter(None, limits))
    for name in facts.capped:
        yield f"capped {name}", 1


def _neighbours(facts: IpFacts, netdev: str) -> Iterator[tuple[str, int]]:
    states = {one.address: one.state for one in facts.neighbours}
    for state in NEIGHBOUR_STATES:
        yield f"neighbours {state}", sum(one.state == state for one in facts.neighbours)
    gateways = dict.fromkeys(
        hop.gateway
        for route in gateway_routes(facts, netdev)
        for hop in route.hops
        if hop.netdev == netdev and hop.gateway
    )
    for address in gateways:
        yield f"gateway {address} {states.get(address, UNUSED)}", 1
    failing = [
        one
        for one in facts.neighbours
        if one.address not in gateways
        and one.state != RESOLVED
        and not (one.state == FAILED and (one.seconds or 0.0) > RECENT)
    ]
    for one in sorted(failing, key=lambda one: one.address)[:MOST_FAILING]:
        yield f"failing {one.address} {one.state}", 1


def _paths(kernel: Kernel, facts: IpFacts, netdev: str) -> Iterator[tuple[str, int]]:
    wanted = targets(facts, netdev)
    shared = {
        route.destination
        for route in facts.routes
        if len({hop.netdev for hop in route.hops}) > 1 and any(hop.netdev == netdev for hop in route.hops)
    }
    pairs = [(target.source, one) for target in wanted for one in target.candidates]
    replies = iter(kernel.ip_paths(pairs))
    for target in wanted:
        path = decisive([next(replies) for _ in target.candidates], netdev)
        if path is not None:
            # Of several next hops a hash chooses, which differs from connection to connection.
            by_hash = target.prefix in shared and path.netdev not in ("", netdev)
            leaves = UNKNOWN if path.unknown or by_hash else path.netdev or NOWHERE
            gateway = path.gateway or NO_GATEWAY
            yield f"path {target.source} {target.prefix} {leaves} {gateway}", path.mtu


def _sysctls(kernel: Kernel, netdev: str) -> Iterator[tuple[str, int | str]]:
    for name in SYSCTLS:
        for whose, folder in (("all", "all"), ("own", netdev)):
            try:
                text = kernel.text(f"{CONF}/{folder}/{name}")
            except Absent:
                continue
            except OSError as error:
                yield f"{name}.{whose}", reason_of(error)
            else:
                yield f"{name}.{whose}", int(text) if text.isdecimal() else GARBAGE
