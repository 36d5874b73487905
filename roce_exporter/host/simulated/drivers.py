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


def counters(text: str) -> tuple[DriverCounter, ...]:
    """The counters in a list of words `RAW=QUANTITY/PER`; without a quantity the counter stays 0, without `PER` it counts all.

    `{way}` stands for rx and tx, one after the other, and `{direction}` for the direction in the quantity.
    """
    found = []
    for word in text.split():
        raw, _, quantity = word.partition("=")
        fact, _, per = quantity.partition("/")
        for way, direction in (("rx", "receive"), ("tx", "transmit")) if "{way}" in raw else (("", ""),):
            found.append(
                DriverCounter(
                    raw.replace("{way}", way), fact.replace("{direction}", direction), int(per or 1)
                )
            )
    return tuple(found)


HW_COUNTERS = counters(
    """
    np_ecn_marked_roce_packets=marks np_cnp_sent=cnps_sent rp_cnp_handled=cnps_handled
    out_of_sequence=out_of_sequence packet_seq_err=sequence_errors implied_nak_seq_err=implied_naks
    local_ack_timeout_err=timeouts duplicate_request=duplicates roce_adp_retrans=retransmits
    rx_icrc_encapsulated=icrc_errors rnr_nak_retry_err=not_ready out_of_buffer=out_of_buffer
    rx_write_requests=receive_rdma_packets/256 rx_read_requests=receive_rdma_packets/4096
    req_transport_retries_exceeded=retries_exceeded req_cqe_error=retries_exceeded
    req_cqe_flush_error=flushed
    rp_cnp_ignored req_rnr_retries_exceeded resp_cqe_error resp_cqe_flush_error req_remote_access_errors
    req_remote_invalid_request resp_remote_access_errors resp_local_length_error roce_adp_retrans_to
    roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans rx_atomic_requests rx_dct_connect
    """
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
    # Data counters of InfiniBand count words of four bytes; the storm events are those of priority 0 alone.
    counters=counters(
        """
        port_rcv_data=receive_rdma_bytes/4 port_xmit_data=transmit_rdma_bytes/4
        port_rcv_packets=receive_rdma_packets port_xmit_packets=transmit_rdma_packets
        unicast_rcv_packets=receive_rdma_packets unicast_xmit_packets=transmit_rdma_packets
        link_downed=carrier_downs
        multicast_rcv_packets multicast_xmit_packets port_rcv_errors port_xmit_discards port_xmit_wait
        port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_rcv_constraint_errors
        port_xmit_constraint_errors link_error_recovery symbol_error local_link_integrity_errors
        excessive_buffer_overrun_errors VL15_dropped
        """
    ),
    ethtool=counters(
        """
        {way}_packets_phy={direction}_packets {way}_bytes_phy={direction}_bytes
        {way}_vport_rdma_unicast_packets={direction}_rdma_packets
        {way}_vport_rdma_unicast_bytes={direction}_rdma_bytes {way}_mac_control_phy={direction}_frames
        {way}_pause_ctrl_phy {way}_vport_rdma_multicast_packets {way}_vport_rdma_multicast_bytes
        {way}_pci_signal_integrity rx_discards_phy=discards rx_crc_errors_phy=crc_errors
        rx_symbol_err_phy=symbol_errors rx_pcs_symbol_err_phy=symbol_errors
        rx_corrected_bits_phy=corrected_bits rx_bits_phy=receive_bits
        rx_buffer_passed_thres_phy=buffer_passed_threshold link_down_events_phy=carrier_downs
        outbound_pci_stalled_wr=stalled_percent outbound_pci_stalled_wr_events=stalled_seconds
        tx_pause_storm_warning_events=transmit_storm_starts_0
        tx_pause_storm_error_events tx_discards_phy tx_errors_phy rx_oversize_pkts_phy rx_undersize_pkts_phy
        rx_fragments_phy rx_jabbers_phy rx_in_range_len_errors_phy rx_out_of_range_len_phy
        rx_unsupported_op_phy outbound_pci_stalled_rd outbound_pci_stalled_rd_events
        outbound_pci_buffer_overflow dev_internal_queue_oob rx_out_of_buffer rx_if_down_packets
        rx_steer_missed_packets rx_oversize_pkts_buffer module_unplug module_bus_stuck module_high_temp
        module_bad_shorted
        """
    ),
    priority_counters=counters(
        """
        {way}_prio{}_packets={direction}_packets_{} {way}_prio{}_bytes={direction}_bytes_{}
        rx_prio{}_discards=discards_{}
        rx_prio{}_buf_discard rx_prio{}_cong_discard rx_prio{}_marked
        """
    ),
    lossless_counters=counters(
        """
        {way}_prio{}_pause={direction}_frames_{} {way}_prio{}_pause_duration={direction}_pause_us_{}
        rx_prio{}_pause_transition=receive_pauses_{}
        """
    ),
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
    # Transitions are from XON to XOFF and from XOFF to XON: both halves are counted.
    hw_counters=counters(
        """
        {way}_pkts={direction}_rdma_packets {way}_bytes={direction}_rdma_bytes rx_ecn_marked_pkts=marks
        tx_cnp_pkts=cnps_sent rx_cnp_pkts=cnps_handled oos_drop_count=out_of_sequence
        seq_err_naks_rcvd=sequence_errors missing_resp=implied_naks to_retransmits=timeouts
        dup_req=duplicates rnr_naks_rcvd=not_ready rx_out_of_buffer=out_of_buffer
        recoverable_errors=retransmits max_retry_exceeded=retries_exceeded
        unrecoverable_err remote_access_err bad_resp_err rx_roce_discards rx_roce_errors tx_roce_discards
        tx_roce_errors
        """
    ),
    ethtool=counters(
        """
        {way}_total_frames={direction}_packets {way}_bytes={direction}_bytes
        {way}_pfc_frames={direction}_frames {way}_pause_frames rx_stat_discard=discards
        rx_stat_err=crc_errors rx_fcs_err_frames=crc_errors rx_pcs_symbol_err=symbol_errors
        rx_corrected_bits=corrected_bits rx_bits=receive_bits rx_fec_corrected_blocks=corrected_blocks
        rx_fec_uncorrectable_blocks=uncorrectable_blocks rx_buffer_passed_threshold=buffer_passed_threshold
        continuous_roce_pause_events=transmit_storm_starts resume_roce_pause_events=transmit_storm_ends
        link_down_events=carrier_downs
        continuous_pause_events resume_pause_events tx_stat_discard tx_stat_error tx_fcs_err_frames
        rx_ovrsz_frames rx_undrsz_frames rx_jbr_frames tx_fifo_underruns rx_filter_miss
        hw_db_recov_dbs_dropped hw_db_recov_dbs_recovered
        """
    ),
    priority_counters=counters(
        """
        {way}_packets_pri{}={direction}_packets_{} {way}_bytes_pri{}={direction}_bytes_{}
        {way}_pfc_ena_frames_pri{}={direction}_frames_{} pfc_pri{}_{way}_duration_us={direction}_pause_us_{}
        pfc_pri{}_{way}_transitions={direction}_halves_{} rx_discard_packets_cos{}=discards_{}
        """
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
    hw_counters=counters(
        """
        {way}_rdma_ucast_pkts={direction}_rdma_packets {way}_rdma_ucast_bytes={direction}_rdma_bytes
        {way}_rdma_mcast_pkts {way}_rdma_mcast_bytes rx_rdma_ecn_pkts=marks tx_rdma_cnp_pkts=cnps_sent
        rx_rdma_cnp_pkts=cnps_handled resp_rx_outouf_seq=out_of_sequence resp_tx_pkt_seq_err=out_of_sequence
        req_rx_pkt_seq_err=sequence_errors req_rx_impl_nak_seq_err=implied_naks
        resp_rx_dup_request=duplicates req_rx_rnr_retry_err=not_ready resp_rx_outof_buf=out_of_buffer
        resp_tx_rnr_retry_err=out_of_buffer req_tx_retry_excd_err=retries_exceeded
        req_rx_cqe_err=retries_exceeded
        resp_rx_cqe_err req_rx_rmt_acc_err
        """
    ),
    ethtool=counters(
        """
        frames_{way}_ok={direction}_packets octets_{way}_ok={direction}_bytes
        frames_{way}_pripause={direction}_frames frames_{way}_pause frames_rx_bad_fcs=crc_errors
        frames_rx_bad_all=crc_errors frames_rx_dropped=discards
        frames_tx_bad frames_rx_stomped_crc frames_rx_oversized frames_rx_undersized hw_{way}_dropped
        hw_rx_over_errors hw_rx_missed_errors
        """
    ),
    priority_counters=counters(
        "frames_{way}_pri_{}={direction}_packets_{} {way}_pripause_{}_1us_count={direction}_pause_us_{}"
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
    # E810 counts no packets out of sequence, no NAKs and no timeouts.
    hw_counters=counters(
        """
        ip4InPkts=receive_rdma_packets ip4OutPkts=transmit_rdma_packets ip4InOctets=receive_rdma_bytes
        ip4OutOctets=transmit_rdma_bytes RxUDP=receive_rdma_packets TxUDP=transmit_rdma_packets
        RxECNMrkd=marks cnpSent=cnps_sent cnpHandled=cnps_handled
        cnpIgnored ip6InPkts ip6OutPkts ip6InOctets ip6OutOctets rxVlanErrors ip4InDiscards ip6InDiscards
        ip4OutNoRoutes ip6OutNoRoutes InRdmaReads InRdmaWrites OutRdmaReads OutRdmaWrites
        """
    ),
    ethtool=counters(
        """
        {way}_bytes.nic={direction}_bytes link_xoff_{way}.nic link_xon_{way}.nic rx_dropped.nic=discards
        rx_crc_errors.nic=crc_errors link_down_events.nic=carrier_downs
        tx_errors.nic tx_dropped_link_down.nic rx_oversize.nic rx_undersize.nic rx_fragments.nic
        rx_jabber.nic illegal_bytes.nic mac_local_faults.nic mac_remote_faults.nic
        """
    ),
    priority_counters=counters(
        "{way}_priority_{}_xoff.nic={direction}_xoff_{} {way}_priority_{}_xon.nic={direction}_xon_{}"
    ),
    dcb_frames="xoff",
)

DRIVERS: Mapping[str, Driver] = {driver.name: driver for driver in (MLX5, MLX5_LAG, BNXT, IONIC, ICE)}
"""Every driver by the name used on the command line."""
