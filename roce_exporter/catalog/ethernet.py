"""What the Ethernet port below RoCE loses and why: discards, marks, bit errors, and stalls on the way to memory."""

from __future__ import annotations

from roce_exporter.catalog.row import (
    ANY,
    COUNTER,
    GAUGE,
    LANE_LABELS,
    NETDEV_LABELS,
    PRIORITY_LABELS,
    Row,
    Spelling,
    spelt,
)
from roce_exporter.catalog.spellings import (
    eth_bnxt,
    eth_efa,
    eth_hns,
    eth_intel,
    eth_ionic,
    eth_mana,
    eth_mlx4,
    eth_mlx5,
    eth_qedr,
)

QUEUE_LABELS = (*NETDEV_LABELS, "queue")

SHARED = (
    " bnxt counts per class-of-service queue: priorities that share one show the same number, so do not add them up."
    " mana counts per traffic class."
)


def counted(
    name: str, unit: str, meaning: str, *spellings: Spelling, labels: tuple[str, ...] = NETDEV_LABELS
) -> Row:
    """A counter of one network device, or of one priority, lane or queue of it."""
    return Row(name, COUNTER, unit, meaning, spellings, labels)


def fec(name: str) -> Spelling:
    """What ethtool netlink tells of forward error correction, whichever driver answers."""
    return spelt(ANY, "fec", name)


PRIORITIES = (
    counted(
        "roce_priority_receive_bytes_total",
        "bytes",
        "Bytes received on the priority, RDMA and other." + SHARED,
        eth_mlx5("rx_prio{priority}_bytes"),
        eth_mlx4("rx_prio_{priority}_bytes"),
        eth_bnxt("rx_bytes_pri{priority}"),
        eth_mana("hc_tc{priority}_rx_byte_phy"),
        labels=PRIORITY_LABELS,
    ),
    counted(
        "roce_priority_transmit_bytes_total",
        "bytes",
        "Bytes sent on the priority, RDMA and other." + SHARED,
        eth_mlx5("tx_prio{priority}_bytes"),
        eth_mlx4("tx_prio_{priority}_bytes"),
        eth_bnxt("tx_bytes_pri{priority}"),
        eth_mana("hc_tc{priority}_tx_byte_phy"),
        labels=PRIORITY_LABELS,
    ),
    counted(
        "roce_priority_receive_packets_total",
        "packets",
        "Packets received on the priority, RDMA and other." + SHARED,
        eth_mlx5("rx_prio{priority}_packets"),
        eth_mlx4("rx_prio_{priority}_packets"),
        eth_bnxt("rx_packets_pri{priority}"),
        eth_mana("hc_tc{priority}_rx_pkt_phy"),
        eth_ionic("frames_rx_pri_{priority}"),
        labels=PRIORITY_LABELS,
    ),
    counted(
        "roce_priority_transmit_packets_total",
        "packets",
        "Packets sent on the priority, RDMA and other." + SHARED,
        eth_mlx5("tx_prio{priority}_packets"),
        eth_mlx4("tx_prio_{priority}_packets"),
        eth_bnxt("tx_packets_pri{priority}"),
        eth_mana("hc_tc{priority}_tx_pkt_phy"),
        eth_ionic("frames_tx_pri_{priority}"),
        labels=PRIORITY_LABELS,
    ),
    counted(
        "roce_buffer_discards_total",
        "packets",
        "Packets of the priority dropped on receive because the port's buffer was full. On a lossless priority there "
        "must be none: headroom, cable length or PFC is wrong.",
        eth_mlx5("rx_prio{priority}_discards"),
        labels=PRIORITY_LABELS,
    ),
    counted(
        "roce_host_buffer_discards_total",
        "packets",
        "Packets of the priority dropped for want of this host's share of the buffer of a multi-host NIC.",
        eth_mlx5("rx_prio{priority}_buf_discard"),
        labels=PRIORITY_LABELS,
    ),
    counted(
        "roce_host_congestion_discards_total",
        "packets",
        "Packets of the priority dropped early because of congestion between the hosts of a multi-host NIC.",
        eth_mlx5("rx_prio{priority}_cong_discard"),
        labels=PRIORITY_LABELS,
    ),
    counted(
        "roce_nic_ecn_marked_packets_total",
        "packets",
        "Packets of the priority that the NIC itself marked (CE) because of congestion behind it, not a switch.",
        eth_mlx5("rx_prio{priority}_marked"),
        labels=PRIORITY_LABELS,
    ),
    counted(
        "roce_nic_ecn_marked_queue_packets_total",
        "packets",
        "Packets that the NIC itself marked (CE), by class-of-service queue.",
        eth_bnxt("ecnmark_pkts_cos{queue}"),
        labels=QUEUE_LABELS,
    ),
    counted(
        "roce_tcp_ecn_marked_packets_total",
        "packets",
        "Packets of the kernel's own traffic (TCP/IP) received with the ECN mark; no RDMA.",
        eth_mlx5("rx_ecn_mark"),
    ),
    *(
        counted(
            f"roce_queue_{direction}_{unit}_total",
            unit,
            f"{unit.capitalize()} {verb} by class-of-service queue, RDMA and other.",
            eth_bnxt(f"{raw}_{unit}_cos{{queue}}"),
            labels=QUEUE_LABELS,
        )
        for direction, verb, raw in (("receive", "received", "rx"), ("transmit", "sent", "tx"))
        for unit in ("bytes", "packets")
    ),
    counted(
        "roce_queue_receive_discards_total",
        "packets",
        "Packets dropped on receive, by class-of-service queue.",
        eth_bnxt("rx_discard_packets_cos{queue}"),
        labels=QUEUE_LABELS,
    ),
    counted(
        "roce_queue_receive_discarded_bytes_total",
        "bytes",
        "Bytes dropped on receive, by class-of-service queue.",
        eth_bnxt("rx_discard_bytes_cos{queue}"),
        labels=QUEUE_LABELS,
    ),
    counted(
        "roce_buffer_threshold_passed_total",
        "events",
        "Times the port's receive buffer was over 85 % full.",
        eth_mlx5("rx_buffer_passed_thres_phy"),
        eth_bnxt("rx_buffer_passed_threshold"),
    ),
)

