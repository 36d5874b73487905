"""All other settings (ToS, RoCE version, congestion control), and the results of the audit of all settings."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import (
    ANY,
    GAUGE,
    LEAN,
    NETDEV_LABELS,
    PRIORITY_LABELS,
    STANDARD,
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
        "Age of the settings that are read once a minute (ToS, RoCE version, congestion control).",
        (configuration("age"),),
        ("device",),
    ),
    Row(
        "roce_config_tcp_ecn",
        GAUGE,
        "state",
        "net.ipv4.tcp_ecn of the host: 0 off, 1 on, 2 only when requested by the peer. It has no effect on RoCE.",
        (configuration("tcp_ecn"),),
        ("device",),
        metric_set=STANDARD,
    ),
    gauge(
        "roce_config_traffic_class_forced",
        "bool",
        "Whether the NIC sets one ToS byte on all packets (1) or each program sets its own (0). Only reported by MLNX_OFED.",
        configuration("traffic_class_forced"),
        metric_set=STANDARD,
    ),
    gauge(
        "roce_config_traffic_class",
        "tos",
        "ToS byte that the NIC sets on all packets; missing where no value is forced. 106 is DSCP 26 with ECT(0).",
        configuration("traffic_class"),
        metric_set=STANDARD,
    ),
    gauge(
        "roce_config_cm_tos",
        "tos",
        "Default ToS byte of RDMA-CM connections, used unless the program sets one.",
        configuration("cm_tos"),
        metric_set=STANDARD,
    ),
    gauge(
        "roce_config_cm_roce_version",
        "version",
        "RoCE version of RDMA-CM connections: 1 is not routable, 2 runs over UDP.",
        configuration("cm_roce_version"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_notification_point_enabled",
        "bool",
        "Whether the NIC sends CNPs for marked packets of the priority (1) or not (0). Only reported by MLNX_OFED.",
        configuration("notification_enabled_{priority}"),
        labels=PRIORITY_LABELS,
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_reaction_point_enabled",
        "bool",
        "Whether the NIC reduces its sending rate on the priority when it receives CNPs (1) or not (0). Only reported by MLNX_OFED.",
        configuration("reaction_enabled_{priority}"),
        labels=PRIORITY_LABELS,
        metric_set=STANDARD,
    ),
)

PEER = (
    netdev_gauge(
        "roce_config_ets_peer_willing",
        "bool",
        "Whether the switch is willing, according to DCBX, to adopt what the NIC recommends.",
        dcb("peer_ets_willing"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_ets_peer_transmit_bandwidth_ratio",
        "ratio",
        "Share of the bandwidth that the switch gives to the traffic class, according to DCBX.",
        dcb("peer_ets_transmit_bandwidth_{traffic_class}", per=100),
        labels=CLASS_LABELS,
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_gauge(
        "roce_config_ets_peer_algorithm",
        "state",
        "How the switch schedules the traffic class, according to DCBX; same values as roce_config_ets_algorithm.",
        dcb("peer_ets_algorithm_{traffic_class}"),
        labels=CLASS_LABELS,
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_gauge(
        "roce_config_priority_peer_traffic_class",
        "class",
        "Traffic class of the priority on the switch, according to DCBX.",
        dcb("peer_priority_traffic_class_{priority}"),
        labels=PRIORITY_LABELS,
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_dscp_peer_priority",
        "priority",
        "Priority that the switch gives to packets with this DSCP, according to DCBX.",
        dcb("peer_dscp_priority_{dscp}"),
        labels=(*NETDEV_LABELS, "dscp"),
        metric_set=STANDARD,
    ),
)
"""Settings of the other end of the link, except its PFC, which is next to ours in `dcb`."""

RDMA_MTU = gauge(
    "roce_config_rdma_mtu_bytes",
    "bytes",
    "Largest RDMA MTU that fits the network device's MTU, by the kernel's own rule (iboe_get_mtu).",
    metric_set=STANDARD,
)
CHECK_OK = Row(
    "roce_config_check_ok",
    GAUGE,
    "bool",
    "Whether a setting matches the profile (1) or not (0); missing where it cannot be read or the profile does not check it.",
    labels=CHECK_LABELS,
    metric_set=LEAN,
    usual=1,
)
CHECKS_PASSED = Row(
    "roce_config_checks_passed",
    GAUGE,
    "checks",
    "Number of settings of the port that match the profile.",
    metric_set=LEAN,
)
CHECK_UNREADABLE = Row(
    "roce_config_check_unreadable",
    GAUGE,
    "bool",
    "1 where the profile requires a check but this host, driver or privilege level does not provide the data for it.",
    labels=CHECK_LABELS,
    metric_set=LEAN,
)
FINGERPRINT = Row(
    "roce_config_fingerprint",
    GAUGE,
    "hash",
    "48-bit hash of all settings that were read: equal for ports with equal settings that the same version of the "
    "exporter reads with the same privileges.",
    labels=NETDEV_LABELS,
    metric_set=LEAN,
)

AUDIT = (RDMA_MTU, CHECK_OK, CHECKS_PASSED, CHECK_UNREADABLE, FINGERPRINT)

DCQCN_PARAMETER = netdev_gauge(
    "roce_dcqcn_parameter",
    "value",
    "One parameter of congestion control. The role is np (notification point), rp (reaction point), cc (both) or rtt; "
    "the parameter name ends in the unit where the driver documents it.",
    configuration("{role}.{parameter}.one"),
    configuration("{role}.{parameter}.us", per=1_000_000),
    configuration("{role}.{parameter}.mbps", times=125_000),
    configuration("{role}.{parameter}.percent", per=100),
    configuration("{role}.{parameter}.per1024", per=1024),
    labels=(*NETDEV_LABELS, "role", "parameter"),
    metric_set=STANDARD,
)

ROWS = (*SETTINGS, *PEER, *AUDIT, DCQCN_PARAMETER)
