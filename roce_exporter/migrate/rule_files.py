"""Rule files of Prometheus, Mimir and VictoriaMetrics, the PrometheusRule of its operator, and provisioned alerts of Grafana.

The formats of https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/ and
https://grafana.com/docs/grafana/latest/alerting/set-up/provision-alerting-resources/file-provisioning/.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roce_exporter.migrate.document_places import Place, at, items, strings_of
from roce_exporter.migrate.label_texts import template_of
from roce_exporter.migrate.promql_labels import UntranslatedError
from roce_exporter.migrate.promql_translation import translate
from roce_exporter.migrate.translation_report import FileReport, UnreadableError
from roce_exporter.migrate.yaml_places import YamlDocument, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from roce_exporter.migrate.promql_names import Names
    from roce_exporter.migrate.promql_translation import Translation

TEMPLATES = ("annotations", "labels")
MOST_RECORDED = 10
"""A recording rule of recording rules of recording rules; longer chains of renamed labels are not followed."""


def translate_rules(path: Path, text: str, report: FileReport) -> str:
    """A rule file by our names. What cannot be translated stays, and is reported.

    Raises:
        UnreadableError: it has no rules, or the result cannot be written.
        DocumentError: it is not YAML, or has an alias.
    """
    document = read_yaml(path, text)
    rules = list(_rules(document))
    if not rules:
        raise UnreadableError("has no rules: no list `groups` with `rules`, also not under `spec`")
    new: dict[Place, str] = {}
    for place, rule in rules:
        new |= _rule(place, rule, report)
    for place, one in _strings(document):
        if place not in report.seen and (found := report.named(one)):
            (report.note if "query" not in one else report.leave)(place, "", f"the text mentions {found[0]}")
    changed = {place: one for place, one in new.items() if one != document.scalars[place].value}
    report.translated += len(changed)
    written = document.replaced(changed) if changed else text
    if written is None:
        raise UnreadableError("could not be written with its comments; please report this file")
    return written


def recorded_in(path: Path, text: str, names: Names) -> Names:
    """The names with the recording rules of a file: they stay, and some have other labels after the translation.

    Raises:
        DocumentError: it is not YAML, or has an alias.
    """
    rules = [rule for _, rule in _rules(read_yaml(path, text)) if isinstance(rule.get("record"), str)]
    names = replace(names, own=names.own | {rule["record"] for rule in rules})
    for _ in range(MOST_RECORDED):
        found = {rule["record"]: flow for rule in rules if (flow := _flow(rule, names))}
        if found.items() <= names.recorded.items():
            break
        names = replace(names, recorded={**names.recorded, **found})
    return names


def _flow(rule: dict[str, Any], names: Names) -> Any:
    """Whose labels the series of a recording rule have, if some of them change."""
    try:
        found = translate(rule["expr"], names) if isinstance(rule.get("expr"), str) else None
    except UntranslatedError:
        return None
    return found.flow if found and any(source.seen for source in found.flow) else None


def _rules(document: YamlDocument) -> Iterator[tuple[Place, dict[str, Any]]]:
    for number, root in enumerate(document.roots):
        yield from _rules_of(root, (number,))
        for item, one in items(root, "items"):
            yield from _rules_of(one, (number, "items", item))


def _rules_of(root: Any, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    steps = ("groups",) if isinstance(at(root, "groups"), list) else ("spec", "groups")
    for number, group in items(root, *steps):
        for position, rule in items(group, "rules"):
            yield (*place, *steps, number, "rules", position), rule


def _rule(place: Place, rule: dict[str, Any], report: FileReport) -> dict[Place, str]:
    """The new texts of one rule."""
    title = next((rule[key] for key in ("alert", "record", "title") if isinstance(rule.get(key), str)), "")
    new: dict[Place, str] = {}
    translations = []
    for steps in (("expr",), *((("data", number, "model", "expr")) for number, _ in items(rule, "data"))):
        text = at(rule, *steps)
        if isinstance(text, str) and (found := report.expression(text, (*place, *steps), title)):
            new[*place, *steps] = found.text
            translations.append(found)
    if translations:
        new |= _templates(place, rule, title, translations, report)
        _note_labels(place, title, rule, translations, report)
    return new


def _templates(
    place: Place, rule: dict[str, Any], title: str, translations: list[Translation], report: FileReport
) -> dict[Place, str]:
    """The templates that refer to labels of the expression."""
    new = {}
    for part in TEMPLATES:
        for where, text in strings_of(rule.get(part), (*place, part)):
            try:
                texts = {template_of(text, one) for one in translations}
            except UntranslatedError as error:
                report.leave(where, title, str(error))
                continue
            if len(texts) > 1:
                report.leave(where, title, "its labels are renamed in some queries of the rule only")
            else:
                new[where] = texts.pop()
    return new


def _note_labels(
    place: Place, title: str, rule: dict[str, Any], translations: list[Translation], report: FileReport
) -> None:
    """Say that an alert has other labels, which routes and silences can name."""
    seen = sorted({pair for one in translations for source in one.flow for pair in source.seen})
    if "record" not in rule and seen:
        text = ", ".join(f"`{new}` instead of `{old}`" if new else f"no `{old}`" for old, new in seen)
        report.note(place, title, f"the alert has the label {text}: check routes, inhibitions and silences")


def _strings(document: YamlDocument) -> Iterator[tuple[Place, str]]:
    return ((place, one.value) for place, one in document.scalars.items())