PHY = (
    counted(
        "roce_mac_control_frames_unsupported_total",
        "packets",
        "MAC control frames received that the port does not heed: PFC frames where PFC is off, for one.",
        eth_mlx5("rx_unsupported_op_phy"),
        spelt(ANY, "ethernet", "eth-ctrl-UnsupportedOpcodesReceived"),
    ),
    counted(
        "roce_phy_receive_bytes_total",
        "bytes",
        "Bytes received at the physical port, RDMA and other.",
        eth_mlx5("rx_bytes_phy"),
        eth_bnxt("rx_bytes"),
        eth_intel("rx_bytes.nic"),
        eth_intel("port-rx_bytes"),
        eth_intel("port.rx_bytes", bits=48),
        eth_ionic("octets_rx_ok"),
        eth_hns("mac_rx_total_oct_num"),
    ),
    counted(
        "roce_phy_transmit_bytes_total",
        "bytes",
        "Bytes sent at the physical port, RDMA and other.",
        eth_mlx5("tx_bytes_phy"),
        eth_bnxt("tx_bytes"),
        eth_intel("tx_bytes.nic"),
        eth_intel("port-tx_bytes"),
        eth_intel("port.tx_bytes", bits=48),
        eth_ionic("octets_tx_ok"),
        eth_hns("mac_tx_total_oct_num"),
    ),
    counted(
        "roce_phy_receive_packets_total",
        "packets",
        "Packets received at the physical port, RDMA and other.",
        eth_mlx5("rx_packets_phy"),
        eth_bnxt("rx_total_frames"),
        eth_ionic("frames_rx_ok"),
        eth_hns("mac_rx_total_pkt_num"),
    ),
    counted(
        "roce_phy_transmit_packets_total",
        "packets",
        "Packets sent at the physical port, RDMA and other.",
        eth_mlx5("tx_packets_phy"),
        eth_bnxt("tx_total_frames"),
        eth_ionic("frames_tx_ok"),
        eth_hns("mac_tx_total_pkt_num"),
    ),
    counted(
        "roce_phy_receive_discards_total",
        "packets",
        "Packets dropped on receive at the port, mostly because its buffer was full.",
        eth_mlx5("rx_discards_phy"),
        eth_bnxt("rx_stat_discard"),
        eth_mana("hc_rx_pkt_drop_phy"),
        eth_intel("rx_dropped.nic"),
        eth_intel("port-rx-dropped_pkts"),
        eth_intel("port.rx_dropped", bits=32),
        eth_ionic("frames_rx_dropped"),
        eth_qedr("brb_discards"),
    ),
    counted(
        "roce_phy_transmit_discards_total",
        "packets",
        "Packets dropped on transmit at the port: link down, or paused for so long that they were thrown away.",
        eth_mlx5("tx_discards_phy"),
        eth_bnxt("tx_stat_discard"),
        eth_mana("hc_tx_pkt_drop_phy"),
        eth_intel("tx_dropped_link_down.nic"),
        eth_intel("port-tx-dropped_link-down_pkts"),
        eth_intel("port.tx_dropped_link_down", bits=32),
    ),
    counted(
        "roce_phy_receive_errors_total",
        "packets",
        "Packets received in error, of any kind.",
        eth_bnxt("rx_stat_err"),
        eth_ionic("frames_rx_bad_all"),
        eth_hns("mac_rx_bad_pkt_num"),
    ),
    counted(
        "roce_phy_transmit_errors_total",
        "packets",
        "Packets that could not be sent because of an error, or were longer than the port takes.",
        eth_mlx5("tx_errors_phy"),
        eth_bnxt("tx_stat_error"),
        eth_ionic("frames_tx_bad"),
        eth_hns("mac_tx_bad_pkt_num"),
        eth_intel("tx_errors.nic"),
        eth_intel("port-tx_errors"),
        eth_intel("port.tx_errors", bits=32),
    ),
    counted(
        "roce_phy_receive_crc_errors_total",
        "packets",
        "Packets received with a wrong frame check sequence: a bad cable, transceiver or connector.",
        eth_mlx5("rx_crc_errors_phy"),
        eth_bnxt("rx_fcs_err_frames"),
        eth_intel("rx_crc_errors.nic"),
        eth_intel("port-rx-crc_errors"),
        eth_intel("port.rx_crc_errors", bits=32),
        eth_ionic("frames_rx_bad_fcs"),
        eth_hns("mac_rx_fcs_err_pkt_num"),
        eth_qedr("rx_crc_errors"),
    ),
    counted(
        "roce_phy_receive_stomped_crc_errors_total",
        "packets",
        "Packets received that a switch in cut-through mode had marked as damaged: the fault is further away.",
        eth_ionic("frames_rx_stomped_crc"),
    ),
    counted(
        "roce_phy_transmit_crc_errors_total",
        "packets",
        "Packets sent with a wrong frame check sequence.",
        eth_bnxt("tx_fcs_err_frames"),
    ),
    counted(
        "roce_phy_receive_oversized_total",
        "packets",
        "Packets received that were longer than the port takes: the MTU differs along the path.",
        eth_mlx5("rx_oversize_pkts_phy"),
        eth_bnxt("rx_ovrsz_frames"),
        eth_intel("rx_oversize.nic"),
        eth_intel("port-rx-oversized_pkts"),
        eth_intel("port.rx_oversize", bits=32),
        eth_ionic("frames_rx_oversized"),
        eth_hns("mac_rx_oversize_pkt_num"),
        eth_qedr("rx_oversize_packets"),
    ),
    counted(
        "roce_phy_receive_mtu_errors_total",
        "packets",
        "Packets received that exceed the MTU.",
        eth_bnxt("rx_mtu_err_frames"),
    ),
    counted(
        "roce_phy_receive_too_long_total",
        "packets",
        "Packets received that are longer than any frame may be.",
        eth_ionic("frames_rx_too_long"),
        eth_mlx5("rx_out_of_range_len_phy"),
    ),
    counted(
        "roce_phy_receive_undersized_total",
        "packets",
        "Packets received that were shorter than 64 bytes.",
        eth_mlx5("rx_undersize_pkts_phy"),
        eth_bnxt("rx_undrsz_frames"),
        eth_intel("rx_undersize.nic"),
        eth_intel("port-rx-undersized_pkts"),
        eth_intel("port.rx_undersize", bits=32),
        eth_ionic("frames_rx_undersized"),
        eth_hns("mac_rx_undersize_pkt_num"),
        eth_qedr("rx_undersize_packets"),
    ),
    counted(
        "roce_phy_receive_fragments_total",
        "packets",
        "Short packets received with a wrong frame check sequence.",
        eth_mlx5("rx_fragments_phy"),
        eth_intel("rx_fragments.nic"),
        eth_intel("port-rx-fragmented_pkts"),
        eth_intel("port.rx_fragments", bits=32),
        eth_ionic("frames_rx_fragments"),
        eth_hns("mac_rx_fragment_pkt_num"),
        eth_qedr("rx_fragments"),
    ),
    counted(
        "roce_phy_receive_jabbers_total",
        "packets",
        "Over-long packets received with a wrong frame check sequence.",
        eth_mlx5("rx_jabbers_phy"),
        eth_bnxt("rx_jbr_frames"),
        eth_intel("rx_jabber.nic"),
        eth_intel("port-rx-jabber_pkts"),
        eth_intel("port.rx_jabber", bits=32),
        eth_ionic("frames_rx_jabber"),
        eth_hns("mac_rx_jabber_pkt_num"),
        eth_qedr("rx_jabbers"),
    ),
    counted(
        "roce_phy_receive_length_errors_total",
        "packets",
        "Packets received whose length field does not fit.",
        eth_mlx5("rx_in_range_len_errors_phy"),
        eth_intel("rx_length_errors.nic"),
        eth_intel("port-rx-length_errors"),
        eth_intel("port.rx_length_errors", bits=32),
        eth_ionic("frames_rx_bad_length"),
    ),
    counted(
        "roce_phy_receive_alignment_errors_total",
        "packets",
        "Packets received that did not end on a byte.",
        eth_bnxt("rx_align_err_frames"),
        eth_qedr("rx_align_errors"),
    ),
    counted(
        "roce_phy_receive_truncated_total",
        "packets",
        "Packets cut off in the NIC's buffer.",
        eth_qedr("brb_truncates"),
    ),
    counted(
        "roce_phy_transmit_truncated_total",
        "packets",
        "Packets cut off on transmit.",
        eth_ionic("frames_tx_truncated"),
    ),
    counted(
        "roce_phy_carrier_errors_total",
        "events",
        "Times the carrier was lost or faulty.",
        eth_qedr("rx_carrier_errors"),
    ),
    counted(
        "roce_phy_transmit_underruns_total",
        "events",
        "Times data came too late for the wire.",
        eth_bnxt("tx_fifo_underruns"),
    ),
    counted(
        "roce_phy_symbol_error_packets_total",
        "packets",
        "Packets received with a coding error of the physical layer.",
        eth_mlx5("rx_symbol_err_phy"),
        eth_intel("illegal_bytes.nic"),  # packets, whatever the name says
        eth_intel("port-rx-illegal_bytes"),
        eth_intel("port.illegal_bytes", bits=32),
    ),
    counted(
        "roce_phy_symbol_errors_total",
        "errors",
        "Symbol errors that forward error correction could not mend: packets are lost.",
        eth_mlx5("rx_pcs_symbol_err_phy"),
        eth_bnxt("rx_pcs_symbol_err"),
    ),
    counted(
        "roce_phy_corrected_errors_total",
        "errors",
        "Bit errors that forward error correction mended; ordinary on fast links, a rise says that the cable gets worse.",
        eth_mlx5("rx_corrected_bits_phy"),
        eth_bnxt("rx_corrected_bits"),
        fec("corrected_bits"),
    ),
    counted(
        "roce_phy_line_bytes_total",
        "bytes",
        "All that the link has carried, an eighth of the bits: what errors are to be divided by for an error ratio.",
        eth_mlx5("rx_bits_phy", per=8),
        eth_bnxt("rx_bits", per=8),
    ),
    counted(
        "roce_phy_fec_corrected_blocks_total",
        "blocks",
        "Blocks that forward error correction mended.",
        eth_bnxt("rx_fec_corrected_blocks"),
        fec("corrected_blocks"),
    ),
    counted(
        "roce_phy_fec_uncorrectable_blocks_total",
        "blocks",
        "Blocks that forward error correction could not mend: packets are lost.",
        eth_bnxt("rx_fec_uncorrectable_blocks"),
        fec("uncorrectable_blocks"),
    ),
    counted(
        "roce_phy_lane_errors_total",
        "errors",
        "Bit errors of the lane before correction; mlx5 tells lanes 0 to 3 only.",
        eth_mlx5("rx_err_lane_{lane}_phy"),
        labels=LANE_LABELS,
    ),
    counted(
        "roce_phy_local_faults_total",
        "events",
        "Local faults: this end does not understand what it receives.",
        eth_intel("mac_local_faults.nic"),
        eth_intel("port-mac-local_faults"),
        eth_intel("port.mac_local_faults", bits=32),
    ),
    counted(
        "roce_phy_remote_faults_total",
        "events",
        "Remote faults: the other end does not understand what it receives.",
        eth_intel("mac_remote_faults.nic"),
        eth_intel("port-mac-remote_faults"),
        eth_intel("port.mac_remote_faults", bits=32),
    ),
    counted(
        "roce_phy_recoveries_total",
        "events",
        "Times the physical link recovered by itself.",
        eth_mlx5("total_success_recovery_phy", bits=32),
    ),
    counted(
        "roce_transceiver_unplugs_total",
        "events",
        "Times the transceiver was taken out.",
        eth_mlx5("module_unplug"),
    ),
    counted(
        "roce_transceiver_bus_failures_total",
        "events",
        "Times the transceiver's management bus was stuck.",
        eth_mlx5("module_bus_stuck"),
    ),
    counted(
        "roce_transceiver_overheats_total",
        "events",
        "Times the transceiver was too hot.",
        eth_mlx5("module_high_temp"),
    ),
    counted(
        "roce_transceiver_shorts_total",
        "events",
        "Times the cable was shorted.",
        eth_mlx5("module_bad_shorted"),
    ),
)

