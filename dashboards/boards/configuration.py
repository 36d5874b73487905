"""Configuration: what is set against what should be, across the fleet."""

from __future__ import annotations

from boards.colours import SEVERITY, UNKNOWN
from boards.configuration_details import ADDRESSES_PANELS, BUFFERS_PANELS, DCQCN_PANELS, VERSIONS_PANELS
from boards.configuration_series import FIELDS, LINKS, spread
from boards.limits import ALERTS, DRIFT, steps
from boards.measures import meanings, now
from boards.model import Board, Query, Row
from boards.panels import lines, number, ranking, table
from boards.rules import CHECKS, CHECKS_FAILED, UNREADABLE
from boards.scopes import CLUSTER, FLEET, HOST, OF_HOSTS, alerts

TICKET = SEVERITY[ALERTS["RoceConfigCheckFailed"]["severity"]]
NOT_CHECKED = "No configuration check has run"
JUDGED_PANELS = (
    number(
        "Checks that fail",
        "Checks of ports that fail, fleet-wide. Each is a ticket, for what is set wrongly breaks later.",
        "none",
        Query(f"sum({CHECKS_FAILED}{{{FLEET}}}) or 0 * sum({CHECKS}{{{FLEET}}})"),
        limits=steps((1, TICKET)),
        width=4,
        height=4,
        empty=NOT_CHECKED,
        proof="audited",
    ),
    number(
        "Checks that ran",
        "All checks that could be made.",
        "none",
        Query(f"sum({CHECKS}{{{FLEET}}})"),
        width=4,
        height=4,
        empty=NOT_CHECKED,
        proof="audited",
    ),
    number(
        "Settings that differ",
        "Settings in which devices of one name differ inside a cluster.",
        "none",
        Query(f"count({DRIFT}{{{CLUSTER}}} > 0) or 0 * count({DRIFT}{{{CLUSTER}}})"),
        limits=steps((1, SEVERITY[ALERTS["RoceConfigDrift"]["severity"]])),
        width=4,
        height=4,
        empty="No recording rules: load alerts/roce.rules.yml",
    ),
    number(
        "Checks that could not run",
        "Checks whose setting this host, driver or privilege does not tell: not good and not bad. `roce-exporter audit` names what is missing.",
        "none",
        Query(f"sum({UNREADABLE}{{{FLEET}}}) or 0 * sum({CHECKS}{{{FLEET}}})"),
        limits=steps((1, UNKNOWN)),
        width=4,
        height=4,
        empty=NOT_CHECKED,
        proof="audited",
    ),
    lines(
        "Failed checks over time",
        "Since when. A step down after a reboot that comes back: the setting is not persistent.",
        "none",
        Query(f"sum by (cluster) ({CHECKS_FAILED}{{{FLEET}}})", "{{cluster}}"),
        width=8,
        height=4,
        empty="No check fails, or none has run",
        proof="audited",
    ),
    ranking(
        "Failures by check",
        "Ports that fail each check.",
        "none",
        Query(f"topk(20, sum by (check) ({CHECKS_FAILED}{{{FLEET}}}))", "{{check}}", instant=True),
        steps((1, TICKET)),
        width=8,
        height=8,
        empty="No check fails, or none has run",
        proof="audited",
    ),
    table(
        "Ports that fail a check",
        "100 at most. On the host, `roce-exporter audit` says what is set, what is expected, why, and the command that mends it.\n\n"
        + meanings("roce_config_check_ok"),
        (*FIELDS, "check"),
        Query(f"topk(100, {now('roce_config_check_ok', HOST)} == 0)", form="table", instant=True),
        overrides=LINKS,
        width=16,
        height=8,
        empty="No check fails, or none has run",
        proof="audited",
    ),
    table(
        "Settings that differ inside a cluster",
        "Devices of one name should be set alike. 1 or more: at least two hosts differ; the rows below say in what.",
        ("cluster", "device", "setting", "Value"),
        Query(f"topk(50, {DRIFT}{{{CLUSTER}}} > 0)", form="table", instant=True),
        names={"Value": "distance"},
        width=12,
        height=8,
        empty="Devices of one name are set alike",
        proof="misconfigured",
    ),
    table(
        "Kinds of configuration",
        "Ports by the fingerprint of their settings. Ports that are set alike have one fingerprint: few lines are good, a line with few ports is the odd one out.\n\n"
        + meanings("roce_config_fingerprint"),
        ("cluster", "value", "Value"),
        Query(
            f'count_values by (cluster) ("value", {now("roce_config_fingerprint", HOST)})',
            form="table",
            instant=True,
        ),
        names={"Value": "ports"},
        sort="Value",
        rarest=True,
        width=12,
        height=8,
        empty="No fingerprint is told",
        proof="audited",
    ),
)
PEER = f"{now('roce_pfc_enabled', HOST)} != on (cluster, job, instance, device, port, netdev, priority) group_right () {now('roce_config_pfc_peer_enabled', HOST)}"
LOSSLESS_PANELS = (
    table(
        "PFC by priority",
        f"Ports with PFC on, by priority. One line per cluster is what most want: PFC on one priority.\n\n{meanings('roce_pfc_enabled')}",
        ("cluster", "priority", "Value"),
        Query(
            f"count by (cluster, priority) ({now('roce_pfc_enabled', HOST)} == 1)", form="table", instant=True
        ),
        names={"Value": "ports"},
        width=8,
        empty="PFC is off everywhere, or DCB is not told",
    ),
    table(
        "PFC against the switch",
        f"Ports whose switch says otherwise by DCBX, 50 at most.\n\n{meanings('roce_config_pfc_peer_enabled')}",
        (*FIELDS, "priority", "Value"),
        Query(f"topk(50, {PEER})", form="table", instant=True),
        names={"Value": "switch"},
        overrides=LINKS,
        width=16,
        empty="No switch contradicts, or none is heard: DCBX of most firmware is silent",
        proof="audited",
    ),
    spread(
        "DSCP → priority",
        "roce_config_dscp_priority",
        ", dscp",
        "RoCE is DSCP 26 and CNPs 48 almost everywhere.",
        width=8,
        empty="DSCP is not mapped, or DCB is not told",
    ),
    spread(
        "Trust",
        "roce_config_trust_dscp",
        "",
        "1: DSCP, 0: VLAN tag. Routed RoCE needs DSCP.",
        width=8,
        empty="No driver here tells (Linux 6.2 and newer)",
        proof="audited",
    ),
    spread(
        "MTU",
        "roce_port_mtu_bytes",
        "",
        "4200 and more let RDMA use its largest MTU.",
        width=8,
        empty="No port is seen",
    ),
    spread(
        "Pause beside PFC",
        "roce_config_global_pause_transmit_enabled",
        "",
        "Must be 0 beside PFC.",
        width=8,
        empty="The drivers do not tell",
    ),
    spread(
        "Pause watchdog",
        "roce_config_pfc_prevention_timeout_seconds",
        "",
        "",
        width=8,
        empty="The drivers do not tell",
    ),
    spread(
        "ToS on all packets",
        "roce_config_traffic_class",
        "",
        "106 is DSCP 26 with ECT(0); 104 is without, so that switches cannot mark.",
        width=8,
        empty="None is forced: each program chooses its own",
        proof="audited",
    ),
    spread(
        "ToS of RDMA-CM",
        "roce_config_cm_tos",
        "",
        "What connections get whose program chooses none.",
        width=8,
        empty="configfs is not mounted, or not readable",
        proof="audited",
    ),
    spread(
        "RoCE version of RDMA-CM",
        "roce_config_cm_roce_version",
        "",
        "2 can be routed.",
        width=8,
        empty="configfs is not mounted, or not readable",
        proof="audited",
    ),
    spread(
        "Allowance for cables",
        "roce_config_pfc_delay",
        "",
        "Headroom is made for this length: too short loses packets.",
        width=8,
        empty="The drivers do not tell",
    ),
)
BOARD = Board(
    "roce-configuration",
    "RoCE / Configuration",
    "What is set against what should be; what differs inside a cluster.",
    OF_HOSTS,
    (
        Row("Judged", "", JUDGED_PANELS),
        Row(
            "Lossless priority",
            "**Every hop must agree**: the application's DSCP → priority → PFC → buffer with headroom. Each table has one line per value: "
            "more lines than kinds of NICs means drift.",
            LOSSLESS_PANELS,
        ),
        Row(
            "Buffers and scheduling",
            "**The lossless priority needs its own buffer and its share of the bandwidth**; strict priority is for CNPs.",
            BUFFERS_PANELS,
            collapsed=True,
        ),
        Row(
            "DCQCN",
            "**Both ends must be on**: the notification point answers marks, the reaction point slows down.",
            DCQCN_PANELS,
            collapsed=True,
        ),
        Row(
            "GIDs",
            "**RoCE v2 needs an IP address** on the network device of the port.",
            ADDRESSES_PANELS,
            collapsed=True,
        ),
        Row(
            "Firmware and slots",
            "**Alike hardware, alike firmware, alike slots.**",
            VERSIONS_PANELS,
            collapsed=True,
        ),
    ),
    (alerts(FLEET),),
)
