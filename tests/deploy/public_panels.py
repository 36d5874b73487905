"""Queries of public dashboards and rules on other exporters' names: titles and queries, as facts, and what becomes of each.

24241 is "RDMA / RoCE NIC Telemetry" on grafana.com; its queries are those of `rdma_exporter_dashboard.grafana.com.json` of rdma_exporter
0.7.1. The texts of 23823 ("InfiniBand (Node Exporter)") and 25839 ("Node Exporter Full v2") were not available: the
queries on node_exporter's names are of other public dashboards, alerts and programs.
"""

from typing import NamedTuple

YUUKI = '{job="$job", instance=~"$instance", device=~"$device", port=~"$port"}'
NODE = '{instance=~"$node"}'


class Panel(NamedTuple):
    """One query of a public dashboard."""

    exporter: str
    title: str
    query: str
    lost: str = ""
    """A part of the reason for which it has no translation; empty for a query that has one."""
    in_files: bool = True
    """Whether its counters are in sysfs; those of ethtool and RDMA netlink are not."""
    labels: tuple[str, ...] = ()
    """The labels by which both results are compared, where descriptions of a device have others; empty: all."""


def rdma(
    title: str, *queries: str, lost: str = "", in_files: bool = True, labels: tuple[str, ...] = ()
) -> tuple[Panel, ...]:
    """A panel of 24241; `@` stands for its selector."""
    texts = [one.replace("@", YUUKI) for one in queries]
    return tuple(Panel("rdma_exporter", title, one, lost, in_files, labels) for one in texts)


def node(title: str, *queries: str, labels: tuple[str, ...] = ()) -> tuple[Panel, ...]:
    """Queries on node_exporter's names; `@` stands for the selector of a host."""
    return tuple(Panel("node_exporter", title, one.replace("@", NODE), labels=labels) for one in queries)


UNKNOWN = "not a name that this version knows"
"""rdma_exporter has no such name either: the panel is empty with it too."""
DIRECTION = "which metric it is here depends on a matcher that is not there: direction="
QUEUE_PAIRS = "counters of the queue pairs that are bound to a set of counters"


def rates(*names: str) -> tuple[str, ...]:
    return tuple(f"rate(rdma_{name}_total@[$interval])" for name in names)


