"""What a Prometheus reports about itself at the end of a run, and the table of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet_queries import Api

WARM = 60
"""Seconds at the start that do not count: every series is new."""

EXPRESSIONS = {
    "samples_per_scrape": 'avg(scrape_samples_scraped{job="roce"})',
    "scrapes": 'sum(count_over_time(up{job="roce"}[WINDOW]))',
    "scrapes_failed": 'sum(count_over_time(up{job="roce"}[WINDOW])) - sum(sum_over_time(up{job="roce"}[WINDOW]))',
    "hosts": 'count(up{job="roce"})',
    "hosts_with_a_gap": 'count(count_over_time(up{job="roce"}[WINDOW]) < EXPECTED) or vector(0)',
    "scrape_seconds_p99": 'quantile(0.99, quantile_over_time(0.99, scrape_duration_seconds{job="roce"}[WINDOW]))',
    "scrape_seconds_most": 'max(max_over_time(scrape_duration_seconds{job="roce"}[WINDOW]))',
    "scrape_interval_p99": 'max(prometheus_target_interval_length_seconds{quantile="0.99"})',
    "scrape_interval_p01": 'min(prometheus_target_interval_length_seconds{quantile="0.01"})',
    "samples_refused": "sum(prometheus_target_scrapes_exceeded_sample_limit_total)"
    " + sum(prometheus_target_scrapes_exceeded_body_size_limit_total)"
    " + sum(prometheus_target_scrapes_sample_out_of_order_total)"
    " + sum(prometheus_target_scrapes_sample_out_of_bounds_total)"
    " + sum(prometheus_target_scrapes_sample_duplicate_timestamp_total)",
    "samples_per_second": "sum(increase(prometheus_tsdb_head_samples_appended_total[WINDOW])) / SECONDS",
    "rules": "sum(prometheus_rule_group_rules)",
    "groups": "count(prometheus_rule_group_rules)",
    "iterations": "sum(prometheus_rule_group_iterations_total)",
    "iterations_missed": "sum(prometheus_rule_group_iterations_missed_total)",
    "rule_failures": "sum(prometheus_rule_evaluation_failures_total)",
    "rules_cores": "sum(increase(prometheus_rule_group_duration_seconds_sum[WINDOW])) / SECONDS",
    "alerts_firing": 'count(ALERTS{alertstate="firing"}) or vector(0)',
    "alerts_pending": 'count(ALERTS{alertstate="pending"}) or vector(0)',
    "notifications_dropped": "sum(prometheus_notifications_dropped_total)",
    "bytes_per_scrape": "sum(increase(fleet_bytes_total[WINDOW])) / sum(increase(fleet_requests_total[WINDOW]))",
    "slowest_group_seconds": "max(max_over_time(prometheus_rule_group_last_duration_seconds[WINDOW]))",
    "largest_share_of_interval": "max(max_over_time(prometheus_rule_group_last_duration_seconds[WINDOW])"
    " / prometheus_rule_group_interval_seconds)",
    "recorded_series": "sum(prometheus_rule_group_last_evaluation_samples)",
    "head_series": "prometheus_tsdb_head_series",
    "head_series_most": "max_over_time(prometheus_tsdb_head_series[WINDOW])",
    "heap_bytes_most": 'max_over_time(go_memstats_heap_inuse_bytes{job="prometheus"}[WINDOW])',
}


@dataclass
class Result:
    """Everything measured in one run; saved as JSON."""

    metric_set: str
    hosts: int
    ports: int
    every: int
    seconds: int
    prometheus: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    aborted: str = ""
    """Why the run ended early; empty: it did not."""
    lasted: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)
    groups: dict[str, float] = field(default_factory=dict)
    """The longest evaluation of each group, in seconds."""
    usage: dict[str, float] = field(default_factory=dict)
    queries: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """The seconds of every response, by dashboard and panel."""
    answered: dict[str, int] = field(default_factory=dict)
    """The number of queries of each dashboard that had a result in the last round."""
    failed_queries: list[str] = field(default_factory=list)
    fired: dict[str, dict[str, int]] = field(default_factory=dict)
    """How often each alert began, by severity."""
    pages: list[str] = field(default_factory=list)
    """The labels of every page."""
    pages_repeated: int = 0
    expected_storm_pages: int = 0
    expected_fabric_pages: int = 0
    disk: dict[str, float] = field(default_factory=dict)
    timeline: list[dict[str, float]] = field(default_factory=list)


def figures(api: Api, every: int, lasted: float) -> dict[str, float]:
    """Prometheus' own figures of the time since `WARM`."""
    scrapes = max(1, int((lasted - WARM) // every) if lasted > 2 * WARM else int(lasted // every // 2))
    window = scrapes * every
    found = {}
    for name, expression in EXPRESSIONS.items():
        text = expression.replace("WINDOW", f"{window * 1000 + every * 500}ms")
        text = text.replace("EXPECTED", str(scrapes))
        found[name] = api.value(text.replace("SECONDS", str(window)))
    return found


def longest_evaluations(api: Api, seconds: int) -> dict[str, float]:
    """The longest evaluation of each group of rules, by name."""
    found = api.values(
        f"max_over_time(prometheus_rule_group_last_duration_seconds[{seconds}s])", "rule_group"
    )
    return {name.rpartition(";")[2]: value for name, value in sorted(found.items())}


def _times(panels: Mapping[str, Sequence[float]]) -> str:
    seconds = [one for times in panels.values() for one in times]
    return f"{statistics.median(seconds):.3f} s, {max(seconds):.2f} s"


def rows(result: Result) -> list[tuple[str, str]]:
    """The lines of the table, for one run."""
    got, used, disk = result.figures, result.usage, result.disk
    ports = result.hosts * result.ports
    pages = dict(result.fired.get("critical", {}))
    sent, fabric = (pages.pop(name, 0) for name in ("RocePfcStorm", "RocePfcStormWithoutCulprit"))
    others = ", ".join(f"{name} {count}" for name, count in pages.items()) or "none"
    return [
        ("hosts, ports each", f"{result.hosts:,}, {result.ports}"),
        ("duration", f"{result.lasted / 60:.0f} min{' (ended: ' + result.aborted + ')' if result.aborted else ''}"),
        ("samples per scrape", f"{got['samples_per_scrape']:,.0f}"),
        ("bytes per scrape, compressed", f"{got['bytes_per_scrape']:,.0f}"),
        ("samples per second, with those of the rules", f"{got['samples_per_second']:,.0f}"),
        ("scrapes, failed, hosts with a gap", f"{got['scrapes']:,.0f}, {got['scrapes_failed']:.0f}, {got['hosts_with_a_gap']:.0f}"),
        ("seconds between scrapes, 1 % and 99 %", f"{got['scrape_interval_p01']:.2f}, {got['scrape_interval_p99']:.2f}"),
        ("duration of a scrape, 99 % and longest", f"{got['scrape_seconds_p99']:.3f} s, {got['scrape_seconds_most']:.2f} s"),
        ("samples refused (limits, order, duplicates)", f"{got['samples_refused']:.0f}"),
        ("rules, groups", f"{got['rules']:.0f}, {got['groups']:.0f}"),
        ("evaluations of groups, missed, failed rules", f"{got['iterations']:,.0f}, {got['iterations_missed']:.0f}, {got['rule_failures']:.0f}"),
        ("seconds of evaluation per second", f"{got['rules_cores']:.2f}"),
        ("per port and 15 s", f"{got['rules_cores'] * 15 / ports * 1000:.3f} ms"),
        ("longest evaluation of a group, share of its interval", f"{got['slowest_group_seconds']:.2f} s, {got['largest_share_of_interval']:.0%}"),
        ("series", f"{got['head_series_most']:,.0f}"),
        ("memory, at most", f"{used['resident_most'] / 2**30:.2f} GiB"),
        ("per series", f"{used['resident_most'] / got['head_series_most']:,.0f} bytes"),
        ("cores of Prometheus", f"{used['prometheus_cores']:.2f}"),
        ("cores of the generator", f"{used['generator_cores']:.3f}"),
        ("cores of everything else on the machine", f"{used['other_cores']:.2f}"),
        ("write-ahead log", f"{disk.get('log_bytes', float('nan')) / 2**30:.2f} GiB"),
        ("per sample in a block, index included", f"{disk.get('bytes_per_sample', float('nan')):.2f} bytes"),
        *(
            (f"queries of {board}, median and longest", _times(panels)) for board, panels in result.queries.items()
        ),
        ("failed queries", f"{len(result.failed_queries)}"),
        ("pages of a sender of a storm, expected", f"{sent}, {result.expected_storm_pages}"),
        ("pages of a fabric, expected", f"{fabric}, {result.expected_fabric_pages}"),
        ("other pages, before inhibition", others),
        ("alerts firing, pending at the end", f"{got['alerts_firing']:,.0f}, {got['alerts_pending']:,.0f}"),
        ("pages that ended and began again", f"{result.pages_repeated}"),
    ]  # fmt: skip


def print_table(results: list[Result]) -> None:
    """One column per run."""
    columns = [dict(rows(result)) for result in results]
    print(f"| | {' | '.join(result.metric_set for result in results)} |")
    print(f"| --- |{' ---: |' * len(results)}")
    for name in columns[0]:
        print(f"| {name} | {' | '.join(column.get(name, '-') for column in columns)} |")
