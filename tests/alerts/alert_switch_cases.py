"""The alerts on switches and links, and how they fire. In each case a switch and a host are scraped under one name."""

from __future__ import annotations

from alert_scenario import NETDEV, PORT, PRIORITY, Case, Jump, Level, Rate

ON = Level(sick=1, healthy=1)
SWITCH = 'device="leaf-<host>"'
SWITCH_PORT = f'{SWITCH},port="Ethernet0"'
QUEUE = f'{SWITCH_PORT},queue="3"'
GROUP = f'{SWITCH_PORT},priority_group="3"'
SWITCH_PRIORITY = f'{SWITCH_PORT},priority="3"'
MAPPED = f'{SWITCH_PORT},priority="3",queue="3",priority_group="3"'
QUEUE_OF_PFC = {f"roce_switch_queue_info{{{MAPPED}}}": ON}


def neighbor(port: str, **labels: str) -> str:
    """A series of a switch's LLDP table."""
    given = {
        "neighbor": "",
        "neighbor_chassis": "",
        "neighbor_port": "",
        "neighbor_description": "",
        "neighbor_mac": "",
        "port_id_kind": "name",
        "source": "lldp",
    } | labels
    text = ",".join(f'{name}="{value}"' for name, value in given.items())
    return f"roce_switch_lldp_neighbor_info{{{port},{text}}}"


HOST_BEHIND = {
    f'roce_netdev_info{{{NETDEV},mac="02:00:00:00:00:<host>",hostname="gpu-<host>.example.com"}}': ON,
    neighbor(SWITCH_PORT, neighbor_mac="02:00:00:00:00:<host>", port_id_kind="mac"): ON,
}
"""The LLDP table knows the MAC address of the host's port."""
LINK = 'host="gpu-<host>.example.com",netdev="ens1f0np0",switch="leaf-<host>",switch_port="Ethernet0"'
SPINE = {
    'roce_switch_info{device="spine-<host>",os="sonic",version="202405",model="",asic=""}': ON,
    neighbor(
        f'{SWITCH},port="Ethernet48"', neighbor="spine-<host>.example.com", neighbor_port="Ethernet4"
    ): ON,
}
UPLINK = f'{SWITCH},port="Ethernet48",priority="3"'
PAUSED_UPLINK = f'{UPLINK},peer="spine-<host>",peer_port="Ethernet4"'

WATCHDOG = (
    Case(
        "RoceSwitchWatchdogTripped",
        {f"roce_switch_pfc_watchdog_tripped{{{QUEUE}}}": Level(sick=1, below=0)},
        labels=f'{PORT},{LINK},queue="3"',
        background=HOST_BEHIND,
    ),
    Case(
        "RoceSwitchWatchdogTripped",
        {f"roce_switch_pfc_watchdog_trips_total{{{QUEUE}}}": Jump(sick=2, below=0)},
        name="restored before the next scrape",
        labels=f'{PORT},{LINK},queue="3"',
        background=HOST_BEHIND,
        look=4,
    ),
    Case(
        "RoceSwitchWatchdogTripped",
        {f"roce_switch_pfc_watchdog_tripped{{{QUEUE}}}": Level(sick=1, below=0)},
        name="with a neighbour that has no exporter",
        labels=f'{QUEUE},switch="leaf-<host>",switch_port="Ethernet0"',
        background={neighbor(SWITCH_PORT, neighbor="storage-7", neighbor_port="eth2"): ON},
    ),
    Case(
        "RoceSwitchWatchdogTripped",
        {f"roce_switch_pfc_watchdog_trips_total{{{QUEUE}}}": Jump(sick=1, below=0)},
        name="without LLDP",
        labels=f'{QUEUE},switch="leaf-<host>",switch_port="Ethernet0"',
        look=4,
    ),
    Case(
        "RoceSwitchWatchdogTripped",
        {
            f"roce_switch_pfc_watchdog_trips_total{{{QUEUE}}}": Level(sick=1, below=0, healthy=None),
            f"roce_switch_probe_success{{{SWITCH}}}": ON,
        },
        name="on a switch that lists queues with their first trip",
        labels=f'{QUEUE},switch="leaf-<host>",switch_port="Ethernet0"',
        background={f'roce_switch_source_up{{{SWITCH},source="watchdog_counters"}}': ON},
        look=4,
    ),
    Case(
        "RoceSwitchWatchdogMissing",
        {
            f"roce_switch_pfc_watchdog_enabled{{{QUEUE}}}": Level(sick=0, below=1, healthy=1),
            **QUEUE_OF_PFC,
        },
        labels=f'{MAPPED},reason="off"',
    ),
    Case(
        "RoceSwitchWatchdogMissing",
        {f"roce_switch_pfc_watchdog_acts{{{QUEUE}}}": Level(sick=0, below=1, healthy=1), **QUEUE_OF_PFC},
        name="which only reports",
        labels=f'{MAPPED},reason="reports only"',
        background={f"roce_switch_pfc_watchdog_enabled{{{QUEUE}}}": ON},
    ),
    Case(
        "RoceSwitchWatchdogMissing",
        {f"roce_switch_pfc_watchdog_overridden{{{SWITCH}}}": Level(sick=1, below=0)},
        name="because it is overridden",
        labels=f'{SWITCH},reason="overridden"',
    ),
)