HOST = (
    Row(
        "roce_pcie_read_stalled_ratio",
        GAUGE,
        "ratio",
        "Part of the last second in which the NIC's reads from memory waited for PCIe credits.",
        (eth_mlx5("outbound_pci_stalled_rd", per=100),),
        NETDEV_LABELS,
    ),
    Row(
        "roce_pcie_write_stalled_ratio",
        GAUGE,
        "ratio",
        "Part of the last second in which the NIC's writes to memory waited for PCIe credits: a slow host that will "
        "pause its switch.",
        (eth_mlx5("outbound_pci_stalled_wr", per=100),),
        NETDEV_LABELS,
    ),
    counted(
        "roce_pcie_read_stalled_seconds_total",
        "seconds",
        "Seconds in which reads from memory were stalled for more than 30 %.",
        eth_mlx5("outbound_pci_stalled_rd_events", bits=32),
    ),
    counted(
        "roce_pcie_write_stalled_seconds_total",
        "seconds",
        "Seconds in which writes to memory were stalled for more than 30 %: a slow host that will pause its switch.",
        eth_mlx5("outbound_pci_stalled_wr_events", bits=32),
    ),
    counted(
        "roce_pcie_buffer_overflows_total",
        "packets",
        "Packets dropped because PCIe could not drain the NIC.",
        eth_mlx5("outbound_pci_buffer_overflow"),
    ),
    counted(
        "roce_pcie_receive_recoveries_total",
        "events",
        "PCIe link recoveries because of errors that the NIC saw.",
        eth_mlx5("rx_pci_signal_integrity", bits=32),
    ),
    counted(
        "roce_pcie_transmit_recoveries_total",
        "events",
        "PCIe link recoveries that the host's side began.",
        eth_mlx5("tx_pci_signal_integrity", bits=32),
    ),
    counted(
        "roce_device_internal_out_of_buffer_total",
        "packets",
        "Packets dropped because a queue inside the device had no buffer.",
        eth_mlx5("dev_internal_queue_oob", bits=32),
        eth_mlx5("dev_out_of_buffer", bits=32),  # its name in the kernel's documentation
    ),
    counted(
        "roce_netdev_out_of_buffer_total",
        "packets",
        "Packets of the kernel's own traffic (not RDMA) dropped because its receive queue had no buffer.",
        eth_mlx5("rx_out_of_buffer", bits=32),
        eth_ionic("hw_rx_over_errors"),
        eth_qedr("no_buff_discards"),
        eth_efa("rx_drops"),
    ),
    counted(
        "roce_netdev_interface_down_drops_total",
        "packets",
        "Packets dropped because the network device was down.",
        eth_mlx5("rx_if_down_packets", bits=32),
    ),
    counted(
        "roce_netdev_steering_drops_total",
        "packets",
        "Packets that matched no steering rule and were dropped.",
        eth_mlx5("rx_steer_missed_packets"),
        eth_bnxt("rx_filter_miss"),
    ),
    counted(
        "roce_netdev_oversized_drops_total",
        "packets",
        "Packets longer than the kernel's receive buffer.",
        eth_mlx5("rx_oversize_pkts_buffer", bits=32),
    ),
    counted(
        "roce_netdev_hardware_receive_drops_total",
        "packets",
        "Packets that the NIC dropped on the way to this function.",
        eth_ionic("hw_rx_dropped"),
    ),
    counted(
        "roce_netdev_hardware_transmit_drops_total",
        "packets",
        "Packets of this function that the NIC dropped instead of sending.",
        eth_ionic("hw_tx_dropped"),
    ),
    counted(
        "roce_netdev_receive_transfer_errors_total",
        "packets",
        "Packets lost because their transfer to memory or their descriptor failed, or the receive queue was off.",
        eth_ionic("hw_rx_missed_errors"),
    ),
    counted(
        "roce_netdev_transmit_transfer_errors_total",
        "packets",
        "Packets not sent because their transfer from memory or their descriptor failed, or the send queue was off.",
        eth_ionic("hw_tx_aborted_errors"),
    ),
    counted(
        "roce_doorbells_dropped_total",
        "events",
        "Doorbells that the NIC dropped.",
        eth_bnxt("hw_db_recov_dbs_dropped"),
    ),
    counted(
        "roce_doorbells_recovered_total",
        "events",
        "Dropped doorbells that were rung again.",
        eth_bnxt("hw_db_recov_dbs_recovered"),
    ),
)

VPORT = tuple(
    counted(
        f"roce_vport_{direction}_{cast}_{unit}_total",
        unit,
        f"RDMA {cast} {unit} {verb} by this function alone. On a RoCE LAG each leg tells its own part, and which leg "
        "that is may change.",
        eth_mlx5(f"{raw}_vport_rdma_{cast}_{unit}"),
    )
    for direction, verb, raw in (("receive", "received", "rx"), ("transmit", "sent", "tx"))
    for cast in ("unicast", "multicast")
    for unit in ("bytes", "packets")
)

ROWS = (*PRIORITIES, *PHY, *HOST, *VPORT)
