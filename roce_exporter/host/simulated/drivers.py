"""How each driver reports the quantities of the model: names and units of its counters, and what it does not report.

NVIDIA ConnectX-7 (mlx5, Documentation/networking/device_drivers/.../mlx5/counters.rst), Broadcom Thor2 (bnxt), AMD Pollara
(ionic) and Intel E810 (ice).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.simulated.conditions import PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


GIGABIT = 10**9


RATES = {
    25: "25 Gb/sec (1X EDR)",
    40: "40 Gb/sec (4X QDR)",
    50: "50 Gb/sec (2X EDR)",
    100: "100 Gb/sec (4X EDR)",
    200: "200 Gb/sec (4X HDR)",
    400: "400 Gb/sec (4X NDR)",
    800: "800 Gb/sec (4X XDR)",
}
"""The text in sysfs for a number of gigabits per second."""


class DriverCounter(NamedTuple):
    """One counter: its name, the quantity it counts (empty: it stays 0), and how many units of it count as one."""

    raw: str
    fact: str = ""
    per: int = 1


@dataclass(frozen=True, slots=True)
class Driver:
    """One vendor's NIC and its driver. `{}` in `priority_counters` and `lossless_counters` is the priority."""

    name: str
    module: str
    """The kernel driver of the network device."""
    device: str
    """Name of the RDMA devices; `{}` is their number."""
    model: str
    firmware: str
    board: str
    speed: int
    """Bits per second."""
    down_rate: str
    """The speed in sysfs without a link."""
    hw_counters: tuple[DriverCounter, ...]
    ethtool: tuple[DriverCounter, ...]
    priority_counters: tuple[DriverCounter, ...]
    """Reported for all eight priorities."""
    lossless_counters: tuple[DriverCounter, ...] = ()
    """Reported only for priorities with PFC."""
    counters: tuple[DriverCounter, ...] = ()
    """The port counters of InfiniBand."""
    refresh: float = 0.0
    """Seconds from one refresh of `ethtool -S` to the next; 0: the hardware is queried each time."""
    dcb: bool = True
    """Whether the driver supports DCB netlink."""
    dcb_frames: str = "frames"
    """The pause frames that the driver reports to DCB as requests and indications: all `frames`, or `xoff`."""
    reports_trust: bool = True
    lag: bool = False
    """Two member ports below one RDMA device."""


def amounts(reported: tuple[DriverCounter, ...], facts: Mapping[str, float]) -> tuple[int, ...]:
    """The counters' values, in the driver's own units."""
    return tuple(int(facts.get(fact, 0.0) / per) for _, fact, per in reported)


def rate_text(speed: int) -> str:
    """The text in sysfs for this speed, given in bits per second."""
    gigabits = speed // GIGABIT
    return RATES.get(gigabits, f"{gigabits} Gb/sec")


def statistics(driver: Driver, lossless: tuple[int, ...]) -> tuple[DriverCounter, ...]:
    """The counters of `ethtool -S` while these priorities have PFC."""
    return (
        *driver.ethtool,
        *_expand(driver.priority_counters, tuple(PRIORITIES)),
        *_expand(driver.lossless_counters, lossless),
    )


def _expand(reported: tuple[DriverCounter, ...], priorities: tuple[int, ...]) -> Iterator[DriverCounter]:
    for priority in priorities:
        for raw, fact, per in reported:
            yield DriverCounter(raw.format(priority), fact.format(priority), per)


def constant(*names: str) -> tuple[DriverCounter, ...]:
    """Counters that exist and that the model never changes."""
    return tuple(DriverCounter(name) for name in names)


def both_ways(*pairs: tuple[str, str]) -> tuple[DriverCounter, ...]:
    """Counters of each direction: `{way}` is rx or tx in the raw name, `{direction}` its long form in the quantity."""
    return tuple(
        DriverCounter(
            raw.replace("{way}", way).replace("{Way}", way.title()), fact.replace("{direction}", direction)
        )
        for raw, fact in pairs
        for way, direction in (("rx", "receive"), ("tx", "transmit"))
    )


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
    *constant(
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
    *constant(
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
    *constant(
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
    *constant("rx_prio{}_buf_discard", "rx_prio{}_cong_discard", "rx_prio{}_marked"),
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
        *constant("unrecoverable_err", "remote_access_err", "bad_resp_err"),
        *constant("rx_roce_discards", "rx_roce_errors", "tx_roce_discards", "tx_roce_errors"),
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
        *constant("continuous_pause_events", "resume_pause_events", "tx_stat_discard", "tx_stat_error"),
        *constant(
            "tx_fcs_err_frames", "rx_ovrsz_frames", "rx_undrsz_frames", "rx_jbr_frames", "tx_fifo_underruns"
        ),
        *constant("rx_filter_miss", "hw_db_recov_dbs_dropped", "hw_db_recov_dbs_recovered"),
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
        *constant("resp_rx_cqe_err", "req_rx_rmt_acc_err"),
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
        *constant("frames_tx_bad", "frames_rx_stomped_crc", "frames_rx_oversized", "frames_rx_undersized"),
        *constant("hw_rx_dropped", "hw_tx_dropped", "hw_rx_over_errors", "hw_rx_missed_errors"),
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
        *constant("cnpIgnored", "ip6InPkts", "ip6OutPkts", "ip6InOctets", "ip6OutOctets", "rxVlanErrors"),
        *constant("ip4InDiscards", "ip6InDiscards", "ip4OutNoRoutes", "ip6OutNoRoutes"),
        *constant("InRdmaReads", "InRdmaWrites", "OutRdmaReads", "OutRdmaWrites"),
    ),
    ethtool=(
        *both_ways(
            ("{way}_bytes.nic", "{direction}_bytes"), ("link_xoff_{way}.nic", ""), ("link_xon_{way}.nic", "")
        ),
        DriverCounter("rx_dropped.nic", "discards"),
        DriverCounter("rx_crc_errors.nic", "crc_errors"),
        DriverCounter("link_down_events.nic", "carrier_downs"),
        *constant("tx_errors.nic", "tx_dropped_link_down.nic", "rx_oversize.nic", "rx_undersize.nic"),
        *constant("rx_fragments.nic", "rx_jabber.nic", "illegal_bytes.nic", "mac_local_faults.nic"),
        *constant("mac_remote_faults.nic"),
    ),
    priority_counters=both_ways(
        ("{way}_priority_{}_xoff.nic", "{direction}_xoff_{}"),
        ("{way}_priority_{}_xon.nic", "{direction}_xon_{}"),
    ),
    dcb_frames="xoff",
)

DRIVERS: Mapping[str, Driver] = {driver.name: driver for driver in (MLX5, MLX5_LAG, BNXT, IONIC, ICE)}
"""Every driver by the name used on the command line."""
