"""Every alert, and how it fires: how its series move while something is wrong, and just below the threshold."""

from __future__ import annotations

from alert_owner_cases import OWNER_CASES
from alert_scenario import (
    EAST,
    LANE,
    NETDEV,
    PORT,
    PRIORITY,
    RECEIVE,
    TRANSMIT,
    Case,
    Jump,
    Level,
    Rate,
)
from alert_switch_cases import HOST_BEHIND, QUEUE, SWITCH_CASES
from alert_wire_cases import WIRE_CASES

ON = Level(sick=1, healthy=1)
DEVICE = 'device="mlx5_0"'
LOSSLESS = {f"roce_pfc_enabled{{{PRIORITY}}}": ON}
LINK = {f"roce_link_up{{{NETDEV}}}": ON}
DEVICES = {"roce_exporter_devices": Level(sick=1, healthy=1)}
QUIET_TRANSMIT = {
    f"roce_pfc_storm_active{{{TRANSMIT}}}": Level(sick=0),
    f"roce_pfc_storms_total{{{TRANSMIT}}}": Rate(sick=0),
}
IDENTITY = (
    'driver="bnxt_en",protocol="roce",firmware="232.0.219.7",board="",model="",node_guid="0262:0bff:fe11:2233",pci="",'
    'function="pf",physical_function=""'
)
DRIVER_AND_KERNEL = {
    f"roce_device_info{{{DEVICE},{IDENTITY}}}": ON,
    'roce_exporter_kernel_info{release="6.18.3"}': ON,
}
UNKNOWN_NAMES = {
    f'roce_exporter_unmapped_name_info{{{DEVICE},source="hw_counters",name="{name}"}}': Level(
        sick=1, healthy=None
    )
    for name in ("np_cnp_pkts", "rp_cnp_handled")
}
GBIT_100 = 12_500_000_000.0
SPEED_100G = {f"roce_link_speed_bytes_per_second{{{NETDEV}}}": Level(sick=GBIT_100, healthy=GBIT_100)}


def hinted(labels: str, hint: str) -> dict[str, Level]:
    """The exporter's hint about a storm while it lasts."""
    return {f'roce_pfc_storm_hint{{{labels},hint="{hint}"}}': Level(sick=1, healthy=None)}


STORM = (
    Case(
        "RocePfcStormFabricWide",
        {f"roce_pfc_storm_active{{{RECEIVE}}}": Level(sick=1)},
        labels='direction="receive"',
        sick_hosts=EAST[:3],
        fabric=True,
        background={**DEVICES, **QUIET_TRANSMIT},
    ),
    Case(
        "RocePfcStormFabricWide",
        {
            f"roce_pfc_storm_active{{{RECEIVE}}}": Level(sick=1),
            f"roce_pfc_storm_active{{{TRANSMIT}}}": Level(sick=1),
        },
        name="with the sending hosts",
        labels='direction="receive"',
        sick_hosts=EAST[:3],
        fabric=True,
        background=DEVICES,
        spare=frozenset({"roce_pfc_storm_active"}),
    ),
    *(
        Case(
            "RocePfcStormTransmitted",
            {f"roce_pfc_storm_active{{{TRANSMIT}}}": Level(sick=1, below=0)},
            name=hint,
            labels=TRANSMIT,
            background=hinted(TRANSMIT, hint),
        )
        for hint in ("slow_receiver", "host_stopped", "receiver_overwhelmed")
    ),
    Case(
        "RocePfcStormTransmitted",
        {f"roce_pfc_storms_total{{{TRANSMIT}}}": Jump(sick=2, below=0)},
        name="over before the next scrape",
        labels=TRANSMIT,
        look=3,
    ),
    Case(
        "RocePfcStormTransmitted",
        {f"roce_pfc_storm_active{{{TRANSMIT}}}": Level(sick=1, below=0)},
        name="with a tripped switch port",
        labels=TRANSMIT,
        background={**HOST_BEHIND, f"roce_switch_pfc_watchdog_tripped{{{QUEUE}}}": Level(sick=1)},
    ),
    *(
        Case(
            "RocePfcStormReceived",
            {f"roce_pfc_storm_active{{{RECEIVE}}}": Level(sick=1, below=0)},
            name=hint,
            labels=RECEIVE,
            background=hinted(RECEIVE, hint),
        )
        for hint in ("all_ports_paused", "paused_by_fabric")
    ),
    Case(
        "RocePfcStormReceived",
        {
            f"roce_pfc_storms_total{{{RECEIVE}}}": Jump(sick=1, below=0),
            f"roce_pfc_storms_total{{{TRANSMIT}}}": Jump(sick=1),
        },
        name="with a sending host",
        labels=RECEIVE,
        look=3,
    ),
    Case(
        "RocePfcStormNearMisses",
        {f"roce_pfc_storm_near_misses_total{{{RECEIVE}}}": Jump(sick=6, below=4)},
        labels=RECEIVE,
        look=10,
        tail=70,
    ),
    Case(
        "RocePfcStormDetectorBlind",
        {
            f'roce_pfc_storm_unknown{{{TRANSMIT},reason="stale"}}': Level(sick=1, below=0),
            **LOSSLESS,
        },
        labels=f'{TRANSMIT},reason="stale"',
        background=LINK,
    ),
    Case(
        "RocePfcStormDetectorMissing",
        {
            f"roce_pfc_storm_detector_state{{{TRANSMIT}}}": Level(sick=None, below=0),
            **LOSSLESS,
        },
        labels=PRIORITY,
        background=LINK,
        spare=frozenset({"roce_pfc_storm_detector_state"}),
    ),
    Case(
        "RocePfcStormDetectorFault",
        {f"roce_pfc_detector_faults_total{{{TRANSMIT}}}": Jump(sick=1, below=0)},
        labels=TRANSMIT,
        look=10,
    ),
)

