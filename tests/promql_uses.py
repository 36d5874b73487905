"""Which metrics a PromQL expression reads, and how: found in the syntax tree of promql-parser, not by patterns.

Queries of alert texts are in Go templates (`{{ query (printf "..." $x) }}`), queries of dashboards have Grafana's variables; both
become PromQL first.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import promql_parser as promql

NAME = "__name__"


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
    """The labels that aggregations and joins around it name."""
    calls: tuple[str, ...]
    """The functions around it, from outermost to innermost."""


def uses(expression: str) -> list[Use]:
    """The selectors of an expression, in its order.

    Raises:
        ValueError: it is not PromQL.
    """
    return list(_walk(promql.parse(expression), frozenset(), ()))


def joined_into_themselves(expression: str) -> list[str]:
    """The labels into which a label_join writes although it reads them: VictoriaMetrics overwrites them first."""
    found, nodes = [], [promql.parse(expression)]
    while nodes:
        node = nodes.pop()
        match node:
            case promql.Call():
                if node.func.name == "label_join":
                    target, _, *read = (one.val for one in node.args[1:])
                    found += [target] if target in read else []
                nodes += node.args
            case promql.BinaryExpr():
                nodes += [node.lhs, node.rhs]
            case promql.AggregateExpr() | promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
                nodes.append(node.expr)
    return found


def _walk(node: Any, around: frozenset[str], calls: tuple[str, ...]) -> Iterator[Use]:
    match node:
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            yield from _walk(node.expr, around, calls)
        case promql.AggregateExpr():
            labels = frozenset(node.modifier.labels) if node.modifier else frozenset()
            for one in (node.expr, node.param):
                yield from _walk(one, around | labels, (*calls, str(node.op)))
        case promql.Call():
            for one in node.args:
                yield from _walk(one, around, (*calls, node.func.name))
        case promql.BinaryExpr():
            labels = frozenset[str]()
            if node.modifier:
                matching = node.modifier.matching
                labels = frozenset(
                    (*(matching.labels if matching else ()), *(node.modifier.group_labels or ()))
                )
            yield from _walk(node.lhs, around | labels, calls)
            yield from _walk(node.rhs, around | labels, calls)
        case promql.MatrixSelector():
            yield from _walk(node.vector_selector, around, calls)
        case promql.VectorSelector():
            yield _use(node, around, calls)


def _use(node: Any, around: frozenset[str], calls: tuple[str, ...]) -> Use:
    matchers = [*node.matchers.matchers, *(one for group in node.matchers.or_matchers for one in group)]
    name, pattern = node.name or "", ""
    for one in matchers:
        if one.name == NAME and one.op == promql.MatchOp.Equal:
            name = one.value
        elif one.name == NAME:
            pattern = one.value
    matched = frozenset(one.name for one in matchers) - {NAME}
    return Use(name, pattern, matched, around, calls)


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


# ---- how Grafana changes a query before it sends it: variables with values, and intervals

INTERVAL = 15
VARIABLE = re.compile(r"\$(?:\{([a-zA-Z_]\w*)(?::\w+)?\}|([a-zA-Z_]\w*))")


def interpolate(expression: str, values: Mapping[str, str], span: int) -> str:
    """The query for a range of `span` seconds. A variable without a value is an error, as it would be a bug."""
    known = {
        "__interval": f"{INTERVAL}s",
        "__rate_interval": f"{4 * INTERVAL}s",
        "__range": f"{span}s",
        **values,
    }
    return VARIABLE.sub(lambda match: known[match[1] or match[2]], expression)


def escaped(value: str) -> str:
    """A selected value of a multi-value variable, inside a string of PromQL."""
    return re.sub(r"([\\.\[\](){}+*?^$|])", r"\\\\\1", value)
