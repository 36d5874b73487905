"""Exporter: its own health, cost and blind spots."""

from __future__ import annotations

from boards.colours import GOOD, SEVERITY, UNKNOWN
from boards.limits import ALERTS, step, steps
from boards.measures import buckets, growth, meanings, now, rate
from boards.model import Board, Query, Row
from boards.panels import BARS, by_name, heat, hidden, lines, number, states, table
from boards.scopes import HOST, OF_HOSTS, alerts, to_host

DOWN = steps((1, SEVERITY[ALERTS["RoceExporterDown"]["severity"]]))
FIELDS = ("cluster", "job", "instance")
LINKS = (by_name("instance", ("links", [to_host()])), hidden("job"))


def _worst(expression: str) -> str:
    """Of many hosts the ten that matter in the range shown."""
    return f"{expression} and topk(10, max_over_time(({expression})[$__range:] @ end()))"


HEALTH_PANELS = (
    number(
        "Exporters",
        "Targets that Prometheus scrapes.",
        "none",
        Query(f"count(up{{{HOST}}} == 1)", "up"),
        width=3,
        empty="No target",
        graph=False,
    ),
    number(
        "Down",
        "Targets that do not answer.",
        "none",
        Query(f"count(up{{{HOST}}} == 0) or 0 * count(up{{{HOST}}})"),
        limits=DOWN,
        width=3,
        empty="No target",
    ),
    number(
        "Devices",
        meanings("roce_exporter_devices"),
        "none",
        Query(f"sum({now('roce_exporter_devices', HOST)})"),
        width=3,
        empty="No exporter answers",
    ),
    number(
        "Sources broken",
        "Sources of devices that failed in the latest collection.\n\n" + meanings("roce_exporter_source_up"),
        "none",
        Query(
            f"count({now('roce_exporter_source_up', HOST)} == 0) or 0 * count({now('roce_exporter_source_up', HOST)})"
        ),
        limits=steps((1, SEVERITY[ALERTS["RoceSourceBroken"]["severity"]])),
        width=3,
        empty="No exporter answers",
    ),
    number(
        "Values missing",
        meanings("roce_exporter_unreadable_values"),
        "none",
        Query(f"sum({now('roce_exporter_unreadable_values', HOST)})"),
        limits=steps((1, UNKNOWN)),
        width=3,
        empty="No exporter answers",
    ),
    number(
        "Slowest scrape",
        "As Prometheus measured it; far below the scrape timeout, or hosts go missing.",
        "s",
        Query(f"max(scrape_duration_seconds{{{HOST}}})"),
        width=3,
        empty="No target",
    ),
    number(
        "Series per host",
        "The average, as Prometheus counted samples: what storage costs.",
        "none",
        Query(f"avg(scrape_samples_scraped{{{HOST}}})"),
        width=3,
        empty="No target",
    ),
    number(
        "Versions",
        "Different versions of the exporter that run.",
        "none",
        Query(f"count(count by (version) (roce_exporter_build_info{{{HOST}}}))"),
        limits=steps((2, SEVERITY["info"])),
        width=3,
        graph=False,
        empty="No exporter answers",
    ),
    states(
        "Hosts over time",
        "Hosts that did not answer at some time in the range shown, 30 at most.",
        {0: ("no answer", "red"), 1: ("answers", GOOD)},
        Query(
            f"up{{{HOST}}} and topk(30, 1 - min_over_time(up{{{HOST}}}[$__range] @ end())) > 0",
            "{{instance}}",
        ),
        width=12,
        height=7,
        empty="All hosts answered throughout",
        proof="silent",
    ),
    table(
        "Exporters by version",
        "Exporters by version and Python.",
        ("cluster", "version", "python", "Value"),
        Query(
            f"count by (cluster, version, python) (roce_exporter_build_info{{{HOST}}})",
            form="table",
            instant=True,
        ),
        names={"Value": "hosts"},
        sort="Value",
        width=12,
        height=7,
        empty="No exporter answers",
    ),
)

