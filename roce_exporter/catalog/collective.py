"""The collective offload of AMD's Pollara: its clear-to-send messages (`ccl_cts` in the raw names).

The firmware counts them separately from all other RoCE traffic, and defines the names; older versions have no such counters.
"""

from __future__ import annotations

from roce_exporter.catalog.row import STANDARD, counter
from roce_exporter.catalog.spellings import ionic

MESSAGES = "clear-to-send messages of the collective offload"

ROWS = (
    counter(
        "roce_collective_receive_packets_total",
        "packets",
        f"Packets received with {MESSAGES}.",
        ionic("rx_rdma_ccl_cts_pkts"),
    ),
    counter(
        "roce_collective_receive_bytes_total",
        "bytes",
        f"Bytes received with {MESSAGES}.",
        ionic("rx_rdma_ccl_cts_bytes"),
    ),
    counter(
        "roce_collective_transmit_packets_total",
        "packets",
        f"Packets sent with {MESSAGES}.",
        ionic("tx_rdma_ccl_cts_pkts"),
    ),
    counter(
        "roce_collective_transmit_bytes_total",
        "bytes",
        f"Bytes sent with {MESSAGES}.",
        ionic("tx_rdma_ccl_cts_bytes"),
    ),
    counter(
        "roce_collective_out_of_sequence_total",
        "packets",
        f"Packets with {MESSAGES} that arrived out of sequence: earlier packets were lost or reordered.",
        ionic("resp_rx_ccl_cts_outouf_seq"),  # the firmware's own spelling
        metric_set=STANDARD,
        usual=0,
    ),
    counter(
        "roce_collective_ack_timeouts_total",
        "events",
        f"Number of times the acknowledgement timer of {MESSAGES} expired.",
        ionic("tx_rdma_ccl_cts_ack_timeout"),
        metric_set=STANDARD,
        usual=0,
    ),
    counter(
        "roce_collective_retransmitted_packets_total",
        "packets",
        f"Packets with {MESSAGES} that were retransmitted.",
        ionic("tx_rdma_ccl_cts_retx_pkts"),
    ),
    counter(
        "roce_collective_retransmitted_bytes_total",
        "bytes",
        f"Bytes of {MESSAGES} that were retransmitted.",
        ionic("tx_rdma_ccl_cts_retx_bytes"),
    ),
)
