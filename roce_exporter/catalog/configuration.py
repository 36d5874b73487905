"""What else is set: ToS, RoCE version, congestion control; and what the audit makes of all settings."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import (
    ANY,
    GAUGE,
    NETDEV_LABELS,
    PRIORITY_LABELS,
    Row,
    gauge,
    netdev_gauge,
    spelt,
)

configuration = partial(spelt, ANY, "configuration")
dcb = partial(spelt, ANY, "dcb")

CLASS_LABELS = (*NETDEV_LABELS, "traffic_class")

CHECK_LABELS = (*NETDEV_LABELS, "check")

SETTINGS = (
    Row(
        "roce_config_age_seconds",
        GAUGE,
        "seconds",
        "Age of the settings that are read once a minute: ToS, RoCE version, congestion control.",
        (configuration("age"),),
        ("device",),
    ),
    Row(
        "roce_config_tcp_ecn",
        GAUGE,
        "state",
        "net.ipv4.tcp_ecn of the host: 0 off, 1 on, 2 only when asked. It does nothing for RoCE.",
        (configuration("tcp_ecn"),),
        ("device",),
    ),
    gauge(
        "roce_config_traffic_class_forced",
        "bool",
        "Whether the NIC puts one ToS byte on all packets (1) or each program chooses its own (0). Only MLNX_OFED tells.",
        configuration("traffic_class_forced"),
    ),
    gauge(
        "roce_config_traffic_class",
        "tos",
        "The ToS byte that the NIC puts on all packets; missing where none is forced. 106 is DSCP 26 with ECT(0).",
        configuration("traffic_class"),
    ),
    gauge(
        "roce_config_cm_tos",
        "tos",
        "The ToS byte of connections that RDMA-CM makes, where the program chooses none.",
        configuration("cm_tos"),
    ),
    gauge(
        "roce_config_cm_roce_version",
        "version",
        "The RoCE version of connections that RDMA-CM makes: 1 is not routed, 2 is UDP.",
        configuration("cm_roce_version"),
    ),
    netdev_gauge(
        "roce_config_notification_point_enabled",
        "bool",
        "Whether marked packets of the priority are answered by CNPs (1) or not (0). Only MLNX_OFED tells.",
        configuration("notification_enabled_{priority}"),
        labels=PRIORITY_LABELS,
    ),
    netdev_gauge(
        "roce_config_reaction_point_enabled",
        "bool",
        "Whether CNPs slow the senders of the priority down (1) or not (0). Only MLNX_OFED tells.",
        configuration("reaction_enabled_{priority}"),
        labels=PRIORITY_LABELS,
    ),
)

PEER = (
    netdev_gauge(
        "roce_config_ets_peer_willing",
        "bool",
        "Whether the switch said by DCBX that it takes over what the NIC recommends.",
        dcb("peer_ets_willing"),
    ),
    netdev_gauge(
        "roce_config_ets_peer_transmit_bandwidth_ratio",
        "ratio",
        "Share of the bandwidth that the switch, as it said by DCBX, gives to the traffic class.",
        dcb("peer_ets_transmit_bandwidth_{traffic_class}", per=100),
        labels=CLASS_LABELS,
    ),
    netdev_gauge(
        "roce_config_ets_peer_algorithm",
        "state",
        "How the switch, as it said by DCBX, schedules the traffic class; numbers as of roce_config_ets_algorithm.",
        dcb("peer_ets_algorithm_{traffic_class}"),
        labels=CLASS_LABELS,
    ),
    netdev_gauge(
        "roce_config_priority_peer_traffic_class",
        "class",
        "Traffic class of the priority at the switch, as it said by DCBX.",
        dcb("peer_priority_traffic_class_{priority}"),
        labels=PRIORITY_LABELS,
    ),
    netdev_gauge(
        "roce_config_dscp_peer_priority",
        "priority",
        "Priority that the switch, as it said by DCBX, gives to packets with this DSCP.",
        dcb("peer_dscp_priority_{dscp}"),
        labels=(*NETDEV_LABELS, "dscp"),
    ),
)
"""What the other end of the link is set to, but for its PFC, which stands beside ours in `dcb`."""

RDMA_MTU = gauge(
    "roce_config_rdma_mtu_bytes",
    "bytes",
    "The RDMA MTU that the network device's MTU leaves room for, by the kernel's own rule (iboe_get_mtu).",
)
CHECK_OK = Row(
    "roce_config_check_ok",
    GAUGE,
    "bool",
    "Whether a setting is as the profile wants it (1) or not (0); missing where it could not be read or is not asked for.",
    labels=CHECK_LABELS,
)
CHECK_UNREADABLE = Row(
    "roce_config_check_unreadable",
    GAUGE,
    "bool",
    "1 where the profile asks for a check and this host, driver or privilege does not tell what it needs.",
    labels=CHECK_LABELS,
)
FINGERPRINT = Row(
    "roce_config_fingerprint",
    GAUGE,
    "hash",
    "A 48-bit hash of all settings that were read: equal for equally configured ports that the same version of the "
    "exporter reads with the same rights.",
    labels=NETDEV_LABELS,
)

AUDIT = (RDMA_MTU, CHECK_OK, CHECK_UNREADABLE, FINGERPRINT)

DCQCN_PARAMETER = netdev_gauge(
    "roce_dcqcn_parameter",
    "value",
    "One parameter of congestion control. The role is np (answers marks), rp (slows down), cc (both) or rtt; the "
    "parameter ends in its unit where the driver says in which it counts.",
    configuration("{role}.{parameter}.one"),
    configuration("{role}.{parameter}.us", per=1_000_000),
    configuration("{role}.{parameter}.mbps", times=125_000),
    configuration("{role}.{parameter}.percent", per=100),
    configuration("{role}.{parameter}.per1024", per=1024),
    labels=(*NETDEV_LABELS, "role", "parameter"),
)

ROWS = (*SETTINGS, *PEER, *AUDIT, DCQCN_PARAMETER)
