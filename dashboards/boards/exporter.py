"""Exporter: what is not measured here, the cost of every exporter, and one exporter in detail.

What is of all hosts is recorded or one series per host; all else is of the host that is chosen.
"""

from __future__ import annotations

from boards.colours import GOOD, SEVERITY, WARNING
from boards.limits import MEDIUM, OVERRUN, WIRE_DROPS, steps
from boards.measures import growth, meanings, moved, now, quantile, rate, seen
from boards.model import Board, Query, Row, cell, nothing
from boards.panels import BARS, by_name, lines, number, states
from boards.rules import MISSING, MISSING_HOSTS
from boards.scopes import CLUSTER, FLEET, HOST, OF_ONE, alerts, to_exporter, to_host
from boards.tables import graded, table
from roce_exporter.catalog.row import MetricSet

FIELDS = ("cluster", "job", "instance")
SOME = steps((1, SEVERITY[WARNING]))
late, missed, ticks = (
    f"roce_exporter_sampler_{what}_total" for what in ("late_ticks", "missed_ticks", "ticks")
)


def _worst(expression: str) -> str:
    """The ten highest hosts in the range shown."""
    return f"{expression} and topk(10, max_over_time(({expression})[$__range:] @ end()))"


CAPTURED = rate("roce_wire_capture_frames_total", CLUSTER, MEDIUM)
HEALTH_PANELS = (
    number(
        "Exporters down",
        "Targets that do not respond. Their data is missing on every dashboard.",
        "none",
        Query(f"count(up{{{FLEET}}} == 0) or 0 * count(up{{{FLEET}}})"),
        limits=SOME,
        empty="No targets",
    ),
    number(
        "Hosts not measured completely",
        "Hosts of *What is not measured*.",
        "none",
        Query(f"count(count by ({', '.join(FIELDS)}) ({MISSING}{{{FLEET}}})) or 0 * count(up{{{FLEET}}})"),
        limits=SOME,
        empty="No targets",
    ),
    states(
        "Hosts over time",
        "Hosts that did not respond at some time in the range shown, at most 15.",
        {0: ("no response", SEVERITY[WARNING]), 1: ("responds", GOOD)},
        Query(
            f"up{{{FLEET}}} and topk(15, 1 - min_over_time(up{{{FLEET}}}[$__range] @ end())) > 0",
            "{{instance}}",
            proof="silent",
        ),
        ever=f"topk(1, 1 - min_over_time(up{{{FLEET}}}[$__range] @ end())) > 0",
        nothing=("every host", "always responded", GOOD),
        width=16,
        height=3,
    ),
    table(
        "What is not measured",
        "By number of hosts. No panel and no alert can show what is listed here: without it a green dashboard proves nothing.\n\n"
        + meanings("roce_exporter_source_up", "roce_pfc_storm_unknown", "roce_exporter_unreadable_values", "roce_exporter_ports_without_netdev"),
        ("what", "Value"),
        cell(f"topk(50, sum by (what) ({MISSING_HOSTS}{{{FLEET}}}))"),
        names={"Value": "hosts"},
        sort="Value",
        overrides=(graded("hosts", "none", SOME),),
        width=10,
        height=9,
        empty="Everything is measured on every host",
        proof="broken",
    ),
    table(
        "Where",
        "Hosts and the number of ports, values or files that are missing there, at most 100. Click a host to see it below.",
        ("what", *FIELDS, "Value"),
        cell(f"topk(100, {MISSING}{{{FLEET}}})"),
        names={"Value": "number"},
        sort="Value",
        overrides=(by_name("instance", ("links", [to_exporter(), to_host()])),),
        width=14,
        height=9,
        empty="Everything is measured on every host",
        proof="broken",
    ),
    table(
        "Captures of packets",
        "Frames that each capture on a mirror port loses: what it counts is too low by them.\n\n" + meanings("roce_wire_capture_dropped_frames_total"),
        (*FIELDS, "Value #A", "Value #B"),
        *(cell(f"sum by ({', '.join(FIELDS)}) ({expression})") for expression in (
            CAPTURED,
            f"{rate('roce_wire_capture_dropped_frames_total', CLUSTER, MEDIUM)} / ({CAPTURED} > 0)",
        )),
        nothing("instance", "no capture: see docs/wire.md", CAPTURED),
        names={"Value #A": "frames/s", "Value #B": "lost"},
        wide="instance",
        joined=True,
        overrides=(by_name("frames/s", ("unit", "pps")), graded("lost", "percentunit", steps(WIRE_DROPS)), by_name("lost", ("custom.width", 100))),
        width=10,
        height=6,
        empty="No capture is scraped in this cluster: see docs/wire.md",
        proof="lossy",
    ),
    table(
        "Exporters by version",
        "Hosts by version of the exporter and of Python.",
        ("cluster", "version", "python", "Value"),
        cell(f"count by (cluster, version, python) (roce_exporter_build_info{{{FLEET}}})"),
        names={"Value": "hosts"},
        sort="Value",
        width=14,
        height=6,
        empty="No exporter responds",
    ),
)  # fmt: skip

