"""NVIDIA ConnectX-7 with mlx5_core and mlx5_ib (Documentation/networking/device_drivers/.../mlx5/counters.rst)."""

from __future__ import annotations

from dataclasses import replace

from roce_exporter.host.simulated.drivers import GIGABIT, Driver, DriverCounter, both_ways, still

HW_COUNTERS = (
    DriverCounter("np_ecn_marked_roce_packets", "marks"),
    DriverCounter("np_cnp_sent", "cnps_sent"),
    DriverCounter("rp_cnp_handled", "cnps_handled"),
    DriverCounter("out_of_sequence", "out_of_sequence"),
    DriverCounter("packet_seq_err", "sequence_errors"),
    DriverCounter("implied_nak_seq_err", "implied_naks"),
    DriverCounter("local_ack_timeout_err", "timeouts"),
    DriverCounter("duplicate_request", "duplicates"),
    DriverCounter("roce_adp_retrans", "retransmits"),
    DriverCounter("rx_icrc_encapsulated", "icrc_errors"),
    DriverCounter("rnr_nak_retry_err", "not_ready"),
    DriverCounter("out_of_buffer", "out_of_buffer"),
    DriverCounter("rx_write_requests", "receive_rdma_packets", 256),
    DriverCounter("rx_read_requests", "receive_rdma_packets", 4096),
    DriverCounter("req_transport_retries_exceeded", "retries_exceeded"),
    DriverCounter("req_cqe_error", "retries_exceeded"),
    DriverCounter("req_cqe_flush_error", "flushed"),
    *still(
        "rp_cnp_ignored",
        "req_rnr_retries_exceeded",
        "resp_cqe_error",
        "resp_cqe_flush_error",
        "req_remote_access_errors",
        "req_remote_invalid_request",
        "resp_remote_access_errors",
        "resp_local_length_error",
        "roce_adp_retrans_to",
        "roce_slow_restart",
        "roce_slow_restart_cnps",
        "roce_slow_restart_trans",
        "rx_atomic_requests",
        "rx_dct_connect",
    ),
)

WORD = 4
"""Bytes: the unit of the data counters of InfiniBand."""

COUNTERS = (
    DriverCounter("port_rcv_data", "receive_rdma_bytes", WORD),
    DriverCounter("port_xmit_data", "transmit_rdma_bytes", WORD),
    DriverCounter("port_rcv_packets", "receive_rdma_packets"),
    DriverCounter("port_xmit_packets", "transmit_rdma_packets"),
    DriverCounter("unicast_rcv_packets", "receive_rdma_packets"),
    DriverCounter("unicast_xmit_packets", "transmit_rdma_packets"),
    DriverCounter("link_downed", "carrier_downs"),
    *still(
        "multicast_rcv_packets",
        "multicast_xmit_packets",
        "port_rcv_errors",
        "port_xmit_discards",
        "port_xmit_wait",
        "port_rcv_remote_physical_errors",
        "port_rcv_switch_relay_errors",
        "port_rcv_constraint_errors",
        "port_xmit_constraint_errors",
        "link_error_recovery",
        "symbol_error",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
        "VL15_dropped",
    ),
)

ETHTOOL = (
    *both_ways(
        ("{way}_packets_phy", "{direction}_packets"),
        ("{way}_bytes_phy", "{direction}_bytes"),
        ("{way}_vport_rdma_unicast_packets", "{direction}_rdma_packets"),
        ("{way}_vport_rdma_unicast_bytes", "{direction}_rdma_bytes"),
        ("{way}_mac_control_phy", "{direction}_frames"),
        ("{way}_pause_ctrl_phy", ""),
        ("{way}_vport_rdma_multicast_packets", ""),
        ("{way}_vport_rdma_multicast_bytes", ""),
        ("{way}_pci_signal_integrity", ""),
    ),
    DriverCounter("rx_discards_phy", "discards"),
    DriverCounter("rx_crc_errors_phy", "crc_errors"),
    DriverCounter("rx_symbol_err_phy", "symbol_errors"),
    DriverCounter("rx_pcs_symbol_err_phy", "symbol_errors"),
    DriverCounter("rx_corrected_bits_phy", "corrected_bits"),
    DriverCounter("rx_bits_phy", "receive_bits"),
    DriverCounter("rx_buffer_passed_thres_phy", "buffer_passed_threshold"),
    DriverCounter("link_down_events_phy", "carrier_downs"),
    DriverCounter("outbound_pci_stalled_wr", "stalled_percent"),
    DriverCounter("outbound_pci_stalled_wr_events", "stalled_seconds"),
    # The storm events are those of priority 0, even if another priority is lossless.
    DriverCounter("tx_pause_storm_warning_events", "transmit_storm_starts_0"),
    *still(
        "tx_pause_storm_error_events",
        "tx_discards_phy",
        "tx_errors_phy",
        "rx_oversize_pkts_phy",
        "rx_undersize_pkts_phy",
        "rx_fragments_phy",
        "rx_jabbers_phy",
        "rx_in_range_len_errors_phy",
        "rx_out_of_range_len_phy",
        "rx_unsupported_op_phy",
        "outbound_pci_stalled_rd",
        "outbound_pci_stalled_rd_events",
        "outbound_pci_buffer_overflow",
        "dev_internal_queue_oob",
        "rx_out_of_buffer",
        "rx_if_down_packets",
        "rx_steer_missed_packets",
        "rx_oversize_pkts_buffer",
        "module_unplug",
        "module_bus_stuck",
        "module_high_temp",
        "module_bad_shorted",
    ),
)

PRIORITY_COUNTERS = (
    *both_ways(
        ("{way}_prio{}_packets", "{direction}_packets_{}"), ("{way}_prio{}_bytes", "{direction}_bytes_{}")
    ),
    DriverCounter("rx_prio{}_discards", "discards_{}"),
    *still("rx_prio{}_buf_discard", "rx_prio{}_cong_discard", "rx_prio{}_marked"),
)

LOSSLESS_COUNTERS = (
    *both_ways(
        ("{way}_prio{}_pause", "{direction}_frames_{}"),
        ("{way}_prio{}_pause_duration", "{direction}_pause_us_{}"),
    ),
    DriverCounter("rx_prio{}_pause_transition", "receive_pauses_{}"),
)

MLX5 = Driver(
    name="mlx5",
    module="mlx5_core",
    device="mlx5_{}",
    model="MT4129",
    firmware="28.43.2026",
    board="MT_0000000838",
    speed=400 * GIGABIT,
    down_rate="40 Gb/sec (4X QDR)",
    hw_counters=HW_COUNTERS,
    counters=COUNTERS,
    ethtool=ETHTOOL,
    priority_counters=PRIORITY_COUNTERS,
    lossless_counters=LOSSLESS_COUNTERS,
    reports_trust=False,
)

MLX5_LAG = replace(MLX5, name="mlx5-lag", device="mlx5_bond_{}", lag=True)
"""The same with two member ports: one RDMA device for both, whose own counters are their sum."""
