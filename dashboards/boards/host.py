"""Host: all ports side by side."""

from __future__ import annotations

from boards.host_faults import ERRORS_PANELS, MACHINE_PANELS
from boards.host_ports import FIRST_PANELS
from boards.host_series import AT_NETDEV, AT_PORT, AT_PRIORITY, explained, rates
from boards.limits import CNPS_IGNORED_RATE, LONG_PAUSE, WIRE_DROPS, WIRE_RETRANSMISSIONS, steps
from boards.measures import WINDOW, lossless, moved, now, rate, relevant
from boards.model import Board, Json, Query, Row
from boards.panels import by_port, lines, mirrored
from boards.port_series import chain
from boards.scopes import CLUSTER, HOST, OF_HOST, PORT, PRIORITY, alerts, storms
from roce_exporter.catalog.row import MetricSet

ADDRESSES = "port:roce_wire_address:info"
PROOF = "lossy"
EMPTY = "No capture sees this host: see docs/wire.md"
SHOWN = "The ten pairs with the most of it in the range shown."
PAIR = "{{source}} to {{destination}}"


def of_host(expression: str, *by: str) -> str:
    """The pairs with an address of the ports shown at one end; of several captures of one pair the highest value."""
    pairs = f"max by ({', '.join(('cluster', 'source', 'destination', *by))}) ({expression})"
    ends = (
        f'({pairs} and on (cluster, {end}) label_join({ADDRESSES}{{{PORT}}}, "{end}", "", "address"))'
        for end in ("source", "destination")
    )
    return " or ".join(ends)


def most(expression: str, name: str, scope: str = CLUSTER, *by: str) -> str:
    """An expression for the ten pairs whose counter rose most within the range shown, ranked once."""
    risen = f"sum by (cluster, instance, source, destination{''.join(f', {one}' for one in by)}) (increase({name}{{{scope}}}[$__range] @ end()))"
    return f"({of_host(expression, *by)}) and topk(10, {of_host(risen, *by)})"


def share(name: str, scope: str, of: str, of_scope: str, label: str) -> str:
    """The share of a pair's packets; without packets there is no share."""
    every = f"sum without ({label}) (rate({of}{{{of_scope}}}[{WINDOW}]))"
    return f"sum without ({label}) ({rate(name, scope)}) / ({every} > 0)"


CNPS, ECN = "roce_wire_cnps_total", "roce_wire_ecn_packets_total"
PACKETS = "roce_wire_packets_total"
RETRANSMITTED, OUTSIDE = "roce_wire_retransmitted_packets_total", "roce_wire_outside_lossless_packets_total"
NAKS = "roce_wire_naks_total"
FRAMES, DROPPED = "roce_wire_capture_frames_total", "roce_wire_capture_dropped_frames_total"
MARKED = f'codepoint="ce",{CLUSTER}'

PEERS_PANELS = (
    lines(
        "Who congests whom (CNPs)",
        explained(
            f"CNPs from a congested receiver to a sender. Many senders and one receiver: an incast. {SHOWN}",
            CNPS,
        ),
        "pps",
        Query(most(rate(CNPS, CLUSTER), CNPS), "{{destination}} congests {{source}}"),
        width=8,
        height=9,
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "Marked packets by pair",
        explained(
            f"Share of packets that a switch has marked on the way, at the place of the capture. {SHOWN}", ECN
        ),
        "percentunit",
        Query(most(share(ECN, MARKED, ECN, CLUSTER, "codepoint"), ECN, MARKED), PAIR),
        width=8,
        height=9,
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "Retransmissions by pair",
        explained(
            f"Share of packets that were sent again, duplicated or reordered. {SHOWN} Dashed: alert limit.",
            RETRANSMITTED,
        ),
        "percentunit",
        Query(most(share(RETRANSMITTED, CLUSTER, PACKETS, CLUSTER, "operation"), RETRANSMITTED), PAIR),
        limits=steps(WIRE_RETRANSMISSIONS),
        width=8,
        height=9,
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "Outside the lossless priority",
        explained(f"By pair. Switches may drop these packets. {SHOWN}", OUTSIDE),
        "pps",
        Query(most(rate(OUTSIDE, CLUSTER), OUTSIDE), PAIR),
        width=8,
        height=9,
        empty=EMPTY,
        proof=PROOF,
    ),
    lines(
        "NAKs by pair and reason",
        explained(f"From the receiver of the data to its sender. {SHOWN}", NAKS),
        "pps",
        Query(most(rate(NAKS, CLUSTER), NAKS, CLUSTER, "reason"), f"{PAIR}: {{{{reason}}}}"),
        width=8,
        height=9,
        empty="No NAK was captured, or no capture sees this host: see docs/wire.md",
        proof=PROOF,
    ),
    lines(
        "Frames that captures dropped",
        explained(
            "Share of frames that were lost in the ring of each capture of the cluster; the other panels are too low by it. Dashed: alert limit.",
            DROPPED,
        ),
        "percentunit",
        Query(
            f"{rate(DROPPED, CLUSTER)} / ({rate(FRAMES, CLUSTER)} + {rate(DROPPED, CLUSTER)} > 0)",
            "{{instance}}",
        ),
        limits=steps(WIRE_DROPS),
        width=8,
        height=9,
        empty="No capture is scraped in this cluster: see docs/wire.md",
        proof=PROOF,
    ),
)

