"""A board as Grafana's Classic JSON, which Grafana 10 to 13 and grafana.com accept."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING

from boards.measures import ROWS
from boards.model import WIDTH, Annotation, Board, Json, Panel, Query, Row, Variable
from roce_exporter.catalog.row import MetricSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boards.model import Board, Panel
    from roce_exporter.catalog.row import Row

SCHEMA = 39
"""The schema version of Grafana 10.4; newer versions migrate it on load."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
IGNORE_NO_VALUE = {"state-timeline", "status-history", "heatmap"}
"""Panels that show Grafana's own message if there is no data, so that their queries must always return a result."""


def document(board: Board, boards: tuple[Board, ...]) -> Json:
    """The dashboard, with links to the others of `boards`. Deterministic: the same board gives the same document."""
    return {
        "__requires": [{"type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.0.0"}],
        "uid": board.uid,
        "id": None,
        "title": board.title,
        "description": description_of_board(board),
        "tags": ["roce", "rdma"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": board.time, "to": "now"},
        "timepicker": {},
        "timezone": "",
        "weekStart": "",
        "fiscalYearStartMonth": 0,
        "liveNow": False,
        "links": [_link(board, other) for other in boards if other.uid != board.uid],
        "annotations": {"list": [_built_in(), *map(_annotation, board.annotations)]},
        "templating": {"list": [_datasource(), *map(_variable, board.variables)]},
        "panels": list(_rows(board.rows)),
    }


def _link(board: Board, other: Board) -> Json:
    """A link that keeps the time, the data source, and the variables that both boards have."""
    kept = "&".join(
        (
            *(f"${{{name}:queryparam}}" for name in ("datasource", *_shared(board, other))),
            *_renamed(board, other),
        )
    )
    return {
        "type": "link",
        "title": other.title.rpartition(" ")[2],
        "tags": [],
        "asDropdown": False,
        "includeVars": False,
        "keepTime": True,
        "targetBlank": False,
        "icon": "dashboard",
        "tooltip": description_of_board(other),
        "url": f"/d/{other.uid}/{other.uid}?{kept}",
    }


def _shared(board: Board, other: Board) -> Iterator[str]:
    """Variables whose selection is valid on the other board. All is passed only to a variable that offers it, since it would load every host."""
    there = {one.name: one for one in other.variables}
    for one in board.variables:
        if one.name in there and (there[one.name].include_all or not one.include_all):
            yield one.name


def _renamed(board: Board, other: Board) -> Iterator[str]:
    """Values for variables of the other board that have another name there. All is not a value."""
    own = {one.name for one in board.variables if not one.include_all}
    for one in other.variables:
        if one.filled_from in own and one.name not in own:
            yield f"var-{one.name}=${{{one.filled_from}:percentencode}}"


def _built_in() -> Json:
    return {
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "hide": True,
        "iconColor": "rgba(0, 211, 255, 1)",
        "name": "Annotations & Alerts",
        "type": "dashboard",
    }


def _annotation(one: Annotation) -> Json:
    return {
        "name": one.name,
        "datasource": SOURCE,
        "enable": one.enabled,
        "hide": False,
        "iconColor": one.colour,
        "expr": one.expr,
        "titleFormat": one.title,
        "textFormat": one.text,
        "tagKeys": one.tags,
        "step": "60s",
        "useValueForTime": True,
    }


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "regex": "",
        "current": {"text": "default", "value": "default"},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "skipUrlSync": False,
    }


def _variable(one: Variable) -> Json:
    if one.kind == "textbox":
        given = {"text": one.query, "value": one.query}
        return {
            "name": one.name, "label": one.label, "description": one.description, "type": one.kind, "query": one.query,
            "current": given, "options": [given | {"selected": True}], "hide": 0, "includeAll": False, "multi": False, "skipUrlSync": False,
        }  # fmt: skip
    every = {"selected": True, "text": ["All"], "value": ["$__all"]}
    return {
        "name": one.name,
        "label": one.label,
        "description": one.description,
        "type": "query",
        "datasource": SOURCE,
        "definition": one.query,
        "query": {"query": one.query, "refId": f"Variable-{one.name}"},
        "regex": "",
        "refresh": 2,
        "sort": 7,
        "multi": one.multi,
        "includeAll": one.include_all,
        "allValue": one.all_value if one.include_all else None,
        "current": every if one.include_all else {},
        "hide": 2 if one.hidden else 0,
        "options": [],
        "skipUrlSync": False,
    }


