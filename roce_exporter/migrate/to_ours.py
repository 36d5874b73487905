"""Rules that give our names and labels from another exporter's, for hosts that do not run ours yet.

Each file has a list of the hosts that it serves, which leaves out a host as soon as ours runs there: no fact is counted twice. The
series keep `job` and `instance` of the other exporter's target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.drivers import DRIVERS, family_of
from roce_exporter.catalog.row import ETHTOOL
from roce_exporter.migrate import foreign
from roce_exporter.migrate.rdma_exporter import PHYSICAL_STATES, PORT_STATES
from roce_exporter.migrate.recording_rules import (
    TARGET,
    Group,
    Recording,
    equal,
    replaced,
    scaled,
    selector,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.catalog.row import Row
    from roce_exporter.migrate.foreign import Term
    from roce_exporter.migrate.naming import Written

ORDER = ("rdma_exporter", "node_exporter", "spiderpool")
"""Of a host with several of them, the first whose file is loaded gives the series."""
PRESENT = {
    "node_exporter": "node_infiniband_info or node_ethtool_info",
    "rdma_exporter": "rdma_port_info",
    "spiderpool": 'rdma_vport_speed_mbps_total{ifname!=""} or rdma_device_tos_total{ifname!=""}',
}
"""What each exporter serves on every host."""
OURS = "roce_exporter_metric_set_info"
LATELY = "15m"
"""A host on which ours was seen within this time is not served: a restart of ours does not bring the other series back."""
HOST = "(.+?)(:[0-9]+)?"
"""An `instance`: the host, and a port if there is one."""

ON_TARGET = f"on ({TARGET})"
NETDEVS = "netdev:roce_from_node_exporter:driver"
RDMA_LABELS = ("state", "phys_state", "link_width", "link_speed", "pci_addr", "is_vf", "pf_device")
RDMA_PORT_LABELS = ("port", "netdev", "link_layer", *RDMA_LABELS)
ETHERNET_GIGABITS = (10, 25, 40, 50, 56, 100, 200, 400, 800)
WITH_IFNAME = 'ifname!=""'
"""rdma_exporter has some of spiderpool's names too, without `ifname`."""
WITH_DEVICE = 'device!=""'
OF_SPIDERPOOL = (
    "ifname",
    "net_dev_name",
    "node_name",
    "node_guid",
    "sys_image_guid",
    "is_root",
    "rdma_parent_name",
    "pod_namespace",
    "pod_name",
    "owner_api_version",
    "owner_kind",
    "owner_namespace",
    "owner_name",
    "otel_scope_name",
    "otel_scope_version",
)
"""Every label of its series but the priority."""


def hosts(exporter: str) -> str:
    """The recorded list of the hosts that the file of this exporter serves."""
    return f"instance:roce_from_{exporter}:hosts"


def groups_to_ours(exporter: str) -> list[Group]:
    """The groups of rules that give our names from those of this exporter."""
    first, facts, value = _PARTS[exporter]
    counters = [Recording(row.name, expr) for row in CATALOG if (expr := _counter(exporter, row, value))]
    lists = (Recording(hosts(exporter), _hosts(exporter)), *first)
    return [
        Group(
            f"roce-compat-from-{exporter}",
            "The hosts that are served, then what is on them. One group, since the rules need the list of the same moment.",
            (*lists, *facts(), *counters),
        )
    ]


def facts_of(exporter: str) -> list[str]:
    """Our metrics that are made of another exporter's info metrics."""
    return [rule.record for rule in _PARTS[exporter][1]()]


def _hosts(exporter: str) -> str:
    host = f'"host", "$1", "instance", "{HOST}"'
    parts = [
        f"label_replace({PRESENT[exporter]}, {host})",
        f"label_replace(last_over_time({OURS}[{LATELY}]), {host})",
        *(f"label_replace({hosts(other)}, {host})" for other in ORDER[: ORDER.index(exporter)]),
    ]
    listed = " unless on (cluster, host) ".join(parts)
    if exporter == "node_exporter":
        # The names of both exporters may differ, but not the name of the host itself.
        named = replaced(
            f"last_over_time(roce_netdev_info[{LATELY}])", "nodename", "hostname", pattern="(.+)"
        )
        listed += f" unless {ON_TARGET} (node_uname_info and on (cluster, nodename) {named})"
    return f"group without (host) (group by ({TARGET}, host) ({listed}))"


def _counter(exporter: str, row: Row, value: Callable[[Term, Row], str]) -> str:
    """Our metric from theirs; where a driver has several names for it, the first of the catalogue's order that has a series."""
    found = [expr for term in foreign.terms(exporter, row) if (expr := value(term, row))]
    if not found or exporter == "node_exporter":
        return " or ".join(found)
    either = f"({' or '.join(found)})" if len(found) > 1 else found[0]
    of_hosts = f"{either} and {ON_TARGET} {hosts(exporter)}"
    return _of_spiderpool(of_hosts, row) if exporter == "spiderpool" else of_hosts


def _node_term(term: Term, row: Row) -> str:
    sum_of = " + ".join(_numbered(part) for part in term.parts)
    total = f"({sum_of})" if len(term.parts) > 1 else sum_of
    if term.source != ETHTOOL:
        return scaled(f"({total} and {ON_TARGET} {hosts('node_exporter')})", term.times, term.per)
    drivers = "|".join(driver for dialect in term.dialects for driver in family_of(dialect).kernel_drivers)
    if not drivers or "netdev" not in row.labels:
        return ""
    of_drivers = f'({total} and on ({TARGET}, device) {NETDEVS}{{driver=~"{drivers}"}})'
    named = replaced(scaled(of_drivers, term.times, term.per), "netdev", "device")
    # The RDMA device is not known. Its place is filled, so that sums by device do not add up the ports of a host.
    return replaced(named, "device", "device", "unknown ($1)")


