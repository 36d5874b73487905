"""Break each alert in many ways, and list the breaks that its cases do not notice.

Usage: python tests/mutants/rules.py [ALERT ...]. The exit status is 1 if a break survives that `EQUAL` does not explain.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import promql_parser

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "alerts")]

from alert_checks import problems, run_case
from alert_promtool import name_of, needed, rules_of_cases
from alert_scenario import CASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alert_promtool import Groups

Rule = dict[str, Any]
EQUAL: dict[tuple[str, str], str] = {}
"""Breaks that change nothing which can be seen, with the reason."""

DURATION = r"(\d+)([smhd])\b"
SWAPPED = {"and": "or", "or": "and", "unless": "and"}
REVERSED = {">": "<", "<": ">", ">=": "<", "<=": ">", "==": "!=", "!=": "=="}


class Break(NamedTuple):
    """One change of one rule."""

    what: str
    rule: Rule


def times(text: str, factor: float) -> str:
    """A duration or number multiplied."""
    number, unit = re.fullmatch(r"([\d.e-]+)([smhd]?)", text).groups()
    seconds = float(number) * factor * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
    return f"{seconds:.0f}s" if unit else f"{seconds:.10f}".rstrip("0").rstrip(".")


def breaks(rule: Rule) -> Iterator[Break]:
    """All changes of a rule."""
    for key in ("for", "keep_firing_for"):
        if key in rule:
            yield Break(f"no {key}", {name: value for name, value in rule.items() if name != key})
            for factor in (2, 0.5):
                yield Break(f"{key} x {factor}", rule | {key: times(rule[key], factor)})
    if "alert" in rule:
        for key, other in (("severity", "info"), ("severity", "page"), ("scope", "host"), ("scope", "fabric")):
            if rule["labels"][key] != other:
                yield Break(f"{key} {other}", rule | {"labels": rule["labels"] | {key: other}})
    else:
        for label in rule.get("labels", {}):
            yield Break(f"no label {label}", rule | {"labels": {k: v for k, v in rule["labels"].items() if k != label}})
    for what, expression in changes(rule["expr"]):
        if parses(expression):
            yield Break(what, rule | {"expr": expression})


def changes(expression: str) -> Iterator[tuple[str, str]]:
    """All changes of an expression, not all of which are PromQL."""
    durations = {found[0] for found in re.finditer(DURATION, re.sub(r":\w+", "", expression))}
    for duration in sorted(durations):
        for factor in (2, 0.5):
            pattern = rf"(?<=[\[ ]){duration}(?=[\]: )]|$)"
            yield f"{duration} x {factor}", re.sub(pattern, times(duration, factor), expression)
    for found, at in each(r"(?<=[<>=*] )(\d[\d.e-]*)(?![\w.])|\b\d[\d.e-]*(?= \*)", expression):
        for factor in (2, 0.5):
            if float(found[0]):
                yield f"{found[0]} x {factor}{at}", put(expression, found, times(found[0], factor))
    for found, at in each(r"(?<= )(>=|<=|==|!=|>|<)(?= )", expression):
        yield f"{found[0]} reversed{at}", put(expression, found, REVERSED[found[0]])
    for found, at in each(r"\b(and|or|unless)\b", expression):
        yield f"{found[0]} is {SWAPPED[found[0]]}{at}", put(expression, found, SWAPPED[found[0]])
    for found, at in each(r'(\w+)(?:=|!=|=~|!~)"(?:[^"\\]|\\.)*",?', expression):
        yield f"no {found[0].strip(',')}{at}", put(expression, found, "")
    for group, at in each(r"\b(by|without|on|ignoring|group_left) \(([^)]+)\)", expression):
        labels = re.split(r", *", group[2])
        for fewer in {", ".join(labels[:1]), ", ".join(labels[:-1])} - {group[2]}:
            yield f"{group[1]} ({fewer}){at}", put(expression, group, f"{group[1]} ({fewer})")
    for found, at in each(r"\b(sum|max|min|avg|count)(?= (?:by|without) )", expression):
        other = "avg" if found[0] == "sum" else "sum"
        yield f"{found[0]} is {other}{at}", put(expression, found, other)


def each(pattern: str, text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The places of a pattern outside comments, each with its number."""
    comments = [range(*found.span()) for found in re.finditer(r"#.*", text)]
    found = [one for one in re.finditer(pattern, text) if not any(one.start() in span for span in comments)]
    for number, one in enumerate(found):
        yield one, f" ({number + 1})" if len(found) > 1 else ""


def put(text: str, found: re.Match[str], other: str) -> str:
    """The text with the found part replaced."""
    return text[: found.start()] + other + text[found.end() :]


def parses(expression: str) -> bool:
    """Whether this is PromQL."""
    try:
        promql_parser.parse(expression)
    except ValueError:
        return False
    return True


def noticed(names: set[str], groups: Groups) -> bool:
    """Whether a case of an alert that needs the broken rule fails."""
    for case in CASES:
        if names & {name_of(rule) for group in needed({case.alert}, rules_of_cases()) for rule in group["rules"]}:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    if any(problems(case, run_case(Path(folder), case, groups))):
                        return True
                except AssertionError:  # promtool: a rule fails
                    return True
    return False


def main(wanted: list[str]) -> int:
    """Break the rules of these names, or all."""
    count, survivors = 0, []
    for group in rules_of_cases():
        for position, rule in enumerate(group["rules"]):
            if wanted and name_of(rule) not in wanted:
                continue
            for one in breaks(rule):
                rules = [*group["rules"][:position], one.rule, *group["rules"][position + 1 :]]
                groups = [other | {"rules": rules} if other is group else other for other in rules_of_cases()]
                count += 1
                if not noticed({name_of(rule)}, groups):
                    survivors.append((name_of(rule), one.what))
                    print(f"{name_of(rule)}: {one.what}: {EQUAL.get(survivors[-1], 'SURVIVED')}", flush=True)
    unexplained = [one for one in survivors if one not in EQUAL]
    print(f"{count} breaks, {count - len(survivors)} noticed, {len(unexplained)} unexplained survivors")
    return bool(unexplained)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
