"""The rows of the configuration dashboard that are collapsed at first."""

from __future__ import annotations

from boards.colours import DCBX, ON_OFF, SCHEDULING
from boards.configuration_series import FIELDS, LINKS, spreads, with_units
from boards.measures import meanings, now
from boards.model import cell
from boards.panels import by_name
from boards.rules import PARAMETER
from boards.scopes import FLEET, to_host
from boards.tables import table, with_setting

SPREADS_BUFFERS = (
    ("Priority → buffer", "roce_config_priority_buffer", "The lossless priority should have a separate buffer.", "", 12, "The drivers do not expose it"),
    ("Buffer sizes", "roce_config_buffer_bytes", "", "bytes", 12, "The drivers do not expose it"),
    ("Priority → traffic class", "roce_config_priority_traffic_class", "", "", 12, "DCB is not readable"),
    ("Scheduling", "roce_config_ets_algorithm", "", SCHEDULING, 12, "DCB is not readable"),
    ("Bandwidth shares", "roce_config_ets_transmit_bandwidth_ratio", "", "percentunit", 12, "DCB is not readable"),
    ("Who negotiates DCB", "roce_config_dcbx_mode", "Firmware that negotiates may override the host's settings.", DCBX, 12, "DCB is not readable"),
)  # fmt: skip
BUFFERS_PANELS = (*spreads(SPREADS_BUFFERS),)


COUNTED = f"sum by (cluster, role, parameter, value) ({PARAMETER}{{{FLEET}}})"
UNITS = {"_seconds": " µs", "_bytes_per_second": " B/s", "_bytes": " B"}


SPREADS_DCQCN = (
    ("Notification point", "roce_config_notification_point_enabled", "Must be on for the lossless priority.", ON_OFF, 12, "No driver here exposes it: only MLNX_OFED does", "audited"),
    ("Reaction point", "roce_config_reaction_point_enabled", "Must be on for the lossless priority.", ON_OFF, 12, "No driver here exposes it: only MLNX_OFED does", "audited"),
)  # fmt: skip
DCQCN_PANELS = (
    *spreads(SPREADS_DCQCN),
    table(
        "DCQCN parameters",
        "Number of ports with each value. A parameter with two values in a cluster slows some senders more than others.\n\n"
        + meanings("roce_dcqcn_parameter"),
        ("cluster", "role", "parameter", "value", "Value"),
        cell(with_setting(COUNTED, "parameter")),
        names={"Value": "ports"},
        overrides=(by_name("value", ("mappings", with_units(UNITS))),),
        width=14,
        height=12,
        empty="No parameter can be read: mlx5 needs debugfs or the OFED drivers",
        proof="audited",
    ),
    table(
        "Parameters that differ",
        "Only parameters with more than one value in a cluster.",
        ("cluster", "role", "parameter", "Value"),
        cell(f"count by (cluster, role, parameter) ({COUNTED}) > 1"),
        names={"Value": "values"},
        concealed=("role",),
        width=10,
        height=12,
        empty="Every parameter has one value in each cluster, or cannot be read",
        proof="audited",
    ),
)


GIDS, ports = now("roce_gid_info", FLEET), now("roce_port_info", f'link_layer="Ethernet",{FLEET}')


ROUTABLE = now("roce_gid_info", f'type="RoCE v2",{FLEET}')
ADDRESSES_PANELS = (
    table(
        "GIDs by type",
        f"Used entries of GID tables. Routed traffic needs `RoCE v2`.\n\n{meanings('roce_gid_info')}",
        ("cluster", "type", "Value"),
        cell(f"count by (cluster, type) ({GIDS})"),
        names={"Value": "slots"},
        width=8,
        empty="No GIDs found",
    ),
    table(
        "Ports without a RoCE v2 GID",
        "At most 50. They cannot be reached across routers; is an address set on the network device?",
        FIELDS[:5],
        cell(f"topk(50, {ports} unless on (cluster, job, instance, device, port) {ROUTABLE})"),
        overrides=LINKS,
        wide="instance",
        width=16,
        empty="Every port has a RoCE v2 GID",
        proof="sick",
    ),
    table(
        "GID tables",
        "At most 100 entries: select a host above.",
        (*FIELDS, "index", "type", "address"),
        cell(f"topk(100, {GIDS})"),
        overrides=LINKS,
        wide="address",
        width=24,
        height=10,
        empty="No GIDs found",
    ),
)


INFO = now("roce_device_info", FLEET)
VERSIONS_PANELS = (
    table(
        "Firmware",
        "Devices by driver, board and firmware. Mixed firmware in a cluster means mixed behaviour.",
        ("cluster", "driver", "board", "firmware", "Value"),
        cell(f"count by (cluster, driver, board, firmware) ({INFO})"),
        names={"Value": "devices"},
        sort="Value",
        width=24,
        empty="No devices found",
    ),
    table(
        "PCIe links",
        f"Devices by lanes in use.\n\n{meanings('roce_pcie_link_width_lanes')}",
        ("cluster", "value", "Value"),
        cell(f'count_values by (cluster) ("value", {now("roce_pcie_link_width_lanes", FLEET)})'),
        names={"Value": "devices"},
        sort="Value",
        numeric=("value",),
        overrides=(by_name("value", ("unit", "suffix: lanes")),),
        width=10,
        empty="No PCIe devices found",
    ),
    table(
        "PCIe links below their width",
        "Devices that use fewer lanes than they support, at most 50. They may receive more slowly than their port.",
        (*FIELDS[:4], "Value"),
        cell(
            f"topk(50, {now('roce_pcie_link_width_lanes', FLEET)} < {now('roce_pcie_link_width_max_lanes', FLEET)})"
        ),
        names={"Value": "lanes in use"},
        overrides=(by_name("instance", ("links", [to_host()])),),
        wide="instance",
        width=14,
        empty="Every device uses all its lanes",
        proof=".*",
    ),
)
