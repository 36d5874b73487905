"""The data model of a dashboard, before it is converted to JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from roce_exporter.catalog.row import MetricSet

Json = dict[str, Any]

WIDTH = 24
"""Columns of Grafana's grid."""


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL query of a panel."""

    expr: str
    legend: str = ""
    form: str = "time_series"
    """`time_series`, `table` or `heatmap`."""
    instant: bool = False
    proof: str = ""
    """The scenario in which the query must return a result, if it differs from the panel's."""
    instead: bool = False
    """Whether the query returns a result only if the panel's other queries do not."""


def cell(expr: str, legend: str = "", **more: Any) -> Query:
    """A query of a table: what is so now."""
    return Query(expr, legend, form="table", instant=True, **more)


def nothing(label: str, said: str, found: str) -> Query:
    """The row of a table whose queries find nothing, with a text as this label: a merge of empty frames would show nothing at all."""
    absent = f'label_replace(vector(-1), "{label}", "{said}", "", "") unless on () {found}'
    return cell(absent, instead=True)


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `proof` is the scenario of the simulated host in which each of its queries must return a result."""

    kind: str
    title: str
    reading: str
    """The description: how to read the panel."""
    queries: tuple[Query, ...] = ()
    unit: str = ""
    width: int = 12
    height: int = 8
    empty: str = ""
    """The text instead of "No data" if there are no faults, or if the NIC does not count them."""
    proof: str = "quiet"
    defaults: Json = field(default_factory=dict)
    """`fieldConfig.defaults` in addition to the unit."""
    overrides: tuple[Json, ...] = ()
    options: Json = field(default_factory=dict)
    transformations: tuple[Json, ...] = ()
    points: int = 0
    """The most samples per series, if the panel cannot draw one per pixel."""


@dataclass(frozen=True, slots=True)
class Row:
    """A heading, and the panels below it."""

    title: str
    question: str
    """The question that the row answers; part of its heading."""
    panels: tuple[Panel, ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A query variable: `label_values(metric{scope}, name)`; or a text field, whose `query` is its first text."""

    name: str
    label: str
    description: str
    query: str
    multi: bool = True
    include_all: bool = True
    all_value: str = ".+"
    """The value of `$__all`; used only if All can be selected."""
    hidden: bool = False
    """Whether it is not shown, because it follows from the others."""
    kind: str = "query"
    """`query` or `textbox`."""
    filled_from: str = ""
    """The variable of another dashboard whose value a link passes to this one, if the names differ."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """Marks on the time axis, one per series of the expression. The value of the series is the time in milliseconds.

    Grafana would turn consecutive samples with their own times into one shaded region, so only onsets are marked.
    """

    name: str
    expr: str
    title: str
    text: str
    colour: str
    tags: str = ""
    enabled: bool = True
    """Whether it is on when the dashboard opens; each annotation has a switch above the panels."""


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard."""

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotations: tuple[Annotation, ...] = ()
    time: str = "now-6h"
    metric_set: MetricSet = MetricSet.LEAN
    """The smallest metric set of the exporter with which the board is useful; a panel that needs more says so."""