COST_PANELS = (
    lines(
        "Scrape duration",
        "The ten slowest hosts of the range, as Prometheus measured.",
        "s",
        Query(_worst(f"scrape_duration_seconds{{{HOST}}}"), "{{instance}}"),
        empty="No target",
    ),
    lines(
        "Collection duration",
        f"The ten slowest hosts: how long all reads took.\n\n{meanings('roce_exporter_collection_duration_seconds')}",
        "s",
        Query(_worst(now("roce_exporter_collection_duration_seconds", HOST)), "{{instance}}"),
        empty="No exporter answers",
    ),
    lines(
        "Slowest sources",
        f"By kind of source, the slowest device anywhere.\n\n{meanings('roce_exporter_source_duration_seconds')}",
        "s",
        Query(f"max by (source) ({now('roce_exporter_source_duration_seconds', HOST)})", "{{source}}"),
        empty="No exporter answers",
    ),
    heat(
        "Looks of the fast loop",
        f"How long a look at a network device took, all hosts.\n\n{meanings('roce_exporter_sampler_read_duration_seconds')}",
        "s",
        Query(buckets("roce_exporter_sampler_read_duration_seconds", HOST), "{{le}}", form="heatmap"),
        empty="The fast loop is off",
    ),
    lines(
        "CPU time",
        "The ten busiest exporters, in CPUs.",
        "percentunit",
        Query(_worst(f"rate(process_cpu_seconds_total{{{HOST}}}[$__rate_interval])"), "{{instance}}"),
        width=8,
        empty="No exporter answers",
    ),
    lines(
        "Memory",
        "The ten largest exporters.",
        "bytes",
        Query(_worst(f"process_resident_memory_bytes{{{HOST}}}"), "{{instance}}"),
        width=8,
        empty="No exporter answers",
    ),
    lines(
        "Samples per scrape",
        "The ten hosts with most series. A step: a device came, or a driver grew counters.",
        "none",
        Query(_worst(f"scrape_samples_scraped{{{HOST}}}"), "{{instance}}"),
        width=8,
        empty="No target",
    ),
)

late, missed, ticks = (
    f"roce_exporter_sampler_{what}_total" for what in ("late_ticks", "missed_ticks", "ticks")
)

overrun = f"(sum by (cluster, job, instance) ({rate(late, HOST)}) + sum by (cluster, job, instance) ({rate(missed, HOST)})) / (sum by (cluster, job, instance) ({rate(ticks, HOST)}) > 0)"

LOOP_PANELS = (
    lines(
        "Looks late or missed",
        f"Share of the looks; the ten worst hosts. Storms are found later. Dashed: the alert's limit.\n\n{meanings(late, missed)}",
        "percentunit",
        Query(_worst(overrun), "{{instance}}"),
        limits=steps(step("RoceSamplerOverrun")),
        width=7,
        empty="The fast loop is off",
    ),
    lines(
        "Looks per second",
        f"By host, the ten busiest. Ten per second and port while there is pause, else one.\n\n{meanings(ticks)}",
        "cps",
        Query(_worst(f"sum by (cluster, job, instance) ({rate(ticks, HOST)})"), "{{instance}}"),
        width=7,
        empty="The fast loop is off",
    ),
    number(
        "Looks that hang",
        meanings("roce_exporter_sampler_stuck"),
        "none",
        Query(f"sum({now('roce_exporter_sampler_stuck', HOST)})"),
        limits=steps((1, SEVERITY[ALERTS["RoceSamplerStuck"]["severity"]])),
        width=4,
        height=8,
        empty="The fast loop is off",
    ),
    lines(
        "Looks that failed",
        f"In each interval.\n\n{meanings('roce_exporter_sampler_errors_total')}",
        "none",
        Query(
            f"sum by (instance) (round({growth('roce_exporter_sampler_errors_total', HOST)})) > 0",
            "{{instance}} failed",
        ),
        custom=BARS,
        width=6,
        empty="No look failed",
        proof="broken",
    ),
)

