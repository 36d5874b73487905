"""Exporter: its own health, cost and missing data."""

from __future__ import annotations

from boards.colours import GOOD, SEVERITY
from boards.limits import ALERTS, step, steps
from boards.measures import growth, meanings, moved, now, quantile, rate, seen
from boards.model import Board, Query, Row
from boards.panels import BARS, by_name, lines, number, states
from boards.scopes import HOST, OF_HOSTS, alerts_of_many, to_host
from boards.tables import table
from roce_exporter.catalog.row import MetricSet

DOWN = steps((1, SEVERITY[ALERTS["RoceExporterDown"]["severity"]]))
FIELDS = ("cluster", "job", "instance")
LINKS = (by_name("instance", ("links", [to_host()])),)
OF_DEVICES = (*LINKS, *(by_name(name, ("noValue", "all ports")) for name in ("device", "netdev")))
"""A source that belongs to the whole host has no device."""
late, missed, ticks = (
    f"roce_exporter_sampler_{what}_total" for what in ("late_ticks", "missed_ticks", "ticks")
)


def _worst(expression: str) -> str:
    """The ten highest hosts in the range shown."""
    return f"{expression} and topk(10, max_over_time(({expression})[$__range:] @ end()))"


HEALTH_PANELS = (
    number(
        "Exporters down",
        "Targets that do not respond. Their data is missing on every dashboard.",
        "none",
        Query(f"count(up{{{HOST}}} == 0) or 0 * count(up{{{HOST}}})"),
        limits=DOWN,
        width=6,
        empty="No targets",
    ),
    number(
        "Sources broken",
        "Sources of devices that failed in the latest collection.\n\n" + meanings("roce_exporter_source_up"),
        "none",
        Query(
            f"count({now('roce_exporter_source_up', HOST)} == 0) or 0 * count({now('roce_exporter_source_up', HOST)})"
        ),
        limits=steps((1, SEVERITY[ALERTS["RoceSourceBroken"]["severity"]])),
        width=6,
        empty="No response",
    ),
    number(
        "Values missing",
        meanings("roce_exporter_unreadable_values"),
        "none",
        Query(
            f"sum({now('roce_exporter_unreadable_values', HOST)}) or 0 * sum({now('roce_exporter_devices', HOST)})"
        ),
        limits=steps((1, SEVERITY["ticket"])),
        width=6,
        empty="No response",
    ),
    number(
        "Stuck polls",
        meanings("roce_exporter_sampler_stuck"),
        "none",
        Query(f"sum({now('roce_exporter_sampler_stuck', HOST)}) or 0 * sum({rate(ticks, HOST)})"),
        limits=steps((1, SEVERITY[ALERTS["RoceSamplerStuck"]["severity"]])),
        width=6,
        empty="Loop is off",
    ),
    states(
        "Hosts over time",
        "Hosts that did not respond at some time in the range shown, at most 15.",
        {0: ("no response", SEVERITY["ticket"]), 1: ("responds", GOOD)},
        Query(
            f"up{{{HOST}}} and topk(15, 1 - min_over_time(up{{{HOST}}}[$__range] @ end())) > 0",
            "{{instance}}",
            proof="silent",
        ),
        ever=f"topk(1, 1 - min_over_time(up{{{HOST}}}[$__range] @ end())) > 0",
        nothing=("every host", "always responded", GOOD),
        width=12,
        height=8,
    ),
    table(
        "Sources that cannot be read",
        "At most 50. Their series are missing; the exporter's log has the error.",
        (*FIELDS, "device", "netdev", "source"),
        Query(f"topk(50, {now('roce_exporter_source_up', HOST)} == 0)", form="table", instant=True),
        overrides=OF_DEVICES,
        concealed=("cluster", "job"),
        wide="instance",
        height=8,
        empty="All sources can be read",
        proof="broken",
    ),
    table(
        "Priorities not judged for storms",
        f"Lossless priorities that the storm detector could not judge at some time in the range shown, at most 50.\n\n{meanings('roce_pfc_storm_unknown')}",
        (*FIELDS, "device", "priority", "direction", "reason"),
        Query(
            f"topk(50, max_over_time({now('roce_pfc_storm_unknown', HOST)}[$__range]) == 1 and ignoring (direction, reason) {now('roce_pfc_enabled', HOST)} == 1)",
            form="table",
            instant=True,
        ),
        overrides=LINKS,
        concealed=("cluster", "job"),
        wide="instance",
        width=14,
        empty="All lossless priorities are judged",
        proof="broken",
    ),
    table(
        "Values that cannot be read",
        f"The 50 worst devices.\n\n{meanings('roce_exporter_unreadable_values')}",
        (*FIELDS, "device", "source", "Value"),
        Query(f"topk(50, {now('roce_exporter_unreadable_values', HOST)} > 0)", form="table", instant=True),
        names={"Value": "values"},
        overrides=OF_DEVICES,
        concealed=("cluster", "job"),
        wide="instance",
        width=10,
        empty="All values can be read",
        proof="broken",
    ),
)

