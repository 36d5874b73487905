"""The rows of the fleet dashboard that say whether, where and since when something is wrong."""

from __future__ import annotations

from boards.colours import GOOD, SEVERITY
from boards.limits import (
    CLUSTER_PAUSE,
    HOSTS,
    STORM_HOSTS,
    STORMS,
    burn,
    limit,
    step,
    steps,
)
from boards.measures import meanings
from boards.model import Json, Panel, Query
from boards.panels import (
    by_name,
    graded,
    hidden,
    lines,
    number,
    states,
    table,
)
from boards.rules import (
    CHECKS_FAILED,
    DISCARDS,
    ELEVATED,
)
from boards.scopes import CLUSTER, FLEET, series_to_port, to_cluster, to_host, to_port

NO_RULES = "No recording rules: load alerts/roce.rules.yml and dashboards/roce-dashboards.rules.yml"
RATES = {"page": "3", "ticket": "2", "info": "1"}
IS_BAD = steps((1, "red"))
AT_LEAST_ONE = {"page": steps((1, SEVERITY["page"])), "ticket": steps((1, SEVERITY["ticket"]))}
PORT_COLUMNS = ("cluster", "job", "instance", "device", "port", "priority")
PORT_LEGEND = "{{instance}} {{device}}/{{port}} {{netdev}} p{{priority}}"


def _firing(severity: str) -> str:
    return f'ALERTS{{alertname=~"Roce.*",alertstate="firing",severity="{severity}",{CLUSTER}}}'


def _or_none(expression: str) -> str:
    """0 where the expression finds nothing, and nothing where the rules are not there: blind is not healthy."""
    return f"{expression} or 0 * sum({HOSTS}{{{CLUSTER}}})"


def linked(*overrides: Json, to: Json) -> tuple[Json, ...]:
    """Overrides of a table whose instances are links."""
    return (by_name("instance", ("links", [to]), ("custom.minWidth", 140)), hidden("job"), *overrides)


def _severities() -> Json:
    return {
        "type": "value",
        "options": {
            name: {"text": name, "color": colour, "index": place}
            for place, (name, colour) in enumerate(SEVERITY.items())
        },
    }


def _worst(direction: str, title: str, verdict: str) -> Panel:
    alert = "RocePfcTransmitPauseSaturated" if direction == "transmit" else "RocePfcReceivePauseSaturated"
    selected = f'{ELEVATED}{{direction="{direction}",{FLEET}}}'
    # @ end() ranks once for the whole range, so that the panel holds ten lines and not ten per step
    return lines(
        title,
        f"Share of the time paused; the ten ports that were worst in the range shown. {verdict} Dashed: the alerts' limits. "
        f"Gaps: less than {limit('RocePfcPauseElevated'):.1%}.",
        "percentunit",
        Query(f"{selected} and topk(10, max_over_time({selected}[$__range] @ end()))", PORT_LEGEND),
        limits=steps(step("RocePfcPauseHigh"), step(alert)),
        overrides=(all_series(("links", [series_to_port()])),),
        width=12,
        height=8,
        empty=f"No priority was paused for more than {limit('RocePfcPauseElevated'):.1%} of the time",
        proof="pfc-storm",
    )


def all_series(*properties: tuple[str, object]) -> Json:
    """An override of everything."""
    return {
        "matcher": {"id": "byRegexp", "options": "/.*/"},
        "properties": [{"id": name, "value": value} for name, value in properties],
    }


