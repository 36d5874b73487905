"""Grafana dashboards: which of their texts are PromQL, and which texts around a query depend on its labels.

The JSON model of https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/: rows of old
dashboards and nested panels, wrapped as the HTTP API gives it, or a library panel. Schema v2 is refused. Queries of variables are not
PromQL but the functions of https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/:
`label_values(metric, label)`, `query_result(query)`, `metrics(pattern)`, or a plain selector.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from roce_exporter.migrate.places import JsonDocument, NotJsonError, Place, at, items, read_json, strings_of
from roce_exporter.migrate.promql_names import UntranslatedError, matching_names
from roce_exporter.migrate.translation import (
    FileReport,
    Translation,
    UnreadableError,
    legend_of,
    mentions_label,
)


@dataclass(slots=True)
class DashboardTexts:
    """One dashboard while it is translated."""

    document: JsonDocument
    report: FileReport
    new: dict[Place, str] = field(default_factory=dict)
    """The texts that change."""
    renamed: set[str] = field(default_factory=set)
    """Labels that are renamed, or lost, anywhere in the dashboard."""
    of_others: list[tuple[Place, str, str, str]] = field(default_factory=list)
    """Variables that list a label of metrics that stay: place, name, query and label."""

    def query(self, place: Place, text: Any, title: str) -> Translation | None:
        """Translate an expression, if there is one."""
        if not isinstance(text, str):
            return None
        found = self.report.expression(text, place, title)
        if found:
            self.change(place, text, found.text)
            self.renamed |= {old for source in found.flow for old, _ in source.seen}
        return found

    def change(self, place: Place, old: str, new: str) -> None:
        """Replace a text."""
        self.report.seen.add(place)
        if new != old:
            self.new[place] = new
            self.report.translated += 1

    def labels(self, place: Place, text: Any, title: str, rename: Callable[[str], str]) -> None:
        """Replace a text in which labels of a query are named; `rename` raises `UntranslatedError` for one without an equal."""
        if not isinstance(text, str):
            return
        try:
            self.change(place, text, rename(text))
        except UntranslatedError as error:
            self.report.leave(place, title, str(error))


_LABEL_VALUES = re.compile(
    r"(\s*label_values\(\s*+)(?:(.*\S)(\s*,\s*))?([a-zA-Z_$][\w$]*)(\s*\)\s*)", re.DOTALL
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
    found, regex = next(filter(None, done.values()), None), variable.get("regex")
    if found and isinstance(regex, str):
        gone = {old for source in found.flow for old, _ in source.seen} | {used.name for used in found.used}
        if words := sorted(gone & set(re.findall(r"\w+", regex))):
            why = f"it mentions {words[0]}, which the query no longer has"
            dashboard.report.leave((*place, "regex"), title, why)


def _query(dashboard: DashboardTexts, place: Place, text: str, title: str) -> Translation | None:
    if match := _LABEL_VALUES.fullmatch(text):
        return _label_values(dashboard, place, match, title)
    if match := _METRICS.fullmatch(text):
        if refused := matching_names(match[1], dashboard.report.names, whole=False):
            dashboard.report.leave(place, title, f"it lists metrics by a pattern, such as {refused[0]}")
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
    left = len(dashboard.report.left)
    found = dashboard.report.expression(selector, place, title, only_series=True)
    if found is None:
        if len(dashboard.report.left) == left and "roce_" not in selector:
            dashboard.of_others.append((place, title, match[0].strip(), label))
        return None
    try:
        new = label if label.startswith("$") else found.label(label)
    except UntranslatedError as error:
        dashboard.report.leave(place, title, str(error))
        return None
    dashboard.change(place, match[0], f"{head}{found.text}{comma}{new}{tail}")
    return found


PARTS = ("panels", "rows", "templating", "annotations")
PROSE = frozenset(
    ("title", "description", "content", "text", "name", "label", "value", "definition", "tooltip")
)
"""Texts for people; a metric that they mention breaks nothing."""
DEPENDENT = ("transformations", "fieldConfig", "options", "links", "alert", "seriesOverrides", "styles")
"""Parts of a panel that can refer to labels and metrics by name."""
OF_PROMETHEUS = re.compile("prom|victoriametrics|mimir|thanos|cortex|^datasource$|^mixed$|^grafana$")
"""Data sources whose queries may be PromQL."""


def translate_dashboard(text: str, report: FileReport) -> str:
    """A dashboard by our names. What cannot be translated stays, and is reported.

    Raises:
        UnreadableError: it is not JSON, no dashboard, or one of a schema that is not supported.
    """
    try:
        document = read_json(text)
    except NotJsonError as error:
        raise UnreadableError(f"is not JSON: {error}") from None
    place = _dashboard_place(document.root)
    dashboard = DashboardTexts(document, report)
    root = at(document.root, *place)
    for number, one in items(root, "templating", "list"):
        translate_variable(dashboard, (*place, "templating", "list", number), one)
    for number, one in items(root, "annotations", "list"):
        _annotation(dashboard, (*place, "annotations", "list", number), one)
    shared = at(root, "__elements")
    elements = shared if isinstance(shared, dict) else {}
    for panel_place, panel in _panels(root, place):
        _panel(dashboard, panel_place, panel, frozenset(elements))
    for key, one in elements.items():
        if isinstance(model := at(one, "model"), dict):
            _panel(dashboard, (*place, "__elements", key, "model"), model, frozenset())
    _ad_hoc(dashboard, root, place)
    _lists_of_others(dashboard)
    _rest(dashboard)
    return document.replaced(dashboard.new)


def _dashboard_place(root: Any) -> Place:
    if not isinstance(root, dict):
        raise UnreadableError("is JSON, but not an object; export the dashboard as JSON")
    places: tuple[Place, ...] = ((), ("dashboard",), ("spec",))
    for place in places:
        found = at(root, *place)
        if isinstance(at(found, "elements"), dict) and at(found, "layout") is not None:
            raise UnreadableError(
                "is a dashboard of schema v2, which is not supported; export it in the classic schema"
            )
        if isinstance(found, dict) and any(isinstance(found.get(part), (list, dict)) for part in PARTS):
            return place
    if isinstance(at(root, "model", "targets"), list):
        return ()
    if isinstance(at(root, "result", "model", "targets"), list):
        return ("result",)
    raise UnreadableError("is not a Grafana dashboard: it has no panels, rows, variables or annotations")


def _panels(root: Any, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Every panel, also those in rows and in collapsed rows."""
    if isinstance(model := at(root, "model"), dict):
        yield (*place, "model"), model
    for number, panel in items(root, "panels"):
        yield (*place, "panels", number), panel
        yield from _panels(panel, (*place, "panels", number))
    for number, row in items(root, "rows"):
        yield from _panels(row, (*place, "rows", number))


