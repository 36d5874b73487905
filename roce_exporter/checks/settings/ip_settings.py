"""The IP side of a port and of the host's other ports, taken from the readings of one collection: see `sources.ip_side`.

A rail is a network device of an RDMA port that has an address which peers can use. A host with several of them must lead
each packet out by the rail of its source address: RoCE takes the network device from the GID, but the kernel, ARP and
the reverse path filter take it from rules and routes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from roce_exporter.host.sources.ip_side import (
    ADDRESSES,
    FACTS,
    NO_GATEWAY,
    NOWHERE,
    PATHS,
    REACHABLE,
    SYSCTLS,
    UNKNOWN,
    is_everywhere,
)
from roce_exporter.model.ip import NEIGHBOUR_STATES, network_of, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roce_exporter.model import Reading

VERSIONS = (4, 6)
LEAVES, GATEWAYS = {NOWHERE: "", UNKNOWN: None}, {NO_GATEWAY: ""}


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An address with the length of its subnet."""

    address: str
    length: int
    scope: str
    failed: bool = False
    """Whether another host has it, as duplicate address detection of IPv6 found."""

    @property
    def subnet(self) -> str:
        """The prefix of its subnet."""
        return str(network_of(f"{self.address}/{self.length}"))


@dataclass(frozen=True, slots=True)
class OwnRule:
    """A rule for packets from an address of the network device."""

    priority: int
    source: str
    table: int
    routes: int
    """Routes of that table that leave by the network device."""


@dataclass(frozen=True, slots=True)
class FollowedPath:
    """Where packets from an address to a prefix leave."""

    source: str
    prefix: str
    netdev: str | None
    """Empty: they do not leave. None: not known."""
    gateway: str
    mtu: int
    """0: no limit is known."""


@dataclass(frozen=True, slots=True)
class IpNetdev:
    """The IP side of one network device. Names in `missing` could not be read."""

    netdev: str
    addresses: tuple[OwnAddress, ...] = ()
    rules: tuple[OwnRule, ...] = ()
    paths: tuple[FollowedPath, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    """What routes say about the MTU, by prefix."""
    gateways: Mapping[str, str] = field(default_factory=dict)
    """Address to state."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """Other neighbours that do not resolve."""
    neighbours: Mapping[str, int] = field(default_factory=dict)
    """Number by state."""
    sysctls: Mapping[str, int] = field(default_factory=dict)
    """The values in effect."""
    missing: frozenset[str] = frozenset()

    def usable(self, version: int) -> tuple[OwnAddress, ...]:
        """The addresses of this version of IP that peers can use."""
        return tuple(
            one
            for one in self.addresses
            if one.scope in REACHABLE and not one.failed and version_of(one.address) == version
        )


@dataclass(frozen=True, slots=True)
class IpSide:
    """The IP side of one port, with what the host's other ports have."""

    own: tuple[IpNetdev, ...]
    """The port's network device (the bond, for a RoCE LAG) and those above it."""
    host: tuple[tuple[str, IpNetdev], ...] = ()
    """The network devices of all RDMA ports, each with the kind of its NIC."""

    def rails(self, version: int) -> tuple[IpNetdev, ...]:
        """The host's network devices with a usable address of this version."""
        return tuple(one for _, one in self.host if one.usable(version))

    @property
    def is_multi_rail(self) -> bool:
        """Whether this port is one of several rails."""
        return any(
            len(self.rails(version)) > 1 and any(one.usable(version) for one in self.own)
            for version in VERSIONS
        )


def read_ip_settings(readings: Iterable[Reading], port: int) -> IpSide | None:
    """The IP side of a port; None if the host reports none."""
    own = tuple(
        _netdev(one.netdev, dict(zip(one.names, one.values, strict=True)))
        for one in readings
        if one.source == ADDRESSES and one.port == port
    )
    return IpSide(own) if own else None


def with_rails(sides: Sequence[tuple[str, IpSide | None]]) -> tuple[IpSide | None, ...]:
    """The sides of all ports, each with the kind of its NIC, completed by what the other ports have."""
    by_netdev = {one.netdev: (kind, one) for kind, side in sides if side for one in side.own}
    host = tuple(by_netdev.values())
    return tuple(replace(side, host=host) if side else None for _, side in sides)


def _netdev(netdev: str, values: Mapping[str, int | None]) -> IpNetdev:
    facts: dict[str, list[tuple[list[str], int]]] = {}
    for name, value in values.items():
        kind, *words = name.split(" ")
        if value is not None:
            facts.setdefault(kind, []).append((words, value))
    return IpNetdev(
        netdev,
        tuple(
            OwnAddress(address, int(length), scope, bool(failed))
            for (cidr, scope), failed in facts.get("address", ())
            for address, _, length in [cidr.partition("/")]
        ),
        tuple(
            OwnRule(int(one), source, int(table), count)
            for (one, source, table), count in facts.get("rule", ())
        ),
        tuple(
            FollowedPath(source, prefix, LEAVES.get(leaves, leaves), GATEWAYS.get(gateway, gateway), mtu)
            for (source, prefix, leaves, gateway), mtu in facts.get("path", ())
        ),
        {prefix: value for (prefix,), value in facts.get("limit", ())},
        {address: state for (address, state), _ in facts.get("gateway", ())},
        {address: state for (address, state), _ in facts.get("failing", ())},
        {state: value for (state,), value in facts.get("neighbours", ()) if state in NEIGHBOUR_STATES},
        # The kernel uses the larger one of conf/all and conf/DEV for all of these (include/linux/inetdevice.h).
        {
            name: max(everywhere, own)
            for name in SYSCTLS
            for everywhere, own in [(values.get(f"{name}.all"), values.get(f"{name}.own"))]
            if everywhere is not None and own is not None
        },
        frozenset(name for name, value in values.items() if value is None),
    )


def is_readable(one: IpNetdev) -> bool:
    """Whether the kernel reported addresses, neighbours and rules."""
    return FACTS not in one.missing


def are_paths_readable(one: IpNetdev) -> bool:
    """Whether the kernel said where packets leave."""
    return not one.missing & {FACTS, PATHS}


def shared_subnets(side: IpSide, one: IpNetdev) -> tuple[str, ...]:
    """Names of the other network devices of the host with an address in a subnet of this one, sorted."""
    found = set()
    for version in VERSIONS:
        nets = [network_of(mine.subnet) for mine in one.usable(version)]
        for other in side.rails(version):
            if other.netdev != one.netdev and any(
                net.overlaps(network_of(theirs.subnet)) for net in nets for theirs in other.usable(version)
            ):
                found.add(other.netdev)
    return tuple(sorted(found))


def remote_prefixes(one: IpNetdev) -> frozenset[str]:
    """The prefixes that a rail reaches by a gateway.

    The default route counts only where a rule leads the rail's packets to it: that of the whole host says nothing about
    the rail's fabric.
    """
    subnets = {mine.subnet for mine in one.addresses}
    ruled = {rule.source.partition("/")[0] for rule in one.rules}
    return frozenset(
        path.prefix
        for path in one.paths
        if path.prefix not in subnets and (not is_everywhere(path.prefix) or path.source in ruled)
    )
