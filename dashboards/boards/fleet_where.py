"""The rows of the fleet dashboard that show whether, where and since when something is wrong."""

from __future__ import annotations

from boards.codes import ALERT, HEALTH
from boards.colours import BAD, SEVERITY, UNKNOWN
from boards.limits import CLUSTER_PAUSE, HOSTS, STORM_HOSTS, STORMS, burn, limit, percent, step, steps
from boards.measures import meanings
from boards.model import Json, Panel, Query
from boards.panels import all_series, by_name, lines, named, number, states
from boards.rules import CHECKS, CHECKS_FAILED, DISCARDS, ELEVATED, FIRING, SILENT
from boards.scopes import (
    CLUSTER,
    FLEET,
    firing,
    series_to_jobs,
    series_to_link,
    series_to_port,
    to_cluster,
    to_host,
    to_port,
    to_runbook,
)
from boards.tables import as_text, graded, severities, table

NO_RULES = "No rules"
LOAD_RULES = "No recording rules: load alerts/roce.rules.yml and dashboards/roce-dashboards.rules.yml"
RANKS = {"page": "3", "ticket": "2", "info": "1"}
IS_BAD = steps((1, BAD))
AT_LEAST_ONE = {"page": steps((1, SEVERITY["page"])), "ticket": steps((1, SEVERITY["ticket"]))}
PORT_COLUMNS = ("cluster", "job", "instance", "device", "port", "priority")
PORT_LEGEND = "{{instance}} {{device}}/{{port}} {{netdev}} p{{priority}}"


def _firing(severity: str) -> str:
    return f'{FIRING}{{severity="{severity}",{CLUSTER}}}'


def _or_none(expression: str) -> str:
    """0 if the expression has no result, but no value if the rules are missing: no data does not mean healthy."""
    return f"{expression} or 0 * sum({HOSTS}{{{CLUSTER}}})"


def _of_clusters(expression: str) -> str:
    """The same per cluster; a column without any value would be missing."""
    return f"{expression} or 0 * max by (cluster) ({HOSTS}{{{CLUSTER}}})"


def linked(*overrides: Json, to: Json) -> tuple[Json, ...]:
    """Overrides for a table with links in the column `instance`."""
    return (by_name("instance", ("links", [to])), *overrides)


def _worst(direction: str, title: str, verdict: str) -> Panel:
    alert = "RocePfcTransmitPauseSaturated" if direction == "transmit" else "RocePfcReceivePauseSaturated"
    selected = f'{ELEVATED}{{direction="{direction}",{FLEET}}}'
    # @ end() ranks once for the whole range, so that the panel has ten lines rather than ten per step
    return lines(
        title,
        f"Share of time paused; the ten worst ports of the range shown. {verdict} Dashed: alert limits. "
        f"Gaps: less than {percent(limit('RocePfcPauseElevated'))}. Click a line to open the port, the link or the jobs.",
        "percentunit",
        Query(f"{selected} and topk(10, max_over_time({selected}[$__range] @ end()))", PORT_LEGEND),
        limits=steps(step("RocePfcPauseHigh"), step(alert)),
        overrides=(all_series(("links", [series_to_port(), series_to_link(), series_to_jobs()])),),
        height=8,
        empty=f"No priority was paused for more than {percent(limit('RocePfcPauseElevated'))} of the time",
        proof="pfc-storm",
    )


