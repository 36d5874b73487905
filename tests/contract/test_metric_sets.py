"""What a metric set has is enough for what is built on it: alerts, dashboards, `diagnose --prometheus`.

`promql_uses` finds the metrics in the syntax tree. Recorded names are followed to the metrics that they are made of.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from promql_uses import Use, of_grafana, of_template, uses

from roce_exporter.catalog import INDEX
from roce_exporter.catalog.row import FULL, HISTOGRAM, LEAN, STANDARD, MetricSet
from roce_exporter.checks.health.coverage import COVERAGE, DEVICE_COVERAGE
from roce_exporter.exposition.served_series import OF_SOURCES
from roce_exporter.view.remote import PROBE

ROOT = Path(__file__).parents[2]
RULES = [
    rule
    for name in ("alerts/roce.rules.yml", "dashboards/roce-dashboards.rules.yml")
    for group in yaml.safe_load((ROOT / name).read_text())["groups"]
    for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
BOARDS = {place.stem: json.loads(place.read_text()) for place in ROOT.glob("dashboards/roce-*.json")}

OF_FULL = "the panel says that it is only in the metric set full"
OF_STANDARD = "below the first screen; the panel says that it is not in lean"
NOT_SERVED: dict[str, dict[str, str]] = {
    "roce-fleet": dict.fromkeys(
        ("roce_config_check_ok", "roce_host_buffer_discards_total", "roce_exporter_unreadable_values"),
        OF_STANDARD,
    ),
    "roce-link": dict.fromkeys(
        (
            "roce_phy_receive_crc_errors_total",
            "roce_phy_fec_uncorrectable_blocks_total",
            "roce_transceiver_receive_power_watts",
            "roce_transceiver_receive_power_low_alarm_watts",
        ),
        OF_STANDARD,
    ),
    "roce-jobs": dict.fromkeys(("roce_owner_folded", "roce_owner_survey_duration_seconds"), OF_FULL),
    "roce-host": {"roce_phy_transmit_discards_total": OF_FULL},
    "roce-port": dict.fromkeys(
        ("roce_nic_ecn_marked_packets_total", "roce_pfc_congested_seconds_total", "roce_pfc_pause_ratio"),
        OF_FULL,
    ),
    "roce-exporter": dict.fromkeys(
        (
            "roce_exporter_read_errors_total",
            "roce_exporter_sampler_errors_total",
            "roce_exporter_sampler_read_duration_seconds",
            "roce_exporter_source_duration_seconds",
        ),
        OF_FULL,
    ),
}
"""Per board, all metrics that its set does not have, each with the reason why it may read them."""

ROWS = INDEX.named

NEED_MORE = {
    "RoceNicPauseWatchdogTripped": {"roce_pfc_watchdog_resumes_total"},
    "RoceConfigCheckFailed": {"roce_config_check_ok"},
    "RoceDataMissing": {"roce_link_up"},
    "RoceExporterNotes": {"roce_exporter_sampler_late_ticks_total", "roce_link_up"},
}
"""What alerts read beyond lean, without which each still fires: bnxt's resumed pause, names of checks in a text, ports whose link is down, late polls."""
FOR_PEOPLE = {
    "netdev:roce_pcie_stalled:ratio_rate5m",
    "netdev_priority_direction:roce_pfc_pause_proven_seconds:increase2m",
}
"""Records that runbooks name for the signs of a port; they need standard."""


def of_alert(rule: dict[str, Any]) -> list[str]:
    """Its expression, and the queries of its texts."""
    return [rule["expr"], *(query for text in rule["annotations"].values() for query in of_template(text))]


def of_board(part: Any) -> Iterator[str]:
    """Every query of a board as PromQL: of panels, annotations and variables."""
    if isinstance(part, dict):
        if isinstance(expr := part.get("expr"), str):
            yield of_grafana(expr)
        if part.get("type") == "query" and isinstance(query := part.get("query"), dict):
            yield of_grafana(query["query"])
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from of_board(one)


@cache
def parsed(expression: str) -> tuple[Use, ...]:
    return tuple(uses(expression))


