"""Broadcom Thor2 (bnxt), AMD Pollara (ionic) and Intel E810 (ice) with their drivers' counters, and all drivers by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.simulated.drivers import GIGABIT, Driver, DriverCounter, both_ways, still
from roce_exporter.host.simulated.mlx5 import MLX5, MLX5_LAG

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN_RATE = "2.5 Gb/sec (1X SDR)"
"""The kernel's rate for a network device without a speed (ib_get_eth_speed)."""

BNXT = Driver(
    name="bnxt",
    module="bnxt_en",
    device="bnxt_re{}",
    model="Broadcom NetXtreme-C/E RoCE Driver HCA",
    firmware="231.2.63.0",
    board="",
    speed=200 * GIGABIT,
    down_rate=UNKNOWN_RATE,
    refresh=1.0,
    hw_counters=(
        *both_ways(("{way}_pkts", "{direction}_rdma_packets"), ("{way}_bytes", "{direction}_rdma_bytes")),
        DriverCounter("rx_ecn_marked_pkts", "marks"),
        DriverCounter("tx_cnp_pkts", "cnps_sent"),
        DriverCounter("rx_cnp_pkts", "cnps_handled"),
        DriverCounter("oos_drop_count", "out_of_sequence"),
        DriverCounter("seq_err_naks_rcvd", "sequence_errors"),
        DriverCounter("missing_resp", "implied_naks"),
        DriverCounter("to_retransmits", "timeouts"),
        DriverCounter("dup_req", "duplicates"),
        DriverCounter("rnr_naks_rcvd", "not_ready"),
        DriverCounter("rx_out_of_buffer", "out_of_buffer"),
        DriverCounter("recoverable_errors", "retransmits"),
        DriverCounter("max_retry_exceeded", "retries_exceeded"),
        *still("unrecoverable_err", "remote_access_err", "bad_resp_err"),
        *still("rx_roce_discards", "rx_roce_errors", "tx_roce_discards", "tx_roce_errors"),
    ),
    ethtool=(
        *both_ways(
            ("{way}_total_frames", "{direction}_packets"),
            ("{way}_bytes", "{direction}_bytes"),
            ("{way}_pfc_frames", "{direction}_frames"),
            ("{way}_pause_frames", ""),
        ),
        DriverCounter("rx_stat_discard", "discards"),
        DriverCounter("rx_stat_err", "crc_errors"),
        DriverCounter("rx_fcs_err_frames", "crc_errors"),
        DriverCounter("rx_pcs_symbol_err", "symbol_errors"),
        DriverCounter("rx_corrected_bits", "corrected_bits"),
        DriverCounter("rx_bits", "receive_bits"),
        DriverCounter("rx_fec_corrected_blocks", "corrected_blocks"),
        DriverCounter("rx_fec_uncorrectable_blocks", "uncorrectable_blocks"),
        DriverCounter("rx_buffer_passed_threshold", "buffer_passed_threshold"),
        DriverCounter("continuous_roce_pause_events", "transmit_storm_starts"),
        DriverCounter("resume_roce_pause_events", "transmit_storm_ends"),
        DriverCounter("link_down_events", "carrier_downs"),
        *still("continuous_pause_events", "resume_pause_events", "tx_stat_discard", "tx_stat_error"),
        *still(
            "tx_fcs_err_frames", "rx_ovrsz_frames", "rx_undrsz_frames", "rx_jbr_frames", "tx_fifo_underruns"
        ),
        *still("rx_filter_miss", "hw_db_recov_dbs_dropped", "hw_db_recov_dbs_recovered"),
    ),
    priority_counters=(
        *both_ways(
            ("{way}_packets_pri{}", "{direction}_packets_{}"),
            ("{way}_bytes_pri{}", "{direction}_bytes_{}"),
            ("{way}_pfc_ena_frames_pri{}", "{direction}_frames_{}"),
            ("pfc_pri{}_{way}_duration_us", "{direction}_pause_us_{}"),
            # From XON to XOFF and from XOFF to XON: both halves are counted.
            ("pfc_pri{}_{way}_transitions", "{direction}_halves_{}"),
        ),
        DriverCounter("rx_discard_packets_cos{}", "discards_{}"),
    ),
)

