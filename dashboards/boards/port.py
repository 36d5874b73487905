"""Port: one port in depth."""

from __future__ import annotations

from functools import reduce

from boards.colours import (
    CNP_HANDLED,
    CRITICAL,
    GOOD,
    LOST,
    REASON,
    RECEIVED,
    RECOVERED,
    SENT,
    SEVERITY,
    UNKNOWN,
    WARNING,
)
from boards.configuration_series import command
from boards.host_ports import NO_TIME, OF_HOST_PORT, alerts_over_time, detector
from boards.limits import LONG_PAUSE, MARKS_HIGH, PAUSE_HIGH, PCIE_STALLS, SATURATED, plain, steps
from boards.link_series import INFO
from boards.measures import growth, lossless, meanings, moved, now, part_above, rate, relevant
from boards.model import Board, Query, Row, cell
from boards.panels import (
    BARS,
    by_name,
    by_priority,
    by_query,
    coloured,
    fixed,
    lines,
    mirrored,
    named,
    number,
    states,
)
from boards.port_faults import DROPS_PANELS, WIRE_PANELS
from boards.port_series import DIRECTED, SAID, TWO_WAYS, both, chain, event, limit_line
from boards.probes import PORT_PROBES
from boards.scopes import HOST, OF_PORT, PORT, PRIORITY, alerts, storms, to_switch_port
from boards.tables import WRAPPED, as_text, table
from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.health.causes import CAUSES as VERDICT
from roce_exporter.checks.report import ACTS

THIS = f'{HOST},device=~"$device"'
TWO_COLOURS = [by_query("A", ("color", fixed(RECEIVED))), by_query("B", ("color", fixed(SENT)))]


def _rises(*names: str, scope: str = PORT) -> str:
    """Above 0 where one of these counters rises; nothing if none of them is counted."""
    rates = [f"sum({rate(name, scope)})" for name in names]
    return f"({' + '.join(f'({one} or vector(0))' for one in rates)} and on () ({' or '.join(rates)}))"


def _pauses(way: str) -> str:
    return f"max({rate(f'roce_pfc_{way}_pause_seconds_total', PRIORITY)}) > bool {plain(PAUSE_HIGH[0])}"


def _storm(way: str) -> str:
    matchers = f'direction="{way}",{PRIORITY}'
    return f"2 * max({now('roce_pfc_storm_active', matchers)})"


