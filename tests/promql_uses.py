"""Which metrics a PromQL expression reads, and how: found in the syntax tree of promql-parser, not by patterns.

Queries of alert texts are in Go templates (`{{ query (printf "..." $x) }}`), queries of dashboards have Grafana's variables; both
become PromQL first.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import promql_parser as promql
from dashboards.dashboard_queries import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "__name__"
COMPARISONS = {"==", "!=", ">", "<", ">=", "<="}
MIRRORED = {"==": "==", "!=": "!=", ">": "<", "<": ">", ">=": "<=", "<=": ">="}


@dataclass(frozen=True, slots=True)
class Use:
    """One selector of an expression."""

    name: str
    """The metric; empty if the selector has none."""
    pattern: str
    """The regular expression of a selector by `__name__=~`; empty otherwise."""
    matched: frozenset[str]
    """The labels that its matchers name."""
    around: frozenset[str]
    """The labels that aggregations and joins around it name, up to a comparison with a number."""
    compared: tuple[str, float] | None
    """Operator and number, if the samples are compared with a number before anything else happens to them."""
    calls: tuple[str, ...]
    """The functions around it, from outermost to innermost."""
    past: bool
    """Whether it reads the past (`offset`)."""


def uses(expression: str) -> list[Use]:
    """The selectors of an expression, in its order.

    Raises:
        ValueError: it is not PromQL.
    """
    return list(_walk(promql.parse(expression), frozenset(), None, ()))


def _walk(
    node: Any, around: frozenset[str], compared: tuple[str, float] | None, calls: tuple[str, ...]
) -> Iterator[Use]:
    match node:
        case promql.ParenExpr() | promql.UnaryExpr():
            yield from _walk(node.expr, around, compared, calls)
        case promql.SubqueryExpr():
            yield from _walk(node.expr, around, None, calls)
        case promql.AggregateExpr():
            labels = frozenset(node.modifier.labels) if node.modifier else frozenset()
            for one in (node.expr, node.param):
                yield from _walk(one, around | labels, None, (*calls, str(node.op)))
        case promql.Call():
            for one in node.args:
                # `rate(x[5m]) > 0` compares the rate; whether that is the same question, the caller decides by `calls`.
                yield from _walk(one, around, compared, (*calls, node.func.name))
        case promql.BinaryExpr():
            yield from _binary(node, around, compared, calls)
        case promql.MatrixSelector():
            yield from _walk(node.vector_selector, around, compared, calls)
        case promql.VectorSelector():
            yield _use(node, around, compared, calls)


def _binary(
    node: Any, around: frozenset[str], compared: tuple[str, float] | None, calls: tuple[str, ...]
) -> Iterator[Use]:
    op = str(node.op)
    if op in COMPARISONS and not (node.modifier and node.modifier.return_bool):
        for one, other, sign in ((node.lhs, node.rhs, op), (node.rhs, node.lhs, MIRRORED[op])):
            if isinstance(other, promql.NumberLiteral):
                yield from _walk(one, around, (sign, other.val), calls)
                return
    labels: frozenset[str] = frozenset()
    if node.modifier:
        matching = node.modifier.matching
        labels = frozenset((*(matching.labels if matching else ()), *(node.modifier.group_labels or ())))
    kept = compared if op in {"and", "unless", "or"} else None
    yield from _walk(node.lhs, around | labels, kept, calls)
    yield from _walk(node.rhs, around | labels, kept if op == "or" else None, calls)


def _use(
    node: Any, around: frozenset[str], compared: tuple[str, float] | None, calls: tuple[str, ...]
) -> Use:
    matchers = [*node.matchers.matchers, *(one for group in node.matchers.or_matchers for one in group)]
    name, pattern = node.name or "", ""
    for one in matchers:
        if one.name == NAME and one.op == promql.MatchOp.Equal:
            name = one.value
        elif one.name == NAME:
            pattern = one.value
    matched = frozenset(one.name for one in matchers) - {NAME}
    return Use(name, pattern, matched, around, compared, calls, node.offset is not None)


GRAFANA = {"__interval": "15s", "__rate_interval": "1m", "__range": "1h", "__range_s": "3600"}


def of_grafana(query: str) -> str:
    """A query of a dashboard as PromQL; a variable is `x`, and a number where PromQL needs one.

    Selectors of variables, `label_values(selector, label)`, become the selector.
    """
    if found := re.fullmatch(r"label_values\((.*), \w+\)", query, re.DOTALL):
        query = found[1]
    return VARIABLE.sub(lambda match: GRAFANA.get(match[1] or match[2], "x"), query)


STRING = r'"(?:[^"\\]|\\.)*"'
CALLED = re.compile(rf"query \(printf ({STRING})([^)]*)\)|query ({STRING})")
ASSIGNED = rf":?= ({STRING})"
VERB = re.compile(r"%(?:q|s|v|d|\.\d+f)")


def of_template(text: str) -> Iterator[str]:
    """The queries of a text of an alert, as PromQL. `%q` becomes a string, a variable each constant that the text assigns to it."""
    for called in CALLED.finditer(text):
        formed, arguments = json.loads(called[1] or called[3]), (called[2] or "").split()
        for values in _values(text, VERB.findall(formed), arguments):
            given = iter(values)
            yield VERB.sub(lambda _, given=given: next(given), formed)  # type: ignore[misc]  # ruff's own way to bind a loop variable
    assert len(re.findall(r"\bquery\b", text)) == len(CALLED.findall(text)), (
        f"a query of another form: {text}"
    )


def _values(text: str, verbs: list[str], arguments: list[str]) -> Iterator[list[str]]:
    """The values of the verbs: one list, or one per constant of a variable that is inserted as it is."""
    assert len(verbs) == len(arguments), f"{verbs} for {arguments}"
    plain = ['"x"' if verb == "%q" else "1" for verb in verbs]
    if "%s" not in verbs:
        yield plain
        return
    place = verbs.index("%s")
    constants = re.findall(re.escape(arguments[place]) + " " + ASSIGNED, text)
    assert constants, f"no constant is assigned to {arguments[place]}"
    for one in constants:
        yield [*plain[:place], json.loads(one), *plain[place + 1 :]]
