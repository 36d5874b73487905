"""Which alerts and panels have their data where only another exporter runs: found in the syntax tree of PromQL."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser as promql
import yaml
from compat_rules import facts_of, terms
from promql_uses import of_grafana

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTERS, ETHTOOL, HW_COUNTERS

ROOT = Path(__file__).parents[2]
RULE_FILES = (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml")
BOARDS = sorted(ROOT.glob("dashboards/roce-*.json"))
DRIVER = "mlx5"

ITSELF, NOTHING, PARTLY, ALL = range(-1, 3)
"""How much of an expression has data. Some recording rules read what they recorded before: that adds nothing."""
RDMA_DEVICE, NETDEV = "RDMA device", "network device"
"""What `device` names in series of node_exporter: series of one kind cannot be joined with those of the other."""
PLACES = {"device", "port", "netdev"}


class Source(NamedTuple):
    """An exporter as it is run, and what of a driver it reads."""

    title: str
    exporter: str
    sources: frozenset[str]


SOURCES = (
    Source("node_exporter 1.10 and older", "node_exporter", frozenset({"port", COUNTERS})),
    Source("node_exporter 1.11 and newer", "node_exporter", frozenset({"port", COUNTERS, HW_COUNTERS})),
    Source("the same with `ethtool`", "node_exporter", frozenset({"port", COUNTERS, HW_COUNTERS, ETHTOOL})),
    Source("rdma_exporter", "rdma_exporter", frozenset({COUNTERS, HW_COUNTERS, ETHTOOL})),
    Source("spiderpool", "spiderpool", frozenset({HW_COUNTERS, ETHTOOL})),
)


class Found(NamedTuple):
    """How much of an expression has data, and what its `device` names; nothing where it has no such label."""

    level: int
    kinds: frozenset[str] = frozenset()


@cache
def given(source: Source) -> dict[str, str]:
    """The metrics of ours that the rules give on a host with a NIC of mlx5, with what their `device` names."""
    names = dict.fromkeys(facts_of(source.exporter), RDMA_DEVICE)
    for row in CATALOG:
        for term in terms(source.exporter, row):
            if term.source in source.sources and (not term.dialects or DRIVER in term.dialects):
                unknown = source.exporter == "node_exporter" and term.source == ETHTOOL
                if not unknown or "netdev" in row.labels:
                    names.setdefault(row.name, NETDEV if unknown else RDMA_DEVICE)
    return names


@cache
def rules() -> tuple[dict[str, Any], ...]:
    """Every rule of ours."""
    groups = [group for place in RULE_FILES for group in yaml.safe_load(place.read_text())["groups"]]
    return tuple(rule for group in groups for rule in group["rules"])


def alerts() -> list[tuple[str, str]]:
    """Name and expression of each alert."""
    return [(rule["alert"], rule["expr"]) for rule in rules() if "alert" in rule]


def panels(place: Path) -> Iterator[list[str]]:
    """The queries of each panel of a board, as PromQL."""
    pending = list(json.loads(place.read_text())["panels"])
    while pending:
        panel = pending.pop(0)
        pending = [*panel.get("panels", ()), *pending]
        if queries := [of_grafana(one["expr"]) for one in panel.get("targets", ()) if one.get("expr")]:
            yield queries


def level(source: Source, expression: str) -> int:
    """Whether an expression has all, a part or nothing of its data."""
    return _found(source, expression).level


_running: set[str] = set()


@cache
def _found(source: Source, expression: str) -> Found:
    return _of(source, promql.parse(expression))


def _recorded(source: Source, name: str) -> list[Found]:
    if name in _running:
        return [Found(ITSELF)]
    _running.add(name)
    try:
        return [_found(source, rule["expr"]) for rule in rules() if rule.get("record") == name]
    finally:
        _running.remove(name)


def _of(source: Source, node: Any) -> Found:
    match node:
        case promql.VectorSelector():
            found = _selected(source, node)
        case promql.MatrixSelector():
            found = _selected(source, node.vector_selector)
        case promql.AggregateExpr():
            found = _aggregated(source, node)
        case promql.BinaryExpr():
            found = _binary(source, node)
        case promql.Call():
            inner = [_of(source, one) for one in node.args]
            found = Found(min((one.level for one in inner), default=ALL), _kinds(inner))
        case promql.NumberLiteral() | promql.StringLiteral():
            found = Found(ALL)
        case _:
            found = _of(source, node.expr)
    return found


def _kinds(found: list[Found]) -> frozenset[str]:
    return frozenset().union(*(one.kinds for one in found))


def _aggregated(source: Source, node: Any) -> Found:
    inner = _of(source, node.expr)
    by = set(node.modifier.labels) if node.modifier else set()
    without = node.modifier is not None and str(node.modifier.type).endswith("Without")
    return inner if without or by & PLACES else Found(inner.level)


def _binary(source: Source, node: Any) -> Found:
    left, right = _of(source, node.lhs), _of(source, node.rhs)
    op = str(node.op)
    if ITSELF in (left.level, right.level):
        return max(left, right, key=lambda one: one.level)
    if op == "or":
        best = max(left.level, right.level)
        return Found(best if left.level == right.level else PARTLY, left.kinds | right.kinds)
    if op == "unless":
        # What should be left out is not known.
        return Found(min(left.level, PARTLY) if right.level == NOTHING else left.level, left.kinds)
    if left.kinds and right.kinds and not left.kinds & right.kinds and _joins_by_place(node):
        return Found(NOTHING)
    return Found(min(left.level, right.level), left.kinds or right.kinds)


def _joins_by_place(node: Any) -> bool:
    matching = node.modifier.matching if node.modifier else None
    if matching is None:
        return True
    return not str(matching.type).endswith("Include") or bool(set(matching.labels) & PLACES)


def _selected(source: Source, node: Any) -> Found:
    names = [node.name] if node.name else []
    pattern = ""
    for one in node.matchers.matchers:
        if one.name == "__name__":
            names, pattern = ([one.value], "") if one.op == promql.MatchOp.Equal else ([], one.value)
    kinds = given(source)
    if pattern:
        names = [name for name in kinds if re.fullmatch(pattern, name)]
    if known := [name for name in names if name in kinds]:
        return Found(ALL, frozenset(kinds[name] for name in known))
    recorded = [found for name in names for found in _recorded(source, name)]
    return max(recorded, default=Found(NOTHING), key=lambda one: one.level)
