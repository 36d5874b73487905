"""What a metric set has is enough for what is built on it: alerts, dashboards, `diagnose --prometheus`; and its tables are current.

`promql_uses` finds the metrics in the syntax tree. Recorded names are followed to the metrics that they are made of.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml
from promql_uses import Use, of_grafana, of_template, uses

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.exporter import SOURCE_DURATION, SOURCE_UP
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, Row
from roce_exporter.catalog.row import MetricSet as Sets
from roce_exporter.health.rows_of_rules import ROWS_OF_RULES
from roce_exporter.introspection.metric_sets import metric_sets
from roce_exporter.introspection.prometheus_history import PROBE

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
RULE_FILES = (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml")
BOARD_SETS = {
    "roce-fleet": Sets.LEAN,
    "roce-host": Sets.LEAN,
    "roce-link": Sets.LEAN,
    "roce-jobs": Sets.LEAN,
    "roce-port": Sets.STANDARD,
    "roce-exporter": Sets.STANDARD,
    "roce-configuration": Sets.STANDARD,
}
"""The lowest set with which every panel of a board can show data."""

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
"""Per alert, rule or board, metrics that its set does not have, each with the reason why it may read them."""

ROWS = {row.name: row for row in CATALOG}
PARTS = ("_bucket", "_count", "_sum")
SPARSE = {row.name for row in CATALOG if row.usual is not None}
COLLAPSED = {SOURCE_UP.name, SOURCE_DURATION.name}
"""Metrics of which one series is about all devices, without the labels below, while nothing is wrong."""
DROPPED = {"device", "port", "netdev"}
RATES = {"rate", "increase", "irate", "delta", "changes", "resets"}


class Rule(NamedTuple):
    """One alert or recording rule."""

    name: str
    expr: str
    texts: tuple[str, ...]
    labels: dict[str, str]
    is_alert: bool


def read_rules() -> list[Rule]:
    groups = [group for place in RULE_FILES for group in yaml.safe_load(place.read_text())["groups"]]
    return [
        Rule(
            rule.get("alert") or rule["record"],
            rule["expr"],
            tuple(rule.get("annotations", {}).values()),
            rule.get("labels", {}),
            "alert" in rule,
        )
        for group in groups
        for rule in group["rules"]
    ]


RULES = read_rules()
RECORDED: dict[str, list[Rule]] = {}
for _rule in RULES:
    if not _rule.is_alert:
        RECORDED.setdefault(_rule.name, []).append(_rule)


def board_queries(place: Path) -> Iterator[str]:
    """Every query of a board as PromQL: of panels, annotations and variables."""
    board = json.loads(place.read_text())
    for query in found_in(board):
        yield of_grafana(query)


def found_in(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(expr := part.get("expr"), str):
            yield expr
        if part.get("type") == "query" and isinstance(query := part.get("query"), dict):
            yield query["query"]
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from found_in(one)


@cache
def parsed(expression: str) -> tuple[Use, ...]:
    return tuple(uses(expression))


def names_of(use: Use) -> set[str]:
    """The metrics of the catalogue that a selector can select; empty for metrics of others."""
    if use.pattern:
        return {name for name in ROWS if re.fullmatch(use.pattern, name)}
    name = use.name
    for part in PARTS:
        if (base := name.removesuffix(part)) in ROWS and ROWS[base].kind == HISTOGRAM:
            return {base}
    return {name} & set(ROWS)


def reads(expression: str, seen: frozenset[str] = frozenset()) -> Iterator[Use]:
    """The selectors of raw metrics of an expression, also through recorded names."""
    for use in parsed(expression):
        if names_of(use):
            yield use
        for rule in RECORDED.get(use.name, ()) if use.name not in seen else ():
            yield from reads(rule.expr, seen | {use.name})


def lacking(expressions: list[str], has: Sets, who: str) -> set[str]:
    """The metrics that these expressions read and the set does not have."""
    needed = {name for one in expressions for use in reads(one) for name in names_of(use)}
    return {name for name in needed if not has.includes(ROWS[name].metric_set)} - set(NOT_SERVED.get(who, ()))


def of_rule(rule: Rule) -> list[str]:
    return [rule.expr, *(query for text in rule.texts for query in of_template(text))]


ALERTS = [rule for rule in RULES if rule.is_alert]
BOARDS = sorted(ROOT.glob("dashboards/roce-*.json"))


def test_there_is_a_lot_to_check() -> None:
    """A parser that finds nothing would pass every test below."""
    assert len(ALERTS) > 50
    assert {name for rule in ALERTS for use in reads(rule.expr) for name in names_of(use)} > {
        "roce_pfc_storms_total",
        "roce_exporter_source_up",
    }
    assert {place.stem for place in BOARDS} == set(BOARD_SETS)
    assert all(len(list(board_queries(place))) > 10 for place in BOARDS)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule.name)
def test_an_alert_and_its_texts_read_only_what_lean_has(rule: Rule) -> None:
    assert lacking(of_rule(rule), Sets.LEAN, rule.name) == set()


@pytest.mark.parametrize("place", BOARDS, ids=lambda place: place.stem)
def test_a_board_reads_only_what_its_set_has(place: Path) -> None:
    assert lacking(list(board_queries(place)), BOARD_SETS[place.stem], place.stem) == set()


def test_every_recording_rule_reads_what_some_user_of_it_has() -> None:
    """A recording rule that needs more than lean is read by boards of a larger set only; those that nothing reads are for people."""
    used = {use.name for place in BOARDS for query in board_queries(place) for use in parsed(query)}
    unused = [rule for rules in RECORDED.values() for rule in rules if rule.name not in used]
    assert {
        rule.name: names for rule in unused if (names := lacking([rule.expr], Sets.LEAN, rule.name))
    } == {}


def test_the_rules_of_diagnose_read_only_what_lean_has() -> None:
    """`diagnose --prometheus` selects `roce_.+`, so that what it can judge is what the set has."""
    who = "diagnose --prometheus"
    lean = {name for name in {*ROWS_OF_RULES, PROBE} if Sets.LEAN.includes(ROWS[name].metric_set)}
    assert {*ROWS_OF_RULES, PROBE} - lean == set(NOT_SERVED.get(who, ()))


# ---- labels and values that a set leaves out


def excludes(use: Use, value: float) -> bool:
    """Whether a comparison with a number leaves out samples of this value."""
    if use.compared is None or set(use.calls) & RATES:
        return False
    operator, number = use.compared
    kept = {
        "==": value == number,
        "!=": value != number,
        ">": value > number,
        "<": value < number,
        ">=": value >= number,
        "<=": value <= number,
    }
    return not kept[operator]


def is_about_problems(use: Use, row: Row) -> bool:
    return row.usual is not None and excludes(use, row.usual)


def depends_on_dropped_labels(use: Use) -> bool:
    """Whether a selector of a collapsed metric needs the labels that its ordinary series does not have."""
    names = names_of(use) & COLLAPSED
    if not names or all(is_about_problems(use, ROWS[name]) for name in names):
        return False
    return bool((use.matched | use.around) & DROPPED)


def everything() -> Iterator[tuple[str, str]]:
    """Name and expression of each rule, text and panel."""
    for rule in RULES:
        yield from ((rule.name, one) for one in of_rule(rule))
    for place in BOARDS:
        yield from ((place.stem, one) for one in board_queries(place))


def test_no_query_needs_a_label_that_a_collapsed_metric_drops() -> None:
    found = {
        (who, use.name) for who, one in everything() for use in parsed(one) if depends_on_dropped_labels(use)
    }
    assert found == set()


def test_a_query_of_a_usual_value_is_found() -> None:
    """The check above is not blind."""
    (plain,) = uses('count by (device) (roce_exporter_source_up{source="dcb"})')
    (of_problems,) = uses("count by (device) (roce_exporter_source_up == 0)")
    (of_all,) = uses("count by (source) (roce_exporter_source_up == 1)")
    (asked,) = uses('roce_exporter_source_up{device="mlx5_0"} == 1')
    assert [depends_on_dropped_labels(use) for use in (plain, of_problems, of_all, asked)] == [
        True,
        False,
        False,
        True,
    ]


def unseen_first_events(rule: Rule) -> set[str]:
    """Sparse counters whose growth an alert reads and whose first value, which comes from nowhere, it does not.

    A counter that is missing while it is 0 has no growth from 0 to its first value (`increase` needs two samples). The rule must
    read the counter itself too, where it was missing before: `increase(x[5m]) > 0 or (x unless x offset 5m)`. Rates are of what
    goes on: they are seen from the second sample on.
    """
    found = list(reads(rule.expr))
    grown = {name for use in found if "increase" in use.calls for name in names_of(use) & SPARSE}
    plain = {name for use in found if not set(use.calls) & RATES for name in names_of(use)}
    past = {name for use in found if use.past for name in names_of(use)}
    return {name for name in grown if ROWS[name].kind == COUNTER} - (plain & past)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule.name)
def test_an_alert_sees_the_first_event_of_a_sparse_counter(rule: Rule) -> None:
    assert not unseen_first_events(rule)


def test_no_page_depends_on_a_sparse_counter_alone() -> None:
    pages = {rule.name: unseen_first_events(rule) for rule in ALERTS if rule.labels["severity"] == "page"}
    assert {name: names for name, names in pages.items() if names} == {}


def test_the_lists_of_exceptions_name_existing_things() -> None:
    known = {rule.name for rule in RULES} | set(BOARD_SETS) | {"diagnose --prometheus"}
    assert set(NOT_SERVED) <= known
    assert {name for reasons in NOT_SERVED.values() for name in reasons} <= set(ROWS)


# ---- documents


@pytest.mark.slow
def test_the_tables_are_those_of_the_simulated_hosts() -> None:
    """Rewrite them with `make generate`."""
    assert (ROOT / "docs/metric-sets.md").read_text() == metric_sets()
