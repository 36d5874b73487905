"""Host: all ports side by side."""

from __future__ import annotations

from boards.colours import GOOD, SEVERITY, UNKNOWN
from boards.congestion import chain
from boards.host_faults import ERRORS_PANELS, MACHINE_PANELS
from boards.host_series import AT_NETDEV, AT_PORT, AT_PRIORITY, explained, rates
from boards.limits import step, steps
from boards.measures import lossless, now, rate
from boards.model import Board, Json, Query, Row
from boards.panels import by_port, lines, mirrored, number, states
from boards.scopes import HOST, OF_HOST, PORT, PRIORITY, alerts, storms

LINE_RATE = f"max(roce_link_speed_bytes_per_second{{{PORT}}}) * 8"
DETECTOR: dict[float, tuple[str, str]] = {
    0: ("clear", GOOD),
    1: ("suspect", SEVERITY["info"]),
    2: ("storm", SEVERITY["page"]),
    3: ("recovering", SEVERITY["ticket"]),
    4: ("cannot judge", UNKNOWN),
}


def _judged(direction: str) -> str:
    """What cannot be judged (4) because PFC is off is no news."""
    state = now("roce_pfc_storm_detector_state", f'direction="{direction}",{PRIORITY}')
    return lossless(state, PRIORITY, "> 0 < 4")


