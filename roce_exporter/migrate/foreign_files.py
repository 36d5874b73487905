"""A file of other exporters' names, of any kind that is supported: a dashboard, rules, or PromQL alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.migrate.dashboards import translate_dashboard
from roce_exporter.migrate.promql_tokens import PromqlError
from roce_exporter.migrate.promql_tree import parse
from roce_exporter.migrate.rule_files import recorded_in, translate_rules
from roce_exporter.migrate.translation_report import FileReport, UnreadableError
from roce_exporter.yaml_document import DocumentError

if TYPE_CHECKING:
    from pathlib import Path

    from roce_exporter.migrate.promql_names import Names

DASHBOARD, RULES, PROMQL = "dashboard", "rules", "promql"
KINDS = (DASHBOARD, RULES, PROMQL)
LARGEST = {DASHBOARD: 16 << 20, RULES: 1 << 20, PROMQL: 1 << 20}
"""Bytes. PyYAML takes eight seconds for a mebibyte."""
SUFFIXES = {".json": DASHBOARD, ".yml": RULES, ".yaml": RULES, ".rules": RULES, ".promql": PROMQL}


def text_of_file(content: bytes) -> str:
    """The text of a file.

    Raises:
        UnreadableError: it is empty, binary or not UTF-8.
    """
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
    return (
        RULES
        if any(
            line.lstrip("- ").startswith(("groups:", "kind:", "apiVersion:")) for line in text.splitlines()
        )
        else PROMQL
    )


def recorded(path: Path, text: str, names: Names) -> Names:
    """The names with the recording rules of the file, if it has any."""
    if kind_of(path, text) != RULES:
        return names
    try:
        return recorded_in(path, text, names)
    except DocumentError:
        return names  # the translation of this file will say so


def translate_file(path: Path, text: str, report: FileReport) -> str:
    """The text by our names; `report` has what was done.

    Raises:
        UnreadableError: it is not what it seems to be.
    """
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
            raise UnreadableError(
                f"is not a dashboard, not rules and not PromQL: line {number}: {error}"
            ) from None
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
