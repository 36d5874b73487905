"""The rows of the link dashboard on the switch port's queues and buffers."""

from __future__ import annotations

from boards.colours import CNP_SENT, MARKED, RECOVERED, STOPPED, UNKNOWN
from boards.link_series import SWITCH, SWITCH_PORT, only, reported
from boards.measures import meanings, moved, now, rate, still
from boards.model import Json, Query
from boards.panels import coloured, lines, states
from boards.port_series import limit_line
from boards.scopes import PORT

WINDOWS = 'window!~"user|persistent"'
"""Watermarks that start again at the switch's own interval, not when a person clears them."""
SINCE = "A watermark is the maximum of the switch's own interval (two minutes on SONiC)."
LIMITS: Json = limit_line("byRegexp", "/^limit/")
QUEUE = "roce_switch_queue"
BUFFER = "roce_switch_buffer"


def _worst(name: str, label: str, *matchers: str) -> str:
    return f"max by ({label}) ({now(name, ','.join((*matchers, SWITCH_PORT)))})"


def _filled(name: str, said: str, label: str = "queue", *matchers: str) -> Query:
    return Query(_worst(name, label, *matchers), f"{said}, {label.replace('_', ' ')} {{{{{label}}}}}")


MARKS = (f"{QUEUE}_ecn_marked_packets_total", "roce_ecn_marked_packets_total", "roce_cnp_sent_total")
QUEUE_PANELS = (
    lines(
        "ECN marks and their reaction",
        "The switch marks packets to the host, the host receives them marked and sends CNPs to their senders. Marks that the host receives from "
        "other switches are in the second line only. Marks without CNPs: the host's notification point is off.\n\n"
        + reported(MARKS[0]) + "\n" + meanings(*MARKS[1:]),
        "pps",
        Query(f"sum({rate(MARKS[0], SWITCH_PORT)})", "marked by this port"),
        Query(f"sum({rate(MARKS[1], PORT)})", "marked packets at the host"),
        Query(f"sum({rate(MARKS[2], PORT)})", "CNPs sent by the host"),
        overrides=[
            coloured("marked by this port", RECOVERED),
            coloured("marked packets at the host", MARKED),
            coloured("CNPs sent by the host", CNP_SENT),
        ],
        empty="Neither end counts marks",
    ),
    lines(
        "Fill of the queues, and ECN thresholds",
        f"ECN must begin (red, lower line) before the switch sends pause. {SINCE}\n\n"
        + reported(f"{QUEUE}_watermark_bytes", f"{QUEUE}_occupancy_bytes", "roce_switch_config_ecn_minimum_bytes", "roce_switch_config_ecn_maximum_bytes"),
        "bytes",
        _filled(f"{QUEUE}_watermark_bytes", "most", "queue", WINDOWS),
        _filled(f"{QUEUE}_occupancy_bytes", "now"),
        _filled("roce_switch_config_ecn_minimum_bytes", "limit: ECN begins"),
        _filled("roce_switch_config_ecn_maximum_bytes", "limit: ECN strongest"),
        overrides=[LIMITS],
        empty="This switch reports neither fill nor thresholds",
    ),
    lines(
        "Packets discarded at the queues",
        "A lossless queue discards nothing, except while the watchdog holds it. WRED discards packets that cannot be marked: ECN is off, or the "
        "packets are without ECT.\n\n"
        + reported(*(f"{QUEUE}_{what}_total" for what in ("discards", "wred_discards", "trimmed_packets"))),
        "pps",
        Query(moved(f"{QUEUE}_discards_total", SWITCH_PORT), "queue {{queue}} discarded", proof="pfc-storm"),
        Query(moved(f"{QUEUE}_wred_discards_total", SWITCH_PORT), "queue {{queue}} by WRED", proof="incast"),
        Query(moved(f"{QUEUE}_trimmed_packets_total", SWITCH_PORT), "queue {{queue}} trimmed", proof="incast"),
        Query(still(f"{QUEUE}_discards_total", SWITCH_PORT), "none discarded", instead=True),
        Query(still(f"{QUEUE}_wred_discards_total", SWITCH_PORT), "none by WRED", instead=True),
        width=8,
        empty="This switch does not count them",
    ),
    lines(
        "Transmit rate of the queues",
        "Traffic to the host by queue. RDMA must be in a queue with PFC; far below the line rate, with pause to the switch: the host is slow.\n\n"
        + reported(f"{QUEUE}_transmit_bytes_total") + "\n" + meanings("roce_link_speed_bytes_per_second"),
        "bps",
        Query(f"8 * max by (queue) ({rate(f'{QUEUE}_transmit_bytes_total', SWITCH_PORT)})", "queue {{queue}}"),
        Query(f"8 * max({now('roce_link_speed_bytes_per_second', PORT)})", "limit: line rate"),
        overrides=[LIMITS],
        width=8,
        empty="This switch does not count bytes by queue",
    ),
    states(
        "Queues stopped by the host's pause",
        "Samples only: short pauses fall between two readings. Time paused is above.\n\n" + reported(f"{QUEUE}_paused"),
        STOPPED,
        Query(_worst(f"{QUEUE}_paused", "queue"), "queue {{queue}}"),
        ever=f"max_over_time({now(f'{QUEUE}_paused', SWITCH_PORT)}[$__range] @ end())",
        nothing=("queues", "not reported", UNKNOWN),
        width=8,
        height=8,
    ),
)  # fmt: skip
LOST = (f"{BUFFER}_discards_total", "roce_switch_port_buffer_discards_total")