PAUSE = (
    Case(
        "RocePfcLongPause",
        {
            f"roce_pfc_receive_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.9, below=0.2),
            f"roce_pfc_receive_transitions_total{{{PRIORITY}}}": Rate(sick=0.5),
        },
        labels=RECEIVE,
    ),
    Case(
        "RocePfcLongPause",
        {
            f"roce_pfc_transmit_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.9, below=0.2),
            f"roce_pfc_transmit_transitions_total{{{PRIORITY}}}": Rate(sick=0.5),
        },
        name="transmitted",
        labels=TRANSMIT,
    ),
    Case(
        "RocePfcTransmitPauseSaturated",
        {f"roce_pfc_transmit_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.8, below=0.499)},
        labels=TRANSMIT,
    ),
    Case(
        "RocePfcReceivePauseSaturated",
        {f"roce_pfc_receive_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.8, below=0.499)},
        labels=RECEIVE,
    ),
    Case(
        # at 100 Gb/s a frame stops a priority for 335.5 us, so 2,980 frames per second stop it permanently
        "RocePfcPauseSaturatedEstimated",
        {
            f"roce_pfc_receive_xoff_frames_total{{{PRIORITY}}}": Rate(sick=2900, below=2600),
            **SPEED_100G,
        },
        labels=RECEIVE,
        background={f"roce_pfc_receive_xon_frames_total{{{PRIORITY}}}": Rate(sick=100)},
    ),
    Case(
        "RocePfcPauseSaturatedEstimated",
        {
            f"roce_pfc_transmit_frames_total{{{PRIORITY}}}": Rate(sick=9000, below=2600),
            **SPEED_100G,
        },
        name="on a NIC that counts frames only",
        labels=TRANSMIT,
    ),
    Case(
        "RocePfcPauseHigh",
        {f"roce_pfc_receive_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.02, below=0.0099)},
        labels=RECEIVE,
    ),
    Case(
        "RocePfcPauseHigh",
        {f"roce_pfc_transmit_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.02, below=0.0099)},
        name="transmitted",
        labels=TRANSMIT,
    ),
    Case(
        "RocePfcPauseElevated",
        {f"roce_pfc_receive_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.002, below=0.00099)},
        labels=RECEIVE,
        sick=90,
    ),
    Case(
        "RocePfcMicroPause",
        {
            f'roce_pfc_pause_ratio_bucket{{{RECEIVE},le="0.5"}}': Rate(sick=9.5, below=9.91, healthy=10),
            f"roce_pfc_pause_ratio_count{{{RECEIVE}}}": Rate(sick=10, healthy=10),
        },
        labels=RECEIVE,
    ),
    Case(
        "RocePfcPauseBudgetBurnFast",
        {f"roce_pfc_receive_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.02, below=0.0143)},
        labels='direction="receive"',
        sick_hosts=EAST,
        fabric=True,
        lead=60,
        sick=90,
        background=LOSSLESS,
    ),
    Case(
        "RocePfcPauseBudgetBurnSlow",
        {f"roce_pfc_transmit_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.008, below=0.0059)},
        labels='direction="transmit"',
        sick_hosts=EAST,
        fabric=True,
        lead=240,
        sick=500,
        tail=420,
        step=60,
        background=LOSSLESS,
    ),
    Case(
        "RoceNicPauseWatchdogTripped",
        {f"roce_pfc_watchdog_trips_total{{{NETDEV}}}": Jump(sick=1, below=0)},
        labels=NETDEV,
        look=5,
    ),
    Case(
        "RoceNicPauseWatchdogWarning",
        {f"roce_pfc_watchdog_warnings_total{{{NETDEV}}}": Jump(sick=1, below=0)},
        labels=NETDEV,
        look=5,
    ),
    Case(
        "RoceNicPauseWatchdogWarning",
        {f"roce_pause_watchdog_trips_total{{{NETDEV}}}": Jump(sick=1, below=0)},
        name="of idle rings",
        labels=NETDEV,
        look=5,
    ),
    Case(
        "RoceGlobalPauseActive",
        {
            f"roce_global_pause_receive_frames_total{{{NETDEV}}}": Rate(sick=3, below=0),
            **LOSSLESS,
        },
        labels=f'{NETDEV},direction="receive"',
    ),
    Case(
        "RoceGlobalPauseActive",
        {
            f"roce_global_pause_transmit_xoff_frames_total{{{NETDEV}}}": Rate(sick=3, below=0),
            **LOSSLESS,
        },
        name="transmitted by Intel",
        labels=f'{NETDEV},direction="transmit"',
    ),
    Case(
        "RocePfcOnUnexpectedPriority",
        {
            f"roce_pfc_receive_frames_total{{{PRIORITY}}}": Rate(sick=1, below=0),
            f"roce_pfc_enabled{{{PRIORITY}}}": Level(sick=0, below=1, healthy=1),
        },
        labels=PRIORITY,
    ),
    Case(
        "RocePfcOnUnexpectedPriority",
        {f"roce_mac_control_frames_unsupported_total{{{NETDEV}}}": Rate(sick=1, below=0)},
        name="by mlx5",
        labels=NETDEV,
    ),
    Case(
        "RoceSlowReceiver",
        {
            f"roce_pfc_transmit_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.05, below=0.0099),
            f"roce_pcie_write_stalled_seconds_total{{{NETDEV}}}": Rate(sick=0.5, below=0.099),
        },
        labels=TRANSMIT,
    ),
)

CONGESTION = (
    Case(
        "RoceEcnMarkedButNoCnpSent",
        {
            f"roce_ecn_marked_packets_total{{{PORT}}}": Rate(sick=200, below=9.9),
            f"roce_cnp_sent_total{{{PORT}}}": Rate(sick=0, below=0.1),
        },
    ),
    Case(
        "RoceCnpIgnored",
        {
            f"roce_cnp_ignored_total{{{PORT}}}": Rate(sick=5, below=0.99),
            f"roce_cnp_handled_total{{{PORT}}}": Rate(sick=20, below=600),
        },
    ),
    Case(
        "RocePfcWithoutEcn",
        {
            f"roce_pfc_receive_pause_seconds_total{{{PRIORITY}}}": Rate(sick=0.02, below=0.00099),
            f"roce_ecn_marked_packets_total{{{PORT}}}": Rate(sick=0, below=0.1),
        },
        labels='direction="receive"',
        sick_hosts=EAST,
        fabric=True,
        background=LOSSLESS,
    ),
    Case(
        "RoceCnpDeliveryDeficit",
        {
            f"roce_cnp_sent_total{{{PORT}}}": Rate(sick=100, below=24),
            f"roce_cnp_handled_total{{{PORT}}}": Rate(sick=30, below=51),
        },
        labels="",
        sick_hosts=EAST,
        fabric=True,
        background={f"roce_cnp_ignored_total{{{PORT}}}": Rate(sick=0)},
    ),
    Case(
        "RoceEcnMarkRatioHigh",
        {
            f"roce_ecn_marked_packets_total{{{PORT}}}": Rate(sick=8000, below=4900),
            f"roce_port_receive_packets_total{{{PORT}}}": Rate(sick=100_000, below=999),
        },
    ),
)

PACKETS = {f"roce_port_receive_packets_total{{{PORT}}}": Rate(sick=100_000, below=999, healthy=999)}

TRANSPORT = (
    Case(
        "RoceLosslessPriorityDrops",
        {f"roce_buffer_discards_total{{{PRIORITY}}}": Rate(sick=2, below=0), **LOSSLESS},
        labels=PRIORITY,
        background={f"roce_netdev_carrier_down_total{{{NETDEV}}}": Rate(sick=0)},
    ),
    Case(
        "RoceLosslessPriorityDrops",
        {f"roce_host_buffer_discards_total{{{PRIORITY}}}": Rate(sick=2, below=0), **LOSSLESS},
        name="of one host of a multi-host NIC",
        labels=PRIORITY,
    ),
    Case(
        "RocePacketLossCritical",
        {f"roce_transport_out_of_sequence_total{{{PORT}}}": Rate(sick=200, below=99), **PACKETS},
        labels=f'{PORT},direction="receive"',
    ),
    Case(
        "RocePacketLossHigh",
        {
            f"roce_transport_packet_sequence_errors_total{{{PORT}}}": Rate(sick=20, below=0.99),
            f"roce_port_transmit_packets_total{{{PORT}}}": Rate(sick=100_000, below=999, healthy=999),
        },
        labels=f'{PORT},direction="transmit"',
    ),
    Case(
        "RoceAckTimeouts",
        {f"roce_transport_ack_timeouts_total{{{PORT}}}": Jump(sick=8, below=3)},
        look=5,
    ),
    Case(
        "RoceTransportRetriesExceeded",
        {f"roce_transport_retries_exceeded_total{{{PORT}}}": Jump(sick=4, below=0)},
        look=5,
    ),
    Case(
        "RoceReceiverNotReady",
        {f"roce_transport_rnr_naks_received_total{{{PORT}}}": Rate(sick=40, below=9.9)},
    ),
    Case(
        "RoceIcrcErrors",
        {f"roce_transport_icrc_errors_total{{{PORT}}}": Jump(sick=3, below=0)},
        look=5,
    ),
)

LINKS = (
    Case(
        "RocePortDown",
        {f"roce_port_up{{{PORT}}}": Level(sick=0, below=1, healthy=1)},
        look=10,
    ),
    Case(
        "RoceLinkFlapping",
        {f"roce_netdev_carrier_down_total{{{NETDEV}}}": Jump(sick=5, below=2)},
        labels=NETDEV,
        look=10,
        tail=90,
    ),
    Case(
        "RoceLinkFlapping",
        {f"roce_link_down_events_total{{{NETDEV}}}": Jump(sick=3, below=2)},
        name="seen by the device only",
        labels=NETDEV,
        look=10,
        tail=90,
    ),
    Case(
        "RoceLinkSpeedDegraded",
        {
            f"roce_link_speed_bytes_per_second{{{NETDEV}}}": Level(
                sick=GBIT_100, below=2 * GBIT_100, healthy=2 * GBIT_100
            )
        },
        labels=NETDEV,
        lead=70,
    ),
    Case(
        "RoceLinkSpeedBelowPeers",
        {
            f"roce_link_speed_bytes_per_second{{{NETDEV}}}": Level(
                sick=GBIT_100, below=4 * GBIT_100, healthy=4 * GBIT_100
            )
        },
        labels=NETDEV,
    ),
    Case(
        "RoceUncorrectedLinkErrors",
        {f"roce_phy_symbol_errors_total{{{NETDEV}}}": Rate(sick=2, below=0)},
        labels=NETDEV,
        background={f"roce_netdev_carrier_changes_total{{{NETDEV}}}": Rate(sick=0)},
    ),
    Case(
        "RoceUncorrectedLinkErrors",
        {f"roce_phy_fec_uncorrectable_blocks_total{{{NETDEV}}}": Rate(sick=2, below=0)},
        name="counted by blocks",
        labels=NETDEV,
    ),
    Case(
        "RoceCrcErrors",
        {f"roce_phy_receive_crc_errors_total{{{NETDEV}}}": Rate(sick=2, below=0)},
        labels=NETDEV,
        background={f"roce_netdev_carrier_changes_total{{{NETDEV}}}": Rate(sick=0)},
    ),
    Case(
        "RoceCrcErrors",
        {f"roce_mac_frame_check_sequence_errors_total{{{NETDEV}}}": Rate(sick=2, below=0)},
        name="counted by the MAC",
        labels=NETDEV,
    ),
)


def constant(value: float) -> Level:
    """A gauge that never changes."""
    return Level(sick=value, healthy=value)


OPTICS = (
    Case(
        "RoceTransceiverTooHot",
        {
            f"roce_transceiver_temperature_celsius{{{NETDEV}}}": Level(sick=81.5, below=75, healthy=45),
            f"roce_transceiver_temperature_high_alarm_celsius{{{NETDEV}}}": constant(75),
        },
        labels=NETDEV,
    ),
    Case(
        "RoceTransceiverReceivePowerLow",
        {
            f"roce_transceiver_receive_power_watts{{{LANE}}}": Level(sick=2e-5, below=6e-5, healthy=1e-3),
            f"roce_transceiver_receive_power_low_alarm_watts{{{NETDEV}}}": constant(6e-5),
            **LINK,
        },
        labels=LANE,
    ),
    Case(
        "RoceTransceiverReceivePowerHigh",
        {
            f"roce_transceiver_receive_power_watts{{{LANE}}}": Level(sick=5e-3, below=3.5e-3, healthy=1e-3),
            f"roce_transceiver_receive_power_high_alarm_watts{{{NETDEV}}}": constant(3.5e-3),
        },
        labels=LANE,
    ),
    Case(
        "RoceTransceiverTransmitPowerLow",
        {
            f"roce_transceiver_transmit_power_watts{{{LANE}}}": Level(sick=2e-5, below=6e-5, healthy=1e-3),
            f"roce_transceiver_transmit_power_low_alarm_watts{{{NETDEV}}}": constant(6e-5),
            **LINK,
        },
        labels=LANE,
    ),
    Case(
        "RoceTransceiverBiasHigh",
        {
            f"roce_transceiver_bias_amperes{{{LANE}}}": Level(sick=0.015, below=0.012, healthy=0.007),
            f"roce_transceiver_bias_high_alarm_amperes{{{NETDEV}}}": constant(0.012),
        },
        labels=LANE,
    ),
)

PCIE = (
    Case(
        "RocePcieBackpressure",
        {f"roce_pcie_read_stalled_seconds_total{{{NETDEV}}}": Rate(sick=0.3, below=0.099)},
        labels=f'{NETDEV},operation="read"',
    ),
    Case(
        "RocePcieBufferOverflow",
        {f"roce_pcie_buffer_overflows_total{{{NETDEV}}}": Rate(sick=4, below=0)},
        labels=NETDEV,
    ),
    Case(
        "RocePcieErrors",
        {f"roce_pcie_fatal_errors_total{{{DEVICE}}}": Jump(sick=1, below=0)},
        labels=f'{DEVICE},kind="fatal"',
        look=5,
    ),
    Case(
        "RocePcieErrors",
        {f"roce_pcie_nonfatal_errors_total{{{DEVICE}}}": Jump(sick=2, below=0)},
        name="nonfatal",
        labels=f'{DEVICE},kind="nonfatal"',
        look=5,
    ),
    *(
        Case(
            "RoceKernelLogFault",
            {f'roce_kernel_log_events_total{{{DEVICE},event="{event}"}}': Jump(sick=1, below=0)},
            name=name,
            labels=f'{DEVICE},event="{event}"',
            look=5,
            # these events do not fire it, however many there are
            background={
                f'roce_kernel_log_events_total{{{DEVICE},event="{other}"}}': Rate(sick=1, healthy=1)
                for other in ("link_down", "pcie_aer_correctable", "command_failed")
            },
        )
        for event, name in (("firmware_fatal", ""), ("module_unplugged", "a transceiver"))
    ),
    Case(
        "RocePcieWidthDegraded",
        {
            f"roce_pcie_link_width_lanes{{{DEVICE}}}": Level(sick=8, below=16, healthy=16),
            f"roce_pcie_link_width_max_lanes{{{DEVICE}}}": constant(16),
        },
        labels=DEVICE,
    ),
    Case(
        "RocePcieSpeedDegraded",
        {
            f"roce_pcie_link_speed_transfers_per_second{{{DEVICE}}}": Level(
                sick=16e9, below=32e9, healthy=32e9
            ),
            f"roce_pcie_link_speed_max_transfers_per_second{{{DEVICE}}}": constant(32e9),
        },
        labels=DEVICE,
    ),
)

DEVLINK = (
    Case(
        "RoceDevlinkReporterUnhealthy",
        {f'roce_devlink_health_state{{{DEVICE},reporter="fw_fatal"}}': Level(sick=1, below=0)},
        labels=f'{DEVICE},reporter="fw_fatal"',
    ),
)

CONFIG = (
    Case(
        "RoceConfigFingerprintsDiffer",
        {f"roce_config_fingerprint{{{NETDEV}}}": Level(sick=2.0**47 + 1, below=2.0**47, healthy=2.0**47)},
        labels=DEVICE,
        fabric=True,
        sick=170,
        tail=10,
    ),
    Case(
        "RoceTrafficOutsideLosslessPriority",
        {
            f"roce_priority_transmit_bytes_total{{{PRIORITY}}}": Rate(sick=1e8, below=1.81e9, healthy=1e9),
            f"roce_port_transmit_bytes_total{{{PORT}}}": Rate(sick=2e9, below=1.2e8, healthy=1e9),
            **LOSSLESS,
        },
    ),
    Case(
        "RoceConfigCheckFailed",
        {f'roce_config_check_ok{{{NETDEV},check="trust"}}': Level(sick=0, below=1, healthy=1)},
        labels=f'{NETDEV},check="trust"',
    ),
    Case(
        "RoceConfigDrift",
        {f"roce_pfc_enabled{{{PRIORITY}}}": Level(sick=0, below=1, healthy=1)},
        labels=f'{DEVICE},setting="PFC"',
        fabric=True,
    ),
    Case(
        "RoceConfigDrift",
        {f'roce_config_dscp_priority{{{NETDEV},dscp="26"}}': Level(sick=0, below=3, healthy=3)},
        name="of DSCP",
        labels=f'{DEVICE},setting="DSCP"',
        fabric=True,
    ),
    Case(
        "RoceConfigDrift",
        {f"roce_config_trust_dscp{{{NETDEV}}}": Level(sick=0, below=1, healthy=1)},
        name="of trust",
        labels=f'{DEVICE},setting="trust"',
        fabric=True,
    ),
    Case(
        "RoceConfigDrift",
        {f"roce_port_mtu_bytes{{{PORT}}}": Level(sick=1500, below=4200, healthy=4200)},
        name="of MTU",
        labels=f'{DEVICE},setting="MTU"',
        fabric=True,
    ),
)

EXPORTER = (
    Case("RoceExporterDown", {"up": Level(sick=0, below=1, healthy=1)}, labels=""),
    Case(
        "RoceExporterAbsent",
        {"up": Level(sick=None, below=1, healthy=1)},
        labels="",
        sick_hosts=EAST,
        fabric=True,
        spare=frozenset({"up"}),
    ),
    Case(
        "RoceDeviceVanished",
        {"roce_exporter_devices": Level(sick=7, below=8, healthy=8)},
        labels="",
        lead=70,
    ),
    Case(
        "RoceSourceBroken",
        {f'roce_exporter_source_up{{source="ethtool",{DEVICE},netdev="ens1f0np0"}}': Level(0, 1, 1)},
        labels=f'source="ethtool",{DEVICE},netdev="ens1f0np0"',
    ),
    Case(
        "RoceSourceBroken",
        {f'roce_exporter_source_up{{source="hw_counters",{DEVICE}}}': Level(0, 1, 1)},
        name="without a network device",
        labels=f'source="hw_counters",{DEVICE}',
    ),
    Case(
        "RoceFilesQuarantined",
        {f'roce_exporter_quarantined_files{{source="hw_counters",{DEVICE}}}': Level(sick=2, below=0)},
        labels=f'source="hw_counters",{DEVICE}',
    ),
    Case(
        "RoceNetdevInvisible",
        {"roce_exporter_ports_without_netdev": Level(sick=2, below=0)},
        labels="",
    ),
    Case(
        "RoceFactsMissing",
        {
            f'roce_exporter_missing_facts{{{PORT},fact="cnp_sent"}}': Level(sick=1, below=0, healthy=None),
        },
        background={
            f'roce_exporter_missing_facts{{{PORT},fact="ack_timeouts"}}': Level(sick=0, healthy=None),
            **DRIVER_AND_KERNEL,
            **UNKNOWN_NAMES,
        },
    ),
    Case(
        "RoceFactsMissing",
        {
            f'roce_exporter_missing_facts{{{PORT},fact="cnp_sent"}}': Level(sick=1, healthy=None),
            f'roce_exporter_missing_facts{{{PORT},fact="ecn_marked"}}': Level(sick=1, healthy=None),
        },
        name="without unknown names",
        spare=frozenset({"roce_exporter_missing_facts"}),
    ),
    Case(
        "RoceUnmappedNames",
        {f"roce_exporter_unmapped_names{{{DEVICE}}}": Level(sick=2, below=0)},
        labels=DEVICE,
        background={**DRIVER_AND_KERNEL, **UNKNOWN_NAMES},
    ),
    Case(
        "RoceSamplerOverrun",
        {
            f"roce_exporter_sampler_late_ticks_total{{{NETDEV}}}": Rate(sick=1, below=0.39),
            f"roce_exporter_sampler_missed_ticks_total{{{NETDEV}}}": Rate(sick=0.1),
            f"roce_exporter_sampler_ticks_total{{{NETDEV}}}": Rate(sick=10, healthy=10),
        },
        labels=NETDEV,
        spare=frozenset({"roce_exporter_sampler_missed_ticks_total"}),
    ),
    Case(
        "RoceSamplerStuck",
        {f"roce_exporter_sampler_stuck{{{NETDEV}}}": Level(sick=1, below=0)},
        labels=NETDEV,
    ),
)

HEALTH = (
    Case(
        "RocePortFailed",
        {f"roce_port_health{{{PORT}}}": Level(sick=3, below=2, healthy=1)},
        background={
            f'roce_port_health_reason{{{PORT},reason="link_down"}}': Level(sick=3, healthy=None),
            f'roce_port_health_reason{{{PORT},reason="device_error"}}': Level(sick=3, healthy=None),
            f'roce_port_health_reason{{{PORT},reason="crc_errors"}}': Level(sick=2, healthy=None),
        },
    ),
    Case(
        "RocePortDegraded",
        {f"roce_port_health{{{PORT}}}": Level(sick=2, below=1, healthy=1)},
        background={f'roce_port_health_reason{{{PORT},reason="crc_errors"}}': Level(sick=2, healthy=None)},
    ),
)

CASES = (
    *STORM,
    *PAUSE,
    *CONGESTION,
    *TRANSPORT,
    *LINKS,
    *OPTICS,
    *PCIE,
    *DEVLINK,
    *CONFIG,
    *EXPORTER,
    *HEALTH,
    *OWNER_CASES,
    *SWITCH_CASES,
    *WIRE_CASES,
)
