"""Rules that give the names and labels of another exporter from ours, so that dashboards made for it show our hosts.

A name of mlx5 is given for the same fact of every driver, because dashboards use these names. The names of other drivers are
given for their devices only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.drivers import family_of
from roce_exporter.migrate.foreign import Foreign, foreign_metrics
from roce_exporter.migrate.rdma_exporter import PORT_STATES
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
    from collections.abc import Callable, Iterable

INFO_LABELS = (
    "driver",
    "protocol",
    "firmware",
    "board",
    "model",
    "node_guid",
    "pci",
    "function",
    "physical_function",
)
EVERY_DRIVER = "mlx5"
NODE_LABELS = "device_port:roce_spiderpool:labels"
PORT_STATE = "device_port:roce_port_state:label"
ON_PORT = f"on ({TARGET}, device, port)"
ON_DEVICE = f"on ({TARGET}, device)"


def groups_to_theirs(exporter: str) -> list[Group]:
    """The groups of rules that give the names of this exporter."""
    return _GROUPS[exporter]()


def _counters(exporter: str) -> list[Foreign]:
    """What is made from a counter or gauge of ours with the same labels or fewer; info metrics are written by hand."""
    return [one for one in foreign_metrics(exporter) if not one.ours.endswith("_info")]


def _node_exporter() -> list[Group]:
    ours = _counters("node_exporter")
    infiniband = [_rule(one, _value(one)) for one in ours if one.name.startswith("node_infiniband_")]
    ethtool = [one for one in ours if one.name.startswith("node_ethtool_") and one.labels]
    return [
        Group(
            "roce-compat-to-node-infiniband",
            "The collector `infiniband`.",
            (_node_infiniband_info(), *infiniband),
        ),
        *_by_driver("node-ethtool", ethtool, _of_netdev),
    ]


def _node_infiniband_info() -> Recording:
    expr = "roce_device_info"
    for ours, theirs in (("board", "board_id"), ("firmware", "firmware_version"), ("model", "hca_type")):
        expr = replaced(expr, theirs, ours)
    return Recording("node_infiniband_info", without(expr, *INFO_LABELS))


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
    port = (
        Recording(PORT_STATE, f"({state} or {ON_PORT} {active}) ^ 0"),
        Recording("rdma_port_info", info),
    )
    rest = _by_driver("rdma-exporter", _counters("rdma_exporter"), _value)
    return [Group("roce-compat-to-rdma-port", "State and identity of ports.", port), *rest]


def _spiderpool() -> list[Group]:
    info = f"roce_port_info * {ON_DEVICE} group_left (function, node_guid) roce_device_info"
    info = f"({info}) * {ON_PORT} group_left (hostname) max by ({TARGET}, device, port, hostname) (roce_netdev_info)"
    info = replaced(replaced(info, "is_root", "", "true", ""), "is_root", "function", "false", "vf")
    for ours, theirs in (("device", "ifname"), ("netdev", "net_dev_name"), ("hostname", "node_name")):
        info = replaced(info, theirs, ours)
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
        common = not one.dialects or EVERY_DRIVER in one.dialects
        if common:
            general.append(_rule(one, value(one)))
        elif _drivers(one):
            special.append(_rule(one, value(one)))
    return [
        Group(
            f"roce-compat-to-{name}",
            "The names of mlx5, for every driver that counts the same.",
            tuple(general),
        ),
        Group(
            f"roce-compat-to-{name}-other-drivers",
            "The names of other drivers, for their devices. Delete the group if no dashboard uses them.",
            tuple(special),
        ),
    ]


def _rule(one: Foreign, expr: str) -> Recording:
    return Recording(one.name, expr, one.where)


def _drivers(one: Foreign) -> list[str]:
    return [driver for dialect in one.dialects for driver in family_of(dialect).kernel_drivers]


def _value(one: Foreign) -> str:
    """Our series with their unit; of the drivers that have the name, unless it is one of mlx5."""
    series = selector(one.ours, *equal(one.matching))
    if one.dialects and EVERY_DRIVER not in one.dialects:
        drivers = "|".join(_drivers(one))
        series = f'({series} and {ON_DEVICE} roce_device_info{{driver=~"{drivers}"}})'
    return scaled(series, one.per, one.times)


_GROUPS = {"node_exporter": _node_exporter, "rdma_exporter": _rdma_exporter, "spiderpool": _spiderpool}
