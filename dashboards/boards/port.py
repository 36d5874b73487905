"""Port: one port in depth."""

from __future__ import annotations

from boards.colours import CNP_HANDLED, LOST, RECEIVED, RECOVERED, SENT
from boards.congestion import chain
from boards.host import DETECTOR
from boards.limits import step, steps
from boards.measures import buckets, growth, lossless, meanings, now, rate
from boards.model import Board, Query, Row
from boards.panels import BARS, coloured, heat, lines, number, shades, states, table
from boards.port_faults import DROPS_PANELS, WIRE_PANELS
from boards.port_series import COLOURS, DIRECTED, SAID, TWO_WAYS, both, event, limit_line
from boards.scopes import HOST, OF_PORT, PORT, PRIORITY, alerts, storms

NOW_PANELS = (
    number(
        "Speed",
        "Of the link as it is now.\n\n" + meanings("roce_link_speed_bytes_per_second"),
        "bps",
        Query(f"sum(8 * {now('roce_link_speed_bytes_per_second', PORT)})"),
        graph=False,
        empty="The link is down",
    ),
    number(
        "MTU",
        meanings("roce_port_mtu_bytes") + "\n\nBelow 4200 RDMA cannot use its largest MTU of 4096.",
        "none",
        Query(f"max({now('roce_port_mtu_bytes', PORT)})"),
        graph=False,
        empty="The driver does not tell",
    ),
    number(
        "Paused, received",
        "Share of the time in which the switch holds the chosen priorities; the worst of them.",
        "percentunit",
        Query(f"max({rate('roce_pfc_receive_pause_seconds_total', PRIORITY)})"),
        limits=steps(step("RocePfcPauseHigh"), step("RocePfcReceivePauseSaturated")),
        empty="Not told",
    ),
    number(
        "Paused, sent",
        "Share of the time in which this host holds its switch; the worst of the chosen priorities.",
        "percentunit",
        Query(f"max({rate('roce_pfc_transmit_pause_seconds_total', PRIORITY)})"),
        limits=steps(step("RocePfcPauseHigh"), step("RocePfcTransmitPauseSaturated")),
        empty="Not told",
    ),
    number(
        "Marked packets",
        "Share of received packets that carry the ECN mark.",
        "percentunit",
        Query(
            f"sum({rate('roce_ecn_marked_packets_total', PORT)}) / (sum({rate('roce_port_receive_packets_total', PORT)}) > 0)"
        ),
        limits=steps(step("RoceEcnMarkRatioHigh")),
        empty="Nothing is received",
    ),
    number(
        "Latest storm",
        "When it began.\n\n" + meanings("roce_pfc_storm_last_start_timestamp_seconds"),
        "dateTimeFromNow",
        Query(f"max(roce_pfc_storm_last_start_timestamp_seconds{{{PRIORITY}}}) * 1000"),
        graph=False,
        empty="None since the exporter started",
        proof="pfc-storm",
    ),
    states(
        "Storm detector",
        "What the exporter's detector made of each priority.\n\n" + meanings("roce_pfc_storm_detector_state"),
        DETECTOR,
        Query(
            lossless(now("roce_pfc_storm_detector_state", PRIORITY), PRIORITY, "> 0 < 4"),
            f"{DIRECTED} {{{{direction}}}}",
        ),
        width=16,
        height=6,
        empty="The NIC counts nothing to judge by",
    ),
    table(
        "What the storm looks like",
        "The detector's guess at the cause of a storm that goes on.\n\n" + meanings("roce_pfc_storm_hint"),
        ("netdev", "priority", "direction", "hint"),
        Query(
            f"max by (netdev, priority, direction, hint) (last_over_time({now('roce_pfc_storm_hint', PRIORITY)}[$__range]))",
            form="table",
            instant=True,
        ),
        width=8,
        height=6,
        empty="No storm in the range shown",
        proof="pfc-storm",
    ),
)
RDMA = ("roce_port_receive_bytes_total", "roce_port_transmit_bytes_total")
line = Query(f"8 * max({now('roce_link_speed_bytes_per_second', PORT)})", "line rate")
LIMITED = [coloured("received", RECEIVED), coloured("sent", SENT), limit_line("byName", "line rate")]
link = ("roce_phy_receive_bytes_total", "roce_phy_transmit_bytes_total")
TRAFFIC_PANELS = (
    lines(
        "Link against line rate",
        "All that the wire carries. Near the line rate in both directions the host does what it can; "
        f"far below it with pause received, others hold it.\n\n{meanings(*link)}",
        "bps",
        Query(f"8 * sum({rate(link[0], PORT)})", "received"),
        Query(f"8 * sum({rate(link[1], PORT)})", "sent"),
        line,
        overrides=LIMITED,
        empty="The driver counts no bytes of the link",
    ),
    both(
        "RDMA",
        "What RDMA carries; the rest of the link is TCP/IP and headers.",
        "bps",
        RDMA,
        PORT,
        factor="8 * ",
        empty="The NIC counts no RDMA bytes",
    ),
    both(
        "Bytes by priority",
        "Where traffic really goes. RDMA belongs into the lossless priority.",
        "bps",
        ("roce_priority_receive_bytes_total", "roce_priority_transmit_bytes_total"),
        PRIORITY,
        factor="8 * ",
        by="priority",
        empty="No traffic, or the driver does not count by priority",
    ),
    lines(
        "Bytes per packet",
        "Small packets load the NIC's packet rate, not its bandwidth.",
        "bytes",
        *(
            Query(
                f"sum({rate(f'roce_port_{way}_bytes_total', PORT)}) / (sum({rate(f'roce_port_{way}_packets_total', PORT)}) > 0)",
                SAID[way],
            )
            for way in TWO_WAYS
        ),
        overrides=[coloured("received", RECEIVED), coloured("sent", SENT)],
        empty="No RDMA packets",
    ),
)
HEATS = (
    heat(
        f"Pause per look, {SAID[way]}",
        "How paused the priorities were at each look of the exporter's fast loop, ten times a second or once. A dark "
        f"line at the bottom: mostly free. Marks at the top: single long pauses, which averages hide.\n\n{meanings('roce_pfc_pause_ratio')}",
        "percentunit",
        Query(buckets("roce_pfc_pause_ratio", f'direction="{way}",{PRIORITY}'), "{{le}}", form="heatmap"),
        empty="The NIC does not measure the time paused",
    )
    for way in TWO_WAYS
)
PAUSE_PANELS = (
    *(
        lines(
            f"Time paused: {SAID[way]}",
            f"Share of the time, by priority. Dashed: the alerts' limits.\n\n{meanings(f'roce_pfc_{way}_pause_seconds_total')}",
            "percentunit",
            Query(lossless(rate(f"roce_pfc_{way}_pause_seconds_total", PRIORITY), PRIORITY), DIRECTED),
            limits=steps(step("RocePfcPauseHigh"), step(f"RocePfc{way.title()}PauseSaturated")),
            overrides=[shades("A", COLOURS[way])],
            empty="The driver does not tell the time paused",
        )
        for way in TWO_WAYS
    ),
    *HEATS,
    lines(
        "Longest single pause",
        f"Dashed: the alerts' limit.\n\n{meanings('roce_pfc_longest_pause_seconds')}",
        "s",
        *(
            Query(
                now("roce_pfc_longest_pause_seconds", f'direction="{way}",{PRIORITY}'),
                f"{DIRECTED} {SAID[way]}",
            )
            for way in TWO_WAYS
        ),
        limits=steps(step("RocePfcLongPause", "seconds")),
        overrides=[shades("A", RECEIVED), shades("B", SENT)],
        width=8,
        empty="The NIC counts nothing to judge by",
    ),
    both(
        "Pause frames",
        "Frames that stop and frames that let go, together.",
        "pps",
        ("roce_pfc_receive_frames_total", "roce_pfc_transmit_frames_total"),
        PRIORITY,
        by="priority",
        width=8,
        empty="No pause frame, or the driver does not count them by priority",
        proof="pfc-storm",
    ),
    lines(
        "Near misses and congestion",
        "Near misses: pauses that were almost storms, in each interval. Congested: seconds per second nearly always paused while packets still pass. "
        f"\n\n{meanings('roce_pfc_storm_near_misses_total', 'roce_pfc_congested_seconds_total')}",
        "none",
        Query(
            f"sum by (direction) (round({growth('roce_pfc_storm_near_misses_total', PRIORITY)}))",
            "near misses {{direction}}",
        ),
        Query(
            f"sum by (direction) ({rate('roce_pfc_congested_seconds_total', PRIORITY)})",
            "congested {{direction}}",
        ),
        width=8,
        empty="The NIC counts nothing to judge by",
    ),
)
CONGESTION_PANELS = (
    chain("ECN → CNP → reaction"),
    lines(
        "CNPs handled against pause received",
        "The reaction point at work: when CNPs rise, pause should fall. Pause that rises alone is not answered by congestion control.",
        "percentunit",
        Query(f"max({rate('roce_pfc_receive_pause_seconds_total', PRIORITY)})", "time paused, received"),
        Query(f"sum({rate('roce_cnp_handled_total', PORT)})", "CNPs handled"),
        overrides=[
            coloured("time paused, received", RECEIVED),
            {
                "matcher": {"id": "byName", "options": "CNPs handled"},
                "properties": [
                    {"id": "unit", "value": "pps"},
                    {"id": "custom.axisPlacement", "value": "right"},
                    {"id": "color", "value": {"mode": "fixed", "fixedColor": CNP_HANDLED}},
                ],
            },
        ],
        empty="The NIC counts neither",
    ),
)
TRANSPORT_PANELS = (
    lines(
        "Loss, as connections notice",
        "Zero in a lossless fabric.\n\n"
        + meanings(
            "roce_transport_out_of_sequence_total",
            "roce_transport_packet_sequence_errors_total",
            "roce_transport_duplicate_requests_total",
        ),
        "pps",
        Query(f"sum({rate('roce_transport_out_of_sequence_total', PORT)})", "out of sequence"),
        Query(f"sum({rate('roce_transport_packet_sequence_errors_total', PORT)})", "sequence-error NAKs"),
        Query(f"sum({rate('roce_transport_duplicate_requests_total', PORT)})", "duplicate requests"),
        empty="The NIC does not count them",
    ),
    lines(
        "Recovery",
        "Each costs time; adaptive retransmission the least, a timeout the most. Retries exceeded ends the connection.\n\n"
        + meanings(
            "roce_transport_ack_timeouts_total",
            "roce_transport_adaptive_retransmits_total",
            "roce_transport_retries_exceeded_total",
        ),
        "none",
        event("roce_transport_adaptive_retransmits_total", "adaptive retransmits"),
        event("roce_transport_ack_timeouts_total", "ack timeouts"),
        event("roce_transport_retries_exceeded_total", "retries exceeded"),
        custom=BARS,
        overrides=[coloured("adaptive retransmits", RECOVERED), coloured("retries exceeded", LOST)],
        empty="The NIC does not count them",
    ),
    lines(
        "Receivers that were not ready",
        "The fault of an application, not of the fabric.\n\n"
        + meanings("roce_transport_rnr_naks_received_total", "roce_out_of_buffer_total"),
        "pps",
        Query(f"sum({rate('roce_transport_rnr_naks_received_total', PORT)})", "peer not ready"),
        Query(f"sum({rate('roce_out_of_buffer_total', PORT)})", "this host not ready"),
        empty="The NIC does not count them",
    ),
    lines(
        "Completions with errors",
        "What applications see, in each interval. Flushed completions are ordinary when connections end.\n\n"
        + meanings(
            "roce_transport_requester_completion_errors_total",
            "roce_transport_responder_completion_errors_total",
        ),
        "none",
        event("roce_transport_requester_completion_errors_total", "requester"),
        event("roce_transport_responder_completion_errors_total", "responder"),
        custom=BARS,
        empty="The NIC does not count them",
    ),
)
BOARD = Board(
    "roce-port",
    "RoCE / Port",
    "One port in depth; storms and alerts are marked on the time axis.",
    OF_PORT,
    (
        Row("Now", "", NOW_PANELS),
        Row(
            "Traffic",
            "**Sent far below the line rate**: with pause received, the fabric holds it; with CNPs handled, congestion control does; with neither, the application.",
            TRAFFIC_PANELS,
        ),
        Row(
            "Priority flow control",
            "**Pause sent**: with PCIe stalls the host is too slow, without them suspect the NIC. **Pause received and ECN at zero**: switches do not mark, so PFC does the work. "
            "**Pause received and no CNP handled**: this port is a victim of others' congestion.",
            PAUSE_PANELS,
        ),
        Row(
            "Congestion control",
            "**Marked packets and no CNPs sent**: the notification point is off. **CNPs ignored**: the reaction point is off for this priority.",
            CONGESTION_PANELS,
        ),
        Row(
            "Transport",
            "**Out of sequence with drops below**: this host's buffers. **Without**: a switch or the peer. **Timeouts alone**: the peer or the path is gone.",
            TRANSPORT_PANELS,
        ),
        Row(
            "Drops and buffers",
            "**A drop in a lossless priority** means that pause came too late (headroom, cable length), or that the switch does not obey it.",
            DROPS_PANELS,
        ),
        Row(
            "Wire, optics and host",
            "**Errors on one port only**: its cable or module. **Light falls on one lane**: the module; on all: the fibre.",
            WIRE_PANELS,
        ),
    ),
    (alerts(f'{HOST},device=~"$device"'), storms(PRIORITY)),
)