COLUMNS = ("cluster", *(f"Value #{letter}" for letter in "ABCDEFG"))
ASKED = (
    (f"max by (cluster) ({HOSTS}{{{CLUSTER}}})", "quiet"),
    (f"count by (cluster) (up{{{FLEET}}} == 0)", "silent"),
    (f'max by (cluster) ({STORM_HOSTS}{{direction="transmit",{CLUSTER}}})', "pfc-storm"),
    (f'max by (cluster) ({CLUSTER_PAUSE}{{direction="transmit",{CLUSTER}}})', "quiet"),
    (f'max by (cluster) ({CLUSTER_PAUSE}{{direction="receive",{CLUSTER}}})', "quiet"),
    (f"sum by (cluster) ({DISCARDS}{{{FLEET}}})", "pfc-storm"),
    (f"sum by (cluster) ({CHECKS_FAILED}{{{FLEET}}})", "audited"),
)


BURNING = steps(burn("RocePfcPauseBudgetBurnSlow"), burn("RocePfcPauseBudgetBurnFast"))
TITLES = (
    "hosts",
    "silent",
    "storming",
    "pause sent",
    "pause received",
    "lossless drops/s",
    "checks failed",
)


CLUSTERS = table(
    "Clusters",
    "One line per cluster, as it is now; an empty cell means none. Choose a cluster to see it alone. The pause columns are averages "
    "over its lossless priorities.",
    COLUMNS,
    *(Query(expression, form="table", instant=True, proof=proof) for expression, proof in ASKED),
    names={f"Value #{letter}": title for letter, title in zip("ABCDEFG", TITLES, strict=True)},
    overrides=(
        by_name("cluster", ("links", [to_cluster()])),
        graded("silent", "none", AT_LEAST_ONE["ticket"]),
        graded("storming", "none", IS_BAD),
        graded("pause sent", "percentunit", BURNING),
        graded("pause received", "percentunit", BURNING),
        graded("lossless drops/s", "none", IS_BAD),
        graded("checks failed", "none", AT_LEAST_ONE["ticket"]),
    ),
    joined=True,
    sort="Value #E",
    width=24,
    height=7,
    empty=NO_RULES,
)


NUMBERS_PANELS = (
    number(
        "Pages now",
        "Alerts that would wake somebody and fire now. The row *Where* lists them.",
        "none",
        Query(_or_none(f"count({_firing('page')})")),
        limits=AT_LEAST_ONE["page"],
        width=3,
        empty=NO_RULES,
    ),
    number(
        "Tickets now",
        "Alerts that somebody should look at today and that fire now.",
        "none",
        Query(_or_none(f"count({_firing('ticket')})")),
        limits=AT_LEAST_ONE["ticket"],
        width=3,
        empty=NO_RULES,
    ),
    number(
        "Hosts in a storm",
        "Hosts with a storm within the last minutes. **sends**: its NIC holds up the switch, it is the culprit. "
        "**is held**: its switch stops it, it is a victim. Many victims and no culprit: suspect a switch.",
        "none",
        Query(_or_none(f'sum({STORM_HOSTS}{{direction="transmit",{CLUSTER}}})'), "sends"),
        Query(_or_none(f'sum({STORM_HOSTS}{{direction="receive",{CLUSTER}}})'), "is held"),
        limits=IS_BAD,
        width=4,
        empty=NO_RULES,
    ),
    number(
        "Storms, last day",
        "PFC storms that began within 24 hours, all priorities. One that goes on counts again every five minutes.",
        "none",
        Query(_or_none(f"sum(sum_over_time({STORMS}{{{CLUSTER}}}[1d:5m]))"), instant=True),
        limits=IS_BAD,
        graph=False,
        width=4,
        empty=NO_RULES,
    ),
    number(
        "Paused time",
        "Share of the time in which lossless priorities are paused, averaged over a cluster; the worst cluster. "
        f"The budget is {1 - limit('RocePfcPauseBudgetBurnFast', 'objective'):.1%}; colours begin where the budget burns "
        "fast enough to alert.",
        "percentunit",
        Query(f"max({CLUSTER_PAUSE}{{{CLUSTER}}})"),
        limits=steps(burn("RocePfcPauseBudgetBurnSlow"), burn("RocePfcPauseBudgetBurnFast")),
        width=3,
        empty=NO_RULES,
    ),
    number(
        "Lossless drops",
        "Packets per second dropped by receive buffers of priorities with PFC. There must be none: headroom, cable "
        "length or PFC itself is set wrongly.",
        "pps",
        Query(_or_none(f"sum({DISCARDS}{{{FLEET}}})")),
        limits=steps(step("RoceLosslessPriorityDrops", "packets", least=0.001)),
        width=4,
        empty=NO_RULES,
    ),
    number(
        "Silent hosts",
        "Exporters that Prometheus cannot scrape. Nothing is known of them, and no other alert of theirs can fire.",
        "none",
        Query(f"count(up{{{FLEET}}} == 0) or 0 * count(up{{{FLEET}}})"),
        limits=AT_LEAST_ONE["ticket"],
        width=3,
        empty="No target: see Prometheus' service discovery",
    ),
)


