"""Settings of data centre bridging: PFC, scheduling, mapping of DSCP to priority to buffer, and who negotiates them."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import ANY, LEAN, NETDEV_LABELS, PRIORITY_LABELS, STANDARD, netdev_gauge, spelt

dcb = partial(spelt, ANY, "dcb")

CLASS_LABELS = (*NETDEV_LABELS, "traffic_class")
BUFFER_LABELS = (*NETDEV_LABELS, "buffer")


ROWS = (
    netdev_gauge(
        "roce_pfc_enabled",
        "bool",
        "Whether PFC is on for the priority (1) or off (0). mlx5 reports the priorities for which it would send pause frames.",
        dcb("pfc_enabled_{priority}"),
        labels=PRIORITY_LABELS,
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_config_pfc_peer_enabled",
        "bool",
        "Whether PFC is on for the priority on the switch, according to DCBX; only where the NIC's firmware runs DCBX.",
        dcb("peer_pfc_enabled_{priority}"),
        labels=PRIORITY_LABELS,
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_pfc_traffic_classes",
        "classes",
        "Number of traffic classes that may have PFC at the same time.",
        dcb("pfc_capacity"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_pfc_delay",
        "allowance",
        "Allowance for the round trip of a pause frame: in bit times as in the standard; on mlx5 the cable length in "
        "metres. Missing where the driver does not report it.",
        dcb("pfc_delay"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_ets_transmit_bandwidth_ratio",
        "ratio",
        "Share of the bandwidth that the traffic class gets when the port is saturated.",
        dcb("ets_transmit_bandwidth_{traffic_class}", per=100),
        labels=CLASS_LABELS,
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_gauge(
        "roce_config_ets_receive_bandwidth_ratio",
        "ratio",
        "Share of the bandwidth that the traffic class gets on receive.",
        dcb("ets_receive_bandwidth_{traffic_class}", per=100),
        labels=CLASS_LABELS,
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_gauge(
        "roce_config_ets_algorithm",
        "state",
        "How the traffic class is scheduled: 0 strict priority, 1 credit-based shaper, 2 ETS, 255 vendor-specific.",
        dcb("ets_algorithm_{traffic_class}"),
        labels=CLASS_LABELS,
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_gauge(
        "roce_config_ets_willing",
        "bool",
        "Whether the NIC is willing to adopt what its switch recommends.",
        dcb("ets_willing"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_priority_traffic_class",
        "class",
        "Traffic class of the priority.",
        dcb("priority_traffic_class_{priority}"),
        labels=PRIORITY_LABELS,
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_max_rate_bytes_per_second",
        "bytes_per_second",
        "Rate limit of the traffic class; 0 means unlimited.",
        dcb("max_rate_{traffic_class}"),
        labels=CLASS_LABELS,
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_gauge(
        "roce_config_dscp_priority",
        "priority",
        "Priority of packets with this DSCP; only DSCPs with a mapping.",
        dcb("dscp_priority_{dscp}"),
        labels=(*NETDEV_LABELS, "dscp"),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_config_dscp_mappings",
        "entries",
        "Number of DSCPs that are mapped to a priority. mlx5 trusts the DSCP if there are any, otherwise the VLAN tag.",
        dcb("dscp_mappings"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_trust_dscp",
        "bool",
        "Whether packets get their priority from the DSCP first (1) or from the VLAN tag (0). Reported on Linux 6.2 and newer and by MLNX_OFED.",
        dcb("trust_dscp"),
        spelt(ANY, "configuration", "trust_dscp"),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_config_priority_buffer",
        "buffer",
        "Receive buffer of the priority.",
        dcb("priority_buffer_{priority}"),
        labels=PRIORITY_LABELS,
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_buffer_bytes",
        "bytes",
        "Size of the receive buffer.",
        dcb("buffer_bytes_{buffer}"),
        labels=BUFFER_LABELS,
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_gauge(
        "roce_config_buffer_total_bytes",
        "bytes",
        "Total size of all receive buffers.",
        dcb("buffer_total"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_dcbx_mode",
        "state",
        "Which side negotiates DCB, a bit mask: 1 the host, 2 the NIC's firmware, 4 CEE, 8 IEEE, 16 static.",
        dcb("dcbx_mode"),
        metric_set=STANDARD,
    ),
)