LOSS = (
    Case(
        "RoceSwitchHeadroomExhausted",
        {f"roce_switch_buffer_discards_total{{{GROUP}}}": Rate(sick=2, below=0), **QUEUE_OF_PFC},
        labels=GROUP,
        background={**HOST_BEHIND, f"roce_switch_pfc_watchdog_tripped{{{QUEUE}}}": Level(sick=0)},
    ),
    Case(
        "RoceSwitchHeadroomNearlyFull",
        {
            f'roce_switch_buffer_headroom_watermark_bytes{{{GROUP},window="periodic"}}': Level(
                sick=90_000, below=80_000
            ),
            f"roce_switch_buffer_headroom_bytes{{{GROUP}}}": Level(sick=100_000, healthy=100_000),
        },
        labels=GROUP,
        background={
            f'roce_switch_buffer_headroom_watermark_bytes{{{GROUP},window="user"}}': Level(sick=99_000),
        },
    ),
    Case(
        "RoceSwitchLosslessQueueDrops",
        {f"roce_switch_queue_discards_total{{{QUEUE}}}": Rate(sick=2, below=0), **QUEUE_OF_PFC},
        labels=QUEUE,
        background={
            **HOST_BEHIND,
            f"roce_switch_pfc_watchdog_tripped{{{QUEUE}}}": Level(sick=0),
            # the watchdog of another queue is no excuse
            f'roce_switch_pfc_watchdog_tripped{{{SWITCH_PORT},queue="4"}}': Level(sick=1),
        },
    ),
    Case(
        "RoceSwitchLosslessQueueDrops",
        {f"roce_switch_queue_discards_total{{{QUEUE}}}": Rate(sick=2, below=0), **QUEUE_OF_PFC},
        name="with an unknown neighbour",
        labels=QUEUE,
    ),
)

SPEED = f"roce_link_speed_bytes_per_second{{{NETDEV}}}"
OTHER_NETDEV = 'device="mlx5_1",port="1",netdev="ens2f0np0"'
OTHER_PORT = f'{SWITCH},port="Ethernet4"'
TWO_HOST_PORTS = {
    **HOST_BEHIND,
    f'roce_netdev_info{{{OTHER_NETDEV},mac="02:00:00:00:01:<host>",hostname="gpu-<host>.example.com"}}': ON,
    neighbor(OTHER_PORT, neighbor_mac="02:00:00:00:01:<host>", port_id_kind="mac"): ON,
    f'roce_switch_queue_info{{{OTHER_PORT},priority="3",queue="3",priority_group="3"}}': ON,
}

ECN = (
    Case(
        "RoceSwitchEcnOff",
        {f"roce_switch_config_ecn_enabled{{{QUEUE}}}": Level(sick=0, below=1, healthy=1), **QUEUE_OF_PFC},
        labels=MAPPED,
    ),
    *(
        Case(
            "RoceSwitchEcnThresholdsInconsistent",
            {
                f"roce_switch_config_ecn_{setting}_bytes{{{QUEUE}}}": Level(
                    sick=150_000, below=300_000, healthy=300_000
                ),
                SPEED: Level(sick=5e10, below=2.5e10, healthy=5e10),
                **QUEUE_OF_PFC,
            },
            name=setting,
            labels=f'{SWITCH},queue="3",setting="{setting}",speed="50000000000"',
            background={
                **TWO_HOST_PORTS,
                f'roce_switch_config_ecn_{setting}_bytes{{{OTHER_PORT},queue="3"}}': Level(
                    sick=300_000, healthy=300_000
                ),
                f"roce_link_speed_bytes_per_second{{{OTHER_NETDEV}}}": Level(sick=5e10, healthy=5e10),
            },
            sick=90,
        )
        for setting in ("minimum", "maximum")
    ),
    Case(
        "RoceSwitchEcnAfterPfc",
        {
            f"roce_switch_config_ecn_minimum_bytes{{{QUEUE}}}": Level(
                sick=2_097_152, below=500_000, healthy=300_000
            ),
            f"roce_switch_buffer_pause_threshold_bytes{{{GROUP}}}": Level(
                sick=500_000, below=3_000_000, healthy=500_000
            ),
            **QUEUE_OF_PFC,
        },
        labels=MAPPED,
        background={f"roce_switch_config_ecn_enabled{{{QUEUE}}}": ON},
    ),
)

