"""The link below a port, the network device's own counters, and the PCIe slot, from standard kernel interfaces."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import (
    ANY,
    COUNTER,
    FULL,
    GAUGE,
    LEAN,
    NETDEV_LABELS,
    STANDARD,
    MetricSet,
    Row,
    Spelling,
    netdev_counter,
    netdev_gauge,
    spelt,
)
from roce_exporter.catalog.spellings import eth_bnxt, eth_hns, eth_intel, eth_mlx5, eth_ocrdma, eth_qedr

netdev = partial(spelt, ANY, "netdev")
link = partial(spelt, ANY, "link")
pause = partial(spelt, ANY, "pause")
settings = partial(spelt, ANY, "settings")
fec = partial(spelt, ANY, "fec")
ethernet = partial(spelt, ANY, "ethernet")
pcie = partial(spelt, ANY, "pcie")


def of_slot(
    name: str,
    kind: str,
    unit: str,
    meaning: str,
    *spellings: Spelling,
    metric_set: MetricSet = FULL,
    usual: int | None = None,
) -> Row:
    """A row for the PCI function of a device."""
    return Row(name, kind, unit, meaning, spellings, ("device",), metric_set=metric_set, usual=usual)


NETDEV = (
    netdev_counter(
        "roce_netdev_carrier_changes_total",
        "events",
        "Number of times the network device gained or lost its link, as counted by the kernel.",
        netdev("carrier_changes", bits=32),
        metric_set=LEAN,
        usual=0,
    ),
    netdev_counter(
        "roce_netdev_carrier_up_total",
        "events",
        "Number of times the network device gained its link.",
        netdev("carrier_up_count", bits=32),
    ),
    netdev_counter(
        "roce_netdev_carrier_down_total",
        "events",
        "Number of times the network device lost its link.",
        netdev("carrier_down_count", bits=32),
        metric_set=LEAN,
    ),
    netdev_counter(
        "roce_netdev_receive_dropped_total",
        "packets",
        "Packets of the kernel's own traffic (not RDMA) dropped on receive by the kernel.",
        netdev("rx_dropped"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_netdev_receive_missed_total",
        "packets",
        "Packets of the kernel's own traffic (not RDMA) that the NIC dropped for lack of host buffers.",
        netdev("rx_missed_errors"),
        metric_set=STANDARD,
        usual=0,
    ),
)

LINK = (
    netdev_gauge(
        "roce_link_up",
        "bool",
        "Whether the network device has a link (1) or not (0), as reported by ethtool.",
        link("up"),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_link_speed_bytes_per_second",
        "bytes_per_second",
        "Current speed of the Ethernet link; missing while the link is down.",
        link("speed"),
        metric_set=LEAN,
    ),
    netdev_gauge(
        "roce_link_lanes", "lanes", "Lanes of the Ethernet link in use.", link("lanes"), metric_set=STANDARD
    ),
    netdev_gauge(
        "roce_link_full_duplex",
        "bool",
        "Whether the Ethernet link is full duplex (1) or half duplex (0).",
        link("full_duplex"),
    ),
    netdev_gauge(
        "roce_link_extended_state",
        "state",
        "Why the link is down, numbered as enum ethtool_link_ext_state of the kernel: 0 autonegotiation, 1 link "
        "training, 2 logical mismatch, 3 bad signal integrity, 4 no cable, 5 cable issue, 6 EEPROM issue, "
        "7 calibration failure, 8 power budget, 9 overheat, 10 module. Missing while the link is up.",
        link("extended_state"),
        metric_set=LEAN,
    ),
    netdev_counter(
        "roce_link_down_events_total",
        "events",
        "Number of times the device itself saw the link go down.",
        eth_mlx5("link_down_events_phy", bits=32),
        eth_bnxt("link_down_events"),
        eth_intel("link_down_events.nic"),
        link("down_events", bits=32),
        metric_set=LEAN,
        usual=0,
    ),
    netdev_gauge(
        "roce_config_global_pause_receive_enabled",
        "bool",
        "Whether global pause (802.3x) is obeyed. It must be off where PFC is used: it stops all priorities.",
        pause("receive"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_global_pause_transmit_enabled",
        "bool",
        "Whether global pause (802.3x) is sent. It must be off where PFC is used: it stops all priorities.",
        pause("transmit"),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_global_pause_autonegotiation_enabled",
        "bool",
        "Whether global pause is negotiated with the switch.",
        pause("autonegotiate"),
        metric_set=STANDARD,
    ),
)

SETTINGS = (
    netdev_gauge(
        "roce_config_pfc_prevention_timeout_seconds",
        "seconds",
        "Longest time for which the NIC may send pause continuously before its own watchdog stops it. 0: no limit. "
        "Missing where the driver uses its default; on mlx5 that is 0.1 s.",
        settings("pfc_prevention_timeout", per=1000),
        metric_set=STANDARD,
    ),
    netdev_gauge(
        "roce_config_statistics_refresh_seconds",
        "seconds",
        "Interval at which bnxt refreshes its counters. 0 means never: pause durations then stop increasing.",
        settings("stats_block_microseconds", per=1_000_000),
        metric_set=STANDARD,
    ),
    Row(
        "roce_config_private_flag_enabled",
        GAUGE,
        "bool",
        "Whether a private flag of the driver is on, such as dropless_rq of mlx5 or fw-lldp-agent of ice.",
        (settings("flag_{flag}"),),
        (*NETDEV_LABELS, "flag"),
    ),
)

MAC = (
    netdev_counter(
        "roce_mac_frame_check_sequence_errors_total",
        "packets",
        "Frames received with a wrong checksum (aFrameCheckSequenceErrors).",
        ethernet("eth-mac-FrameCheckSequenceErrors"),
        metric_set=LEAN,
        usual=0,
    ),
    netdev_counter(
        "roce_mac_transmit_lost_total",
        "packets",
        "Frames lost inside the MAC on transmit (aFramesLostDueToIntMACXmitError).",
        ethernet("eth-mac-FramesLostDueToIntMACXmitError"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_mac_receive_lost_total",
        "packets",
        "Frames lost inside the MAC on receive (aFramesLostDueToIntMACRcvError).",
        ethernet("eth-mac-FramesLostDueToIntMACRcvError"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_mac_alignment_errors_total",
        "packets",
        "Frames received that did not end on a byte boundary (aAlignmentErrors).",
        ethernet("eth-mac-AlignmentErrors"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_mac_oversized_frames_total",
        "packets",
        "Frames received that are longer than the port accepts (aFrameTooLongErrors): the MTU differs along the path.",
        ethernet("eth-mac-FrameTooLongErrors"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_mac_symbol_errors_total",
        "packets",
        "Frames received with a symbol error (aSymbolErrorDuringCarrier).",
        ethernet("eth-phy-SymbolErrorDuringCarrier"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_mac_control_frames_received_total",
        "packets",
        "MAC control frames received: global pause and PFC together.",
        eth_mlx5("rx_mac_control_phy"),
        eth_hns("mac_rx_control_pkt_num"),
        eth_qedr("rx_mac_crtl_frames"),  # the driver's own spelling
        eth_ocrdma("rx_control_frames"),
        ethernet("eth-ctrl-MACControlFramesReceived"),
    ),
    netdev_counter(
        "roce_mac_control_frames_sent_total",
        "packets",
        "MAC control frames sent: global pause and PFC together.",
        eth_mlx5("tx_mac_control_phy"),
        eth_hns("mac_tx_control_pkt_num"),
        eth_qedr("tx_mac_ctrl_frames"),
        eth_ocrdma("tx_controlframes"),
        ethernet("eth-ctrl-MACControlFramesTransmitted"),
    ),
)

RMON = (
    netdev_counter(
        "roce_rmon_undersize_packets_total",
        "packets",
        "Packets received that are shorter than 64 bytes but otherwise valid (etherStatsUndersizePkts of RFC 2819).",
        ethernet("rmon-etherStatsUndersizePkts"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_rmon_oversize_packets_total",
        "packets",
        "Packets received that are longer than the port accepts but otherwise valid (etherStatsOversizePkts of RFC 2819).",
        ethernet("rmon-etherStatsOversizePkts"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_rmon_fragments_total",
        "packets",
        "Packets received that are shorter than 64 bytes and have a wrong checksum (etherStatsFragments of RFC 2819).",
        ethernet("rmon-etherStatsFragments"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_rmon_jabbers_total",
        "packets",
        "Packets received that are longer than the port accepts and have a wrong checksum (etherStatsJabbers of RFC 2819).",
        ethernet("rmon-etherStatsJabbers"),
        metric_set=STANDARD,
        usual=0,
    ),
)

PCIE = (
    of_slot(
        "roce_pcie_link_speed_transfers_per_second",
        GAUGE,
        "transfers_per_second",
        "Current speed of the PCIe link, in transfers per second and lane.",
        pcie("current_link_speed"),
        metric_set=LEAN,
    ),
    of_slot(
        "roce_pcie_link_speed_max_transfers_per_second",
        GAUGE,
        "transfers_per_second",
        "Highest speed that the device's PCIe link supports, in transfers per second and lane.",
        pcie("max_link_speed"),
        metric_set=LEAN,
    ),
    of_slot(
        "roce_pcie_link_width_lanes",
        GAUGE,
        "lanes",
        "Current width of the PCIe link in lanes.",
        pcie("current_link_width"),
        metric_set=LEAN,
    ),
    of_slot(
        "roce_pcie_link_width_max_lanes",
        GAUGE,
        "lanes",
        "Largest width that the device's PCIe link supports, in lanes. With fewer lanes in use the host is slower and sends pause frames.",
        pcie("max_link_width"),
        metric_set=LEAN,
    ),
    of_slot(
        "roce_pcie_correctable_errors_total",
        COUNTER,
        "errors",
        "PCIe errors that were corrected, for example by retransmission (AER).",
        pcie("aer_dev_correctable"),
        metric_set=LEAN,
        usual=0,
    ),
    of_slot(
        "roce_pcie_nonfatal_errors_total",
        COUNTER,
        "errors",
        "PCIe errors that lost a transaction but not the link (AER).",
        pcie("aer_dev_nonfatal"),
        metric_set=LEAN,
        usual=0,
    ),
    of_slot(
        "roce_pcie_fatal_errors_total",
        COUNTER,
        "errors",
        "PCIe errors after which the link is no longer reliable (AER).",
        pcie("aer_dev_fatal"),
        metric_set=LEAN,
        usual=0,
    ),
)

ROWS = (*NETDEV, *LINK, *SETTINGS, *MAC, *RMON, *PCIE)
