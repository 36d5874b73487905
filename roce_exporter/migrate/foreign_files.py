"""A file of other exporters' names: a dashboard, rules, or PromQL alone.

Rule files of Prometheus, Mimir and VictoriaMetrics, the PrometheusRule of its operator, and provisioned alerts of Grafana, in the
formats of https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/ and
https://grafana.com/docs/grafana/latest/alerting/set-up/provision-alerting-resources/file-provisioning/.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from roce_exporter.migrate.dashboards import translate_dashboard
from roce_exporter.migrate.places import Place, YamlDocument, at, items, read_yaml, strings_of
from roce_exporter.migrate.promql import PromqlError, parse
from roce_exporter.migrate.promql_names import Names, UntranslatedError
from roce_exporter.migrate.translation import FileReport, Translation, UnreadableError, template_of, translate
from roce_exporter.yaml_document import DocumentError

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
    for place, scalar in document.scalars.items():
        one = scalar.value
        if place not in report.seen and (found := report.named(one)):
            (report.note if "query" not in one else report.leave)(place, "", f"the text mentions {found[0]}")
    changed = {place: one for place, one in new.items() if one != document.scalars[place].value}
    report.translated += len(changed)
    written = document.replaced(changed) if changed else text
    if written is None:
        raise UnreadableError("could not be written with its comments; please report this file")
    return written


def recorded(path: Path, text: str, names: Names) -> Names:
    """The names with the recording rules of a file, if it has any: they stay, and some have other labels after the translation."""
    if kind_of(path, text) != RULES:
        return names
    try:
        rules = [rule for _, rule in _rules(read_yaml(path, text)) if isinstance(rule.get("record"), str)]
    except DocumentError:
        return names  # the translation of this file will say so
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
        seen = sorted({pair for one in translations for source in one.flow for pair in source.seen})
        if "record" not in rule and seen:
            others = ", ".join(f"`{old}` is `{new}`" if new else f"`{old}` is gone" for old, new in seen)
            report.note(
                place, title, f"labels of the alert: {others}; check routes, inhibitions and silences"
            )
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


DASHBOARD, RULES, PROMQL = "dashboard", "rules", "promql"
LARGEST = {DASHBOARD: 16 << 20, RULES: 1 << 20, PROMQL: 1 << 20}
"""Bytes. PyYAML takes eight seconds for a mebibyte."""
SUFFIXES = {".json": DASHBOARD, ".yml": RULES, ".yaml": RULES, ".rules": RULES, ".promql": PROMQL}


def text_of_file(content: bytes) -> str:
    """The text of a file. Raises UnreadableError: it is empty, binary or not UTF-8."""
    if not content.strip():
        raise UnreadableError("is empty")
    if len(content) > max(LARGEST.values()):
        raise UnreadableError(f"is larger than {max(LARGEST.values()) >> 20} MiB")
    if b"\0" in content:
        raise UnreadableError("is not text: it has NUL bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"is not UTF-8 text, at byte {error.start}") from None


def kind_of(path: Path, text: str) -> str:
    """What a file is: by its suffix, else by its first character and the keys of rule files."""
    if kind := SUFFIXES.get(path.suffix.lower()):
        return kind
    if text.lstrip().startswith("{") and not _is_promql(text):
        return DASHBOARD
    keys = ("groups:", "kind:", "apiVersion:")
    return RULES if any(line.lstrip("- ").startswith(keys) for line in text.splitlines()) else PROMQL


def translate_file(path: Path, text: str, report: FileReport) -> str:
    """The text by our names; `report` has what was done. Raises UnreadableError: it is not what it seems to be."""
    kind = kind_of(path, text)
    if len(text) > LARGEST[kind]:
        raise UnreadableError(f"is larger than {LARGEST[kind] >> 20} MiB")
    if kind == DASHBOARD:
        return translate_dashboard(text, report)
    if kind == PROMQL:
        return _translate_promql(text, report)
    try:
        return translate_rules(path, text, report)
    except DocumentError as error:
        raise UnreadableError(str(error).removeprefix(str(path)).lstrip(": ")) from None


def _translate_promql(text: str, report: FileReport) -> str:
    """One expression, or one on each line."""
    if _is_promql(text):
        return _translate_expression(text, "", report)
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if _blank(line):
            continue
        try:
            parse(line)
        except PromqlError as error:
            why = f"is not a dashboard, not rules and not PromQL: line {number}: {error}"
            raise UnreadableError(why) from None
    return "".join(
        line if _blank(line) else _translate_expression(line, f"line {number}", report)
        for number, line in enumerate(lines, 1)
    )


def _translate_expression(text: str, place: str, report: FileReport) -> str:
    found = report.expression(text, (place,) if place else (), "")
    if found is None or found.text == text:
        return text
    report.translated += 1
    return found.text


def _blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _is_promql(text: str) -> bool:
    try:
        parse(text)
    except PromqlError:
        return False
    return True
