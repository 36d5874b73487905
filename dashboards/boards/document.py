"""A board as Grafana's Classic JSON, which Grafana 10 to 13 and grafana.com take."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from boards.model import WIDTH, Annotation, Board, Json, Panel, Query, Row, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = 39
"""Grafana 10.4's; newer ones migrate it when they load it."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
AID_HEIGHT = 3


def document(board: Board) -> Json:
    """The dashboard. The same board gives the same document."""
    return {
        "__requires": [{"type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.0.0"}],
        "uid": board.uid,
        "id": None,
        "title": board.title,
        "description": board.description,
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
        "links": [_links()],
        "annotations": {"list": [_built_in(), *map(_annotation, board.annotations)]},
        "templating": {"list": [_datasource(), *map(_variable, board.variables)]},
        "panels": list(_rows(board.rows)),
    }


def _links() -> Json:
    return {
        "type": "dashboards",
        "title": "RoCE",
        "tags": ["roce"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


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
        "enable": True,
        "hide": False,
        "iconColor": one.colour,
        "expr": one.expr,
        "titleFormat": one.title,
        "textFormat": one.text,
        "tagKeys": one.tags,
        "step": "60s",
        "useValueForTime": one.value_is_time,
    }


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "regex": "",
        "current": {},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "skipUrlSync": False,
    }


def _variable(one: Variable) -> Json:
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
        "allValue": one.all_value if one.include_all or one.multi else None,
        "current": every if one.include_all else {},
        "hide": 0,
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
            top += 1  # its panels take no room until it is opened
        else:
            yield heading
            yield from panels
            top = bottom


def _heading(row: Row, number: int, top: int) -> Json:
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": row.collapsed,
        "gridPos": {"h": 1, "w": WIDTH, "x": 0, "y": top},
        "panels": [],
    }


def _placed(row: Row, numbers: Iterator[int], top: int) -> tuple[list[Json], int]:
    """The row's panels from left to right, a new line where the next does not fit, and where the row ends."""
    placed, left, height = [], 0, 0
    for panel in (*_aid(row), *row.panels):
        if left + panel.width > WIDTH:
            top, left, height = top + height, 0, 0
        position = {"h": panel.height, "w": panel.width, "x": left, "y": top}
        placed.append(_panel(panel, next(numbers), position))
        left, height = left + panel.width, max(height, panel.height)
    return placed, top + height


def _aid(row: Row) -> Iterator[Panel]:
    if row.aid:
        options = {"mode": "markdown", "content": row.aid, "code": {"language": "plaintext"}}
        yield Panel(
            "text", "How to read", "What this row is for.", width=WIDTH, height=AID_HEIGHT, options=options
        )


def _panel(panel: Panel, number: int, position: Json) -> Json:
    document: Json = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.reading,
        "gridPos": position,
        "options": panel.options,
    }
    if panel.kind == "text":
        return document
    return document | {
        "datasource": SOURCE,
        "targets": [_target(query, LETTERS[place]) for place, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": list(panel.overrides)},
        "transformations": list(panel.transformations),
    }


def _defaults(panel: Panel) -> Json:
    said = {"noValue": panel.empty} if panel.empty else {}
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
