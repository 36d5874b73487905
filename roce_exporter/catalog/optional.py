"""Optional counters of mlx5, which RDMA netlink reports once they are enabled.

They count by a steering rule, from the moment it is set, so they differ from the always-on counters of the same events.
"""

from __future__ import annotations

from roce_exporter.catalog.row import counter
from roce_exporter.catalog.spellings import mlx5

SINCE = " Optional: present once enabled with `rdma statistic set`, and counted from then on."

ROWS = (
    counter(
        "roce_flow_ecn_marked_packets_total",
        "packets",
        "RDMA packets received with the ECN mark (CE)." + SINCE,
        mlx5("cc_rx_ce_pkts"),
    ),
    counter(
        "roce_flow_cnp_received_total",
        "packets",
        "Congestion notification packets received." + SINCE,
        mlx5("cc_rx_cnp_pkts"),
    ),
    counter(
        "roce_flow_cnp_sent_total",
        "packets",
        "Congestion notification packets sent." + SINCE,
        mlx5("cc_tx_cnp_pkts"),
    ),
    counter(
        "roce_flow_receive_packets_total",
        "packets",
        "RDMA packets received." + SINCE,
        mlx5("rdma_rx_packets"),
    ),
    counter("roce_flow_receive_bytes_total", "bytes", "RDMA bytes received." + SINCE, mlx5("rdma_rx_bytes")),
    counter(
        "roce_flow_transmit_packets_total", "packets", "RDMA packets sent." + SINCE, mlx5("rdma_tx_packets")
    ),
    counter("roce_flow_transmit_bytes_total", "bytes", "RDMA bytes sent." + SINCE, mlx5("rdma_tx_bytes")),
)
