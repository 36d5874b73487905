"""Break each alert and what is recorded for it in many ways, and list the breaks that no case of `tests/alerts/cases` notices.

Usage: python tests/mutants/rules.py [--all] [NAME ...], names of alerts or recorded series; --all includes what is recorded. The exit status
is 1 if a smaller share is noticed than `FLOOR`. tests/mutants/README.md has the last result and why breaks survive.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in (".", "alerts")]

from alert_checks import problems, run_case  # noqa: E402 - their folder
from alert_promtool import Groups, name_of, needed, rules_of_cases  # noqa: E402
from alert_scenario import CASES  # noqa: E402

Rule = dict[str, Any]
FLOOR = 0.8
SWAPPED = {"and": "or", "or": "and", "unless": "and"}
REVERSED = {">": "<", "<": ">", ">=": "<", "<=": ">", "==": "!=", "!=": "=="}
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
FACTORS = (2, 0.5)


class Break(NamedTuple):
    """One change of one rule."""

    what: str
    rule: Rule


def times(text: str, factor: float) -> str:
    """A duration or number multiplied."""
    number, unit = re.fullmatch(r"([\d.e-]+)([smhd]?)", text).groups()
    value = float(number) * factor * UNITS[unit]
    return f"{value:.0f}s" if unit else f"{value:.10f}".rstrip("0").rstrip(".")


def fewer(group: re.Match[str]) -> list[str]:
    """A list of labels with the first alone, and without the last."""
    labels = re.split(r", *", group[2])
    kept = {", ".join(labels[:1]), ", ".join(labels[:-1])} - {group[2]}
    return [f"{group[1]} ({text})" for text in sorted(kept)]


CHANGES: tuple[tuple[str, Callable[[re.Match[str]], list[str]]], ...] = (
    # numbers that are compared or multiplied, but 0
    (
        r"(?<=[<>=*] )(?!0(?![.\d]))\d[\d.e-]*(?![\w.])|\b\d[\d.e-]*(?= \*)",
        lambda found: [times(found[0], factor) for factor in FACTORS],
    ),
    (r"(?<= )(>=|<=|==|!=|>|<)(?= )", lambda found: [REVERSED[found[0]]]),
    (r"\b(and|or|unless)\b", lambda found: [SWAPPED[found[0]]]),
    (r'(\w+)(?:=|!=|=~|!~)"(?:[^"\\]|\\.)*",?', lambda _: [""]),
    (r"\b(by|without|on|ignoring) \(([^)]+)\)", fewer),
    (r"\b(sum|max|min|avg|count)(?= (?:by|without) )", lambda found: ["avg" if found[0] == "sum" else "sum"]),
)
"""What is changed in an expression, and into what. Not all results are PromQL."""


def breaks(rule: Rule) -> Iterator[Break]:
    """All changes of a rule."""
    for key in {"for", "keep_firing_for"} & rule.keys():
        yield Break(f"no {key}", {name: text for name, text in rule.items() if name != key})
        for factor in FACTORS:
            yield Break(f"{key} x {factor}", rule | {key: times(rule[key], factor)})
    for key, text in rule.get("labels", {}).items():
        yield Break(f"{key} is not {text}", rule | {"labels": rule["labels"] | {key: "other"}})
    for what, expression in chain(other_windows(rule["expr"]), other_parts(rule["expr"])):
        try:
            promql_parser.parse(expression)
        except ValueError:
            continue
        yield Break(what, rule | {"expr": expression})


def other_windows(expression: str) -> Iterator[tuple[str, str]]:
    """Each duration multiplied, everywhere."""
    for duration in sorted(set(re.findall(r"(?<=[\[ ])\d+[smhd](?=[\]: )]|$)", expression))):
        for factor in FACTORS:
            other = re.sub(rf"(?<=[\[ ]){duration}(?=[\]: )]|$)", times(duration, factor), expression)
            yield f"{duration} x {factor}", other


def other_parts(expression: str) -> Iterator[tuple[str, str]]:
    """One part changed, at each of its places outside comments."""
    comments = [range(*found.span()) for found in re.finditer(r"#.*", expression)]
    for pattern, change in CHANGES:
        places = [
            one
            for one in re.finditer(pattern, expression)
            if not any(one.start() in part for part in comments)
        ]
        for number, found in enumerate(places, 1):
            for other in change(found):
                yield (
                    f"{found[0]} is {other or 'gone'} ({number} of {len(places)})",
                    expression[: found.start()] + other + expression[found.end() :],
                )


def noticed(name: str, groups: Groups) -> bool:
    """Whether a case of an alert that needs the broken rule fails."""
    for case in CASES:
        if name in {
            name_of(rule) for group in needed({case.alert}, rules_of_cases()) for rule in group["rules"]
        }:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    if any(problems(case, run_case(Path(folder), case, groups))):
                        return True
                except AssertionError:  # promtool: a rule fails
                    return True
    return False


def main(*wanted: str) -> int:
    """Break these rules."""
    count, survivors = 0, 0
    for group in rules_of_cases():
        for position, rule in enumerate(group["rules"]):
            if name_of(rule) not in wanted if set(wanted) - {"--all"} else "record" in rule and not wanted:
                continue
            for one in breaks(rule):
                rules = [*group["rules"][:position], one.rule, *group["rules"][position + 1 :]]
                groups = [other | {"rules": rules} if other is group else other for other in rules_of_cases()]
                count += 1
                if not noticed(name_of(rule), groups):
                    survivors += 1
                    print(f"{name_of(rule)}: {one.what}", flush=True)
    print(f"{count} breaks, {count - survivors} noticed: {1 - survivors / count:.1%}")
    return 1 - survivors / count < FLOOR


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