NUMBERS_PANELS = (
    number(
        "Pages",
        "Firing alerts of severity page, listed in *Firing alerts*.",
        "none",
        Query(_or_none(f"sum({_firing('page')})")),
        limits=AT_LEAST_ONE["page"],
        empty=NO_RULES,
    ),
    number(
        "Tickets",
        "Firing alerts of severity ticket, for same-day action.",
        "none",
        Query(_or_none(f"sum({_firing('ticket')})")),
        limits=AT_LEAST_ONE["ticket"],
        empty=NO_RULES,
    ),
    number(
        "Storm hosts",
        "Hosts with a storm within the last minutes. **cause**: its NIC pauses the switch. "
        "**victim**: its switch pauses it. Many victims without a cause: suspect a switch.",
        "none",
        Query(_or_none(f'sum({STORM_HOSTS}{{direction="transmit",{CLUSTER}}})'), "cause"),
        Query(_or_none(f'sum({STORM_HOSTS}{{direction="receive",{CLUSTER}}})'), "victim"),
        limits=IS_BAD,
        empty=NO_RULES,
    ),
    number(
        "Storms, 24 h",
        "PFC storms that began within 24 hours, all priorities. A storm that continues counts again every five minutes.",
        "none",
        Query(_or_none(f"sum(sum_over_time({STORMS}{{{CLUSTER}}}[1d:5m]))"), instant=True),
        limits=IS_BAD,
        empty=NO_RULES,
    ),
    number(
        "PFC drops/s",
        "Packets per second dropped by receive buffers of priorities with PFC. Normally zero; otherwise headroom, cable "
        "length or PFC is configured wrongly.",
        "none",
        Query(_or_none(f"sum({DISCARDS}{{{FLEET}}})")),
        limits=steps(step("RoceLosslessPriorityDrops", "packets", least=0.001)),
        empty=NO_RULES,
    ),
    number(
        "Silent hosts",
        "Exporters that Prometheus cannot scrape. No other alert can fire for these hosts.",
        "none",
        Query(_or_none(f"sum({SILENT}{{{FLEET}}})")),
        limits=AT_LEAST_ONE["ticket"],
        empty=NO_RULES,
    ),
)

