"""Identity of devices, ports and GIDs, the state of ports, and the RDMA objects in use."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import (
    ANY,
    FULL,
    GAUGE,
    HW_COUNTERS,
    LEAN,
    NETDEV_LABELS,
    PORT_LABELS,
    STANDARD,
    MetricSet,
    Row,
    gauge,
    spelt,
)

port = partial(spelt, ANY, "port")
resources = partial(spelt, ANY, "resources")


def resource(kind: str, meaning: str, metric_set: MetricSet = FULL) -> Row:
    """Objects of one kind in use on a device."""
    return Row(
        f"roce_resource_{kind}",
        GAUGE,
        "objects",
        meaning,
        (resources(kind),),
        ("device",),
        metric_set=metric_set,
    )


def limit(kind: str, meaning: str) -> Row:
    """The most objects of one kind that a device can have. bnxt_re counts it; for others see `kernel.uverbs`."""
    spellings = (
        spelt("bnxt_re", HW_COUNTERS, f"max_{kind}"),
        spelt(ANY, "limits", f"max_{kind}"),
    )
    return Row(
        f"roce_resource_{kind}_limit", GAUGE, "objects", meaning, spellings, ("device",), "experimental", LEAN
    )


DEVICE_INFO = Row(
    "roce_device_info",
    GAUGE,
    "info",
    "RDMA device information, constant 1. Join on `device` for identifying labels that may change.",
    labels=(
        "device",
        "driver",
        "protocol",
        "firmware",
        "board",
        "model",
        "node_guid",
        "pci",
        "function",
        "physical_function",
    ),
    metric_set=LEAN,
)
PORT_INFO = Row(
    "roce_port_info",
    GAUGE,
    "info",
    "Port information, constant 1. `netdev` is the network device (the bond for a RoCE LAG); `lag` is true for a LAG.",
    labels=("device", "port", "link_layer", "netdev", "lag"),
    metric_set=LEAN,
)
PORT_NETDEV_INFO = Row(
    "roce_port_netdev_info",
    GAUGE,
    "info",
    "A network device of a port, constant 1. `role` is port, bond (master of the LAG) or member (member port of the LAG).",
    labels=("device", "port", "netdev", "role"),
    metric_set=STANDARD,
)
NETDEV_INFO = Row(
    "roce_netdev_info",
    GAUGE,
    "info",
    "MAC address of a network device of a port, and the host's own name, constant 1: one series per port or member port of a "
    "LAG, none for the bond. Join `mac` with `neighbor_mac` of `roce_switch_lldp_neighbor_info`, or `hostname` and `netdev` with "
    "`neighbor` and `neighbor_port`, to find the switch port at the other end of the link. `mac` is the permanent address; "
    "where the driver reports none, the address before bonding, or else the current one.",
    (spelt(ANY, "mac_address", "{mac} {hostname}"),),
    (*NETDEV_LABELS, "mac", "hostname"),
    metric_set=LEAN,
)
GID_INFO = Row(
    "roce_gid_info",
    GAUGE,
    "info",
    "A used entry of the port's GID table, constant 1. Without a `RoCE v2` entry traffic cannot be routed.",
    labels=("device", "port", "index", "type", "netdev", "address"),
    metric_set=LEAN,
    only=("type", "RoCE v2"),
)
NEIGHBOURS = Row(
    "roce_neighbours",
    GAUGE,
    "neighbours",
    "Neighbours (ARP, NDP) of a network device by state: resolved, incomplete (being requested) or failed (no reply). "
    "Without its neighbour a peer or a gateway cannot be reached, although no counter moves. Read once a minute.",
    (spelt(ANY, "addresses", "neighbours {state}"),),
    (*NETDEV_LABELS, "state"),
    "experimental",
)

ROWS = (
    NEIGHBOURS,
    DEVICE_INFO,
    PORT_INFO,
    PORT_NETDEV_INFO,
    NETDEV_INFO,
    GID_INFO,
    gauge(
        "roce_port_up",
        "bool",
        "Whether the port is ACTIVE (1) or in any other state (0).",
        port("up"),
        metric_set=LEAN,
    ),
    gauge(
        "roce_port_state",
        "state",
        "Logical port state: 1 down, 2 initialising, 3 armed, 4 active, 5 active deferred.",
        port("state"),
        metric_set=STANDARD,
    ),
    gauge(
        "roce_port_physical_state",
        "state",
        "Physical port state: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 link error recovery, 7 PHY test.",
        port("phys_state"),
    ),
    gauge(
        "roce_port_speed_bytes_per_second",
        "bytes_per_second",
        "Current speed of the port.",
        port("rate"),
        metric_set=STANDARD,
    ),
    gauge(
        "roce_port_mtu_bytes",
        "bytes",
        "MTU of the port's network device, or of the bond for a RoCE LAG.",
        port("mtu"),
        metric_set=LEAN,
    ),
    resource("qp", "Queue pairs in use on the device.", LEAN),
    resource("cq", "Completion queues in use on the device.", LEAN),
    resource("mr", "Memory regions in use on the device.", LEAN),
    resource("pd", "Protection domains in use on the device."),
    resource("cm_id", "Connection manager identifiers in use on the device."),
    resource("ctx", "User contexts open on the device."),
    resource("srq", "Shared receive queues in use on the device."),
    resource("comp_cntr", "Completion counters in use on the device (Linux 7 and newer)."),
    limit("qp", "Queue pairs that the device can have at once."),
    limit("cq", "Completion queues that the device can have at once."),
    limit("mr", "Memory regions that the device can have at once."),
    Row(
        "roce_optional_enabled",
        GAUGE,
        "bool",
        "Whether an optional counter of the port is enabled (`rdma statistic set link ... optional-counters`).",
        (spelt(ANY, "optional_counters", "{counter}"),),
        (*PORT_LABELS, "counter"),
    ),
)