STATE_PANELS = (
    number(
        "Ports up",
        explained("Ports that are ACTIVE.", "roce_port_up"),
        "none",
        Query(f"sum({now('roce_port_up', HOST)})", "up"),
        Query(f"count({now('roce_port_up', HOST)})", "of"),
        graph=False,
        width=4,
        height=9,
        empty="No port is seen",
    ),
    number(
        "Storms now",
        explained(
            "Priorities in a PFC storm. **sent**: this host is the culprit. **received**: a victim.",
            "roce_pfc_storm_active",
        ),
        "none",
        Query(f'sum(roce_pfc_storm_active{{direction="transmit",{PRIORITY}}})', "sent"),
        Query(f'sum(roce_pfc_storm_active{{direction="receive",{PRIORITY}}})', "received"),
        limits=steps((1, "red")),
        width=4,
        height=9,
        empty="The NIC counts nothing to judge by",
    ),
    states(
        "Storm detector, by priority",
        explained(
            "What the exporter's detector made of each lossless priority. Received: held by the switch. Sent: holds the switch up.",
            "roce_pfc_storm_detector_state",
        ),
        DETECTOR,
        Query(_judged("receive"), f"{AT_PRIORITY} received"),
        Query(_judged("transmit"), f"{AT_PRIORITY} sent"),
        width=16,
        height=9,
        empty="The NIC counts nothing to judge by",
    ),
    states(
        "Ports",
        explained("Whether each port is ACTIVE.", "roce_port_up"),
        {0: ("down", "red"), 1: ("up", GOOD)},
        Query(now("roce_port_up", PORT), AT_PORT),
        width=12,
        height=5,
        empty="No port is seen",
    ),
    states(
        "Alerts on this host",
        "Alerts that fire, over time. Each has a runbook of its name.",
        {
            0: ("none", GOOD),
            1: ("info", SEVERITY["info"]),
            2: ("ticket", SEVERITY["ticket"]),
            3: ("page", SEVERITY["page"]),
        },
        Query(
            " or ".join(
                f'{rank} * max by (alertname) (ALERTS{{alertname=~"Roce.*",alertstate="firing",severity="{severity}",{HOST}}})'
                for severity, rank in (("page", 3), ("ticket", 2), ("info", 1))
            ),
            "{{alertname}}",
        ),
        width=12,
        height=5,
        empty="No alert fires on this host",
        proof="pfc-storm",
    ),
)
LINK_RECEIVED, LINK_SENT = "roce_phy_receive_bytes_total", "roce_phy_transmit_bytes_total"
SPEED = f"/ on (device, port, netdev) group_left () max by (device, port, netdev) ({now('roce_link_speed_bytes_per_second', PORT)})"
TRAFFIC_PANELS = (
    mirrored(
        "Throughput of each link",
        explained(
            "All that the wire carries, RDMA and other: above the axis received, below it sent. The panel beside compares it with the line rate.",
            LINK_RECEIVED,
            LINK_SENT,
        ),
        "bps",
        Query(f"8 * {rate(LINK_RECEIVED, PORT)}", AT_NETDEV),
        Query(f"8 * {rate(LINK_SENT, PORT)}", AT_NETDEV),
        height=9,
        empty="The driver counts no bytes of the link",
    ),
    mirrored(
        "Part of the line rate in use",
        explained(
            "Above the axis received, below it sent; 100 % is the speed of the link as it is now.",
            LINK_RECEIVED,
            LINK_SENT,
            "roce_link_speed_bytes_per_second",
        ),
        "percentunit",
        Query(f"{rate(LINK_RECEIVED, PORT)} {SPEED}", AT_NETDEV),
        Query(f"{rate(LINK_SENT, PORT)} {SPEED}", AT_NETDEV),
        height=9,
        empty="The driver tells no bytes or no speed of the link",
    ),
    mirrored(
        "RDMA throughput of each port",
        explained(
            "What RDMA carries: above the axis received, below it sent. Less than the link: the rest is TCP/IP and headers.",
            "roce_port_receive_bytes_total",
            "roce_port_transmit_bytes_total",
        ),
        "bps",
        Query(f"8 * {rate('roce_port_receive_bytes_total', PORT)}", AT_PORT),
        Query(f"8 * {rate('roce_port_transmit_bytes_total', PORT)}", AT_PORT),
        empty="The NIC counts no RDMA bytes",
    ),
    mirrored(
        "Bytes by priority",
        explained(
            "Where traffic really goes: above received, below sent. RDMA outside of the lossless priority may be dropped.",
            "roce_priority_receive_bytes_total",
            "roce_priority_transmit_bytes_total",
        ),
        "bps",
        Query(f"8 * {rate('roce_priority_receive_bytes_total', PRIORITY)} > 0", AT_PRIORITY),
        Query(f"8 * {rate('roce_priority_transmit_bytes_total', PRIORITY)} > 0", AT_PRIORITY),
        one_per_port=False,
        empty="The driver does not count by priority",
    ),
)
PAUSE_RECEIVED, PAUSE_SENT = "roce_pfc_receive_pause_seconds_total", "roce_pfc_transmit_pause_seconds_total"
TOLD = "The driver does not tell the time paused"
DOTTED_IF_SENT: Json = {
    "matcher": {"id": "byRegexp", "options": "/transmit$/"},
    "properties": [
        {"id": "custom.lineStyle", "value": {"fill": "dot", "dash": [0, 5]}},
        {"id": "custom.lineWidth", "value": 2},
    ],
}
PAUSE_PANELS = (
    lines(
        "Time paused: received",
        explained(
            "Share of the time in which the switch kept this host from sending: a congested fabric, or a victim. Dashed: the alerts' limits.",
            PAUSE_RECEIVED,
        ),
        "percentunit",
        Query(lossless(rate(PAUSE_RECEIVED, PRIORITY), PRIORITY), AT_PRIORITY),
        limits=steps(step("RocePfcPauseHigh"), step("RocePfcReceivePauseSaturated")),
        overrides=by_port(),
        empty=TOLD,
    ),
    lines(
        "Time paused: sent",
        explained(
            "Share of the time in which this host kept its switch from sending: the host is too slow, it is the culprit. Dashed: the alerts' limits.",
            PAUSE_SENT,
        ),
        "percentunit",
        Query(lossless(rate(PAUSE_SENT, PRIORITY), PRIORITY), AT_PRIORITY),
        limits=steps(step("RocePfcPauseHigh"), step("RocePfcTransmitPauseSaturated")),
        overrides=by_port(),
        empty=TOLD,
    ),
    mirrored(
        "Pause frames",
        explained(
            "Above the axis received, below it sent. One frame may mean a long pause or none: time paused says more, where the NIC tells it.",
            "roce_pfc_receive_frames_total",
            "roce_pfc_transmit_frames_total",
        ),
        "pps",
        Query(lossless(rate("roce_pfc_receive_frames_total", PRIORITY), PRIORITY), AT_PRIORITY),
        Query(lossless(rate("roce_pfc_transmit_frames_total", PRIORITY), PRIORITY), AT_PRIORITY),
        empty="The driver counts no pause frames by priority",
    ),
    lines(
        "Longest single pause",
        explained(
            "Jobs feel single long pauses, which averages hide. Dotted: sent. Dashed: the alerts' limit.",
            "roce_pfc_longest_pause_seconds",
        ),
        "s",
        Query(
            lossless(now("roce_pfc_longest_pause_seconds", PRIORITY), PRIORITY),
            f"{AT_PRIORITY} {{{{direction}}}}",
        ),
        overrides=[*by_port(), DOTTED_IF_SENT],
        limits=steps(step("RocePfcLongPause", "seconds")),
        empty="The NIC counts nothing to judge by",
    ),
)
CONGESTION_PANELS = (
    chain("ECN → CNP → reaction, whole host"),
    rates(
        "Marked packets by port",
        "Which port's traffic meets full queues in a switch on its way here.",
        ("roce_ecn_marked_packets_total", ""),
        empty="The NIC counts no marked packets",
    ),
    rates(
        "CNPs handled by port",
        "How often senders on this port were told to slow down.",
        ("roce_cnp_handled_total", ""),
        empty="The NIC counts no CNPs",
    ),
    rates(
        "CNPs ignored by port",
        "CNPs that had no effect. For long: the reaction point is off for this priority.",
        ("roce_cnp_ignored_total", ""),
        limits=steps(step("RoceCnpIgnored", "per_second")),
        empty="The NIC does not count CNPs that it ignores",
    ),
)
BOARD = Board(
    "roce-host",
    "RoCE / Host",
    "All RDMA ports of one host side by side.",
    OF_HOST,
    (
        Row("State", "", STATE_PANELS),
        Row(
            "Traffic",
            "**Is the load what you expect, and the same on all ports?** One port that carries less than its neighbours is the slow one of a collective.",
            TRAFFIC_PANELS,
        ),
        Row(
            "Priority flow control",
            "**Sent** pause: this host cannot take what it is sent; look at PCIe below. **Received** pause: the switch stops it; if CNPs are handled too, it is part "
            "of the congestion, if none are, it is a victim of others.",
            PAUSE_PANELS,
        ),
        Row(
            "Congestion control",
            "**Marks → CNPs sent** (this host receives) and **CNPs handled** (this host sends). Pause received and marks at zero: ECN is not set on the switches.",
            CONGESTION_PANELS,
        ),
        Row(
            "Errors and drops",
            "**All of these are zero in health.** Drops here: receive buffers. Loss without drops: a switch or a cable.",
            ERRORS_PANELS,
        ),
        Row(
            "Host, cable and optics",
            "**A slow host looks like a slow fabric**: PCIe stalls with pause sent. Dying optics look like loss.",
            MACHINE_PANELS,
        ),
    ),
    (alerts(HOST), storms(PRIORITY)),
)
