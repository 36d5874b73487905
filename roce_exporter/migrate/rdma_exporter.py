"""The names of yuuki's rdma_exporter.

Learnt from `internal/collector/collector.go`, `internal/collector/netdev.go` and `internal/rdma/provider.go` of version 0.7.1. Every
file of `counters` and `hw_counters` becomes `rdma_NAME_total` with its raw value: the data counters are 4-byte words. Of
`ethtool -S` it has a fixed table of mlx5's counters; labels have the direction, priority, lane and kind.
"""

import re

from roce_exporter.catalog.row import COUNTERS, ETHTOOL, HW_COUNTERS
from roce_exporter.migrate.naming import NETDEV, PORT, Pairs, Written, in_words
from roce_exporter.words import word_list


def _written(name: str, *labels: str, **where: str) -> Written:
    return Written(f"rdma_{name}", (*NETDEV, *((one, one) for one in labels)), where=tuple(where.items()))


OF_ETHTOOL = {
    "rx_prio{priority}_pause_transition": _written(
        "roce_pfc_pause_transitions_total", "priority", direction="rx"
    ),
    "rx_prio{priority}_buf_discard": _written("netdev_prio_buf_discard_total", "priority"),
    "rx_prio{priority}_cong_discard": _written("netdev_prio_cong_discard_total", "priority"),
    "rx_prio{priority}_discards": _written("netdev_prio_discards_total", "priority"),
    "rx_prio{priority}_marked": _written("netdev_prio_ecn_marked_total", "priority"),
    "dev_out_of_buffer": _written("netdev_dev_out_of_buffer_total"),
    "rx_out_of_buffer": _written("netdev_rx_out_of_buffer_total"),
    "rx_discards_phy": _written("netdev_rx_discards_phy_total"),
    "outbound_pci_stalled_rd": _written("pcie_outbound_stalled_percent", op="rd"),
    "outbound_pci_stalled_wr": _written("pcie_outbound_stalled_percent", op="wr"),
    "outbound_pci_stalled_rd_events": _written("pcie_outbound_stalled_seconds_total", op="rd"),
    "outbound_pci_stalled_wr_events": _written("pcie_outbound_stalled_seconds_total", op="wr"),
    "outbound_pci_buffer_overflow": _written("pcie_outbound_buffer_overflow_total"),
    "rx_corrected_bits_phy": _written("phy_rx_corrected_bits_total"),
    "rx_pcs_symbol_err_phy": _written("phy_rx_pcs_symbol_err_total"),
    "rx_bits_phy": _written("phy_rx_bits_total"),
    "rx_err_lane_{lane}_phy": _written("phy_rx_err_lane_total", "lane"),
    "rx_crc_errors_phy": _written("phy_rx_crc_errors_total"),
    "link_down_events_phy": _written("phy_link_down_events_total"),
    "rx_global_pause_transition": _written("netdev_global_pause_transitions_total"),
    "tx_pause_storm_warning_events": _written("netdev_pause_storm_events_total", severity="warning"),
    "tx_pause_storm_error_events": _written("netdev_pause_storm_events_total", severity="error"),
    **{
        f"{way}_{raw}": _written(name, *labels, direction=way, **where)
        for way in ("rx", "tx")
        for raw, name, labels, where in (
            ("prio{priority}_pause", "roce_pfc_pause_frames_total", ("priority",), {}),
            ("prio{priority}_pause_duration", "roce_pfc_pause_duration_total", ("priority",), {}),
            ("pci_signal_integrity", "pcie_signal_integrity_total", (), {}),
            ("global_pause", "netdev_global_pause_frames_total", (), {}),
            ("global_pause_duration", "netdev_global_pause_duration_total", (), {}),
            *(
                (f"vport_rdma_{traffic}_{unit}", f"netdev_vport_rdma_{unit}_total", (), {"traffic": traffic})
                for traffic in ("unicast", "multicast")
                for unit in ("bytes", "packets")
            ),
        )
    },
}
"""Its microseconds of pause and its percent stay as the driver counts them."""

OPTIONAL = {
    f"rdma_{name}": f"optional_{name}" for name in word_list("rx_bytes tx_bytes rx_packets tx_packets")
}
"""Optional counters, read from RDMA netlink, that have another name there."""

LOST = ("state", "phys_state", "link_width", "link_speed", "pci_addr", "is_vf", "pf_device")
"""Labels of `rdma_port_info` that ours does not have."""

FACTS: tuple[tuple[str, Written], ...] = (
    (
        "roce_port_info",
        Written(
            "rdma_port_info",
            (*NETDEV, ("link_layer", "link_layer")),
            loss="`state`, `phys_state`, `link_speed` and `pci_addr` are values or labels of other metrics of ours: "
            "roce_port_state, roce_port_physical_state, roce_port_speed_bytes_per_second and roce_device_info",
        ),
    ),
    ("roce_optional_enabled", Written("rdma_optional_counter_enabled", (*PORT, ("counter", "counter")))),
)
"""Metrics that are not counters, with the metric of ours that has the same fact."""

UNTRANSLATABLE = {
    "rdma_lifespan_milliseconds": "a setting: the time for which the kernel may return a cached value",
    "rdma_qp_(duplicate_request|implied_nak_seq_err|local_ack_timeout_err|packet_seq_err|rnr_nak_retry_err|out_of_buffer"
    "|rx_(write|read|atomic)_requests|(rx|tx)_(bytes|packets))_total": "counters of the queue pairs that are bound to a set "
    "of counters; ours count all queue pairs of a port",
    "rdma_qp_(counter_mode|auto_mask|scrape_status)": "the binding of queue pairs to sets of counters, which ours does not read",
    "rdma_scrape_collector_success": "the state of a part of that exporter; see roce_exporter_source_up for ours",
    "rdma(_roce_pfc|_netdev|_optional_counter|_qp)?_scrape_errors_total": "errors of that exporter; see "
    "roce_exporter_read_errors_total for ours",
}

_OTHER_CHARACTERS = re.compile(r"[^a-z0-9_]")


def counter_name(raw: str) -> str:
    """The metric that it makes of a file's or counter's name."""
    name = _OTHER_CHARACTERS.sub("_", raw.lower())
    return f"rdma_{'_' if name[0].isdigit() else ''}{name}_total"


def written(source: str, raw: str, labels: tuple[str, ...]) -> list[Written]:
    """How rdma_exporter writes a raw name of a source; `labels` are those of our metric."""
    if source == ETHTOOL:
        return [OF_ETHTOOL[raw]] if raw in OF_ETHTOOL else []
    if source not in (COUNTERS, HW_COUNTERS):
        return []
    pairs: Pairs = tuple(pair for pair in PORT if pair[1] in labels)
    return [Written(counter_name(OPTIONAL.get(raw, raw)), pairs)]


def pattern_of(source: str, pattern: str) -> str:
    """The regular expression of the metrics of raw names that match a pattern; empty where that cannot be said."""
    return (
        f"rdma_({pattern.lower()})_total" if source in (COUNTERS, HW_COUNTERS) and in_words(pattern) else ""
    )