BROKEN = f'{THIS},state="ERR"'
CAUSES = {
    "link is down": f"2 * max(1 - {now('roce_port_up', PORT)})",
    "link was lost": f"{_rises('roce_netdev_carrier_down_total')} > bool 0",
    "errors on the wire": f"{_rises('roce_phy_receive_crc_errors_total', 'roce_phy_symbol_errors_total', 'roce_phy_fec_uncorrectable_blocks_total')} > bool 0",
    "host is slow (PCIe)": f"max({rate('roce_pcie_write_stalled_seconds_total', PORT)}) > bool {plain(PCIE_STALLS[0])}",
    "storm sent": _storm("transmit"),
    "pause sent": _pauses("transmit"),
    "storm received": _storm("receive"),
    "pause received": _pauses("receive"),
    "drops": f"{_rises('roce_buffer_discards_total', scope=PRIORITY)} > bool 0",
    "packets lost": f"{_rises('roce_transport_out_of_sequence_total', 'roce_transport_packet_sequence_errors_total')} > bool 0",
    "timeouts": f"{_rises('roce_transport_ack_timeouts_total', 'roce_transport_retries_exceeded_total')} > bool 0",
    "queue pairs in ERR": f"sum({now('roce_owner_queue_pairs', BROKEN)} or 0 * {now('roce_owner_queue_pairs', THIS)}) > bool 0",
}
"""What can be wrong with a port, each before what it causes."""
CAME_FIRST = states(
    "What came first",
    "In the order of cause: what begins first and is highest explains what is below it. Link, wire and a slow host are causes; pause sent makes the switch stop; pause received, "
    "drops and timeouts are effects of others, if nothing above began earlier. A row is missing where the NIC does not count it.",
    {0: ("no", GOOD), 1: ("yes", SEVERITY[WARNING]), 2: ("yes", SEVERITY[CRITICAL])},
    *(
        Query(f"clamp_max({expression}, 2)", f"{place}. {said}")
        for place, (said, expression) in enumerate(CAUSES.items(), 1)
    ),
    ever=f"max_over_time({now('roce_port_up', PORT)}[$__range] @ end())",
    nothing=("port", "no data", UNKNOWN),
    width=24,
    height=12,
)
SAYS = {
    "reason": {cause.name: cause.title for cause in VERDICT},
    "acts": {cause.name: ACTS[cause.side].partition(":")[0] for cause in VERDICT},
    "likely": {cause.name: cause.likely for cause in VERDICT},
    "first_step": {cause.name: command(cause.next[0]) for cause in VERDICT},
}
"""The verdict's words for each cause, by column: those of `check health` and `/health.json`."""
COPIED = reduce(
    lambda query, name: f'label_replace({query}, "{name}", "$1", "reason", "(.*)")',
    [name for name in SAYS if name != "reason"],
    now("roce_port_health_reason", PORT),
)
NOW_PANELS = (
    table(
        "What is wrong, and what to do first",
        "The reasons of the exporter's verdict now, in its words; a reason goes when its fault is over. `roce-exporter check health` on the host prints the evidence, "
        "the time and all steps.\n\n" + meanings("roce_port_health_reason"),
        ("device", "port", "Value", *SAYS),
        cell(f"max by (device, port, {', '.join(SAYS)}) ({COPIED})", proof="lossy"),
        names={"Value": "health"},
        overrides=(
            as_text("health", named(REASON)),
            *(
                by_name(
                    name,
                    ("mappings", [named({cause: (text, "") for cause, text in texts.items()})]),
                    ("custom.width", width),
                    *WRAPPED,
                )
                for (name, texts), width in zip(SAYS.items(), (430, 190, 640, 420), strict=True)
            ),
        ),
        concealed=("device", "port"),
        wide="likely",
        tall=True,
        sort="health",
        width=24,
        height=6,
        empty="All that is seen is well, or there is no verdict",
    ),
    CAME_FIRST,
    number(
        "Link",
        "Current values. Below an MTU of 4200 RDMA cannot use its largest MTU of 4096.\n\n"
        + meanings("roce_link_speed_bytes_per_second", "roce_port_mtu_bytes"),
        "none",
        Query(f"sum(8 * {now('roce_link_speed_bytes_per_second', PORT)})", "speed"),
        Query(f"max({now('roce_port_mtu_bytes', PORT)})", "MTU"),
        overrides=[by_name("speed", ("unit", "bps"))],
        width=6,
        empty="Link is down",
    ),
    number(
        "Pause now",
        "Share of time in the worst of the selected priorities. **received**: the switch pauses this port. **sent**: it pauses its switch.",
        "percentunit",
        *(Query(f"max({rate(f'roce_pfc_{way}_pause_seconds_total', PRIORITY)})", SAID[way]) for way in TWO_WAYS),
        overrides=[
            by_name(SAID[way], ("thresholds", steps(PAUSE_HIGH, SATURATED[way])))
            for way in TWO_WAYS
        ],
        width=6,
        empty="Not measured",
    ),
    number(
        "Marked packets",
        "Share of received packets that carry the ECN mark.",
        "percentunit",
        Query(
            f"sum({rate('roce_ecn_marked_packets_total', PORT)}) / (sum({rate('roce_port_receive_packets_total', PORT)}) > 0)"
        ),
        limits=steps(MARKS_HIGH),
        width=6,
        empty="No traffic",
    ),
    number(
        "Latest storm",
        "Start of the latest storm.\n\n" + meanings("roce_pfc_storm_last_start_timestamp_seconds"),
        "dateTimeFromNow",
        Query(f"max(roce_pfc_storm_last_start_timestamp_seconds{{{PRIORITY}}}) * 1000"),
        width=6,
        empty="No storm",
        proof="pfc-storm",
    ),
    table(
        "Other end of the link",
        "The switch port behind each network device of this port, from the LLDP table of the switch. Click it to see both ends.\n\n"
        + meanings("roce_netdev_info", "roce_switch_lldp_neighbor_info"),
        ("netdev", "host", "switch", "switch_port"),
        cell(f"{INFO}{{{OF_HOST_PORT}}}"),
        overrides=(
            by_name("switch", ("custom.width", 260)),
            by_name("host", ("custom.width", 260)),
            by_name("switch_port", ("links", [to_switch_port("switch", "switch_port")])),
        ),
        wide="switch_port",
        width=24,
        height=4,
        empty="No switch port is known: no switch of this cluster is probed, or its LLDP table lacks this host",
    ),
    alerts_over_time(THIS, "device", width=24, height=5),
    detector(DIRECTED, width=24, height=5),
    mirrored(
        "Time paused, worst priority",
        "Above the axis: received, the switch pauses the port. Below: sent, the port pauses its switch. The rows below show each priority.\n\n"
        + meanings(*(f"roce_pfc_{way}_pause_seconds_total" for way in TWO_WAYS)),
        "percentunit",
        *(Query(f"max({rate(f'roce_pfc_{way}_pause_seconds_total', PRIORITY)})", SAID[way]) for way in TWO_WAYS),
        overrides=TWO_COLOURS,
        named_alike=False,
        width=24,
        height=6,
        empty=NO_TIME,
    ),
    chain("ECN → CNP → reaction", width=24, height=6),
)  # fmt: skip
RDMA = ("roce_port_receive_bytes_total", "roce_port_transmit_bytes_total")
line = Query(f"8 * max({now('roce_link_speed_bytes_per_second', PORT)})", "line rate")
LIMITED = [coloured("received", RECEIVED), coloured("sent", SENT), limit_line("byName", "line rate")]
link = ("roce_phy_receive_bytes_total", "roce_phy_transmit_bytes_total")
TRAFFIC_PANELS = (
    lines(
        "Link against line rate",
        "All traffic on the link. Near the line rate the host is at its limit; "
        f"far below it, with pause received, the switch slows it down.\n\n{meanings(*link)}",
        "bps",
        Query(f"8 * sum({rate(link[0], PORT)})", "received"),
        Query(f"8 * sum({rate(link[1], PORT)})", "sent"),
        line,
        overrides=LIMITED,
        empty="The driver does not count bytes of the link",
    ),
    both(
        "RDMA",
        "RDMA traffic; the rest of the link is TCP/IP and headers.",
        "bps",
        RDMA,
        PORT,
        factor="8 * ",
        empty="The NIC does not count RDMA bytes",
    ),
    mirrored(
        "Traffic by priority",
        "Actual priority of the traffic: received above the axis, sent below it. RDMA must be in the lossless priority.\n\n"
        + meanings("roce_priority_receive_bytes_total", "roce_priority_transmit_bytes_total"),
        "bps",
        *(
            Query(f"8 * {moved(f'roce_priority_{way}_bytes_total', PRIORITY)}", "p{{priority}}")
            for way in TWO_WAYS
        ),
        overrides=by_priority(),
        empty="No traffic, or the driver does not count by priority",
    ),
    lines(
        "Bytes per packet",
        "Small packets exhaust the NIC's packet rate before its bandwidth.",
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
ABOVE = {0.01: ("1 %", "semi-dark-blue"), 0.5: ("half", "semi-dark-orange"), 0.95: ("95 %", LOST)}
"""Bounds of the histogram that show the length of single pauses, with their text in the legend."""
PAUSE_PANELS = (
    *(
        lines(
            f"Time paused: {SAID[way]}",
            f"Share of time, by priority. Dashed: alert limits.\n\n{meanings(f'roce_pfc_{way}_pause_seconds_total')}",
            "percentunit",
            Query(relevant(f"roce_pfc_{way}_pause_seconds_total", PRIORITY), DIRECTED),
            limits=steps(PAUSE_HIGH, SATURATED[way]),
            overrides=by_priority(),
            empty=NO_TIME,
        )
        for way in TWO_WAYS
    ),
    *(
        lines(
            f"Polls with pause: {SAID[way]}",
            "Share of the fast loop's polls (ten or one per second) in which a priority was paused for more than 1 %, half and "
            f"95 % of the time since the previous poll. Polls above 95 % are single long pauses, which averages hide.\n\n{meanings('roce_pfc_pause_ratio')}",
            "percentunit",
            *(
                Query(
                    part_above("roce_pfc_pause_ratio", bound, f'direction="{way}",{PRIORITY}'),
                    f"more than {said} of a poll",
                )
                for bound, (said, _) in ABOVE.items()
            ),
            overrides=[coloured(f"more than {said} of a poll", colour) for said, colour in ABOVE.values()],
            empty="The NIC does not measure time paused",
        )
        for way in TWO_WAYS
    ),
    mirrored(
        "Longest single pause",
        f"Received above the axis, sent below it. Dashed: alert limit.\n\n{meanings('roce_pfc_longest_pause_seconds')}",
        "s",
        *(
            Query(
                lossless(now("roce_pfc_longest_pause_seconds", f'direction="{way}",{PRIORITY}'), PRIORITY),
                DIRECTED,
            )
            for way in TWO_WAYS
        ),
        limits=steps(LONG_PAUSE),
        overrides=by_priority(),
        width=8,
        empty="The NIC has no suitable counters",
    ),
    mirrored(
        "Pause frames",
        "Received above the axis, sent below it. XOFF and XON frames together.\n\n"
        + meanings("roce_pfc_receive_frames_total", "roce_pfc_transmit_frames_total"),
        "pps",
        *(Query(relevant(f"roce_pfc_{way}_frames_total", PRIORITY), DIRECTED) for way in TWO_WAYS),
        overrides=by_priority(),
        width=8,
        empty="The driver does not count pause frames by priority",
        proof="pfc-storm",
    ),
    lines(
        "Near misses and congestion",
        "Near misses: pauses that were almost storms, per interval. Congested: share of time paused almost continuously while packets still pass. "
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
        empty="The NIC has no suitable counters",
    ),
    table(
        "Likely kind of storm",
        "The detector's hint about the cause of an active storm.\n\n" + meanings("roce_pfc_storm_hint"),
        ("netdev", "priority", "direction", "hint"),
        cell(
            f"max by (netdev, priority, direction, hint) (last_over_time({now('roce_pfc_storm_hint', PRIORITY)}[$__range]))"
        ),
        wide="hint",
        width=12,
        empty="No storm in the range shown",
        proof="pfc-storm",
    ),
    lines(
        "CNPs handled against pause received",
        "Effect of the reaction point: when CNPs rise, pause should fall. If pause rises alone, congestion control does not react to it.",
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
        width=12,
        empty="The NIC does not count them",
    ),
)
TRANSPORT_PANELS = (
    lines(
        "Loss, as seen by connections",
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
        "Each event costs time, adaptive retransmission the least, a timeout the most. Retries exceeded ends the connection.\n\n"
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
        "Receivers not ready",
        "Caused by an application, not by the fabric.\n\n"
        + meanings("roce_transport_rnr_naks_received_total", "roce_out_of_buffer_total"),
        "pps",
        Query(f"sum({rate('roce_transport_rnr_naks_received_total', PORT)})", "peer not ready"),
        Query(f"sum({rate('roce_out_of_buffer_total', PORT)})", "this host not ready"),
        empty="The NIC does not count them",
    ),
    lines(
        "Completions with errors",
        "Errors visible to applications, per interval. Flushed completions are normal when connections end.\n\n"
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
    "One port in depth: what happened, and in what order.",
    OF_PORT,
    (
        Row("Now", "what happened, and in what order", NOW_PANELS),
        Row("Traffic", "sent far below the line rate: pause, CNPs, or the application", TRAFFIC_PANELS),
        Row(
            "Priority flow control",
            "sent, with PCIe stalls: a slow host. Received, without CNPs: a victim",
            PAUSE_PANELS,
        ),
        Row(
            "Transport", "loss with drops below: own buffers. Without: a switch or the peer", TRANSPORT_PANELS
        ),
        Row("Drops and buffers", "a lossless priority drops if pause comes too late", DROPS_PANELS),
        Row(
            "Wire, optics and host",
            "less light on one lane: the module; on all lanes: the fibre",
            WIRE_PANELS,
        ),
        Row(
            "Probes",
            "lost with clean counters: a path, a peer or a queue, whether or not there is traffic",
            PORT_PROBES,
        ),
    ),
    (alerts(THIS), storms(PRIORITY)),
    metric_set=MetricSet.STANDARD,
)