WORST = " or ".join(f"{rank} * max by (cluster) ({_firing(severity)})" for severity, rank in RATES.items())
HEALTHY = f"0 * max by (cluster) ({HOSTS}{{{CLUSTER}}})"
WHERE_PANELS = (
    states(
        "Each cluster's worst alert",
        "Since when a cluster is sick: the most urgent alert that fires. Grey gaps: Prometheus did not evaluate the rules.",
        {
            0: ("well", GOOD),
            1: ("info", SEVERITY["info"]),
            2: ("ticket", SEVERITY["ticket"]),
            3: ("page", SEVERITY["page"]),
        },
        Query(f"{WORST} or {HEALTHY}", "{{cluster}}"),
        width=8,
        height=8,
        empty=NO_RULES,
    ),
    table(
        "Alerts that fire",
        "Most urgent first, 50 at most. Choose an instance to see its host; the alert's runbook says what to do.",
        ("severity", "alertname", "cluster", "job", "instance", "device", "port", "priority", "direction"),
        Query(f"topk(50, 3 * {_firing('page')} or {_firing('ticket')})", form="table", instant=True),
        overrides=linked(
            by_name(
                "severity",
                ("mappings", [_severities()]),
                ("custom.cellOptions", {"type": "color-text"}),
                ("custom.width", 80),
            ),
            by_name("alertname", ("custom.minWidth", 240)),
            to=to_host(),
        ),
        width=16,
        height=8,
        empty="No alert fires",
        proof="pfc-storm",
    ),
    _worst("transmit", "Worst ports by pause sent", "These hosts hold up their switch: a culprit is here."),
    _worst(
        "receive",
        "Worst ports by pause received",
        "These hosts are held by their switch: victims, or part of an incast.",
    ),
    table(
        "Storms of the last day, by port",
        "Where storms were, 20 ports at most. `transmit`: the culprit, `receive`: a victim.",
        (*PORT_COLUMNS, "direction", "Value"),
        Query(f"topk(20, sum_over_time({STORMS}{{{FLEET}}}[1d:5m]))", form="table", instant=True),
        names={"Value": "storms"},
        sort="Value",
        overrides=linked(graded("storms", "none", IS_BAD), to=to_port()),
        width=12,
        height=8,
        empty="No storm within the last day",
        proof="pfc-storm",
    ),
    table(
        "Latest storms",
        "When the latest storm of a priority began, newest first, 20 at most: since when. "
        + meanings("roce_pfc_storm_last_start_timestamp_seconds"),
        (*PORT_COLUMNS, "direction", "Value"),
        Query(
            f"topk(20, roce_pfc_storm_last_start_timestamp_seconds{{{FLEET}}} * 1000)",
            form="table",
            instant=True,
        ),
        names={"Value": "began"},
        sort="Value",
        overrides=linked(by_name("began", ("unit", "dateTimeAsIso"), ("custom.minWidth", 150)), to=to_port()),
        width=12,
        height=8,
        empty="No storm since the exporters started",
        proof="pfc-storm",
    ),
)