WORST = " or ".join(
    f"{rank} * max by (cluster) ({_firing(severity)} > bool 0)" for severity, rank in RANKS.items()
)
HEALTHY = f"0 * max by (cluster) ({HOSTS}{{{CLUSTER}}})"
SINCE = " or ".join(
    f"topk(25, {firing(CLUSTER, severity)} * 1000)"
    for severity in RANKS
    if severity != "info"
)  # fmt: skip
BURNING = steps(burn("RocePfcPauseBudgetBurnSlow"), burn("RocePfcPauseBudgetBurnFast"))
NO_CLUSTER = f"(vector(0) unless on () {HOSTS}{{{CLUSTER}}})"
PARTS: dict[str, tuple[str, str]] = {
    # a merge of empty frames is an empty frame, which would show nothing at all
    "hosts": (
        f'max by (cluster) ({HOSTS}{{{CLUSTER}}}) or label_replace({NO_CLUSTER}, "cluster", "{LOAD_RULES}", "", "")',
        "quiet",
    ),
    "silent": (_of_clusters(f"sum by (cluster) ({SILENT}{{{FLEET}}})"), "silent"),
    "storming": (
        _of_clusters(f'max by (cluster) ({STORM_HOSTS}{{direction="transmit",{CLUSTER}}})'),
        "pfc-storm",
    ),
    "pause sent": (f'max by (cluster) ({CLUSTER_PAUSE}{{direction="transmit",{CLUSTER}}})', "quiet"),
    "pause received": (f'max by (cluster) ({CLUSTER_PAUSE}{{direction="receive",{CLUSTER}}})', "quiet"),
    "drops per second": (_of_clusters(f"sum by (cluster) ({DISCARDS}{{{FLEET}}})"), "pfc-storm"),
    "checks failed": (
        f"sum by (cluster) ({CHECKS_FAILED}{{{FLEET}}}) or 0 * sum by (cluster) ({CHECKS}{{{FLEET}}})",
        "audited",
    ),
}
LETTERED = tuple(zip("ABCDEFG", PARTS, strict=True))
CLUSTERS = table(
    "Clusters",
    "One line per cluster with current values; a dash means not measured. Click a cluster to show only this one. The pause columns are averages "
    f"over its lossless priorities; colours begin where the budget of {percent(1 - limit('RocePfcPauseBudgetBurnFast', 'objective'))} "
    "burns fast enough to alert.",
    ("cluster", *(f"Value #{letter}" for letter, _ in LETTERED)),
    *(Query(expression, form="table", instant=True, proof=proof) for expression, proof in PARTS.values()),
    names={f"Value #{letter}": name for letter, name in LETTERED},
    overrides=(
        by_name("cluster", ("links", [to_cluster()])),
        graded("silent", "none", AT_LEAST_ONE["ticket"]),
        graded("storming", "none", IS_BAD),
        graded("pause sent", "percentunit", BURNING),
        graded("pause received", "percentunit", BURNING),
        graded("drops per second", "none", steps((0.001, BAD))),
        graded("checks failed", "none", AT_LEAST_ONE["ticket"]),
    ),
    joined=True,
    sort="Value #E",
    width=24,
    height=6,
    empty=LOAD_RULES,
)
FIRST_PANELS = (
    *NUMBERS_PANELS,
    states(
        "Each cluster's worst alert",
        "The most urgent firing alert of each cluster over time. Gaps: Prometheus did not evaluate the rules.",
        ALERT,
        Query(f"{WORST} or {HEALTHY}", "{{cluster}}"),
        ever=f"max_over_time({HOSTS}{{{CLUSTER}}}[$__range] @ end())",
        nothing=("rules", LOAD_RULES, UNKNOWN),
        width=8,
        height=8,
    ),
    table(
        "Firing alerts",
        "Pages first, then tickets, the newest 25 of each, with the start of their condition. The alert's name opens its "
        "runbook, the instance opens its host.",
        ("severity", "alertname", "Value", "cluster", "job", "instance"),
        Query(SINCE, form="table", instant=True),
        names={"Value": "since"},
        wide="alertname",
        sort="severity",
        rarest=True,
        overrides=linked(
            severities(),
            by_name("since", ("unit", "dateTimeFromNow"), ("custom.width", 112)),
            by_name("instance", ("custom.width", 128)),
            by_name("alertname", ("links", [to_runbook()])),
            to=to_host(),
        ),
        width=16,
        height=8,
        empty="No page or ticket is firing",
        proof="pfc-storm",
    ),
    CLUSTERS,
    table(
        "Ports that are not fit for a job",
        "The exporters' own verdicts, failed before degraded, at most 50, with a line per reason. "
        + meanings("roce_port_health_reason"),
        ("Value", "reason", "cluster", "job", "instance", "device", "port"),
        Query(f"topk(50, roce_port_health_reason{{{FLEET}}} >= 2)", form="table", instant=True),
        names={"Value": "verdict"},
        wide="reason",
        sort="Value",
        overrides=linked(as_text("verdict", named(HEALTH)), to=to_port()),
        width=24,
        height=7,
        empty="No port is degraded or failed",
        proof="lossy",
    ),
    _worst("transmit", "Worst ports by pause sent", "These hosts pause their switch: the cause is one of them."),
    _worst("receive", "Worst ports by pause received", "Their switch pauses these hosts: victims, or part of an incast."),
)  # fmt: skip
STORMS_PANELS = (
    table(
        "Storms of the last day",
        "The 20 priorities with the most storms in 24 hours. Sent: the host is a cause, received: a victim.",
        (*PORT_COLUMNS, "direction", "Value"),
        Query(f"topk(20, sum_over_time({STORMS}{{{FLEET}}}[1d:5m])) > 0", form="table", instant=True),
        names={"Value": "storms"},
        wide="instance",
        sort="Value",
        overrides=linked(graded("storms", "none", IS_BAD), to=to_port()),
        width=24,
        height=7,
        empty="No storm within the last day",
        proof="pfc-storm",
    ),
    table(
        "Latest storms",
        "Start of the latest storm of each priority, newest first, at most 20. "
        + meanings("roce_pfc_storm_last_start_timestamp_seconds"),
        (*PORT_COLUMNS, "direction", "Value"),
        Query(
            f"topk(20, roce_pfc_storm_last_start_timestamp_seconds{{{FLEET}}} * 1000)",
            form="table",
            instant=True,
        ),
        names={"Value": "began"},
        wide="instance",
        sort="Value",
        overrides=linked(by_name("began", ("unit", "dateTimeFromNow"), ("custom.width", 112)), to=to_port()),
        width=24,
        height=7,
        empty="No storm since the exporters started",
        proof="pfc-storm",
    ),
)