def _panel(dashboard: DashboardTexts, place: Place, panel: dict[str, Any], shared: frozenset[str]) -> None:
    title = panel["title"] if isinstance(panel.get("title"), str) else ""
    library = at(panel, "libraryPanel", "uid")
    if isinstance(panel.get("libraryPanel"), dict) and library not in shared and not panel.get("targets"):
        why = "its queries are in a library panel; translate an export of that too"
        dashboard.report.leave((*place, "libraryPanel"), title, why)
    translations: list[Translation] = []
    for number, target in items(panel, "targets"):
        where = (*place, "targets", number)
        source = target.get("datasource") or panel.get("datasource")
        kind = source.get("type") if isinstance(source, dict) else None
        if isinstance(kind, str) and not OF_PROMETHEUS.search(kind):
            continue
        if found := dashboard.query((*where, "expr"), target.get("expr"), title):
            translations.append(found)
            legend = (*where, "legendFormat")
            dashboard.labels(legend, target.get("legendFormat"), title, partial(legend_of, found=found))
    _dependent(dashboard, place, panel, title, translations)


def _dependent(
    dashboard: DashboardTexts,
    place: Place,
    panel: dict[str, Any],
    title: str,
    translations: list[Translation],
) -> None:
    """Report parts of a panel that refer to labels or metrics which its queries no longer have."""
    labels = sorted({old for one in translations for source in one.flow for old, _ in source.seen})
    metrics = sorted({used.name for one in translations for used in one.used})
    for part in DEPENDENT:
        # A key can be the name of a field too.
        for where, text in strings_of(panel.get(part), (*place, part), keys=True):
            words = set(re.findall(r"\w+", text))
            found = [f"the label `{label}`" for label in labels if mentions_label(text, label)]
            if found := found or [metric for metric in metrics if metric in words]:
                why = f"it refers to {found[0]}, which the queries of the panel no longer have"
                dashboard.report.leave(where, title, why)


def _annotation(dashboard: DashboardTexts, place: Place, annotation: dict[str, Any]) -> None:
    title = annotation["name"] if isinstance(annotation.get("name"), str) else ""
    for steps in (("expr",), ("target", "expr")):
        if found := dashboard.query((*place, *steps), at(annotation, *steps), title):
            legend = partial(legend_of, found=found)
            # A list of labels, parted by commas.
            tags = partial(re.sub, r"\w+", lambda match, found=found: found.label(match[0]))
            for key, rename in (("titleFormat", legend), ("textFormat", legend), ("tagKeys", tags)):
                dashboard.labels((*place, key), annotation.get(key), title, rename)


def _lists_of_others(dashboard: DashboardTexts) -> None:
    """Report variables with the targets of another exporter that translated queries select by: every one of them would be empty."""
    used = {name for text in dashboard.new.values() for name in re.findall(r"(?:\$\{?|\[\[)(\w+)", text)}
    for place, name, query, label in dashboard.of_others:
        if name in used and label not in dashboard.report.labels.same:
            why = (
                f"it lists targets of another exporter, {query}, and translated queries select by ${name}: list ours, "
                f"label_values(roce_device_info, instance), or say that both have the same values (--map-label={label})"
            )
            dashboard.report.leave(place, name, why)


def _ad_hoc(dashboard: DashboardTexts, root: Any, place: Place) -> None:
    """Filters that Grafana adds to every query: a label that is renamed in some queries only cannot be renamed there."""
    for number, one in items(root, "templating", "list"):
        for key in ("filters", "baseFilters") if one.get("type") == "adhoc" else ():
            for position, condition in items(one, key):
                if condition.get("key") in dashboard.renamed:
                    where = (*place, "templating", "list", number, key, position, "key")
                    why = f"the label `{condition['key']}` is renamed in some queries"
                    dashboard.report.leave(where, str(one.get("name", "")), why)


def _rest(dashboard: DashboardTexts) -> None:
    """Report the texts that mention other exporters' metrics in places that no rule here is about."""
    report = dashboard.report
    for place, text in strings_of(dashboard.document.root):
        if place in report.seen or not (found := report.named(text)):
            continue
        if place[-1] in PROSE:
            report.note(place, "", f"the text mentions {found[0]}")
        else:
            report.leave(place, "", f"it mentions {found[0]} in a place that is not known to be PromQL")
