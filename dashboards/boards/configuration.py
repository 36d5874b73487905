"""Configuration: actual settings compared with the expected ones, across the fleet."""

from __future__ import annotations

from boards.colours import ON_OFF, ROCE_VERSION, SEVERITY, TRUST, WARNING
from boards.configuration_details import ADDRESSES_PANELS, BUFFERS_PANELS, DCQCN_PANELS, VERSIONS_PANELS
from boards.configuration_series import FIELDS, LINKS, check_texts, spreads, value_texts
from boards.limits import DRIFT, steps
from boards.measures import meanings, now
from boards.model import Board, Query, Row, Variable, cell
from boards.panels import by_name, named, number
from boards.rules import CHECKS, CHECKS_FAILED, PLACES, SETTING, SETTINGS, UNREADABLE
from boards.scopes import CLUSTER, FLEET, OF_FLEET, WITH_RUNBOOKS, alerts_of_clusters, runbook
from boards.tables import WRAPPED, table, with_setting
from roce_exporter.catalog.row import MetricSet

TICKET = SEVERITY[WARNING]
NOT_CHECKED = "No check ran"
TEXTS = check_texts()
FAILED = f"sum by (check) ({CHECKS_FAILED}{{{FLEET}}})"
EXPLAINED = (
    f'label_replace(label_replace({FAILED}, "why", "$1", "check", "(.*)"), "fix", "$1", "check", "(.*)")'
)
PLACED = f"({', '.join(('cluster', 'setting', *PLACES))})"
COUNTED = f"sum by ({', '.join(('cluster', 'setting', *PLACES, 'value'))}) ({SETTING}{{{FLEET}}})"
VALUES = with_setting(COUNTED)
ONE_SETTING = f'{{__name__="$setting",{FLEET}}}'
OF_SETTINGS = (
    *OF_FLEET,
    Variable(
        "setting", "Setting", "The setting for *Ports with another value*.",
        f"label_values({SETTING}{{{FLEET}}}, setting)", multi=False, include_all=False,
    ),
    WITH_RUNBOOKS,
)  # fmt: skip
JUDGED_PANELS = (
    number(
        "Checks that fail",
        "Failed checks of ports. Each is a ticket, because a wrong setting breaks the fabric later.",
        "none",
        Query(f"sum({CHECKS_FAILED}{{{FLEET}}}) or 0 * sum({CHECKS}{{{FLEET}}})"),
        limits=steps((1, TICKET)),
        width=6,
        empty=NOT_CHECKED,
        proof="audited",
    ),
    number(
        "Settings that differ",
        "Settings that differ between devices of one name inside a cluster.",
        "none",
        Query(f"count({DRIFT}{{{CLUSTER}}} > 0) or 0 * count({DRIFT}{{{CLUSTER}}})"),
        limits=steps((1, SEVERITY[WARNING])),
        width=6,
        empty="No rules",
    ),
    number(
        "Checks that could not run",
        "Checks whose setting this host, driver or privilege level does not expose: neither good nor bad. `roce-exporter check settings` lists what is missing.",
        "none",
        Query(f"sum({UNREADABLE}{{{FLEET}}}) or 0 * sum({CHECKS}{{{FLEET}}})"),
        width=6,
        empty=NOT_CHECKED,
        proof="audited",
    ),
    number(
        "Checks that ran",
        "All checks that could run.",
        "none",
        Query(f"sum({CHECKS}{{{FLEET}}})"),
        width=6,
        empty=NOT_CHECKED,
        proof="audited",
    ),
    table(
        "What is wrong, and how to fix it",
        "The failed checks, with the audit's texts. `roce-exporter check settings` on the host prints the same command with the values of the "
        "port, and the vendor's command if there is one. The check's name opens the runbook.",
        ("check", "Value", "why", "fix"),
        cell(f"topk(50, {EXPLAINED})"),
        names={"Value": "ports"},
        wide="fix",
        tall=True,
        sort="Value",
        overrides=(
            by_name("check", ("mappings", [TEXTS["check"]]), ("links", runbook("RoceConfigCheckFailed"))),
            by_name("why", ("mappings", [TEXTS["why"]]), ("custom.width", 620), *WRAPPED),
            by_name("fix", ("mappings", [TEXTS["fix"]]), *WRAPPED),
        ),
        width=24,
        height=8,
        empty="No check fails, or no check has run",
        proof="audited",
    ),
    table(
        "Ports that fail a check",
        "At most 100.\n\n" + meanings("roce_config_check_ok"),
        (*FIELDS, "check"),
        cell(f"topk(100, {now('roce_config_check_ok', FLEET)} == 0)"),
        overrides=(*LINKS, by_name("check", ("mappings", [TEXTS["check"]]), ("links", runbook("RoceConfigCheckFailed")))),
        concealed=("cluster", "job", "port", "netdev"),
        wide="instance",
        width=11,
        height=8,
        empty="No check fails, or no check has run",
        proof="audited",
    ),
    table(
        "What differs inside a cluster",
        "Number of ports with each value, for settings with more than one value in a cluster, the rarest values first, at most 50. Different kinds "
        "of NICs may differ; hosts of one kind should not. Choose the setting above to find the ports.",
        ("cluster", "setting", *PLACES, "value", "Value"),
        cell(f"bottomk(50, {VALUES} and on {PLACED} count by {PLACED} ({COUNTED}) > 1)"),
        names={"Value": "ports"},
        concealed=("dscp", "buffer", "traffic_class"),
        wide="setting",
        sort="Value",
        rarest=True,
        overrides=(
            by_name("setting", ("mappings", [named({name: (said, "") for name, said in SETTINGS.items()})])),
            by_name("value", ("mappings", value_texts()), ("custom.width", 170)),
        ),
        width=13,
        height=8,
        empty="Every setting has one value in each cluster",
        proof="misconfigured",
    ),
    table(
        "Ports with another value",
        "Ports whose value of the setting that is chosen above is not the median of their cluster, at most 100. Click a port to open it.",
        (*FIELDS, *PLACES, "Value"),
        cell(f"topk(100, {ONE_SETTING} != on (cluster, {', '.join(PLACES)}) group_left () quantile by (cluster, {', '.join(PLACES)}) (0.5, {ONE_SETTING}))"),
        names={"Value": "value"},
        concealed=("job", "dscp", "buffer", "traffic_class"),
        wide="instance",
        overrides=LINKS,
        width=24,
        height=7,
        empty="No port differs in this setting",
        proof="misconfigured",
    ),
)  # fmt: skip
PEER = f"{now('roce_pfc_enabled', FLEET)} != on (cluster, job, instance, device, port, netdev, priority) group_right () {now('roce_config_pfc_peer_enabled', FLEET)}"
SPREADS_LOSSLESS = (
    ("DSCP → priority", "roce_config_dscp_priority", "RoCE is DSCP 26 and CNPs 48 almost everywhere.", "", 12, "DSCP is not mapped, or DCB is not readable"),
    ("Trust", "roce_config_trust_dscp", "Routed RoCE needs DSCP.", TRUST, 12, "No driver here exposes it (Linux 6.2 and newer)", "audited"),
    ("MTU", "roce_port_mtu_bytes", "From 4200 on RDMA can use its largest MTU.", "", 8, "No ports found"),
    ("Global pause with PFC", "roce_config_global_pause_transmit_enabled", "Must be off where PFC is on.", ON_OFF, 8, "The drivers do not expose it"),
    ("Pause watchdog", "roce_config_pfc_prevention_timeout_seconds", "", "s", 8, "The drivers do not expose it"),
    ("ToS on all packets", "roce_config_traffic_class", "106 is DSCP 26 with ECT(0); 104 is without ECT, so switches cannot mark the packets.", "", 8, "Not forced: each program sets its own", "audited"),
    ("ToS of RDMA-CM", "roce_config_cm_tos", "Default for connections whose program sets no ToS.", "", 8, "configfs is not mounted, or not readable", "audited"),
    ("RoCE version of RDMA-CM", "roce_config_cm_roce_version", "Version 2 can be routed.", ROCE_VERSION, 8, "configfs is not mounted, or not readable", "audited"),
    ("Allowance for cables", "roce_config_pfc_delay", "Headroom is computed from this length: a value that is too short loses packets.", "", 8, "The drivers do not expose it"),
)  # fmt: skip
LOSSLESS_PANELS = (
    table(
        "PFC by priority",
        f"Ports with PFC on, by priority. Usually one line per cluster: PFC on one priority.\n\n{meanings('roce_pfc_enabled')}",
        ("cluster", "priority", "Value"),
        cell(f"count by (cluster, priority) ({now('roce_pfc_enabled', FLEET)} == 1)"),
        names={"Value": "ports"},
        width=8,
        empty="PFC is off everywhere, or DCB is not readable",
    ),
    table(
        "PFC against the switch",
        f"Ports whose switch advertises the opposite by DCBX, at most 50.\n\n{meanings('roce_config_pfc_peer_enabled')}",
        (*FIELDS, "priority", "Value"),
        cell(f"topk(50, {PEER})"),
        names={"Value": "switch"},
        overrides=(
            *LINKS,
            by_name("switch", ("mappings", [named({value: (text, "") for value, text in ON_OFF.items()})])),
        ),
        concealed=("cluster", "job"),
        wide="instance",
        width=16,
        empty="No mismatch reported (most firmware does not expose the peer's DCBX state)",
        proof="audited",
    ),
    *spreads(SPREADS_LOSSLESS),
)
BOARD = Board(
    "roce-configuration",
    "RoCE / Configuration",
    "What is wrong, what differs inside a cluster, and how to fix it.",
    OF_SETTINGS,
    (
        Row("Now", "what is wrong, what differs, and how to fix it", JUDGED_PANELS),
        Row(
            "Lossless priority",
            "every hop must agree on DSCP → priority → PFC → buffer",
            LOSSLESS_PANELS,
            collapsed=True,
        ),
        Row(
            "Buffers and scheduling",
            "the lossless priority needs its own buffer and its share of the bandwidth",
            BUFFERS_PANELS,
            collapsed=True,
        ),
        Row(
            "DCQCN",
            "both ends must be on: the notification point replies to marks, the reaction point slows down",
            DCQCN_PANELS,
            collapsed=True,
        ),
        Row(
            "GIDs",
            "RoCE v2 needs an IP address on the network device of the port",
            ADDRESSES_PANELS,
            collapsed=True,
        ),
        Row(
            "Firmware and slots",
            "the same hardware should have the same firmware and slots",
            VERSIONS_PANELS,
            collapsed=True,
        ),
    ),
    (alerts_of_clusters(),),
    metric_set=MetricSet.FULL,
)
