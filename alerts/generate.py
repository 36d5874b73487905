"""Write the Prometheus rules: `python alerts/generate.py`.

What an operator edits is `thresholds.yml`. The expressions and texts are `rules/*.yml`, in which `<<name>>` stands for a
threshold of the alert, a shared value or a phrase. The results are `roce.rules.yml` for Prometheus 2.42 and newer, and
`roce.prometheusrule.yml`, the same for the Prometheus operator.
"""

# ruff: noqa: INP001 - a script that stands beside its rules, not a package
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).parent
GROUPS = ("storm", "pause", "congestion", "transport", "link", "optics", "pcie", "config", "exporter")
"""The files under `rules/`, in the order of the result."""
SEVERITIES = ("page", "ticket", "info")
RULE_KEYS = ("severity", "for", "keep_firing_for", "enabled")
"""Keys of an alert in `thresholds.yml` that are its rule's own and no threshold."""
HEADER = (
    "# Made by `python alerts/generate.py` from thresholds.yml and rules/; do not edit.\n"
    "# Prometheus 2.42 or newer: keep_firing_for came with it.\n"
)

WIDTH = 1_000_000
"""Of generated lines: a text is one line, for a break within a template would hide it from a search."""

PLACEHOLDER = re.compile(r"<<(\w+)>>")
DURATION = re.compile(r"([0-9]+(ms|[smhdwy]))+")

Values = dict[str, Any]


class RuleError(ValueError):
    """A threshold, placeholder or alert that does not fit the others; one line that names it."""


class Thresholds(NamedTuple):
    """`thresholds.yml`."""

    shared: Values
    alerts: dict[str, Values]


class Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and lists indented below their key, as people write rules."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's own signature
        """What PyYAML calls before a nested list or mapping."""
        super().increase_indent(flow, indentless=False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Dumper.add_representer(str, _represent_text)


def read_yaml(place: Path) -> Any:
    """What a YAML file holds.

    Raises:
        RuleError: it is no YAML, with the line.
    """
    try:
        return yaml.safe_load(place.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise RuleError(f"{place.name}: {' '.join(str(error).split())}") from error


def read_thresholds(place: Path) -> Thresholds:
    """The operator's values.

    Raises:
        RuleError: a section is missing, or an alert has no or a wrong severity or duration.
    """
    content = read_yaml(place)
    if not isinstance(content, dict) or set(content) != {"shared", "alerts"}:
        raise RuleError(f"{place.name}: must have the two sections `shared` and `alerts`")
    for alert, values in content["alerts"].items():
        _check_alert(f"{place.name}: {alert}", values)
    return Thresholds(content["shared"], content["alerts"])


def _check_alert(where: str, values: Values) -> None:
    if values.get("severity") not in SEVERITIES:
        raise RuleError(f"{where}: severity must be one of {', '.join(SEVERITIES)}")
    for key in ("for", "keep_firing_for", "window"):
        if key in values and not DURATION.fullmatch(str(values[key])):
            raise RuleError(f"{where}: {key} must be a duration such as 5m, not {values[key]!r}")


class Substitution:
    """Puts values for `<<name>>` and remembers which were used, so that a threshold without effect is found."""

    def __init__(self, where: str, values: Values) -> None:
        self.where = where
        self.values = values
        self.used: set[str] = set()

    def text(self, text: str) -> str:
        """The text with every placeholder replaced, also those within what replaced another.

        Raises:
            RuleError: there is no such value.
        """
        while PLACEHOLDER.search(text):
            text = PLACEHOLDER.sub(self._value, text)
        return text

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self.values:
            raise RuleError(f"{self.where}: <<{name}>> is no threshold, shared value or phrase")
        self.used.add(name)
        return number(self.values[name])


def number(value: Any) -> str:
    """A value as PromQL and people read it: 0.00001 and not 1e-05."""
    return f"{value:.10f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value).strip()


def recording_rule(rule: Values, common: Values) -> Values:
    """A recording rule, filled in."""
    fill = Substitution(rule["record"], common).text
    filled = {"record": fill(rule["record"]), "expr": fill(rule["expr"])}
    return filled | ({"labels": rule["labels"]} if "labels" in rule else {})


def alert_rule(rule: Values, thresholds: Thresholds, phrases: Values) -> Values:
    """An alert, filled in, with its runbook.

    Raises:
        RuleError: it has a threshold that it does not use, or uses one that it does not have.
    """
    name = rule["alert"]
    values = thresholds.alerts[name]
    own = {key: value for key, value in values.items() if key not in RULE_KEYS}
    fill = Substitution(name, phrases | thresholds.shared | own | {"alert": name})
    filled: Values = {"alert": name, "expr": fill.text(rule["expr"])}
    filled |= {key: str(values[key]) for key in ("for", "keep_firing_for") if values.get(key, "0s") != "0s"}
    filled["labels"] = {"severity": values["severity"], "scope": rule["scope"]}
    filled["annotations"] = {
        "summary": one_line(fill.text(rule["summary"])),
        "description": one_line(fill.text(rule["description"])),
        "runbook_url": fill.text("<<runbook_base_url>>/<<alert>>.md"),
    }
    if unused := sorted(set(own) - fill.used):
        raise RuleError(f"thresholds.yml: {name}: {', '.join(unused)} has no effect")
    return filled


def one_line(text: str) -> str:
    """A text without line breaks, as every receiver shows it."""
    return " ".join(text.split())


def make_rules(folder: Path = FOLDER) -> Values:
    """The content of the rules file.

    Raises:
        RuleError: thresholds and rules do not fit each other.
    """
    thresholds = read_thresholds(folder / "thresholds.yml")
    phrases = read_yaml(folder / "rules/phrases.yml")
    groups = [_group(name, read_yaml(folder / f"rules/{name}.yml"), thresholds, phrases) for name in GROUPS]
    return {"groups": groups}


def _group(name: str, rules: list[Values], thresholds: Thresholds, phrases: Values) -> Values:
    made = []
    for rule in rules:
        if "record" in rule:
            made.append(recording_rule(rule, phrases | thresholds.shared))
        elif rule["alert"] not in thresholds.alerts:
            raise RuleError(f"thresholds.yml: {rule['alert']} of rules/{name}.yml is missing")
        elif thresholds.alerts[rule["alert"]].get("enabled", True):
            made.append(alert_rule(rule, thresholds, phrases))
    return {"name": f"roce-{name}", "rules": made}


def check_alerts(folder: Path = FOLDER) -> None:
    """Refuse thresholds of alerts that no rule has.

    Raises:
        RuleError: there is such an alert: a name was mistyped.
    """
    written = {rule.get("alert") for name in GROUPS for rule in read_yaml(folder / f"rules/{name}.yml")}
    if strangers := sorted(set(read_thresholds(folder / "thresholds.yml").alerts) - written):
        raise RuleError(f"thresholds.yml: no such alert: {', '.join(strangers)}")


def as_operator_rule(rules: Values) -> Values:
    """The same rules as a PrometheusRule of the Prometheus operator."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "roce-exporter", "labels": {"app.kubernetes.io/name": "roce-exporter"}},
        "spec": rules,
    }


def as_yaml(content: Values) -> str:
    """The text of a generated file."""
    return HEADER + yaml.dump(content, Dumper=Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)


def generated(folder: Path = FOLDER) -> dict[str, str]:
    """The generated files: their text by their name.

    Raises:
        RuleError: thresholds and rules do not fit each other.
    """
    check_alerts(folder)
    rules = make_rules(folder)
    return {"roce.rules.yml": as_yaml(rules), "roce.prometheusrule.yml": as_yaml(as_operator_rule(rules))}


def main() -> int:
    """Write the generated files; 1 and one line on standard error when thresholds and rules do not fit."""
    try:
        files = generated()
    except RuleError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
