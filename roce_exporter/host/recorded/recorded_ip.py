"""The IP side of a recorded host at one moment: the files of `recorded.ip_text`, as a kernel would report them."""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from roce_exporter.host.kernel import Absent
from roce_exporter.host.recorded import ip_text
from roce_exporter.host.recorded.rdma_text import read_json
from roce_exporter.host.recorded.tree import RecordingError, Tree
from roce_exporter.host.sources.ip_side import is_in
from roce_exporter.model.ip import (
    LOCAL,
    NO_LIMIT,
    IpAddress,
    IpFacts,
    IpNeighbour,
    IpPath,
    IpRoute,
    IpRule,
    version_of,
)

LOOPBACK = "lo"
MOST_RULES = 10_000
"""Rules that are tried, against a `goto` that leads back: the kernel refuses those, a recording may have them."""
_FAILURES = {"unreachable": "unreachable", "blackhole": "blackhole", "prohibit": "prohibited"}
UNKNOWN = IpPath(unknown=True)
UNREACHABLE = IpPath(failure="unreachable")


class Fib:
    """Rules and tables of one host and one version of IP."""

    def __init__(self, rules: Sequence[IpRule], routes: Iterable[IpRoute], own: Iterable[str]) -> None:
        """`own` are the host's addresses: only from these can a packet be sent."""
        self._rules = tuple(sorted(rules, key=lambda rule: rule.priority))
        self._own = {ipaddress.ip_address(one) for one in own}
        self._tables: dict[int, list[IpRoute]] = {}
        for route in routes:
            self._tables.setdefault(route.table, []).append(route)

    def path(self, source: str, destination: str) -> IpPath:
        """How a packet leaves."""
        if not self._rules or not self._tables:
            return UNKNOWN
        if ipaddress.ip_address(source) not in self._own:
            return IpPath(failure="blackhole" if version_of(source) == 4 else "unreachable")  # noqa: PLR2004 - of IP
        position, tried, found_in = 0, 0, dict[int, list[IpRoute]]()
        while position < len(self._rules) and tried < MOST_RULES:
            tried += 1
            rule = self._rules[position]
            matches = _matches(rule, source, destination)
            if matches is None:
                return UNKNOWN
            position += 1
            if not matches or rule.action == "nop":
                continue
            if rule.action == "goto":
                position = next(
                    (number for number, one in enumerate(self._rules) if one.priority >= rule.target),
                    len(self._rules),
                )
                continue
            if rule.action in _FAILURES:
                return IpPath(failure=_FAILURES[rule.action])
            if rule.table not in found_in:
                found_in[rule.table] = self._candidates(rule.table, source, destination)
            found = _look_up(rule, found_in[rule.table]) if rule.action == "lookup" else UNKNOWN
            if found is not None:
                return found
        return UNREACHABLE

    def _candidates(self, table: int, source: str, destination: str) -> list[IpRoute]:
        """The routes of a table that fit, the best one first."""
        fitting = (
            route
            for route in self._tables.get(table, ())
            if route.tos == 0
            and is_in(destination, route.destination)
            and (not route.source or is_in(source, route.source))
        )
        # IPv6 compares the prefix of the source after that of the destination.
        return sorted(fitting, key=lambda one: (-_length(one.destination), -_length(one.source), one.metric))


def _look_up(rule: IpRule, candidates: Iterable[IpRoute]) -> IpPath | None:
    """The result of one table; None: the next rule is tried."""
    for route in candidates:
        if route.kind == "throw":
            return None
        if route.kind in _FAILURES:
            return IpPath(failure=_FAILURES[route.kind])
        hops = [hop for hop in route.hops if hop.usable]
        if not hops:
            continue
        if rule.suppress != NO_LIMIT and _length(route.destination) <= rule.suppress:
            return None
        if route.kind == "local" or (route.table == LOCAL and route.kind == "anycast"):
            return IpPath(LOOPBACK, local=True)
        # With several next hops a hash decides, which differs from connection to connection.
        known = hops[0].netdev and len({hop.netdev for hop in hops}) == 1
        return IpPath(hops[0].netdev, hops[0].gateway, route.mtu) if known else UNKNOWN
    return None