def names_of(use: Use) -> set[str]:
    """The metrics of the catalogue that a selector can select; empty for metrics of others."""
    if use.pattern:
        return {name for name in ROWS if re.fullmatch(use.pattern, name)}
    base = re.sub("_(bucket|count|sum)$", "", use.name)
    return {base if base in ROWS and ROWS[base].kind == HISTOGRAM else use.name} & set(ROWS)


@cache
def reads(expression: str) -> tuple[Use, ...]:
    """The selectors of raw metrics of an expression, also through recorded names."""
    found = [use for use in parsed(expression) if names_of(use)]
    for name in {use.name for use in parsed(expression)}:
        for rule in RULES:
            if rule.get("record") == name and rule["expr"] != expression:
                found += reads(rule["expr"])
    return tuple(found)


def lacking(expressions: Iterable[str], has: MetricSet) -> set[str]:
    """The metrics that these expressions read and the set does not have."""
    needed = {name for one in expressions for use in reads(one) for name in names_of(use)}
    return {name for name in needed if not has.includes(ROWS[name].metric_set)}


def test_an_alert_and_its_texts_read_only_what_lean_has() -> None:
    assert len(ALERTS) > 30
    assert "roce_pfc_storms_total" in {
        name for one in ALERTS.values() for use in reads(one["expr"]) for name in names_of(use)
    }
    needs_more = {name: found for name, rule in ALERTS.items() if (found := lacking(of_alert(rule), LEAN))}
    assert needs_more == NEED_MORE


def test_a_board_reads_only_what_the_set_in_its_description_has() -> None:
    sets = {
        LEAN: {"roce-fleet", "roce-link", "roce-jobs"},
        STANDARD: {"roce-host", "roce-port", "roce-exporter"},
        FULL: {"roce-configuration"},
    }
    told = {LEAN: ": lean or standard or full.", STANDARD: ": standard or full.", FULL: ": full."}
    for metric_set, boards in sets.items():
        assert {name for name, board in BOARDS.items() if told[metric_set] in board["description"]} == boards
        for name in boards:
            queries = set(of_board(BOARDS[name]))
            assert len(queries) > 10
            assert lacking(queries, metric_set) == set(NOT_SERVED.get(name, ())), name
            smaller = [one for one in MetricSet if not one.includes(metric_set)]
            assert all(lacking(queries, one) - set(NOT_SERVED.get(name, ())) for one in smaller), name


def test_every_recording_rule_reads_what_some_user_of_it_has() -> None:
    """A recording rule that needs more than lean is read by boards or alerts of a larger set; those that nothing reads are for people."""
    queries = [query for board in BOARDS.values() for query in of_board(board)]
    queries += [query for rule in ALERTS.values() for query in of_alert(rule)]
    used = {use.name for query in queries for use in parsed(query)}
    unused = [rule for rule in RULES if rule.get("record", "") not in {"", *used}]
    assert unused
    assert {rule["record"] for rule in unused if lacking([rule["expr"]], LEAN)} <= FOR_PEOPLE


def test_what_the_rules_of_health_judge_is_in_standard_or_said_to_be_unseen() -> None:
    """`check --prometheus` selects `roce_.+`, so that what it can judge is what the set has."""
    assert STANDARD.includes(ROWS[PROBE].metric_set)
    for sight in (*COVERAGE, *DEVICE_COVERAGE):
        assert any(STANDARD.includes(ROWS[name].metric_set) for name in sight.rows), sight.what


# ---- labels that a set leaves out

LABELS_LEFT_OUT = {"device", "netdev"}


def test_no_query_needs_a_label_that_a_metric_about_sources_has_in_full_only() -> None:
    every = {rule.get("alert") or rule["record"]: [rule["expr"]] for rule in RULES}
    every |= {name: of_alert(rule) for name, rule in ALERTS.items()}
    every |= {name: list(of_board(board)) for name, board in BOARDS.items()}
    used = [(name, use) for name, queries in every.items() for one in queries for use in parsed(one)]
    of_sources = [(name, use) for name, use in used if names_of(use) & OF_SOURCES.keys()]
    assert len(of_sources) >= 4
    assert {name for name, use in of_sources if (use.matched | use.around) & LABELS_LEFT_OUT} == set()
