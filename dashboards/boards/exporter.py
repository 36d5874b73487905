"""Exporter: its own health, cost and blind spots."""

from __future__ import annotations

from boards.colours import GOOD, SEVERITY
from boards.limits import ALERTS, step, steps
from boards.measures import growth, meanings, moved, now, quantile, rate, seen
from boards.model import Board, Query, Row
from boards.panels import BARS, by_name, lines, number, states
from boards.scopes import HOST, OF_HOSTS, alerts_of_many, to_host
from boards.tables import table

DOWN = steps((1, SEVERITY[ALERTS["RoceExporterDown"]["severity"]]))
FIELDS = ("cluster", "job", "instance")
LINKS = (by_name("instance", ("links", [to_host()])),)


def _worst(expression: str) -> str:
    """Of many hosts the ten that matter in the range shown."""
    return f"{expression} and topk(10, max_over_time(({expression})[$__range:] @ end()))"


HEALTH_PANELS = (
    number(
        "Exporters down",
        "Targets that do not answer. What is missing here is missing on every board.",
        "none",
        Query(f"count(up{{{HOST}}} == 0) or 0 * count(up{{{HOST}}})"),
        limits=DOWN,
        width=6,
        empty="No target",
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
        empty="No answer",
    ),
    number(
        "Values missing",
        meanings("roce_exporter_unreadable_values"),
        "none",
        Query(f"sum({now('roce_exporter_unreadable_values', HOST)})"),
        limits=steps((1, SEVERITY["ticket"])),
        width=6,
        empty="No answer",
    ),
    number(
        "Polls that hang",
        meanings("roce_exporter_sampler_stuck"),
        "none",
        Query(f"sum({now('roce_exporter_sampler_stuck', HOST)})"),
        limits=steps((1, SEVERITY[ALERTS["RoceSamplerStuck"]["severity"]])),
        width=6,
        empty="Loop is off",
    ),
    states(
        "Hosts over time",
        "Hosts that did not answer at some time in the range shown, 15 at most.",
        {0: ("no answer", SEVERITY["ticket"]), 1: ("answers", GOOD)},
        Query(
            f"up{{{HOST}}} and topk(15, 1 - min_over_time(up{{{HOST}}}[$__range] @ end())) > 0",
            "{{instance}}",
            proof="silent",
        ),
        ever=f"topk(1, 1 - min_over_time(up{{{HOST}}}[$__range] @ end())) > 0",
        nothing=("every host", "answered throughout", GOOD),
        width=12,
        height=8,
    ),
    table(
        "Sources that cannot be read",
        "50 at most. Their series are missing; the exporter's log names the error.",
        (*FIELDS, "device", "netdev", "source"),
        Query(f"topk(50, {now('roce_exporter_source_up', HOST)} == 0)", form="table", instant=True),
        overrides=LINKS,
        concealed=("cluster", "job"),
        wide="instance",
        height=8,
        empty="Every source answers",
        proof="broken",
    ),
    table(
        "What the storm detector cannot judge",
        f"Lossless priorities that it could not judge at some time in the range shown, 50 at most.\n\n{meanings('roce_pfc_storm_unknown')}",
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
        empty="Every lossless priority is judged",
        proof="broken",
    ),
    table(
        "Values that cannot be read",
        f"The 50 worst devices.\n\n{meanings('roce_exporter_unreadable_values')}",
        (*FIELDS, "device", "source", "Value"),
        Query(f"topk(50, {now('roce_exporter_unreadable_values', HOST)} > 0)", form="table", instant=True),
        names={"Value": "values"},
        overrides=LINKS,
        concealed=("cluster", "job"),
        wide="instance",
        width=10,
        empty="Every value can be read",
        proof="broken",
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
    lines(
        "Polls of the fast loop",
        f"How long a poll of a network device took, all hosts.\n\n{meanings('roce_exporter_sampler_read_duration_seconds')}",
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
        "Polls late or missed",
        f"Share of the polls; the ten worst hosts. Storms are found later. Dashed: the alert's limit.\n\n{meanings(late, missed)}",
        "percentunit",
        Query(_worst(overrun), "{{instance}}"),
        limits=steps(step("RoceSamplerOverrun")),
        width=8,
        empty="The fast loop is off",
    ),
    lines(
        "Polls per second",
        f"By host, the ten busiest. Ten per second and port while there is pause, else one.\n\n{meanings(ticks)}",
        "cps",
        Query(_worst(f"sum by (cluster, job, instance) ({rate(ticks, HOST)})"), "{{instance}}"),
        width=8,
        empty="The fast loop is off",
    ),
    lines(
        "Polls that failed",
        f"In each interval.\n\n{meanings('roce_exporter_sampler_errors_total')}",
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
        f"Values per second that should have been there, by kind of source.\n\n{meanings('roce_exporter_read_errors_total')}",
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
        empty="No exporter answers",
    ),
    lines(
        "Files left alone",
        f"The ten worst hosts.\n\n{meanings('roce_exporter_quarantined_files')}",
        "none",
        Query(
            _worst(f"sum by (instance) ({now('roce_exporter_quarantined_files', HOST)} > 0)"),
            "{{instance}}",
        ),
        width=8,
        empty="No file is left alone",
        proof="broken",
    ),
    lines(
        "Raw names without a metric",
        f"Counters of newer drivers that no metric shows yet.\n\n{meanings('roce_exporter_unmapped_names')}",
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
        empty="Every port's network device is seen",
        proof="sick",
    ),
)

BOARD = Board(
    "roce-exporter",
    "RoCE / Exporter",
    "Can I trust what I see: the exporter's own health, its blind spots, and what it costs.",
    OF_HOSTS,
    (
        Row("Now", "can I trust what I see? What is missing here is missing on every board", HEALTH_PANELS),
        Row("Blind spots", "no other panel and no alert can show what is listed here", BLIND_PANELS),
        Row("Fast loop", "it finds storms between two scrapes; late polls find them late", LOOP_PANELS),
        Row("Cost", "a host far above the others has a device that answers slowly", COST_PANELS),
    ),
    (alerts_of_many(HOST),),
)