def _numbered(part: tuple[Written, ...]) -> str:
    """One name, or the eight names that differ in a number, which becomes the label."""
    first, *others = part
    if not others:
        return first.name
    place = next(
        i for i, (one, other) in enumerate(zip(first.name, others[0].name, strict=True)) if one != other
    )
    before, after = first.name[:place], first.name[place + 1 :]
    label = first.matching[0][0]
    series = f'{{__name__=~"{before}[0-7]{after}"}}'
    return replaced(series, label, "__name__", pattern=f"{before}([0-7]){after}")


def _rdma_term(term: Term, _row: Row) -> str:
    parts = [
        without(selector(one.name, *equal(one.where), WITH_DEVICE), *(label for label, _ in one.where))
        for (one,) in term.parts
    ]
    sum_of = " + ".join(parts)
    return scaled(f"({sum_of})" if len(parts) > 1 else sum_of, term.times, term.per)


def _spiderpool_term(term: Term, _row: Row) -> str:
    ((one,), *more) = term.parts
    return "" if more else scaled(selector(one.name, WITH_IFNAME), term.times, term.per)


def _of_spiderpool(series: str, row: Row) -> str:
    """The series with our labels."""
    named = replaced(series, "device", "ifname")
    if "netdev" in row.labels:
        named = replaced(named, "netdev", "net_dev_name")
    return without(named, *OF_SPIDERPOOL)


def _node_facts() -> list[Recording]:
    of_hosts = f"and {ON_TARGET} {hosts('node_exporter')}"
    info = f"node_infiniband_info {of_hosts}"
    named = info
    for theirs, ours in (("board_id", "board"), ("firmware_version", "firmware"), ("hca_type", "model")):
        named = replaced(named, ours, theirs)
    theirs_alone = ("board_id", "firmware_version", "hca_type")
    return [
        Recording("roce_exporter_devices", f"count without (device, {', '.join(theirs_alone)}) ({info})"),
        Recording("roce_device_info", without(named, *theirs_alone)),
        Recording("roce_port_up", f"(node_infiniband_state_id {of_hosts}) == bool 4"),
    ]


def _rdma_facts() -> list[Recording]:
    devices = f"group without ({', '.join(RDMA_PORT_LABELS)}) ({_rdma_port()})"
    named = replaced(replaced(_rdma_port(), "pci", "pci_addr"), "function", "is_vf", "vf", "true")
    return [
        Recording("roce_exporter_devices", f"count without (device) ({devices})"),
        Recording("roce_device_info", without(named, *RDMA_PORT_LABELS)),
        Recording("roce_port_info", without(_rdma_port(), *RDMA_LABELS)),
        Recording("roce_port_up", f"{_of_port(state='ACTIVE')} or 0 * {_of_port()}"),
        Recording(
            "roce_optional_enabled", f"rdma_optional_counter_enabled and {ON_TARGET} {hosts('rdma_exporter')}"
        ),
        Recording("roce_port_state", _numbers("state", PORT_STATES)),
        Recording("roce_port_physical_state", _numbers("phys_state", PHYSICAL_STATES)),
        Recording(
            "roce_port_speed_bytes_per_second",
            " or ".join(
                f"{bits * 125_000_000} * {_of_port_like('link_speed', f'{bits} Gb/sec.*')}"
                for bits in ETHERNET_GIGABITS
            ),
        ),
    ]


def _numbers(label: str, names: dict[int, str]) -> str:
    return " or ".join(f"{number} * {_of_port(**{label: name})}" for number, name in names.items())


def _of_port(**values: str) -> str:
    return _by_port(*equal(tuple(values.items())))


def _of_port_like(label: str, pattern: str) -> str:
    return _by_port(f'{label}=~"{pattern}"')


def _by_port(*matchers: str) -> str:
    return f"group without (netdev, link_layer, {', '.join(RDMA_LABELS)}) ({_rdma_port(*matchers)})"


def _rdma_port(*matchers: str) -> str:
    return f"{selector('rdma_port_info', *matchers)} and {ON_TARGET} {hosts('rdma_exporter')}"


def _spiderpool_facts() -> list[Recording]:
    of_hosts = f"and {ON_TARGET} {hosts('spiderpool')}"
    speed = f'rdma_vport_speed_mbps_total{{ifname!=""}} {of_hosts}'
    named = replaced(replaced(speed, "device", "ifname"), "netdev", "net_dev_name")
    tos = replaced(f'rdma_device_tos_total{{ifname!=""}} > 0 {of_hosts}', "device", "ifname")
    return [
        Recording("roce_exporter_devices", f"count without ({', '.join(OF_SPIDERPOOL)}) ({speed})"),
        Recording("roce_link_speed_bytes_per_second", f"{without(named, *OF_SPIDERPOOL)} * 125000"),
        Recording("roce_config_traffic_class", without(tos, *OF_SPIDERPOOL)),
    ]


def _netdevs() -> tuple[Recording, ...]:
    drivers = "|".join(driver for family in DRIVERS for driver in family.kernel_drivers)
    of_hosts = f"and {ON_TARGET} {hosts('node_exporter')}"
    more = "bus_info, expansion_rom_version, firmware_version, version"
    return (
        Recording(NETDEVS, f'group without ({more}) (node_ethtool_info{{driver=~"{drivers}"}} {of_hosts})'),
    )


_PARTS = {
    "node_exporter": (_netdevs(), _node_facts, _node_term),
    "rdma_exporter": ((), _rdma_facts, _rdma_term),
    "spiderpool": ((), _spiderpool_facts, _spiderpool_term),
}