IONIC = Driver(
    name="ionic",
    module="ionic",
    device="ionic_{}",
    model="Pollara",
    firmware="1.117.5-a-56",
    board="",
    speed=400 * GIGABIT,
    down_rate=UNKNOWN_RATE,
    hw_counters=(
        *both_ways(
            ("{way}_rdma_ucast_pkts", "{direction}_rdma_packets"),
            ("{way}_rdma_ucast_bytes", "{direction}_rdma_bytes"),
            ("{way}_rdma_mcast_pkts", ""),
            ("{way}_rdma_mcast_bytes", ""),
        ),
        DriverCounter("rx_rdma_ecn_pkts", "marks"),
        DriverCounter("tx_rdma_cnp_pkts", "cnps_sent"),
        DriverCounter("rx_rdma_cnp_pkts", "cnps_handled"),
        DriverCounter("resp_rx_outouf_seq", "out_of_sequence"),
        DriverCounter("resp_tx_pkt_seq_err", "out_of_sequence"),
        DriverCounter("req_rx_pkt_seq_err", "sequence_errors"),
        DriverCounter("req_rx_impl_nak_seq_err", "implied_naks"),
        DriverCounter("resp_rx_dup_request", "duplicates"),
        DriverCounter("req_rx_rnr_retry_err", "not_ready"),
        DriverCounter("resp_rx_outof_buf", "out_of_buffer"),
        DriverCounter("resp_tx_rnr_retry_err", "out_of_buffer"),
        DriverCounter("req_tx_retry_excd_err", "retries_exceeded"),
        DriverCounter("req_rx_cqe_err", "retries_exceeded"),
        *still("resp_rx_cqe_err", "req_rx_rmt_acc_err"),
    ),
    ethtool=(
        *both_ways(
            ("frames_{way}_ok", "{direction}_packets"),
            ("octets_{way}_ok", "{direction}_bytes"),
            ("frames_{way}_pripause", "{direction}_frames"),
            ("frames_{way}_pause", ""),
        ),
        DriverCounter("frames_rx_bad_fcs", "crc_errors"),
        DriverCounter("frames_rx_bad_all", "crc_errors"),
        DriverCounter("frames_rx_dropped", "discards"),
        *still("frames_tx_bad", "frames_rx_stomped_crc", "frames_rx_oversized", "frames_rx_undersized"),
        *still("hw_rx_dropped", "hw_tx_dropped", "hw_rx_over_errors", "hw_rx_missed_errors"),
    ),
    priority_counters=both_ways(
        ("frames_{way}_pri_{}", "{direction}_packets_{}"),
        ("{way}_pripause_{}_1us_count", "{direction}_pause_us_{}"),
    ),
    dcb=False,
)

ICE = Driver(
    name="ice",
    module="ice",
    device="irdma{}",
    model="IRDMA",
    firmware="1.71",
    board="IRDMA Board ID",
    speed=100 * GIGABIT,
    down_rate=UNKNOWN_RATE,
    hw_counters=(
        DriverCounter("ip4InPkts", "receive_rdma_packets"),
        DriverCounter("ip4OutPkts", "transmit_rdma_packets"),
        DriverCounter("ip4InOctets", "receive_rdma_bytes"),
        DriverCounter("ip4OutOctets", "transmit_rdma_bytes"),
        DriverCounter("RxUDP", "receive_rdma_packets"),
        DriverCounter("TxUDP", "transmit_rdma_packets"),
        DriverCounter("RxECNMrkd", "marks"),
        DriverCounter("cnpSent", "cnps_sent"),
        DriverCounter("cnpHandled", "cnps_handled"),
        # E810 counts no packets out of sequence, no NAKs and no timeouts.
        *still("cnpIgnored", "ip6InPkts", "ip6OutPkts", "ip6InOctets", "ip6OutOctets", "rxVlanErrors"),
        *still("ip4InDiscards", "ip6InDiscards", "ip4OutNoRoutes", "ip6OutNoRoutes"),
        *still("InRdmaReads", "InRdmaWrites", "OutRdmaReads", "OutRdmaWrites"),
    ),
    ethtool=(
        *both_ways(
            ("{way}_bytes.nic", "{direction}_bytes"), ("link_xoff_{way}.nic", ""), ("link_xon_{way}.nic", "")
        ),
        DriverCounter("rx_dropped.nic", "discards"),
        DriverCounter("rx_crc_errors.nic", "crc_errors"),
        DriverCounter("link_down_events.nic", "carrier_downs"),
        *still("tx_errors.nic", "tx_dropped_link_down.nic", "rx_oversize.nic", "rx_undersize.nic"),
        *still("rx_fragments.nic", "rx_jabber.nic", "illegal_bytes.nic", "mac_local_faults.nic"),
        *still("mac_remote_faults.nic"),
    ),
    priority_counters=both_ways(
        ("{way}_priority_{}_xoff.nic", "{direction}_xoff_{}"),
        ("{way}_priority_{}_xon.nic", "{direction}_xon_{}"),
    ),
    dcb_frames="xoff",
)

DRIVERS: Mapping[str, Driver] = {driver.name: driver for driver in (MLX5, MLX5_LAG, BNXT, IONIC, ICE)}
"""Every driver by the name used on the command line."""
