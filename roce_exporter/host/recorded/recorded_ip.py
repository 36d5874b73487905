"""The IP side of a recorded host at one moment: the files of `recording.ip_tables`, as a kernel would report them."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from roce_exporter.host.kernel import Absent
from roce_exporter.host.recorded.fib import UNKNOWN, Fib, make_fibs
from roce_exporter.host.recorded.ip_tables import (
    parse_addresses,
    parse_neighbours,
    parse_paths,
    parse_routes,
    parse_rules,
)
from roce_exporter.host.recorded.rdma_recorded import read_json
from roce_exporter.host.recorded.tree import RecordingError
from roce_exporter.model.ip import IpFacts, IpPath, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roce_exporter.host.recorded.tree import Tree
    from roce_exporter.model.ip import IpAddress, IpNeighbour, IpRoute, IpRule

ADDRESSES, NEIGHBOURS, PATHS = "ip/address.json", "ip/neigh.json", "ip/get.json"
ROUTES = {4: "ip/route.json", 6: "ip/route6.json"}
RULES = {4: "ip/rule.json", 6: "ip/rule6.json"}


@dataclass(frozen=True, slots=True)
class RecordedIp:
    """Addresses, neighbours, routes, rules and replies. `addresses` is None if there is no recording of them."""

    addresses: Mapping[str, tuple[IpAddress, ...]] | None = None
    neighbours: Mapping[str, tuple[IpNeighbour, ...]] = field(default_factory=dict)
    routes: Mapping[int, tuple[IpRoute, ...]] = field(default_factory=dict)
    """By version of IP."""
    rules: Mapping[int, tuple[IpRule, ...]] = field(default_factory=dict)
    replies: Mapping[tuple[str, str], IpPath] = field(default_factory=dict)
    fibs: Mapping[int, Fib] = field(default_factory=dict)

    def facts(self, netdev: str) -> IpFacts:
        """What `Kernel.ip_facts` returns.

        Raises:
            Absent: it is not recorded, or there is no such network device.
        """
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
        return tuple(self._path(source, destination) for source, destination in pairs)

    def _path(self, source: str, destination: str) -> IpPath:
        if (source, destination) in self.replies:
            return self.replies[source, destination]
        fib = self.fibs.get(version_of(destination))
        return fib.path(source, destination) if fib else UNKNOWN


def read_recorded_ip(tree: Tree, path: str) -> RecordedIp:
    """The IP side of a recording that came from `path`; without `ip/address.json` it has none.

    Raises:
        RecordingError: a file is malformed; one line that names it.
    """
    if ADDRESSES not in tree.files:
        return RecordedIp()
    addresses = _parsed(tree, path, ADDRESSES, parse_addresses, {})
    routes = {
        version: _parsed(tree, path, name, partial(parse_routes, version=version), ())
        for version, name in ROUTES.items()
    }
    rules = {
        version: _parsed(tree, path, name, partial(parse_rules, version=version), ())
        for version, name in RULES.items()
    }
    own = [one.address for found in addresses.values() for one in found]
    return RecordedIp(
        addresses,
        _parsed(tree, path, NEIGHBOURS, parse_neighbours, {}),
        routes,
        rules,
        _parsed(tree, path, PATHS, parse_paths, {}),
        make_fibs(rules, routes, own),
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
            f"{what}: not what `ip -j` prints; see recording/ip_tables.py for the command"
        ) from None