PANELS = (
    *rdma(
        "Overview: Non-ACTIVE Ports",
        'count(count by (job, instance, device, port) (rdma_port_info{job="$job", instance=~"$instance", '
        'device=~"$device", port=~"$port", state!="ACTIVE"}))',
        lost="the label `state` of rdma_port_info has no equal here",
    ),
    *rdma("Overview: Port State Matrix", "rdma_port_info@", labels=("device", "port")),
    *rdma(
        "Overview: Link Events",
        "sum(rate(rdma_link_downed_total@[$interval])) + sum(rate(rdma_link_error_recovery_total@[$interval]))",
    ),
    *rdma("Throughput: RX Top", "topk($topn, 4 * rate(rdma_port_rcv_data_total@[$interval]))"),
    *rdma("Throughput: TX Top", "topk($topn, 4 * rate(rdma_port_xmit_data_total@[$interval]))"),
    *rdma("Packets: Selected Port", *rates("port_rcv_packets", "port_xmit_packets")),
    *rdma(
        "Packets: Selected Port",
        *rates("port_multicast_rcv_packets", "port_unicast_rcv_packets"),
        lost=UNKNOWN,
    ),
    *rdma("Congestion: xmit_wait", *rates("port_xmit_wait")),
    *rdma(
        "Congestion: ECN & CNP Signals",
        *rates("np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled", "rp_cnp_ignored"),
    ),
    *rdma("Congestion: Adaptive Retransmission", *rates("roce_adp_retrans", "roce_adp_retrans_to")),
    *rdma(
        "Congestion: Optional CC", *rates("cc_rx_ce_pkts", "cc_rx_cnp_pkts", "cc_tx_cnp_pkts"), in_files=False
    ),
    *rdma(
        "Congestion: Optional CC enabled",
        'rdma_optional_counter_enabled{job="$job", instance=~"$instance", device=~"$device", port=~"$port", '
        'counter=~"^cc_.*"}',
        in_files=False,
    ),
    *rdma(
        "Errors: Port Counters",
        *rates(
            "port_rcv_errors",
            "port_xmit_discards",
            "port_rcv_remote_physical_errors",
            "symbol_error",
            "port_rcv_switch_relay_errors",
            "port_rcv_constraint_errors",
            "port_xmit_constraint_errors",
        ),
    ),
    *rdma(
        "Quality: TX Drop Ratio",
        "100 * rate(rdma_port_xmit_discards_total@[$interval]) / "
        "clamp_min(rate(rdma_port_xmit_packets_total@[$interval]), 1e-6)",
    ),
    *rdma(
        "Congestion: PFC occupancy",
        "rate(rdma_roce_pfc_pause_duration_total@[$interval]) / 1e6",
        lost=DIRECTION,
    ),
    *rdma(
        "Host: PCIe stall",
        "rate(rdma_pcie_outbound_stalled_seconds_total@[$interval])",
        lost="a matcher that is not there: op=",
    ),
    *rdma(
        "Link: PHY FEC interval ratio",
        *(
            f"increase(rdma_phy_{name}_total@[$interval]) / "
            "clamp_min(increase(rdma_phy_rx_bits_total@[$interval]), 1)"
            for name in ("rx_corrected_bits", "rx_pcs_symbol_err")
        ),
        in_files=False,
    ),
    *rdma(
        "Congestion: IEEE 802.3x pause occupancy",
        "rate(rdma_netdev_global_pause_duration_total@[$interval]) / 1e6",
        lost=DIRECTION,
    ),
    *rdma(
        "Congestion: pause storm",
        *rates("netdev_pause_storm_events"),
        lost="a matcher that is not there: severity=",
    ),
    *rdma("Congestion: IEEE 802.3x pause frames", *rates("netdev_global_pause_frames"), lost=DIRECTION),
    *rdma(
        "Congestion: IEEE 802.3x pause transitions", *rates("netdev_global_pause_transitions"), in_files=False
    ),
    *rdma(
        "QP: optional traffic",
        *rates("qp_rx_bytes", "qp_tx_bytes", "qp_rx_packets", "qp_tx_packets"),
        lost=QUEUE_PAIRS,
    ),
    *rdma(
        "Optional: port traffic",
        *rates("optional_rx_bytes", "optional_tx_bytes", "optional_rx_packets", "optional_tx_packets"),
        in_files=False,
    ),
    *node(
        "Throughput of a host",
        "rate(node_infiniband_port_data_transmitted_bytes_total@[1m])",
        "rate(node_infiniband_port_data_received_bytes_total@[1m])",
        "sum(rate(node_infiniband_port_data_transmitted_bytes_total@[1m]) + "
        "rate(node_infiniband_port_data_received_bytes_total@[1m])) / 1000",
        "sum(rate(node_infiniband_port_data_received_bytes_total@[1m]) * 8)",
        "sum by (device) (irate(node_infiniband_port_data_transmitted_bytes_total@[1m]))",
        "avg(irate(node_infiniband_port_data_transmitted_bytes_total[1m]) * 8) + "
        "avg(irate(node_infiniband_port_data_received_bytes_total[1m]) * 8)",
        "8 * sum(increase(node_infiniband_port_data_received_bytes_total@[1m])) / 60",
        "max_over_time((8 * sum(rate(node_infiniband_port_data_transmitted_bytes_total@[30s])))[1m:10s])",
        'irate(node_infiniband_port_data_transmitted_bytes_total{device!~"hfi.+"}[1m]) or '
        'irate(node_infiniband_port_data_transmitted_bytes_total{device=~"hfi.+"}[1m])',
    ),
    *node(
        "Packets of a host",
        "rate(node_infiniband_port_packets_received_total@[1m])",
        "rate(node_infiniband_port_packets_transmitted_total@[1m])",
        "rate(node_infiniband_unicast_packets_received_total@[1m])",
        "rate(node_infiniband_multicast_packets_transmitted_total@[1m])",
    ),
    *node(
        "Errors of a host",
        "increase(node_infiniband_link_downed_total[1m]) > 0",
        "sum by (instance) (node_infiniband_link_downed_total)",
        "rate(node_infiniband_symbol_error_total@[1m])",
        "rate(node_infiniband_port_errors_received_total@[1m])",
        "rate(node_infiniband_port_discards_transmitted_total@[1m])",
        "rate(node_infiniband_port_transmit_wait_total@[1m])",
    ),
    *node(
        "State of a host",
        "node_infiniband_rate_bytes_per_second@",
        "node_infiniband_state_id@",
        "node_infiniband_state_id != 4",
        "node_infiniband_physical_state_id@",
        "rate(node_infiniband_port_data_transmitted_bytes_total[1m]) / node_infiniband_rate_bytes_per_second",
    ),
    *node("Devices of a host", "node_infiniband_info@", labels=("device",)),
    *node(
        "Congestion of a host",
        "rate(node_infiniband_np_cnp_packets_sent_total@[1m])",
        "rate(node_infiniband_np_ecn_marked_roce_packets_received_total@[1m])",
        "rate(node_infiniband_rp_cnp_packets_handled_total@[1m])",
        "rate(node_infiniband_out_of_sequence_packets_received_total@[1m])",
        "rate(node_infiniband_local_ack_timeout_errors_total@[1m])",
    ),
)