def _group(name: str, said: str, *matchers: str) -> Query:
    return _filled(name, said, "priority_group", *matchers)


BUFFERS_PANELS = (
    lines(
        "Headroom",
        "Space for packets that are in flight after pause was sent. At the limit the switch discards lossless packets: the headroom is too small for "
        f"the cable's length, or the host does not obey pause. {SINCE}\n\n"
        + reported(f"{BUFFER}_headroom_watermark_bytes", f"{BUFFER}_headroom_bytes"),
        "bytes",
        _group(f"{BUFFER}_headroom_watermark_bytes", "most", WINDOWS),
        _group(f"{BUFFER}_headroom_bytes", "limit: configured"),
        overrides=[LIMITS],
        empty=only(f"{BUFFER}_headroom_watermark_bytes"),
    ),
    lines(
        "Shared buffer, and where pause begins",
        f"Traffic from the host waits here. At the limit the switch sends pause to the host. {SINCE}\n\n"
        + reported(f"{BUFFER}_shared_watermark_bytes", f"{BUFFER}_pause_threshold_bytes"),
        "bytes",
        _group(f"{BUFFER}_shared_watermark_bytes", "most", WINDOWS),
        _group(f"{BUFFER}_pause_threshold_bytes", "limit: pause"),
        overrides=[LIMITS],
        empty="This switch does not report it",
    ),
    lines(
        "Packets from the host that were lost",
        f"Discarded on receive because buffer and headroom were full; zero in a lossless group.\n\n{reported(*LOST)}",
        "pps",
        Query(moved(LOST[0], SWITCH_PORT), "group {{priority_group}}", proof="pfc-storm"),
        Query(moved(LOST[1], SWITCH_PORT), "whole port", proof="lossy"),
        *(
            Query(still(name, SWITCH_PORT), f"none {said}", instead=True)
            for name, said in zip(LOST, ("in any group", "on the port"), strict=True)
        ),
        empty="This switch does not count them",
    ),
    lines(
        "Buffer pools of the whole switch",
        f"All ports share them. {SINCE}\n\n"
        + reported("roce_switch_pool_watermark_bytes", "roce_switch_pool_headroom_watermark_bytes"),
        "bytes",
        Query(f"max by (pool) ({now('roce_switch_pool_watermark_bytes', f'{WINDOWS},{SWITCH}')})", "{{pool}}"),
        Query(f"max by (pool) ({now('roce_switch_pool_headroom_watermark_bytes', f'{WINDOWS},{SWITCH}')})", "{{pool}} headroom"),
        empty=only("roce_switch_pool_watermark_bytes"),
    ),
)  # fmt: skip