LINKS_OF_SWITCHES = (
    Case(
        "RocePfcMismatchOnLink",
        {
            f"roce_pfc_enabled{{{PRIORITY}}}": ON,
            f"roce_switch_pfc_enabled{{{SWITCH_PRIORITY}}}": Level(sick=0, below=1, healthy=1),
        },
        labels=f'{LINK},priority="3",end="host"',
        background=HOST_BEHIND,
        fabric=True,
    ),
    Case(
        "RocePfcMismatchOnLink",
        {
            f"roce_pfc_enabled{{{PRIORITY}}}": Level(sick=0, below=1, healthy=1),
            f"roce_switch_pfc_enabled{{{SWITCH_PRIORITY}}}": ON,
        },
        name="on the switch only",
        labels=f'{LINK},priority="3",end="switch"',
        background=HOST_BEHIND,
        fabric=True,
    ),
    Case(
        # SONiC lists the priorities with PFC of a port; a priority that it does not list is off
        "RocePfcMismatchOnLink",
        {
            f"roce_pfc_enabled{{{PRIORITY}}}": Level(sick=1, below=0),
            f'roce_switch_pfc_enabled{{{SWITCH_PORT},priority="4"}}': Level(sick=1, healthy=None),
        },
        name="another priority on the switch",
        labels=f'{LINK},priority="3",end="host"',
        background={
            **HOST_BEHIND,
            f'roce_pfc_enabled{{{NETDEV},priority="4"}}': Level(sick=1, healthy=None),
        },
        fabric=True,
    ),
    Case(
        "RocePauseCountersDisagree",
        {
            f"roce_pfc_transmit_frames_total{{{PRIORITY}}}": Rate(sick=100, below=94),
            f"roce_switch_pfc_receive_frames_total{{{SWITCH_PRIORITY}}}": Rate(sick=90, below=0.9),
        },
        labels=f'{LINK},priority="3",toward="switch"',
        background=HOST_BEHIND,
        fabric=True,
        sick=100,
        tail=75,
    ),
    Case(
        "RocePauseCountersDisagree",
        {
            f"roce_pfc_receive_xoff_frames_total{{{PRIORITY}}}": Rate(sick=40, below=56),
            f"roce_pfc_receive_xon_frames_total{{{PRIORITY}}}": Rate(sick=40, below=56),
            f"roce_switch_pfc_transmit_frames_total{{{SWITCH_PRIORITY}}}": Rate(sick=100, below=84),
        },
        name="of a NIC that counts XOFF and XON",
        labels=f'{LINK},priority="3",toward="host"',
        background=HOST_BEHIND,
        fabric=True,
        sick=100,
        tail=75,
    ),
    Case(
        "RoceSwitchPausedBySwitch",
        {f"roce_switch_pfc_receive_pause_seconds_total{{{UPLINK}}}": Rate(sick=0.05, below=0.0099)},
        labels=f'{PAUSED_UPLINK},measure="time"',
        background=SPINE,
    ),
    Case(
        "RoceSwitchPausedBySwitch",
        {f"roce_switch_pfc_receive_pause_estimated_seconds_total{{{UPLINK}}}": Rate(sick=0.05, below=0.0099)},
        name="estimated",
        labels=f'{PAUSED_UPLINK},measure="estimated time"',
        background={**SPINE, f"roce_switch_pfc_receive_frames_total{{{UPLINK}}}": Rate(sick=90)},
    ),
    Case(
        "RoceSwitchPausedBySwitch",
        {f"roce_switch_pfc_receive_frames_total{{{UPLINK}}}": Rate(sick=400, below=99)},
        name="in frames",
        labels=f'{PAUSED_UPLINK},measure="frames"',
        background=SPINE,
    ),
    Case(
        "RoceSwitchNeighborChanged",
        {
            neighbor(SWITCH_PORT, neighbor="gpu-7", neighbor_port="eth0"): Level(None, below=1, healthy=1),
            neighbor(SWITCH_PORT, neighbor="gpu-8", neighbor_port="eth0"): Level(1, healthy=None),
        },
        labels=f'{SWITCH_PORT},neighbor="gpu-8",neighbor_port="eth0"',
        lead=70,
        look=20,
        tail=90,
    ),
)

PROBE = (
    Case(
        "RoceSwitchProbeFailing",
        {f"roce_switch_probe_success{{{SWITCH}}}": Level(sick=0, below=1, healthy=1)},
        labels=SWITCH,
    ),
    Case(
        "RoceSwitchProbeFailing",
        {f'roce_switch_source_up{{{SWITCH},source="watermarks"}}': Level(sick=0, below=1, healthy=1)},
        name="of one source",
        labels=f'{SWITCH},source="watermarks"',
        background={f"roce_switch_probe_success{{{SWITCH}}}": ON},
    ),
)

SWITCH_CASES = (*WATCHDOG, *LOSS, *ECN, *LINKS_OF_SWITCHES, *PROBE)