COST_PANELS = (
    lines(
        "Scrape duration",
        "The ten slowest hosts of the range, as measured by Prometheus.",
        "s",
        Query(_worst(f"scrape_duration_seconds{{{HOST}}}"), "{{instance}}"),
        empty="No targets",
    ),
    lines(
        "Collection duration",
        f"The ten slowest hosts: duration of all reads together.\n\n{meanings('roce_exporter_collection_duration_seconds')}",
        "s",
        Query(_worst(now("roce_exporter_collection_duration_seconds", HOST)), "{{instance}}"),
        empty="No exporter responds",
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
        "CPU time",
        "The ten busiest exporters, in CPUs.",
        "percentunit",
        Query(_worst(f"rate(process_cpu_seconds_total{{{HOST}}}[$__rate_interval])"), "{{instance}}"),
        width=8,
        empty="No exporter responds",
    ),
    lines(
        "Memory",
        "The ten largest exporters.",
        "bytes",
        Query(_worst(f"process_resident_memory_bytes{{{HOST}}}"), "{{instance}}"),
        width=8,
        empty="No exporter responds",
    ),
    lines(
        "Samples per scrape",
        "The ten hosts with the most series. A step up: a device was added, or a driver has more counters.",
        "none",
        Query(_worst(f"scrape_samples_scraped{{{HOST}}}"), "{{instance}}"),
        width=8,
        empty="No targets",
    ),
)


def _rate_of_host(name: str) -> str:
    return f"sum by (cluster, job, instance) ({rate(name, HOST)})"


# a counter that has always been 0 may have no series
overrun = f"({_rate_of_host(late)} or 0 * {_rate_of_host(ticks)}) + ({_rate_of_host(missed)} or 0 * {_rate_of_host(ticks)})"
overrun = f"({overrun}) / ({_rate_of_host(ticks)} > 0)"

LOOP_PANELS = (
    lines(
        "Polls late or missed",
        f"Share of polls; the ten worst hosts. Storms are detected later. Dashed: alert limit.\n\n{meanings(late, missed)}",
        "percentunit",
        Query(_worst(overrun), "{{instance}}"),
        limits=steps(step("RoceSamplerOverrun")),
        width=8,
        empty="The fast loop is off",
    ),
    lines(
        "Polls per second",
        f"By host, the ten busiest. Ten per second and port while there is pause, otherwise one.\n\n{meanings(ticks)}",
        "cps",
        Query(_worst(_rate_of_host(ticks)), "{{instance}}"),
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

BLIND_PANELS = (
    lines(
        "Read errors",
        f"Values per second that could not be read, by kind of source.\n\n{meanings('roce_exporter_read_errors_total')}",
        "cps",
        Query(f"sum by (source) ({moved('roce_exporter_read_errors_total', HOST)})", "{{source}}"),
        width=12,
        empty="No read fails",
        proof="broken",
    ),
    table(
        "Exporters by version",
        "Hosts by version of the exporter and of Python.",
        ("cluster", "version", "python", "Value"),
        Query(
            f"count by (cluster, version, python) (roce_exporter_build_info{{{HOST}}})",
            form="table",
            instant=True,
        ),
        names={"Value": "hosts"},
        sort="Value",
        empty="No exporter responds",
    ),
    lines(
        "Quarantined files",
        f"The ten worst hosts.\n\n{meanings('roce_exporter_quarantined_files')}",
        "none",
        Query(
            _worst(f"sum by (instance) ({now('roce_exporter_quarantined_files', HOST)} > 0)"),
            "{{instance}}",
        ),
        width=8,
        empty="No files are quarantined",
        proof="broken",
    ),
    lines(
        "Raw names without a metric",
        f"Counters of newer drivers that do not have a metric yet.\n\n{meanings('roce_exporter_unmapped_names')}",
        "none",
        Query(_worst(f"sum by (instance) ({now('roce_exporter_unmapped_names', HOST)} > 0)"), "{{instance}}"),
        width=8,
        empty="Every raw name has a metric",
        proof="unknown",
    ),
    table(
        "Hidden network devices",
        meanings("roce_exporter_ports_without_netdev"),
        (*FIELDS, "Value"),
        Query(f"topk(50, {now('roce_exporter_ports_without_netdev', HOST)} > 0)", form="table", instant=True),
        names={"Value": "ports"},
        overrides=LINKS,
        width=8,
        concealed=("cluster", "job"),
        wide="instance",
        empty="The network devices of all ports are visible",
        proof="sick",
    ),
)

BOARD = Board(
    "roce-exporter",
    "RoCE / Exporter",
    "Can I trust the data: the exporter's own health, missing data, and cost.",
    OF_HOSTS,
    (
        Row("Now", "can I trust the data? Data missing here is missing on every dashboard", HEALTH_PANELS),
        Row("Missing data", "no other panel and no alert can show the items listed here", BLIND_PANELS),
        Row("Fast loop", "it detects storms between two scrapes; late polls detect them late", LOOP_PANELS),
        Row("Cost", "a host far above the others has a device that responds slowly", COST_PANELS),
    ),
    (alerts_of_many(HOST),),
    metric_set=MetricSet.STANDARD,
)
