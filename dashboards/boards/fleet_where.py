"""The rows of the fleet dashboard that show whether, where and since when something is wrong."""

from __future__ import annotations

from boards.colours import ALERT, BAD, CRITICAL, NOTE, SEVERITY, UNKNOWN, WARNING
from boards.limits import (
    CLUSTER_PAUSE,
    HOSTS,
    PAUSE_BUDGET,
    PAUSE_ELEVATED,
    PAUSE_HIGH,
    PAUSE_OBJECTIVE,
    RECEIVED_SATURATED,
    SENT_SATURATED,
    STORM_HOSTS,
    STORMS,
    percent,
    steps,
)
from boards.measures import meanings
from boards.model import Json, Panel, Query, cell
from boards.panels import all_series, by_name, lines, number, states
from boards.rules import CHECKS, CHECKS_FAILED, DISCARDS, ELEVATED, FIRING, PAIRS, SILENT, UNFIT
from boards.scopes import (
    CLUSTER,
    FLEET,
    firing,
    runbook,
    series_to_jobs,
    series_to_link,
    series_to_port,
    to_cluster,
    to_host,
    to_jobs,
    to_port,
    to_thing,
)
from boards.tables import graded, severities, table

NO_RULES = "No rules"
LOAD_RULES = "No recording rules: load alerts/roce.rules.yml and dashboards/roce-dashboards.rules.yml"
RANKS = {CRITICAL: "3", WARNING: "2", NOTE: "1"}
IS_BAD = steps((1, BAD))
AT_LEAST_ONE = {name: steps((1, SEVERITY[name])) for name in (CRITICAL, WARNING)}
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
    alert = SENT_SATURATED if direction == "transmit" else RECEIVED_SATURATED
    selected = f'{ELEVATED}{{direction="{direction}",{FLEET}}}'
    # @ end() ranks once for the whole range, so that the panel has ten lines rather than ten per step
    return lines(
        title,
        f"Share of time paused; the ten worst ports of the range shown. {verdict} Dashed: alert limits. "
        f"Gaps: less than {percent(PAUSE_ELEVATED[0])}. Click a line to open the port, the link or the jobs.",
        "percentunit",
        Query(f"{selected} and topk(10, max_over_time({selected}[$__range] @ end()))", PORT_LEGEND),
        limits=steps(PAUSE_HIGH, alert),
        overrides=(all_series(("links", [series_to_port(), series_to_link(), series_to_jobs()])),),
        height=8,
        empty=f"No priority was paused for more than {percent(PAUSE_ELEVATED[0])} of the time",
        proof="pfc-storm",
    )


NUMBERS_PANELS = (
    *(
        number(
            title,
            f"Firing alerts of this severity, listed below. {meaning}",
            "none",
            Query(_or_none(f"sum({_firing(severity)})")),
            limits=AT_LEAST_ONE[severity],
            width=6,
            empty=NO_RULES,
        )
        for title, severity, meaning in (
            ("Critical", CRITICAL, "Someone must act now."),
            ("Warnings", WARNING, "Things to repair, today."),
        )
    ),
    number(
        "Storm hosts",
        "Hosts with a storm within the last minutes. **cause**: its NIC pauses the switch. "
        "**victim**: its switch pauses it. Many victims without a cause: suspect a switch.",
        "none",
        Query(_or_none(f'sum({STORM_HOSTS}{{direction="transmit",{CLUSTER}}})'), "cause"),
        Query(_or_none(f'sum({STORM_HOSTS}{{direction="receive",{CLUSTER}}})'), "victim"),
        limits=IS_BAD,
        width=6,
        empty=NO_RULES,
    ),
    number(
        "Silent hosts",
        "Exporters that Prometheus cannot scrape. No other alert can fire for these hosts.",
        "none",
        Query(_or_none(f"sum({SILENT}{{{FLEET}}})")),
        limits=AT_LEAST_ONE[WARNING],
        width=6,
        empty=NO_RULES,
    ),
)

WORST = " or ".join(
    f"{rank} * max by (cluster) ({_firing(severity)} > bool 0)" for severity, rank in RANKS.items()
)
HEALTHY = f"0 * max by (cluster) ({HOSTS}{{{CLUSTER}}})"
THING = "cluster, job, instance, device, port, switch, switch_port, scope"
BOARDS = {"host": "roce-host", "link|switch": "roce-link", "fabric": "roce-fleet", "wire": "roce-exporter"}
"""The board for each scope of alerts."""
_AT_PORT, _AT_DEVICE = "cluster, job, instance, device, port", "cluster, job, instance, device"
MOST_THINGS = 50


def _things() -> str:
    """The 50 worst things that alerts are about, each with its first critical alert, else its first one, and that one's start.

    A switch port is its host's port where the host is known, and otherwise named by the labels device and port of its series.
    """
    found = f"{firing(CLUSTER, CRITICAL)} - {FIRST_OF_ALL} or {firing(CLUSTER, WARNING)}"
    found = f'label_join({found}, "named", ";", "scope", "switch", "device", "port")'
    for name, value in (("scope", "host"), ("switch", ""), ("switch_port", "")):
        found = f'label_replace({found}, "{name}", "{value}", "named", "switch;[^;]+;.*")'
    found = f'label_replace({found}, "switch", "$1", "named", "switch;;([^;]*);.*")'
    found = f'label_replace({found}, "switch_port", "$1", "named", "switch;;[^;]*;(.+)")'
    return f'label_replace(label_replace({found}, "device", "", "named", "switch;;.*"), "port", "", "named", "switch;;.*")'


