"""Variables of a Grafana dashboard that query Prometheus.

Their queries are not PromQL but the functions of
https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/: `label_values(metric, label)`, `query_result(query)`,
`metrics(pattern)`, or a plain selector.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from roce_exporter.migrate.document_places import at
from roce_exporter.migrate.promql_labels import UntranslatedError
from roce_exporter.migrate.promql_names import matching_names

if TYPE_CHECKING:
    from roce_exporter.migrate.dashboard_texts import DashboardTexts
    from roce_exporter.migrate.document_places import Place
    from roce_exporter.migrate.promql_translation import Translation

_LABEL_VALUES = re.compile(
    r"(\s*label_values\(\s*)(?:(.+?)(\s*,\s*))?([a-zA-Z_$][\w$]*)(\s*\)\s*)", re.DOTALL
)
_QUERY_RESULT = re.compile(r"(\s*query_result\()(.+)(\)\s*)", re.DOTALL)
_METRICS = re.compile(r"\s*metrics\((.+)\)\s*", re.DOTALL)
TEXTS = (("query",), ("query", "query"), ("definition",))
"""Where the query is: as a text, in an object of Grafana 7 and newer, and once more for people."""


def translate_variable(dashboard: DashboardTexts, place: Place, variable: dict[str, Any]) -> None:
    """Translate the query of one variable; other kinds have none."""
    if variable.get("type") != "query":
        return
    title = str(variable.get("name", ""))
    done: dict[str, Translation | None] = {}
    for steps in TEXTS:
        text = at(variable, *steps)
        if isinstance(text, str) and text in done and done[text] is None:
            dashboard.report.seen.add((*place, *steps))  # reported once
        elif isinstance(text, str):
            done[text] = _query(dashboard, (*place, *steps), text, title)
    if found := next(filter(None, done.values()), None):
        _check_regex(dashboard, (*place, "regex"), variable.get("regex"), title, found)


def _query(dashboard: DashboardTexts, place: Place, text: str, title: str) -> Translation | None:
    if match := _LABEL_VALUES.fullmatch(text):
        return _label_values(dashboard, place, match, title)
    if match := _METRICS.fullmatch(text):
        _refuse_metrics(dashboard, place, match[1], title)
        return None
    match = _QUERY_RESULT.fullmatch(text)
    head, inner, tail = match.groups() if match else ("", text, "")
    found = dashboard.report.expression(inner, place, title, only_series=match is None)
    if found:
        dashboard.change(place, text, head + found.text + tail)
    return found


def _label_values(
    dashboard: DashboardTexts, place: Place, match: re.Match[str], title: str
) -> Translation | None:
    head, selector, comma, label, tail = match.groups()
    dashboard.report.seen.add(place)
    if selector is None:
        return None
    found = dashboard.report.expression(selector, place, title, only_series=True)
    if found is None:
        return None
    try:
        new = label if label.startswith("$") else found.label(label)
    except UntranslatedError as error:
        dashboard.report.leave(place, title, str(error))
        return None
    dashboard.change(place, match[0], f"{head}{found.text}{comma}{new}{tail}")
    return found


def _refuse_metrics(dashboard: DashboardTexts, place: Place, pattern: str, title: str) -> None:
    if found := matching_names(pattern, dashboard.report.names, whole=False):
        dashboard.report.leave(place, title, f"it lists metrics by a pattern, such as {found[0]}")


def _check_regex(dashboard: DashboardTexts, place: Place, text: Any, title: str, found: Translation) -> None:
    """Report a regular expression over results that mentions what is renamed."""
    gone = {old for source in found.flow for old, _ in source.seen} | {used.name for used in found.used}
    if isinstance(text, str) and (words := sorted(gone & set(re.findall(r"\w+", text)))):
        dashboard.report.leave(place, title, f"it mentions {words[0]}, which the query no longer has")