def _rows(rows: tuple[Row, ...]) -> Iterator[Json]:
    top, numbers = 0, count(1)
    for row in rows:
        heading = _heading(row, next(numbers), top)
        panels, bottom = _placed(row, numbers, top + 1)
        if row.collapsed:
            yield heading | {"panels": panels}
            top += 1  # its panels take no space until it is opened
        else:
            yield heading
            yield from panels
            top = bottom


def _heading(row: Row, number: int, top: int) -> Json:
    return {
        "id": number,
        "type": "row",
        "title": f"{row.title}: {row.question}" if row.question else row.title,
        "collapsed": row.collapsed,
        "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": top},
        "panels": [],
    }


def _placed(row: Row, numbers: Iterator[int], top: int) -> tuple[list[Json], int]:
    """The row's panels from left to right, with line breaks where they do not fit, and the end of the row."""
    placed, left, height = [], 0, 0
    for panel in row.panels:
        if left + panel.width > WIDTH:
            top, left, height = top + height, 0, 0
        position = {"h": panel.height, "w": panel.width, "x": left, "y": top}
        placed.append(_panel(panel, next(numbers), position))
        left, height = left + panel.width, max(height, panel.height)
    return placed, top + height


def _panel(panel: Panel, number: int, position: Json) -> Json:
    document: Json = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.reading,
        "gridPos": position,
        "options": panel.options,
    }
    document |= {"maxDataPoints": panel.points} if panel.points else {}
    return document | {
        "datasource": SOURCE,
        "targets": [_target(query, LETTERS[place]) for place, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": list(panel.overrides)},
        "transformations": list(panel.transformations),
    }


def _defaults(panel: Panel) -> Json:
    text = text_for_nothing(panel)
    said = {"noValue": text} if text and panel.kind not in IGNORE_NO_VALUE else {}
    return {"unit": panel.unit, "mappings": [], "links": []} | panel.defaults | said


def _target(query: Query, letter: str) -> Json:
    return {
        "refId": letter,
        "datasource": SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "format": query.form,
        "instant": query.instant,
        "range": not query.instant,
        "editorMode": "code",
    }


# ---- what a panel says if its queries have no result, depending on the metric sets of the exporter

_NAME = re.compile(r"(?<![\w:])(roce_\w+?)(?:_bucket|_count|_sum)?(?![\w:])")
_TEXT = re.compile(r'"[^"]*"')
_MISSING = {
    MetricSet.LEAN: "",
    MetricSet.STANDARD: "; not in the metric set lean",
    MetricSet.FULL: "; only in the metric set full",
}


def rows_of(panel: Panel) -> tuple[Row, ...]:
    """The metrics of the exporter that the panel's queries select by name."""
    found = [name for query in panel.queries for name in _NAME.findall(_TEXT.sub("", query.expr))]
    return tuple(ROWS[name] for name in dict.fromkeys(found) if name in ROWS)


def set_of(panel: Panel) -> MetricSet:
    """The smallest metric set that has every metric of the panel."""
    return next(one for one in MetricSet if all(one.includes(row.metric_set) for row in rows_of(panel)))


def text_for_nothing(panel: Panel) -> str:
    """The panel's text, and the metric set that it needs; empty if the panel has no text."""
    text = panel.empty
    return f"{text}{_MISSING[set_of(panel)]}" if text else ""


def description_of_board(board: Board) -> str:
    """The board's description, and the metric sets that have its series."""
    sets = [one for one in MetricSet if one.includes(board.metric_set)]
    return f"{board.description} Metric set of the exporter: {' or '.join(sets)}."