BLIND_PANELS = (
    table(
        "Sources that cannot be read",
        "50 at most. Their series are missing; the exporter's log names the error.",
        (*FIELDS, "device", "netdev", "source"),
        Query(f"topk(50, {now('roce_exporter_source_up', HOST)} == 0)", form="table", instant=True),
        overrides=LINKS,
        empty="Every source answers",
        proof="broken",
    ),
    table(
        "Values that cannot be read",
        f"The 50 worst devices.\n\n{meanings('roce_exporter_unreadable_values')}",
        (*FIELDS, "device", "netdev", "source", "Value"),
        Query(f"topk(50, {now('roce_exporter_unreadable_values', HOST)} > 0)", form="table", instant=True),
        names={"Value": "values"},
        overrides=LINKS,
        empty="Every value can be read",
        proof="broken",
    ),
    lines(
        "Read errors",
        f"Values per second that should have been there, by kind of source.\n\n{meanings('roce_exporter_read_errors_total')}",
        "cps",
        Query(f"sum by (source) ({rate('roce_exporter_read_errors_total', HOST)}) > 0", "{{source}}"),
        empty="No read fails",
        proof="broken",
    ),
    table(
        "What the storm detector cannot judge",
        f"Lossless priorities that it could not judge at some time in the range shown, 50 at most.\n\n{meanings('roce_pfc_storm_unknown')}",
        (*FIELDS, "device", "netdev", "priority", "direction", "reason"),
        Query(
            f"topk(50, max_over_time({now('roce_pfc_storm_unknown', HOST)}[$__range]) == 1 and ignoring (direction, reason) {now('roce_pfc_enabled', HOST)} == 1)",
            form="table",
            instant=True,
        ),
        overrides=LINKS,
        empty="Every lossless priority is judged",
        proof="broken",
    ),
    lines(
        "Files left alone",
        f"The ten worst hosts.\n\n{meanings('roce_exporter_quarantined_files')}",
        "none",
        Query(
            f"topk(10, sum by (instance) ({now('roce_exporter_quarantined_files', HOST)})) > 0",
            "{{instance}}",
        ),
        width=8,
        empty="No file is left alone",
        proof="broken",
    ),
    lines(
        "Raw names nobody knows",
        f"Counters of newer drivers that no metric shows yet.\n\n{meanings('roce_exporter_unmapped_names')}",
        "none",
        Query(
            f"topk(10, sum by (instance) ({now('roce_exporter_unmapped_names', HOST)})) > 0", "{{instance}}"
        ),
        width=8,
        empty="Every raw name has a metric",
        proof="unknown",
    ),
    table(
        "Ports whose network device is hidden",
        meanings("roce_exporter_ports_without_netdev"),
        (*FIELDS, "Value"),
        Query(f"topk(50, {now('roce_exporter_ports_without_netdev', HOST)} > 0)", form="table", instant=True),
        names={"Value": "ports"},
        overrides=LINKS,
        width=8,
        empty="Every port's network device is seen",
        proof="sick",
    ),
)

BOARD = Board(
    "roce-exporter",
    "RoCE / Exporter",
    "The exporter's own health, what it costs, and what it does not see.",
    OF_HOSTS,
    (
        Row("Health", "", HEALTH_PANELS),
        Row(
            "Cost",
            "**A scrape costs a few milliseconds of CPU**; what takes long is firmware that answers slowly. A host far above the others has a sick device.",
            COST_PANELS,
        ),
        Row(
            "Fast loop",
            "**The loop that finds storms between two scrapes.** Late looks find storms late; a look that hangs finds none.",
            LOOP_PANELS,
        ),
        Row(
            "Blind spots",
            "**What is missing here is missing everywhere**: no other panel and no alert can show it.",
            BLIND_PANELS,
        ),
    ),
    (alerts(HOST),),
)