FIRST_OF_ALL = 10_000_000_000
"""More than any Unix time: subtracted from the start of critical alerts, it puts them before all others."""
THINGS = _things()
ROWS = f"((bottomk({MOST_THINGS}, bottomk by ({THING}) (1, {THINGS})) + {FIRST_OF_ALL}) % {FIRST_OF_ALL})"
WITH_BOARD = ROWS
for _scope, _board in BOARDS.items():
    WITH_BOARD = f'label_replace({WITH_BOARD}, "board", "{_board}", "scope", "{_scope}")'
NOTHING_FIRES = (
    f'label_replace(0 * max({HOSTS}{{{CLUSTER}}}), "alertname", "nothing", "", "") unless on () {firing(CLUSTER)} '
    f'or label_replace(vector(0) unless on () {HOSTS}{{{CLUSTER}}}, "alertname", "{LOAD_RULES}", "", "")'
)
WRONG = table(
    "What is wrong",
    "One line per port, host, switch or cluster with firing alerts, at most 50: critical first, then what began first, because the cause begins first. The "
    "alert is the first of them; *reasons* are those of the exporter's verdict about the port, *workload* the one with the most queue pairs on the "
    "device. Click the alert to open the board of the thing.",
    ("severity", "alertname", "Value #A", "Value #B", "reasons", "workload", "cluster", "job", "instance", "device", "port", "switch", "switch_port", "board"),
    cell(f"{WITH_BOARD} * 1000"),
    cell(f"{WITH_BOARD} ^ 0 * on ({THING}) group_left () count by ({THING}) ({THINGS})"),
    cell(f"{WITH_BOARD} * on ({_AT_PORT}) group_left (reasons) topk by ({_AT_PORT}) (1, {UNFIT}{{{CLUSTER}}}) ^ 0", proof="pfc-storm"),
    cell(f"{WITH_BOARD} * on ({_AT_DEVICE}) group_left (workload) topk by ({_AT_DEVICE}) (1, {PAIRS}{{{CLUSTER}}}) ^ 0"),
    cell(NOTHING_FIRES, instead=True),
    names={"Value #A": "since", "Value #B": "alerts"},
    concealed=("job", "board"),
    wide="reasons",
    overrides=(
        severities(),
        by_name("alertname", ("links", [to_thing(), *runbook()])),
        by_name("since", ("unit", "dateTimeFromNow"), ("custom.width", 112)),
        by_name("workload", ("links", [to_jobs()]), ("custom.width", 170)),
    ),
    joined=True,
    width=24,
    height=10,
    empty=LOAD_RULES,
    proof="pfc-storm",
)  # fmt: skip

BURNING = steps(*PAUSE_BUDGET)
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
    f"over its lossless priorities; colours begin where the budget of {percent(1 - PAUSE_OBJECTIVE)} "
    "burns fast enough to alert.",
    ("cluster", *(f"Value #{letter}" for letter, _ in LETTERED)),
    *(cell(expression, proof=proof) for expression, proof in PARTS.values()),
    names={f"Value #{letter}": name for letter, name in LETTERED},
    overrides=(
        by_name("cluster", ("links", [to_cluster()])),
        graded("silent", "none", AT_LEAST_ONE[WARNING]),
        graded("storming", "none", IS_BAD),
        graded("pause sent", "percentunit", BURNING),
        graded("pause received", "percentunit", BURNING),
        graded("drops per second", "none", steps((0.001, BAD))),
        graded("checks failed", "none", AT_LEAST_ONE[WARNING]),
    ),
    joined=True,
    sort="Value #E",
    width=17,
    height=7,
    empty=LOAD_RULES,
)
SILENT_HOSTS = table(
    "Hosts that do not report",
    "At most 50. If the host is up, run `systemctl status roce-exporter` there.",
    ("cluster", "job", "instance"),
    cell(f"topk(50, up{{{FLEET}}} == 0)"),
    overrides=linked(to=to_host()),
    wide="instance",
    width=7,
    height=7,
    empty="All hosts report",
    proof="silent",
)
OVER_TIME = states(
    "Each cluster's worst alert",
    "The most urgent firing alert of each cluster over time. Gaps: Prometheus did not evaluate the rules.",
    ALERT,
    Query(f"{WORST} or {HEALTHY}", "{{cluster}}"),
    ever=f"max_over_time({HOSTS}{{{CLUSTER}}}[$__range] @ end())",
    nothing=("rules", LOAD_RULES, UNKNOWN),
    width=24,
    height=8,
)
FIRST_PANELS = (
    *NUMBERS_PANELS,
    WRONG,
    CLUSTERS,
    SILENT_HOSTS,
    OVER_TIME,
    _worst("transmit", "Worst ports by pause sent", "These hosts pause their switch: the cause is one of them."),
    _worst("receive", "Worst ports by pause received", "Their switch pauses these hosts: victims, or part of an incast."),
)  # fmt: skip
STORMS_PANELS = (
    table(
        "Storms of the last day",
        "The 20 priorities with the most storms in 24 hours. Sent: the host is a cause, received: a victim.",
        (*PORT_COLUMNS, "direction", "Value"),
        cell(f"topk(20, sum_over_time({STORMS}{{{FLEET}}}[1d:5m])) > 0"),
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
        cell(f"topk(20, roce_pfc_storm_last_start_timestamp_seconds{{{FLEET}}} * 1000)"),
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
