"""Texts outside of PromQL that refer to labels: legends of Grafana, templates of alerts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.migrate.promql_labels import NAME_LABEL

if TYPE_CHECKING:
    from roce_exporter.migrate.promql_translation import Translation

_IN_LEGEND = re.compile(r"(\{\{\s*)([a-zA-Z_]\w*)(\s*\}\})")
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_IN_TEMPLATE = re.compile(
    r"((?:\$labels|\.Labels)\.)([a-zA-Z_]\w*)|(index\s+(?:\$labels|\.Labels)\s+\")([a-zA-Z_]\w*)(?=\")"
)


def legend_of(text: str, found: Translation) -> str:
    """A legend, `{{device}}`, with the labels of a translated query.

    Raises:
        UntranslatedError: a label has no equal.
    """
    return _IN_LEGEND.sub(lambda match: _legend_label(match, found), text)


def _legend_label(match: re.Match[str], found: Translation) -> str:
    label = match[2]
    if label == NAME_LABEL:
        return match[0]
    values = {dict(source.fixed).get(label) for source in found.flow if source.may_have(label)}
    if len(values) == 1 and (value := next(iter(values))) is not None:
        return value
    return f"{match[1]}{found.label(label)}{match[3]}"


def template_of(text: str, found: Translation) -> str:
    """A template of an alert, `{{ $labels.device }}`, with the labels of a translated expression.

    Raises:
        UntranslatedError: a label has no equal.
    """
    return _TEMPLATE.sub(
        lambda match: _IN_TEMPLATE.sub(lambda one: _template_label(one, found), match[0]), text
    )


def _template_label(match: re.Match[str], found: Translation) -> str:
    before, label = (match[1], match[2]) if match[1] else (match[3], match[4])
    return f"{before}{found.label(label)}" if label != NAME_LABEL else match[0]


def mentions_label(text: str, label: str) -> bool:
    """Whether a text is the label, or refers to it as Grafana's fields, links and templates do."""
    if text == label:
        return True
    name = re.escape(label)
    # ${__field.labels.device}, {{device}}, {device="x"}, labels["device"]
    forms = (rf"labels\.{name}\b", rf"[{{,]\s*{name}\s*[=!}},]", rf"labels\[[\"']{name}[\"']\]")
    return any(re.search(form, text) for form in forms)