LINK_RECEIVED, LINK_SENT = "roce_phy_receive_bytes_total", "roce_phy_transmit_bytes_total"
SPEED = f"/ on (device, port, netdev) group_left () max by (device, port, netdev) ({now('roce_link_speed_bytes_per_second', PORT)})"
TRAFFIC_PANELS = (
    mirrored(
        "Throughput of each link",
        explained(
            "All traffic on the link, RDMA and other: received above the axis, sent below it.",
            LINK_RECEIVED,
            LINK_SENT,
        ),
        "bps",
        Query(f"8 * {rate(LINK_RECEIVED, PORT)}", AT_NETDEV),
        Query(f"8 * {rate(LINK_SENT, PORT)}", AT_NETDEV),
        height=9,
        overrides=by_port(),
        empty="The driver does not count bytes of the link",
    ),
    mirrored(
        "Link utilisation",
        explained(
            "Received above the axis, sent below it; 100 % is the current speed of the link.",
            LINK_RECEIVED,
            LINK_SENT,
            "roce_link_speed_bytes_per_second",
        ),
        "percentunit",
        Query(f"{rate(LINK_RECEIVED, PORT)} {SPEED}", AT_NETDEV),
        Query(f"{rate(LINK_SENT, PORT)} {SPEED}", AT_NETDEV),
        height=9,
        overrides=by_port(),
        empty="The driver does not count bytes, or the link speed is unknown",
    ),
    mirrored(
        "RDMA throughput of each port",
        explained(
            "RDMA traffic: received above the axis, sent below it. The difference to the link is TCP/IP and headers.",
            "roce_port_receive_bytes_total",
            "roce_port_transmit_bytes_total",
        ),
        "bps",
        Query(f"8 * {rate('roce_port_receive_bytes_total', PORT)}", AT_PORT),
        Query(f"8 * {rate('roce_port_transmit_bytes_total', PORT)}", AT_PORT),
        overrides=by_port(),
        empty="The NIC does not count RDMA bytes",
    ),
    mirrored(
        "Traffic by priority",
        explained(
            "Actual priority of the traffic: received above the axis, sent below it. RDMA outside the lossless priority may be dropped.",
            "roce_priority_receive_bytes_total",
            "roce_priority_transmit_bytes_total",
        ),
        "bps",
        Query(f"8 * {moved('roce_priority_receive_bytes_total', PRIORITY)}", AT_PRIORITY),
        Query(f"8 * {moved('roce_priority_transmit_bytes_total', PRIORITY)}", AT_PRIORITY),
        empty="The driver does not count by priority",
    ),
)
DOTTED_IF_SENT: Json = {
    "matcher": {"id": "byRegexp", "options": "/transmit$/"},
    "properties": [
        {"id": "custom.lineStyle", "value": {"fill": "dot", "dash": [0, 5]}},
        {"id": "custom.lineWidth", "value": 2},
    ],
}
PAUSE_PANELS = (
    mirrored(
        "Pause frames",
        explained(
            "Received above the axis, sent below it. One frame may mean a long pause or none: time paused is more meaningful, where the NIC measures it.",
            "roce_pfc_receive_frames_total",
            "roce_pfc_transmit_frames_total",
        ),
        "pps",
        Query(relevant("roce_pfc_receive_frames_total", PRIORITY), AT_PRIORITY),
        Query(relevant("roce_pfc_transmit_frames_total", PRIORITY), AT_PRIORITY),
        overrides=by_port(),
        empty="The driver does not count pause frames by priority",
    ),
    lines(
        "Longest single pause",
        explained(
            "Single long pauses, which averages hide, slow jobs down. Dotted: sent. Dashed: alert limit.",
            "roce_pfc_longest_pause_seconds",
        ),
        "s",
        Query(
            lossless(now("roce_pfc_longest_pause_seconds", PRIORITY), PRIORITY),
            f"{AT_PRIORITY} {{{{direction}}}}",
        ),
        overrides=[*by_port(), DOTTED_IF_SENT],
        limits=steps(LONG_PAUSE),
        empty="The NIC has no suitable counters",
    ),
)
CONGESTION_PANELS = (
    chain("ECN → CNP → reaction, whole host"),
    rates(
        "Marked packets by port",
        "The ports whose received traffic passes full queues in a switch.",
        ("roce_ecn_marked_packets_total", ""),
        empty="The NIC does not count marked packets",
    ),
    rates(
        "CNPs handled by port",
        "Rate of CNPs that slowed senders on this port.",
        ("roce_cnp_handled_total", ""),
        empty="The NIC does not count CNPs",
    ),
    rates(
        "CNPs ignored by port",
        "CNPs that had no effect. If this lasts, the reaction point is off for this priority.",
        ("roce_cnp_ignored_total", ""),
        limits=steps(CNPS_IGNORED_RATE),
        empty="The NIC does not count ignored CNPs",
    ),
)
BOARD = Board(
    "roce-host",
    "RoCE / Host",
    "All RDMA ports of one host: which port, which direction, cause or victim.",
    OF_HOST,
    (
        Row("Now", "which port, which direction, is it cause or victim", FIRST_PANELS),
        Row("Traffic", "the port that carries less than its neighbours slows a collective", TRAFFIC_PANELS),
        Row("Priority flow control", "few long pauses, or many short ones", PAUSE_PANELS),
        Row(
            "Congestion control",
            "marks and CNPs sent: host receives. CNPs handled: host sends. Pause without marks: no ECN",
            CONGESTION_PANELS,
        ),
        Row("Errors and drops", "normally zero. Loss without drops here: a switch or a cable", ERRORS_PANELS),
        Row(
            "Peers (wire)",
            "with whom, from packets on mirror ports: who congests whom, who retransmits",
            PEERS_PANELS,
            collapsed=True,
        ),
        Row(
            "Host, cable and optics",
            "a slow host looks like a slow fabric, and failing optics like loss",
            MACHINE_PANELS,
        ),
    ),
    (alerts(HOST), storms(PRIORITY)),
    metric_set=MetricSet.STANDARD,
)
