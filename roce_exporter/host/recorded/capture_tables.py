"""Tables that the devices of a capture share: their IP side, and RDMA objects with the processes that own them.

Of the IP side a capture has what the checks of settings read. Only the network devices of RDMA ports are recorded, and of routes
only those that leave by them. So the replies about where packets leave are recorded as well: the tables alone would not give them.

The queue pairs of a device are listed once and without rests, which on some drivers costs a request to the firmware for each.
Limits are read where the kernel reports them, otherwise only with `owners.limits`, because that opens a context on the device.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from typing import Any

from roce_exporter.host.kernel import Absent, Kernel, ObjectKernel, read_or
from roce_exporter.host.recorded import ip_text, rdma_text
from roce_exporter.host.recorded.recorded_ip import ADDRESSES, NEIGHBOURS, PATHS, ROUTES, RULES
from roce_exporter.host.recorded.scrub import Scrubber, scrub_process
from roce_exporter.host.sources.ip_side import CONF, SYSCTLS, ip_netdevs, targets
from roce_exporter.model import Device, RdmaDevice
from roce_exporter.model.ip import IpFacts, version_of
from roce_exporter.model.owner import ObjectKind, ProcessFacts, RdmaObject

Row = dict[str, Any]


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
            for netdev in ip_netdevs(self._kernel, port):
                if netdev not in self._seen:
                    self._add(netdev)

    def _add(self, netdev: str) -> None:
        try:
            facts = self._kernel.ip_facts(netdev)
        except OSError:
            return
        self._seen.add(netdev)
        stand_ins = scrub_facts(facts, self._scrub)
        rows = self._rows
        rows.setdefault(ADDRESSES, []).extend(ip_text.print_addresses({netdev: stand_ins.addresses}))
        rows.setdefault(NEIGHBOURS, []).extend(ip_text.print_neighbours(netdev, stand_ins.neighbours))
        for version in ROUTES:
            known = rows.setdefault(ROUTES[version], [])
            routes = (
                ip_text.print_route(one) for one in stand_ins.routes if version_of(one.destination) == version
            )
            known.extend(row for row in routes if row not in known)
            rows[RULES[version]] = [
                ip_text.print_rule(one) for one in stand_ins.rules if one.version == version
            ]
        self._add_paths(netdev, facts, stand_ins)
        for path in [f"{CONF}/{folder}/{name}" for folder in ("all", netdev) for name in SYSCTLS]:
            with contextlib.suppress(OSError):
                self._files[path.removeprefix("../")] = self._kernel.text(path) + "\n"

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
                    path = replace(path, gateway=self._scrub.ip(path.gateway))
                    rows.append(ip_text.print_path(shown.source, destination, path))

    def files(self) -> dict[str, str]:
        """The files of the recording, by path."""
        printed = {
            path: ip_text.print_json(rows) for path, rows in self._rows.items() if rows or path == ADDRESSES
        }
        return printed | self._files


def scrub_facts(facts: IpFacts, scrub: Scrubber) -> IpFacts:
    """The same facts with a stand-in for each address and prefix."""
    routes = [
        replace(
            one,
            destination=scrub.prefix(one.destination),
            source=scrub.prefix(one.source),
            hops=tuple(replace(hop, gateway=scrub.ip(hop.gateway)) for hop in one.hops),
        )
        for one in facts.routes
    ]
    rules = [
        replace(one, source=scrub.prefix(one.source), destination=scrub.prefix(one.destination))
        for one in facts.rules
    ]
    addresses = tuple(replace(one, address=scrub.ip(one.address)) for one in facts.addresses)
    neighbours = tuple(replace(one, address=scrub.ip(one.address)) for one in facts.neighbours)
    return replace(
        facts, addresses=addresses, neighbours=neighbours, routes=tuple(routes), rules=tuple(rules)
    )


LOG = logging.getLogger(__name__)


class ProcessBook:
    """The processes of one moment, each read once, and scrubbed."""

    def __init__(self, kernel: ObjectKernel, scrub: Scrubber) -> None:
        self.kernel = kernel
        self.scrub = scrub
        self._known: dict[int, ProcessFacts | None] = {}

    def command(self, pid: int) -> str:
        """The command of a process; empty for the kernel's objects and for processes that cannot be read."""
        if pid and pid not in self._known:
            facts = read_or(None, self.kernel.process, pid)
            self._known[pid] = facts and scrub_process(self.scrub, facts)
        facts = self._known.get(pid)
        return facts.command if facts else ""

    def files(self) -> dict[str, str]:
        """The files of every process whose command was read."""
        # A device that hung may still add processes.
        return rdma_text.print_processes({pid: facts for pid, facts in tuple(self._known.items()) if facts})


def device_objects(processes: ProcessBook, device: Device) -> tuple[dict[str, Any], dict[str, list[Row]]]:
    """The files about the objects of a device, and its rows of each `rdma -j` command.

    A list that fails is left out. A kind without objects has an empty list, and no file where the kernel does not list it.
    """
    netlink = device.netlink
    if netlink is None:
        return {}, {}
    kernel, scrub, name = processes.kernel, processes.scrub, {"ifindex": netlink.index, "ifname": device.name}
    files: dict[str, Any] = {}
    rows: dict[str, list[Row]] = {}
    try:
        limits = kernel.object_limits(netlink)
        files[f"ibv_devinfo/{device.name}.txt"] = rdma_text.print_limits(device.name, limits)
    except Absent:
        pass
    except OSError as error:
        LOG.warning("the limits of %s are left out: %s", device.name, error)
    for kind in ObjectKind:
        if (objects := _listed(kernel, netlink, kind)) is not None:
            rows[f"resource-{kind.value}"] = [
                name
                | rdma_text.print_object(one._replace(peer=scrub.ip(one.peer)), processes.command(one.pid))
                for one in objects
            ]
    for port in device.ports:
        with contextlib.suppress(OSError):
            sets = kernel.counter_sets(netlink, port.number)
            rows.setdefault("statistic-qp", []).extend(
                name | rdma_text.print_counter_set(one, processes.command(one.pid)) for one in sets
            )
    return files, rows


def _listed(kernel: ObjectKernel, device: RdmaDevice, kind: ObjectKind) -> tuple[RdmaObject, ...] | None:
    """All objects of one kind; None if the list cannot be read to its end."""
    with contextlib.suppress(OSError):
        objects = kernel.open_objects(device, kind)
        try:
            parts = iter(objects.next_part, None)
            return tuple(one for part in parts for one in part)
        finally:
            objects.close()
    return None
