"""What data centre bridging is set to: PFC, scheduling, mapping of DSCP to priority to buffer, and who negotiates it."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import ANY, NETDEV_LABELS, PRIORITY_LABELS, netdev_gauge, spelt

dcb = partial(spelt, ANY, "dcb")

CLASS_LABELS = (*NETDEV_LABELS, "traffic_class")
BUFFER_LABELS = (*NETDEV_LABELS, "buffer")


ROWS = (
    netdev_gauge(
        "roce_pfc_enabled",
        "bool",
        "Whether PFC is on for the priority (1) or off (0). mlx5 tells for what it would send pause frames.",
        dcb("pfc_enabled_{priority}"),
        labels=PRIORITY_LABELS,
    ),
    netdev_gauge(
        "roce_config_pfc_peer_enabled",
        "bool",
        "Whether the switch said by DCBX that PFC is on for the priority; only where the NIC's firmware speaks DCBX.",
        dcb("peer_pfc_enabled_{priority}"),
        labels=PRIORITY_LABELS,
    ),
    netdev_gauge(
        "roce_config_pfc_traffic_classes",
        "classes",
        "Traffic classes that may have PFC at the same time.",
        dcb("pfc_capacity"),
    ),
    netdev_gauge(
        "roce_config_pfc_delay",
        "allowance",
        "Allowance for the round trip of a pause frame: in bit times by the standard, on mlx5 the cable's length in "
        "metres. Missing where the driver does not tell.",
        dcb("pfc_delay"),
    ),
    netdev_gauge(
        "roce_config_ets_transmit_bandwidth_ratio",
        "ratio",
        "Share of the bandwidth that the traffic class gets when the port is full.",
        dcb("ets_transmit_bandwidth_{traffic_class}", per=100),
        labels=CLASS_LABELS,
    ),
    netdev_gauge(
        "roce_config_ets_receive_bandwidth_ratio",
        "ratio",
        "Share of the bandwidth that the traffic class gets on receive.",
        dcb("ets_receive_bandwidth_{traffic_class}", per=100),
        labels=CLASS_LABELS,
    ),
    netdev_gauge(
        "roce_config_ets_algorithm",
        "state",
        "How the traffic class is scheduled: 0 strict priority, 1 credit-based shaper, 2 ETS, 255 the vendor's own.",
        dcb("ets_algorithm_{traffic_class}"),
        labels=CLASS_LABELS,
    ),
    netdev_gauge(
        "roce_config_ets_willing",
        "bool",
        "Whether the NIC takes over what its switch recommends.",
        dcb("ets_willing"),
    ),
    netdev_gauge(
        "roce_config_priority_traffic_class",
        "class",
        "Traffic class of the priority.",
        dcb("priority_traffic_class_{priority}"),
        labels=PRIORITY_LABELS,
    ),
    netdev_gauge(
        "roce_config_max_rate_bytes_per_second",
        "bytes_per_second",
        "Rate limit of the traffic class; 0 means none.",
        dcb("max_rate_{traffic_class}"),
        labels=CLASS_LABELS,
    ),
    netdev_gauge(
        "roce_config_dscp_priority",
        "priority",
        "Priority of packets with this DSCP; only those that are set.",
        dcb("dscp_priority_{dscp}"),
        labels=(*NETDEV_LABELS, "dscp"),
    ),
    netdev_gauge(
        "roce_config_dscp_mappings",
        "entries",
        "DSCPs that are mapped to a priority. mlx5 goes by the DSCP if there are any, else by the VLAN tag.",
        dcb("dscp_mappings"),
    ),
    netdev_gauge(
        "roce_config_trust_dscp",
        "bool",
        "Whether packets get their priority by DSCP first (1) or by the VLAN tag (0). Only drivers on Linux 6.2 and MLNX_OFED tell.",
        dcb("trust_dscp"),
        spelt(ANY, "configuration", "trust_dscp"),
    ),
    netdev_gauge(
        "roce_config_priority_buffer",
        "buffer",
        "Receive buffer of the priority.",
        dcb("priority_buffer_{priority}"),
        labels=PRIORITY_LABELS,
    ),
    netdev_gauge(
        "roce_config_buffer_bytes",
        "bytes",
        "Size of the receive buffer.",
        dcb("buffer_bytes_{buffer}"),
        labels=BUFFER_LABELS,
    ),
    netdev_gauge(
        "roce_config_buffer_total_bytes", "bytes", "Size of all receive buffers.", dcb("buffer_total")
    ),
    netdev_gauge(
        "roce_config_dcbx_mode",
        "state",
        "Who negotiates DCB, a bit mask: 1 the host, 2 the NIC's firmware, 4 CEE, 8 IEEE, 16 static.",
        dcb("dcbx_mode"),
    ),
)