COST_PANELS = (
    lines(
        "Scrape duration",
        "The ten slowest hosts of the range, as measured by Prometheus.",
        "s",
        Query(_worst(f"scrape_duration_seconds{{{FLEET}}}"), "{{instance}}"),
        empty="No targets",
    ),
    lines(
        "Collection duration",
        f"The ten slowest hosts: duration of all reads together.\n\n{meanings('roce_exporter_collection_duration_seconds')}",
        "s",
        Query(_worst(now("roce_exporter_collection_duration_seconds", FLEET)), "{{instance}}"),
        empty="No exporter responds",
    ),
    lines(
        "CPU time",
        "The ten busiest exporters, in CPUs.",
        "percentunit",
        Query(_worst(f"rate(process_cpu_seconds_total{{{FLEET}}}[$__rate_interval])"), "{{instance}}"),
        width=8,
        empty="No exporter responds",
    ),
    lines(
        "Memory",
        "The ten largest exporters.",
        "bytes",
        Query(_worst(f"process_resident_memory_bytes{{{FLEET}}}"), "{{instance}}"),
        width=8,
        empty="No exporter responds",
    ),
    lines(
        "Samples per scrape",
        "The ten hosts with the most series. A step up: a device was added, or a driver has more counters.",
        "none",
        Query(_worst(f"scrape_samples_scraped{{{FLEET}}}"), "{{instance}}"),
        width=8,
        empty="No targets",
    ),
)


def _rate_of_host(name: str) -> str:
    return f"sum by (cluster, job, instance) ({rate(name, HOST)})"


# a counter that has always been 0 may have no series
overrun = f"({_rate_of_host(late)} or 0 * {_rate_of_host(ticks)}) + ({_rate_of_host(missed)} or 0 * {_rate_of_host(ticks)})"
overrun = f"({overrun}) / ({_rate_of_host(ticks)} > 0)"

ONE_PANELS = (
    lines(
        "Read errors",
        f"Values per second that could not be read, by kind of source.\n\n{meanings('roce_exporter_read_errors_total')}",
        "cps",
        Query(f"sum by (source) ({moved('roce_exporter_read_errors_total', HOST)})", "{{source}}"),
        empty="No read fails",
        proof="broken",
    ),
    lines(
        "Slowest sources",
        f"By kind of source, the slowest device anywhere.\n\n{meanings('roce_exporter_source_duration_seconds')}",
        "s",
        Query(f"max by (source) ({now('roce_exporter_source_duration_seconds', HOST)})", "{{source}}"),
        empty="No exporter responds",
    ),
    lines(
        "Polls of the fast loop",
        f"Duration of a poll of a network device, all hosts.\n\n{meanings('roce_exporter_sampler_read_duration_seconds')}",
        "s",
        *(
            Query(
                quantile(share, "roce_exporter_sampler_read_duration_seconds", HOST),
                f"{share:.0%} are faster",
            )
            for share in (0.5, 0.99)
        ),
        empty="The fast loop is off",
    ),
    lines(
        "Polls late or missed",
        f"Share of polls. Storms are detected later. Dashed: alert limit.\n\n{meanings(late, missed)}",
        "percentunit",
        Query(overrun, "{{instance}}"),
        limits=steps(OVERRUN),
        width=8,
        empty="The fast loop is off",
    ),
    lines(
        "Polls per second",
        f"Ten per second and port while there is pause, otherwise one.\n\n{meanings(ticks)}",
        "cps",
        Query(_rate_of_host(ticks), "{{instance}}"),
        width=8,
        empty="The fast loop is off",
    ),
    lines(
        "Failed polls",
        f"Per interval.\n\n{meanings('roce_exporter_sampler_errors_total')}",
        "none",
        Query(
            f"sum by (instance) (round({growth('roce_exporter_sampler_errors_total', HOST)})) and sum by (instance) ({seen('roce_exporter_sampler_errors_total', HOST)})",
            "{{instance}}",
        ),
        custom=BARS,
        width=8,
        empty="No poll failed",
        proof="broken",
    ),
)

BOARD = Board(
    "roce-exporter",
    "RoCE / Exporter",
    "Can a green dashboard be believed: what is not measured, on which hosts, and the exporters' own health and cost.",
    OF_ONE,
    (
        Row("Now", "can a green dashboard be believed? What is missing here is missing everywhere", HEALTH_PANELS),
        Row("One exporter", "late polls detect storms late; a slow source delays the scrape", ONE_PANELS),
        Row("Cost", "a host far above the others has a device that responds slowly", COST_PANELS),
    ),
    (alerts(HOST),),
    metric_set=MetricSet.STANDARD,
)  # fmt: skip
