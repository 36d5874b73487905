"""The files of `alerts/compat/`: `python alerts/compat_rules.py alerts/compat`.

Rules to another exporter's names from ours show our hosts on dashboards made for it. A name of mlx5 is given for the same fact of
every driver, because dashboards use these names; the names of other drivers are given for their devices only.

Rules from its names to ours serve hosts that do not run ours yet. Each file has a list of these hosts, which leaves out a host as soon
as ours runs there: no fact is counted twice. The series keep `job` and `instance` of the other exporter's target.
"""

# ruff: noqa: INP001 - a script next to what it writes, not a package
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.drivers import DIALECTS, family_of
from roce_exporter.catalog.named import DEVICE_INFO
from roce_exporter.catalog.row import ETHTOOL
from roce_exporter.migrate import rdma_exporter, spiderpool
from roce_exporter.migrate.foreign import (
    EXPORTERS,
    HOSTS,
    NAMES,
    Foreign,
    dialects_of,
    factor_of,
    foreign_metrics,
    groups_of,
    unclear,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from roce_exporter.catalog.row import Row
    from roce_exporter.migrate.naming import Pairs, Written

TARGET = "cluster, job, instance"
"""The labels of a target. `cluster` is empty where there is one cluster."""


class Term(NamedTuple):
    """One of the ways in which another exporter has the fact of a metric of ours."""

    parts: tuple[tuple[Written, ...], ...]
    """What is added up: a name each, or the eight names that differ in a number."""
    source: str
    times: int
    per: int
    dialects: tuple[str, ...]
    """The drivers that have the raw name; empty: all."""


class Recording(NamedTuple):
    """One recording rule. A name has one meaning, but may have several rules that differ in their labels."""

    record: str
    expr: str
    labels: Pairs = ()


class Group(NamedTuple):
    """Rules that are evaluated one after another, and a comment for the reader."""

    name: str
    comment: str
    rules: tuple[Recording, ...]


def selector(name: str, *matchers: str) -> str:
    """`name{a="b"}`."""
    return f"{name}{{{','.join(matchers)}}}" if matchers else name


def equal(pairs: Pairs) -> list[str]:
    """The matchers of these values."""
    return [f'{label}="{value}"' for label, value in pairs]


def replaced(expr: str, target: str, source: str, value: str = "$1", pattern: str = "(.*)") -> str:
    """The series with the label `target` made from the label `source`."""
    return f'label_replace({expr}, "{target}", "{value}", "{source}", "{pattern}")'


def renamed(expr: str, *pairs: tuple[str, str]) -> str:
    """The series with the second label of each pair made from the first."""
    for source, target in pairs:
        expr = replaced(expr, target, source)
    return expr


def without(expr: str, *labels: str) -> str:
    """The series without these labels. Two that become equal have the same value, since they are the same counter."""
    return f"max without ({', '.join(labels)}) ({expr})" if labels else expr


def scaled(expr: str, times: int, per: int) -> str:
    """The values x `times` / `per`."""
    return expr + (f" * {times}" if times != 1 else "") + (f" / {per}" if per != 1 else "")


EVERY_DRIVER = "mlx5"
NODE_LABELS = "device_port:roce_spiderpool:labels"
PORT_STATE = "device_port:roce_port_state:label"
ON_PORT = f"on ({TARGET}, device, port)"
ON_DEVICE = f"on ({TARGET}, device)"


def _counters(exporter: str) -> list[Foreign]:
    """What is made from a counter or gauge of ours with the same labels or fewer; info metrics are written by hand."""
    return [one for one in foreign_metrics(exporter) if not one.ours.endswith("_info")]


def _node_exporter() -> list[Group]:
    ours = _counters("node_exporter")
    infiniband = [
        Recording(one.name, _value(one), one.where) for one in ours if one.name.startswith("node_infiniband_")
    ]
    ethtool = [one for one in ours if one.name.startswith("node_ethtool_") and one.labels]
    info = renamed(
        "roce_device_info", ("board", "board_id"), ("firmware", "firmware_version"), ("model", "hca_type")
    )
    return [
        Group(
            "roce-compat-to-node-infiniband",
            "The collector `infiniband`.",
            (Recording("node_infiniband_info", without(info, *DEVICE_INFO.labels[1:])), *infiniband),
        ),
        *_by_driver("node-ethtool", ethtool, _of_netdev),
    ]


def _of_netdev(one: Foreign) -> str:
    """The value with the network device as `device`, which is all that the ethtool collector knows."""
    more = [label for label, _ in one.matching]
    return without(replaced(_value(one), "device", "netdev", pattern="(.+)"), "port", "netdev", *more)


def _rdma_exporter() -> list[Group]:
    state = " or ".join(
        replaced(f"roce_port_state == {number}", "state", "", name, "")
        for number, name in PORT_STATES.items()
    )
    active = replaced("roce_port_up == 1", "state", "", "ACTIVE", "")
    info = f"roce_port_info * {ON_DEVICE} group_left (pci, function) roce_device_info"
    info = replaced(replaced(info, "pci_addr", "pci"), "is_vf", "", "false", "")
    info = replaced(info, "is_vf", "function", "true", "vf")
    info = f"{without(info, 'lag', 'pci', 'function')} * {ON_PORT} group_left (state) {PORT_STATE}"
    port = (Recording(PORT_STATE, f"({state} or {ON_PORT} {active}) ^ 0"), Recording("rdma_port_info", info))
    rest = _by_driver("rdma-exporter", _counters("rdma_exporter"), _value)
    return [Group("roce-compat-to-rdma-port", "State and identity of ports.", port), *rest]


def _spiderpool() -> list[Group]:
    info = f"roce_port_info * {ON_DEVICE} group_left (function, node_guid) roce_device_info"
    info = f"({info}) * {ON_PORT} group_left (hostname) max by ({TARGET}, device, port, hostname) (roce_netdev_info)"
    info = replaced(replaced(info, "is_root", "", "true", ""), "is_root", "function", "false", "vf")
    info = renamed(info, ("device", "ifname"), ("netdev", "net_dev_name"), ("hostname", "node_name"))
    labels = Recording(NODE_LABELS, without(info, "netdev", "hostname", "link_layer", "lag", "function"))
    rest = _by_driver("spiderpool", _counters("spiderpool"), _of_spiderpool)
    return [Group("roce-compat-to-spiderpool-labels", "The labels of its series.", (labels,)), *rest]


def _of_spiderpool(one: Foreign) -> str:
    """The value with the labels of the host, the RDMA device and the network device."""
    value = f"{_value(one)} * {ON_PORT} group_left (ifname, net_dev_name, node_name, node_guid, is_root) {NODE_LABELS}"
    if "netdev" not in dict(one.labels).values():
        return without(value, "device", "port")
    # Of a LAG, each network device has its own series.
    return without(replaced(value, "net_dev_name", "netdev"), "device", "port", "netdev")


def _by_driver(name: str, ours: Iterable[Foreign], value: Callable[[Foreign], str]) -> list[Group]:
    """The names of mlx5 and of all drivers, then those of other drivers alone."""
    general, special = [], []
    for one in ours:
        if not one.dialects or EVERY_DRIVER in one.dialects:
            general.append(Recording(one.name, value(one), one.where))
        elif _drivers(one.dialects):
            special.append(Recording(one.name, value(one), one.where))
    of_all = "The names of mlx5, for every driver that counts the same."
    of_others = "The names of other drivers, for their devices. Delete the group if no dashboard uses them."
    return [
        Group(f"roce-compat-to-{name}", of_all, tuple(general)),
        Group(f"roce-compat-to-{name}-other-drivers", of_others, tuple(special)),
    ]


def _drivers(dialects: Iterable[str]) -> str:
    """The kernel drivers of some dialects as a regular expression; empty for RDMA in software."""
    return "|".join(driver for dialect in dialects for driver in family_of(dialect).kernel_drivers)


def _value(one: Foreign) -> str:
    """Our series with their unit; of the drivers that have the name, unless it is one of mlx5."""
    series = selector(one.ours, *equal(one.matching))
    if one.dialects and EVERY_DRIVER not in one.dialects:
        series = f'({series} and {ON_DEVICE} roce_device_info{{driver=~"{_drivers(one.dialects)}"}})'
    return scaled(series, one.per, one.times)


_GROUPS = {"node_exporter": _node_exporter, "rdma_exporter": _rdma_exporter, "spiderpool": _spiderpool}


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
HOST = "(.+?)(:[0-9]+)?"  # an `instance`: the host, and a port if there is one

ON_TARGET = f"on ({TARGET})"
NETDEVS = "netdev:roce_from_node_exporter:driver"
PORT_STATES = {0: "NOP", 1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
PHYSICAL_NAMES = "SLEEP POLLING DISABLED PORT_CONFIGURATION_TRAINING LINK_UP LINK_ERROR_RECOVERY PHY_TEST"
PHYSICAL_STATES = dict(enumerate(PHYSICAL_NAMES.split(), 1))
"""The labels `state` and `phys_state` of `rdma_port_info`, with the kernel's numbers."""
RDMA_PORT_LABELS = ("port", "netdev", "link_layer", *rdma_exporter.LOST)
ETHERNET_GIGABITS = (10, 25, 40, 50, 56, 100, 200, 400, 800)
WITH_IFNAME = 'ifname!=""'  # rdma_exporter has some of spiderpool's names too, without `ifname`
WITH_DEVICE = 'device!=""'
OF_SPIDERPOOL = ("ifname", "net_dev_name", *spiderpool.LOST, "otel_scope_name", "otel_scope_version")
"""Every label of its series but the priority."""


def hosts(exporter: str) -> str:
    """The recorded list of the hosts that the file of this exporter serves."""
    return f"instance:roce_from_{exporter}:hosts"


def of_hosts(exporter: str) -> str:
    """The operator behind a series that keeps those of these hosts."""
    return f"and {ON_TARGET} {hosts(exporter)}"


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


def terms(exporter: str, row: Row) -> list[Term]:
    """How another exporter has the fact of a row, in the order in which the catalogue prefers the raw names; unclear names not."""
    found: dict[tuple[tuple[Written, ...], ...], Term] = {}
    for spelling in row.spellings:
        if spelling.difference or spelling.dialect not in HOSTS:
            continue
        written = NAMES[exporter].written
        parts = tuple(tuple(written(spelling.source, raw, row.labels)) for raw in spelling.raw)
        groups = [groups_of(exporter)[one.name, one.where] for part in parts for one in part]
        if all(parts) and not any(map(unclear, groups)):
            # A name that several drivers have comes where the last of them prefers it: the others have no other name before it.
            found.pop(parts, None)
            found[parts] = Term(parts, spelling.source, *factor_of(groups[0][0]), dialects_of(groups[0]))
    return list(found.values())


def _counter(exporter: str, row: Row, value: Callable[[Term, Row], str]) -> str:
    """Our metric from theirs; where a driver has several names for it, the first of the catalogue's order that has a series."""
    found = [expr for term in terms(exporter, row) if (expr := value(term, row))]
    if not found or exporter == "node_exporter":
        return " or ".join(found)
    either = f"({' or '.join(found)})" if len(found) > 1 else found[0]
    series = f"{either} {of_hosts(exporter)}"
    if exporter != "spiderpool":
        return series
    pairs = (("ifname", "device"), ("net_dev_name", "netdev"))
    return without(renamed(series, *(pair for pair in pairs if pair[1] in row.labels)), *OF_SPIDERPOOL)


def _node_term(term: Term, row: Row) -> str:
    sum_of = " + ".join(_numbered(part) for part in term.parts)
    total = f"({sum_of})" if len(term.parts) > 1 else sum_of
    if term.source != ETHTOOL:
        return scaled(f"({total} {of_hosts('node_exporter')})", term.times, term.per)
    drivers = _drivers(term.dialects)
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


def _node_facts() -> list[Recording]:
    info = f"node_infiniband_info {of_hosts('node_exporter')}"
    pairs = (("board_id", "board"), ("firmware_version", "firmware"), ("hca_type", "model"))
    theirs_alone = [theirs for theirs, _ in pairs]
    return [
        Recording("roce_exporter_devices", f"count without (device, {', '.join(theirs_alone)}) ({info})"),
        Recording("roce_device_info", without(renamed(info, *pairs), *theirs_alone)),
        Recording("roce_port_up", f"(node_infiniband_state_id {of_hosts('node_exporter')}) == bool 4"),
    ]


def _rdma_facts() -> list[Recording]:
    devices = f"group without ({', '.join(RDMA_PORT_LABELS)}) ({_rdma_port()})"
    named = replaced(replaced(_rdma_port(), "pci", "pci_addr"), "function", "is_vf", "vf", "true")
    active = _of_port('state="ACTIVE"')
    speeds = (
        f"{bits * 125_000_000} * " + _of_port(f'link_speed=~"{bits} Gb/sec.*"') for bits in ETHERNET_GIGABITS
    )
    return [
        Recording("roce_exporter_devices", f"count without (device) ({devices})"),
        Recording("roce_device_info", without(named, *RDMA_PORT_LABELS)),
        Recording("roce_port_info", without(_rdma_port(), *rdma_exporter.LOST)),
        Recording("roce_port_up", f"{active} or 0 * {_of_port()}"),
        Recording("roce_optional_enabled", f"rdma_optional_counter_enabled {of_hosts('rdma_exporter')}"),
        Recording("roce_port_state", _numbers("state", PORT_STATES)),
        Recording("roce_port_physical_state", _numbers("phys_state", PHYSICAL_STATES)),
        Recording("roce_port_speed_bytes_per_second", " or ".join(speeds)),
    ]


def _numbers(label: str, names: dict[int, str]) -> str:
    return " or ".join(f"{number} * {_of_port(*equal(((label, name),)))}" for number, name in names.items())


def _of_port(*matchers: str) -> str:
    return f"group without (netdev, link_layer, {', '.join(rdma_exporter.LOST)}) ({_rdma_port(*matchers)})"


def _rdma_port(*matchers: str) -> str:
    return f"{selector('rdma_port_info', *matchers)} {of_hosts('rdma_exporter')}"


def _spiderpool_facts() -> list[Recording]:
    speed = f'rdma_vport_speed_mbps_total{{ifname!=""}} {of_hosts("spiderpool")}'
    named = renamed(speed, ("ifname", "device"), ("net_dev_name", "netdev"))
    tos = replaced(f'rdma_device_tos_total{{ifname!=""}} > 0 {of_hosts("spiderpool")}', "device", "ifname")
    return [
        Recording("roce_exporter_devices", f"count without ({', '.join(OF_SPIDERPOOL)}) ({speed})"),
        Recording("roce_link_speed_bytes_per_second", f"{without(named, *OF_SPIDERPOOL)} * 125000"),
        Recording("roce_config_traffic_class", without(tos, *OF_SPIDERPOOL)),
    ]


KNOWN_NETDEVS = f'node_ethtool_info{{driver=~"{_drivers(DIALECTS)}"}} {of_hosts("node_exporter")}'
MORE = "bus_info, expansion_rom_version, firmware_version, version"
_PARTS = {
    "node_exporter": (
        (Recording(NETDEVS, f"group without ({MORE}) ({KNOWN_NETDEVS})"),),
        _node_facts,
        _node_term,
    ),
    "rdma_exporter": ((), _rdma_facts, _rdma_term),
    "spiderpool": ((), _spiderpool_facts, _spiderpool_term),
}


HEADER = (
    "# Generated by `make generate` from the catalogue; do not edit. docs/migration.md says how it is used."
)
TO_THEIRS = "# The names and labels of {exporter} from ours: dashboards and alerts made for it show hosts that run roce_exporter."
TO_OURS = "# Our names and labels from those of {exporter}: our dashboards and alerts show hosts that do not run roce_exporter yet."


def files() -> dict[str, str]:
    """The text of each file, by file name."""
    found = {}
    for exporter in EXPORTERS:
        for form, purpose, groups in (
            ("{}.rules.yml", TO_THEIRS, _GROUPS[exporter]()),
            ("from_{}.rules.yml", TO_OURS, groups_to_ours(exporter)),
        ):
            lines = [HEADER, purpose.format(exporter=exporter), "groups:"]
            for group in groups:
                lines += [f"  # {group.comment}", f"  - name: {group.name}", "    rules:"]
                for rule in group.rules:
                    content: dict[str, object] = {"record": rule.record, "expr": rule.expr}
                    content |= {"labels": dict(rule.labels)} if rule.labels else {}
                    line = yaml.safe_dump(content, default_flow_style=True, sort_keys=False, width=1_000_000)
                    lines.append(f"      - {line}".removesuffix("\n"))
            found[form.format(exporter)] = "\n".join(lines) + "\n"
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    for file_name, content in files().items():
        Path(sys.argv[1], file_name).write_text(content, encoding="utf-8")
