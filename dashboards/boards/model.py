"""What a dashboard is before it is JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
    """The scenario in which it must find something, where that is another one than the panel's."""
    instead: bool = False
    """Whether it finds something only where the panel's other queries do not."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `proof` names the scenario of the simulated host in which every query of it must find something."""

    kind: str
    title: str
    reading: str
    """How to read it."""
    queries: tuple[Query, ...] = ()
    unit: str = ""
    width: int = 12
    height: int = 8
    empty: str = ""
    """What it shows instead of "No data" when nothing is wrong, or when the NIC does not count it."""
    proof: str = "quiet"
    defaults: Json = field(default_factory=dict)
    """`fieldConfig.defaults` besides the unit."""
    overrides: tuple[Json, ...] = ()
    options: Json = field(default_factory=dict)
    transformations: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A heading with the question that the panels below it answer."""

    title: str
    question: str
    """What the row answers; part of its heading."""
    panels: tuple[Panel, ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A query variable: `label_values(metric{scope}, name)`."""

    name: str
    label: str
    description: str
    query: str
    multi: bool = True
    include_all: bool = True
    all_value: str = ".+"
    """For `$__all`; used only where All can be chosen."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """Marks on the time axis, one per series of the expression. The value of the series, in milliseconds, is the time.

    Grafana makes one shaded region of samples in a row where their own times count, so only onsets are marked.
    """

    name: str
    expr: str
    title: str
    text: str
    colour: str
    tags: str = ""
    enabled: bool = True
    """Whether it is on when the dashboard opens; each can be switched above the panels."""


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
