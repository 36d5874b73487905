"""The IP side of a capture: what the audit reads of addresses, neighbours, routes and rules, with stand-ins for addresses.

Only the network devices of RDMA ports are recorded, and of routes only those that leave by them. So the replies about where
packets leave are recorded as well: the tables alone would not give them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roce_exporter.host.recorded.ip_tables import (
    print_addresses,
    print_json,
    print_neighbours,
    print_path,
    print_route,
    print_rule,
)
from roce_exporter.host.recorded.recorded_ip import ADDRESSES, NEIGHBOURS, PATHS, ROUTES, RULES
from roce_exporter.host.sources.ip_side import CONF, SYSCTLS, Addresses, targets
from roce_exporter.model.ip import version_of

if TYPE_CHECKING:
    from roce_exporter.host.kernel import Kernel
    from roce_exporter.host.recorded.scrub import Scrubber
    from roce_exporter.model import Device
    from roce_exporter.model.ip import IpFacts


class IpBook:
    """Collects the IP side of all devices at one moment."""

    def __init__(self, kernel: Kernel, scrub: Scrubber) -> None:
        self._kernel = kernel
        self._scrub = scrub
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._files: dict[str, str] = {}
        self._seen: set[str] = set()

    def add(self, device: Device) -> None:
        """Record the ports of one device."""
        for port in device.ports:
            for netdev in Addresses(self._kernel, device.name, port).netdevs() if port.netdevs else ():
                if netdev not in self._seen:
                    self._add(netdev)

    def _add(self, netdev: str) -> None:
        try:
            facts = self._kernel.ip_facts(netdev)
        except OSError:
            return
        self._seen.add(netdev)
        self._scrub.keep_subnets()
        stand_ins = scrub_facts(facts, self._scrub)
        self._print(netdev, stand_ins)
        self._add_paths(netdev, facts, stand_ins)
        for folder in ("all", netdev):
            for name in SYSCTLS:
                path = f"{CONF}/{folder}/{name}"
                try:
                    self._files[path.removeprefix("../")] = self._kernel.text(path) + "\n"
                except OSError:
                    continue

    def _print(self, netdev: str, facts: IpFacts) -> None:
        rows = self._rows
        rows.setdefault(ADDRESSES, []).extend(print_addresses({netdev: facts.addresses}))
        rows.setdefault(NEIGHBOURS, []).extend(print_neighbours(netdev, facts.neighbours))
        for version in ROUTES:
            known = rows.setdefault(ROUTES[version], [])
            routes = (print_route(one) for one in facts.routes if version_of(one.destination) == version)
            known.extend(row for row in routes if row not in known)
            rows[RULES[version]] = [print_rule(one) for one in facts.rules if one.version == version]

    def _add_paths(self, netdev: str, facts: IpFacts, stand_ins: IpFacts) -> None:
        """The reply for each packet of the host becomes that for the packet which a reader of the recording will follow."""
        rows = self._rows.setdefault(PATHS, [])
        for real, shown in zip(targets(facts, netdev), targets(stand_ins, netdev), strict=False):
            try:
                paths = self._kernel.ip_paths([(real.source, one) for one in real.candidates])
            except OSError:
                return
            for position, destination in enumerate(shown.candidates):
                path = paths[min(position, len(paths) - 1)]
                if not path.unknown:
                    gateway = self._scrub.ip(path.gateway) if path.gateway else ""
                    rows.append(print_path(shown.source, destination, replace(path, gateway=gateway)))

    def files(self) -> dict[str, str]:
        """The files of the recording, by path."""
        printed = {path: print_json(rows) for path, rows in self._rows.items() if rows or path == ADDRESSES}
        return printed | self._files


def scrub_facts(facts: IpFacts, scrub: Scrubber) -> IpFacts:
    """The same facts with a stand-in for each address and prefix."""
    return replace(
        facts,
        addresses=tuple(replace(one, address=scrub.ip(one.address)) for one in facts.addresses),
        neighbours=tuple(replace(one, address=scrub.ip(one.address)) for one in facts.neighbours),
        routes=tuple(
            replace(
                one,
                destination=scrub.prefix(one.destination),
                source=scrub.prefix(one.source),
                hops=tuple(
                    replace(hop, gateway=scrub.ip(hop.gateway) if hop.gateway else "") for hop in one.hops
                ),
            )
            for one in facts.routes
        ),
        rules=tuple(
            replace(one, source=scrub.prefix(one.source), destination=scrub.prefix(one.destination))
            for one in facts.rules
        ),
    )
