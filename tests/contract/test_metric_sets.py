"""What a metric set has is enough for what is built on it: alerts, dashboards, `diagnose --prometheus`.

`promql_uses` finds the metrics in the syntax tree. Recorded names are followed to the metrics that they are made of.
"""

from __future__ import annotations

import json
import operator
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from promql_uses import Use, of_grafana, of_template, uses

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.named import SOURCE_DURATION, SOURCE_UP
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, LEAN, STANDARD, MetricSet, Row
from roce_exporter.checks.health.rows_of_rules import ROWS_OF_RULES
from roce_exporter.view.from_prometheus import PROBE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
RULES = [
    rule
    for name in ("alerts/roce.rules.yml", "dashboards/roce-dashboards.rules.yml")
    for group in yaml.safe_load((ROOT / name).read_text())["groups"]
    for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
BOARDS = {place.stem: json.loads(place.read_text()) for place in ROOT.glob("dashboards/roce-*.json")}

FINER = "finer evidence; tests/diagnosis/test_scoreboard.py shows which finding of the scoreboard needs it"
NOT_SERVED: dict[str, dict[str, str]] = {
    "roce-host": dict.fromkeys(
        ("roce_phy_receive_bytes_total", "roce_phy_transmit_bytes_total"),
        "the panel says that it is not in lean; the traffic of RDMA is",
    ),
    "diagnose --prometheus": {
        "roce_link_lanes": FINER,
        "roce_phy_line_bytes_total": "the speed of the link is read instead",
        "roce_port_netdev_info": FINER,
        "roce_port_speed_bytes_per_second": "the speed of the link is read instead",
        "roce_priority_receive_packets_total": FINER,
        "roce_priority_transmit_packets_total": FINER,
    },
}
"""Per alert, rule or board, all metrics that its set does not have, each with the reason why it may read them."""

ROWS = INDEX.named
SPARSE = {row.name for row in CATALOG if row.usual is not None}
COLLAPSED = {SOURCE_UP.name, SOURCE_DURATION.name}
"""Metrics of which one series is about all devices, without the labels below, while nothing is wrong."""
DROPPED = {"device", "port", "netdev"}
RATES = {"rate", "increase", "irate", "delta", "changes", "resets"}


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
    assert len(ALERTS) > 40
    assert "roce_pfc_storms_total" in {
        name for one in ALERTS.values() for use in reads(one["expr"]) for name in names_of(use)
    }
    assert {name: found for name, rule in ALERTS.items() if (found := lacking(of_alert(rule), LEAN))} == {}


def test_a_board_reads_only_what_the_set_in_its_description_has() -> None:
    sets = {
        LEAN: {"roce-fleet", "roce-host", "roce-link", "roce-jobs"},
        STANDARD: {"roce-port", "roce-exporter", "roce-configuration"},
    }
    told = {LEAN: ": lean, standard or full.", STANDARD: ": standard or full."}
    for metric_set, boards in sets.items():
        assert {name for name, board in BOARDS.items() if told[metric_set] in board["description"]} == boards
        for name in boards:
            queries = set(of_board(BOARDS[name]))
            assert len(queries) > 10
            assert lacking(queries, metric_set) == set(NOT_SERVED.get(name, ())), name
            assert metric_set is LEAN or lacking(queries, LEAN), f"{name} could be of lean"


def test_every_recording_rule_reads_what_some_user_of_it_has() -> None:
    """A recording rule that needs more than lean is read by boards of a larger set only; those that nothing reads are for people."""
    used = {use.name for board in BOARDS.values() for query in of_board(board) for use in parsed(query)}
    unused = [rule for rule in RULES if rule.get("record", "") not in {"", *used}]
    assert unused
    assert {rule["record"]: found for rule in unused if (found := lacking([rule["expr"]], LEAN))} == {}


def test_the_rules_of_diagnose_read_only_what_lean_has() -> None:
    """`diagnose --prometheus` selects `roce_.+`, so that what it can judge is what the set has."""
    missing = {name for name in {*ROWS_OF_RULES, PROBE} if not LEAN.includes(ROWS[name].metric_set)}
    assert missing == set(NOT_SERVED["diagnose --prometheus"])


# ---- labels and values that a set leaves out

COMPARE = {"==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}  # fmt: skip


def is_about_problems(use: Use, row: Row) -> bool:
    """Whether a comparison with a number leaves out samples of the usual value."""
    if row.usual is None or use.compared is None or set(use.calls) & RATES:
        return False
    sign, number = use.compared
    return not COMPARE[sign](row.usual, number)


def depends_on_dropped_labels(use: Use) -> bool:
    """Whether a selector of a collapsed metric needs the labels that its ordinary series does not have."""
    names = names_of(use) & COLLAPSED
    if not names or all(is_about_problems(use, ROWS[name]) for name in names):
        return False
    return bool((use.matched | use.around) & DROPPED)


def test_no_query_needs_a_label_that_a_collapsed_metric_drops() -> None:
    every = {rule.get("alert") or rule["record"]: [rule["expr"]] for rule in RULES}
    every |= {name: of_alert(rule) for name, rule in ALERTS.items()}
    every |= {name: list(of_board(board)) for name, board in BOARDS.items()}
    used = [(name, use) for name, queries in every.items() for one in queries for use in parsed(one)]
    assert sum(bool(names_of(use) & COLLAPSED) for _, use in used) >= 4
    assert {(name, use.name) for name, use in used if depends_on_dropped_labels(use)} == set()


@pytest.mark.parametrize(
    ("query", "depends"),
    [
        ('count by (device) (roce_exporter_source_up{source="dcb"})', True),
        ("count by (device) (roce_exporter_source_up == 0)", False),
        ("count by (source) (roce_exporter_source_up == 1)", False),
        ('roce_exporter_source_up{device="mlx5_0"} == 1', True),
    ],
)
def test_a_query_of_a_usual_value_is_found(query: str, depends: bool) -> None:
    (use,) = uses(query)
    assert depends_on_dropped_labels(use) == depends


def unseen_first_events(expression: str) -> set[str]:
    """Sparse counters whose growth an alert reads and whose first value, which comes from nowhere, it does not.

    A counter that is missing while it is 0 has no growth from 0 to its first value (`increase` needs two samples). The rule must
    read the counter itself too, where it was missing before: `increase(x[5m]) > 0 or (x unless x offset 5m)`. Rates are of what
    goes on: they are seen from the second sample on.
    """
    found = reads(expression)
    grown = {name for use in found if "increase" in use.calls for name in names_of(use) & SPARSE}
    plain = {name for use in found if not set(use.calls) & RATES for name in names_of(use)}
    past = {name for use in found if use.past for name in names_of(use)}
    return {name for name in grown if ROWS[name].kind == COUNTER} - (plain & past)


def test_an_alert_sees_the_first_event_of_a_sparse_counter() -> None:
    sparse = "roce_transport_rnr_retries_exceeded_total"
    assert unseen_first_events(f"increase({sparse}[5m]) > 0 or {sparse}") == {sparse}
    assert not unseen_first_events(f"increase({sparse}[5m]) > 0 or {sparse} unless {sparse} offset 5m")
    assert {
        name: found for name, rule in ALERTS.items() if (found := unseen_first_events(rule["expr"]))
    } == {}