def _matches(rule: IpRule, source: str, destination: str) -> bool | None:
    """Whether a packet of this host matches; None if that is not known."""
    simple = (
        (not rule.source or is_in(source, rule.source))
        and (not rule.destination or is_in(destination, rule.destination))
        and rule.input in ("", LOOPBACK)
        and not rule.output
        and not rule.mark & rule.mask
    )
    if rule.others and simple:
        return None
    if rule.others and rule.inverted:
        return True
    return simple is not rule.inverted


def _length(prefix: str) -> int:
    return int(prefix.rpartition("/")[2] or 0)


ADDRESSES, NEIGHBOURS, PATHS = "ip/address.json", "ip/neigh.json", "ip/get.json"
ROUTES = {4: "ip/route.json", 6: "ip/route6.json"}
RULES = {4: "ip/rule.json", 6: "ip/rule6.json"}


@dataclass(frozen=True)
class RecordedIp:
    """Addresses, neighbours, routes, rules and replies. `addresses` is None if there is no recording of them."""

    addresses: Mapping[str, tuple[IpAddress, ...]] | None = None
    neighbours: Mapping[str, tuple[IpNeighbour, ...]] = field(default_factory=dict)
    routes: Mapping[int, tuple[IpRoute, ...]] = field(default_factory=dict)
    """By version of IP."""
    rules: Mapping[int, tuple[IpRule, ...]] = field(default_factory=dict)
    replies: Mapping[tuple[str, str], IpPath] = field(default_factory=dict)

    @cached_property
    def fibs(self) -> Mapping[int, Fib]:
        """By version of IP."""
        own = [one.address for found in (self.addresses or {}).values() for one in found]
        return {
            version: Fib(
                self.rules.get(version, ()),
                self.routes.get(version, ()),
                [one for one in own if version_of(one) == version],
            )
            for version in ROUTES
        }

    def facts(self, netdev: str) -> IpFacts:
        """What `Kernel.ip_facts` returns."""
        if self.addresses is None or netdev not in self.addresses:
            raise Absent(errno.ENODEV, f"not in {ADDRESSES} of this recording", netdev)
        routes = (route for version in (4, 6) for route in self.routes.get(version, ()))
        return IpFacts(
            self.addresses[netdev],
            self.neighbours.get(netdev, ()),
            tuple(route for route in routes if any(hop.netdev == netdev for hop in route.hops)),
            tuple(rule for version in (4, 6) for rule in self.rules.get(version, ())),
        )

    def paths(self, pairs: Sequence[tuple[str, str]]) -> tuple[IpPath, ...]:
        """What `Kernel.ip_paths` returns: the recorded reply, or what rules and routes give."""
        return tuple(self.replies.get(pair) or self.fibs[version_of(pair[1])].path(*pair) for pair in pairs)


def read_recorded_ip(tree: Tree, path: str) -> RecordedIp:
    """The IP side of a recording that came from `path`; without `ip/address.json` it has none."""
    if ADDRESSES not in tree.files:
        return RecordedIp()
    routes, rules = (
        {
            version: _parsed(tree, path, name, partial(parse, version=version), ())
            for version, name in names.items()
        }
        for parse, names in ((ip_text.parse_routes, ROUTES), (ip_text.parse_rules, RULES))
    )
    return RecordedIp(
        _parsed(tree, path, ADDRESSES, ip_text.parse_addresses, {}),
        _parsed(tree, path, NEIGHBOURS, ip_text.parse_neighbours, {}),
        routes,
        rules,
        _parsed(tree, path, PATHS, ip_text.parse_paths, {}),
    )


def _parsed(tree: Tree, path: str, name: str, parse: Callable[[list[Any]], Any], missing: Any) -> Any:
    content = tree.files.get(name, b"")
    if not content.strip():
        return missing
    what = f"recording {path}: {name}"
    rows: Any = read_json(content, what, "ip -j")
    try:
        return parse(rows)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise RecordingError(
            f"{what}: not what `ip -j` prints; see recorded/ip_text.py for the command"
        ) from None
