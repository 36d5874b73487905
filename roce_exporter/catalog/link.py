"""The link below a port, the network device's own counters, and the PCIe slot: from standard interfaces of the kernel."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import (
    ANY,
    COUNTER,
    GAUGE,
    NETDEV_LABELS,
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


def of_slot(name: str, kind: str, unit: str, meaning: str, *spellings: Spelling) -> Row:
    """A fact of the PCI function below a device."""
    return Row(name, kind, unit, meaning, spellings, ("device",))


NETDEV = (
    netdev_counter(
        "roce_netdev_carrier_changes_total",
        "events",
        "Times the network device gained or lost its link, as the kernel saw it.",
        netdev("carrier_changes", bits=32),
    ),
    netdev_counter(
        "roce_netdev_carrier_up_total",
        "events",
        "Times the network device gained its link.",
        netdev("carrier_up_count", bits=32),
    ),
    netdev_counter(
        "roce_netdev_carrier_down_total",
        "events",
        "Times the network device lost its link.",
        netdev("carrier_down_count", bits=32),
    ),
    netdev_counter(
        "roce_netdev_receive_dropped_total",
        "packets",
        "Packets of the kernel's own traffic (not RDMA) dropped on receive by the kernel.",
        netdev("rx_dropped"),
    ),
    netdev_counter(
        "roce_netdev_receive_missed_total",
        "packets",
        "Packets of the kernel's own traffic (not RDMA) that the NIC dropped for want of host buffers.",
        netdev("rx_missed_errors"),
    ),
)

LINK = (
    netdev_gauge(
        "roce_link_up",
        "bool",
        "Whether the network device has a link (1) or not (0), as ethtool tells.",
        link("up"),
    ),
    netdev_gauge(
        "roce_link_speed_bytes_per_second",
        "bytes_per_second",
        "Speed of the Ethernet link as it is now; missing while it is down.",
        link("speed"),
    ),
    netdev_gauge("roce_link_lanes", "lanes", "Lanes of the Ethernet link in use.", link("lanes")),
    netdev_gauge(
        "roce_link_full_duplex",
        "bool",
        "Whether the Ethernet link is full duplex (1) or half duplex (0).",
        link("full_duplex"),
    ),
    netdev_gauge(
        "roce_link_extended_state",
        "state",
        "Why the link is down, as enum ethtool_link_ext_state of the kernel numbers it: 0 autonegotiation, 1 link "
        "training, 2 logical mismatch, 3 bad signal integrity, 4 no cable, 5 cable issue, 6 EEPROM issue, "
        "7 calibration failure, 8 power budget, 9 overheat, 10 module. Missing while the link is up.",
        link("extended_state"),
    ),
    netdev_counter(
        "roce_link_down_events_total",
        "events",
        "Times the device itself saw the link go down.",
        eth_mlx5("link_down_events_phy", bits=32),
        eth_bnxt("link_down_events"),
        eth_intel("link_down_events.nic"),
        link("down_events", bits=32),
    ),
    netdev_gauge(
        "roce_config_global_pause_receive_enabled",
        "bool",
        "Whether global pause (802.3x) is obeyed. Beside PFC it must be off: it stops all priorities.",
        pause("receive"),
    ),
    netdev_gauge(
        "roce_config_global_pause_transmit_enabled",
        "bool",
        "Whether global pause (802.3x) is sent. Beside PFC it must be off: it stops all priorities.",
        pause("transmit"),
    ),
    netdev_gauge(
        "roce_config_global_pause_autonegotiation_enabled",
        "bool",
        "Whether global pause is negotiated with the switch.",
        pause("autonegotiate"),
    ),
)

SETTINGS = (
    netdev_gauge(
        "roce_config_pfc_prevention_timeout_seconds",
        "seconds",
        "For how long the NIC may send pause without end before its own watchdog stops it. 0: for ever. "
        "Missing where the driver chooses itself; mlx5 then takes 0.1 s.",
        settings("pfc_prevention_timeout", per=1000),
    ),
    netdev_gauge(
        "roce_config_statistics_refresh_seconds",
        "seconds",
        "Every so often bnxt refreshes its counters. 0: never, so that pause durations stand still.",
        settings("stats_block_microseconds", per=1_000_000),
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
    ),
    netdev_counter(
        "roce_mac_transmit_lost_total",
        "packets",
        "Frames lost inside the MAC on transmit (aFramesLostDueToIntMACXmitError).",
        ethernet("eth-mac-FramesLostDueToIntMACXmitError"),
    ),
    netdev_counter(
        "roce_mac_receive_lost_total",
        "packets",
        "Frames lost inside the MAC on receive (aFramesLostDueToIntMACRcvError).",
        ethernet("eth-mac-FramesLostDueToIntMACRcvError"),
    ),
    netdev_counter(
        "roce_mac_alignment_errors_total",
        "packets",
        "Frames received that did not end on a byte (aAlignmentErrors).",
        ethernet("eth-mac-AlignmentErrors"),
    ),
    netdev_counter(
        "roce_mac_oversized_frames_total",
        "packets",
        "Frames received longer than the port takes (aFrameTooLongErrors): the MTU differs along the path.",
        ethernet("eth-mac-FrameTooLongErrors"),
    ),
    netdev_counter(
        "roce_mac_symbol_errors_total",
        "packets",
        "Frames received with a symbol error (aSymbolErrorDuringCarrier).",
        ethernet("eth-phy-SymbolErrorDuringCarrier"),
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
        "Packets received shorter than 64 bytes, but whole (etherStatsUndersizePkts of RFC 2819).",
        ethernet("rmon-etherStatsUndersizePkts"),
    ),
    netdev_counter(
        "roce_rmon_oversize_packets_total",
        "packets",
        "Packets received longer than the port takes, but whole (etherStatsOversizePkts of RFC 2819).",
        ethernet("rmon-etherStatsOversizePkts"),
    ),
    netdev_counter(
        "roce_rmon_fragments_total",
        "packets",
        "Packets received shorter than 64 bytes with a wrong checksum (etherStatsFragments of RFC 2819).",
        ethernet("rmon-etherStatsFragments"),
    ),
    netdev_counter(
        "roce_rmon_jabbers_total",
        "packets",
        "Packets received longer than the port takes with a wrong checksum (etherStatsJabbers of RFC 2819).",
        ethernet("rmon-etherStatsJabbers"),
    ),
)

PCIE = (
    of_slot(
        "roce_pcie_link_speed_transfers_per_second",
        GAUGE,
        "transfers_per_second",
        "Transfers per second and lane of the PCIe link as it is now.",
        pcie("current_link_speed"),
    ),
    of_slot(
        "roce_pcie_link_speed_max_transfers_per_second",
        GAUGE,
        "transfers_per_second",
        "Transfers per second and lane that the device's PCIe link is able to do.",
        pcie("max_link_speed"),
    ),
    of_slot(
        "roce_pcie_link_width_lanes",
        GAUGE,
        "lanes",
        "Lanes of the PCIe link as it is now.",
        pcie("current_link_width"),
    ),
    of_slot(
        "roce_pcie_link_width_max_lanes",
        GAUGE,
        "lanes",
        "Lanes that the device's PCIe link is able to have. Fewer in use slow the host down: pause frames follow.",
        pcie("max_link_width"),
    ),
    of_slot(
        "roce_pcie_correctable_errors_total",
        COUNTER,
        "errors",
        "PCIe errors that were corrected by sending again (AER).",
        pcie("aer_dev_correctable"),
    ),
    of_slot(
        "roce_pcie_nonfatal_errors_total",
        COUNTER,
        "errors",
        "PCIe errors that lost a transaction but not the link (AER).",
        pcie("aer_dev_nonfatal"),
    ),
    of_slot(
        "roce_pcie_fatal_errors_total",
        COUNTER,
        "errors",
        "PCIe errors after which the link cannot be trusted (AER).",
        pcie("aer_dev_fatal"),
    ),
)

ROWS = (*NETDEV, *LINK, *SETTINGS, *MAC, *RMON, *PCIE)
