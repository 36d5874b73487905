"""Tables: columns with fixed widths that fit the panel, and one column that takes the remaining width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boards.colours import NOTHING, SEVERITY
from boards.limits import steps
from boards.model import Json, Panel, Query
from boards.panels import by_name, named, override

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTHS = {
    "alertname": 230, "board": 140, "check": 215, "cluster": 110, "command": 110, "device": 90, "direction": 100, "driver": 90, "dscp": 60,
    "firmware": 120, "hint": 190, "instance": 150, "netdev": 100, "parameter": 250, "port": 50, "kind": 80, "namespace": 110, "owner": 200, "pci": 130, "peer": 130, "pod": 200, "priority": 76, "rdma_device": 110, "reason": 150,
    "role": 60, "severity": 80, "slots": 70, "source": 130, "traffic_class": 110, "type": 110, "user": 80, "value": 120, "version": 90, "workload": 230,
}  # fmt: skip
"""Widths of columns in pixels, enough for their usual contents; other columns get the width of their headings."""
CHARACTER, CELL = 7.5, 30
"""Pixels of a letter in a heading, and of the padding plus the sorting arrow."""
DIRECTIONS = {"receive": ("received", ""), "transmit": ("sent", "")}


WRAPPED = (
    ("custom.cellOptions", {"type": "auto", "wrapText": True}),
    ("custom.wrapText", True),
    ("custom.inspect", True),
)
"""Wrapped text, which Grafana 12 moved out of the options of cells, and an icon that opens the full text."""


def table(
    title: str,
    reading: str,
    columns: Sequence[str],
    *queries: Query,
    unit: str = "none",
    names: Mapping[str, str] | None = None,
    overrides: Sequence[Json] = (),
    concealed: Sequence[str] = ("job",),
    wide: str = "",
    sort: str = "",
    rarest: bool = False,
    joined: bool = False,
    tall: bool = False,
    numeric: Sequence[str] = (),
    **place: Any,
) -> Panel:
    """Rows of labels and values. Only the `columns` are kept, in this order; `names` renames values, never labels.

    `wide` is the column that takes the remaining width, by default the first. `concealed` columns exist for links only.
    `tall` rows have two lines. `numeric` columns are labels with numbers, converted because units and limits need numbers.
    Sorted by the largest value of `sort`, or with `rarest` by the smallest. Labels keep their names, because links between
    dashboards use them.
    """
    renamed = dict(names or {})
    shown = [name for name in columns if name not in concealed]
    defaults: Json = {
        "color": {"mode": "thresholds"},
        "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "minWidth": 60},
        "thresholds": steps(base=NOTHING),
    }
    options = {
        "showHeader": True,
        "cellHeight": "lg" if tall else "sm",
        "sortBy": [{"displayName": renamed.get(sort, sort), "desc": not rarest}] if sort else [],
    }
    widths = [
        by_name(name, ("custom.width", width))
        for name, width in _widths([renamed.get(name, name) for name in shown], wide)
    ]
    everywhere = [
        *_gaps(),
        *widths,
        *(hidden(name) for name in concealed if name in columns),
        *_directions(shown),
    ]
    return Panel(
        "table", title, reading, queries, unit, defaults=defaults, overrides=(*everywhere, *overrides),
        options=options, transformations=_steps(columns, renamed, joined=joined, numeric=numeric), **place,
    )  # fmt: skip


def with_setting(expression: str, setting: str = "setting") -> str:
    """The series with `setting=value` as label `value`, because a value such as 1 means something different for each setting.

    Joined from a copy: VictoriaMetrics overwrites a label into which it joins before it reads it.
    """
    return f'label_join(label_replace({expression}, "plain", "$1", "value", "(.*)"), "value", "=", "{setting}", "plain")'


def _steps(
    columns: Sequence[str], renamed: Json, *, joined: bool, numeric: Sequence[str]
) -> tuple[Json, ...]:
    order = {
        "excludeByName": {},
        "indexByName": {name: position for position, name in enumerate(columns)},
        "renameByName": renamed,
    }
    merge: list[Json] = [{"id": "merge", "options": {}}] if joined else []
    numbers = [{"targetField": name, "destinationType": "number"} for name in numeric]
    convert = (
        [{"id": "convertFieldType", "options": {"fields": {}, "conversions": numbers}}] if numbers else []
    )
    keep = {"id": "filterFieldsByName", "options": {"include": {"names": list(columns)}}}
    return (*merge, *convert, keep, {"id": "organize", "options": order})


def _widths(shown: Sequence[str], wide: str) -> list[tuple[str, int]]:
    flexible = wide or shown[0]
    return [
        (name, max(WIDTHS.get(name, 0), round(len(name) * CHARACTER + CELL)))
        for name in shown
        if name != flexible
    ]


def _gaps() -> list[Json]:
    """Text of empty cells, which would otherwise show the text of the empty panel; some cells are used in links."""
    dash = override("byRegexp", "/.*/", [("noValue", "-")])
    return [dash, override("byRegexp", "/^(cluster|job|instance)$/", [("noValue", "")])]


def _directions(shown: Sequence[str]) -> list[Json]:
    return [by_name("direction", ("mappings", [named(DIRECTIONS)]))] if "direction" in shown else []


def severities() -> Json:
    """The column of an alert's severity."""
    return as_text("severity", named({name: (name, colour) for name, colour in SEVERITY.items()}))


def as_text(name: str, mapping: Json) -> Json:
    """A column that shows values as texts with colours."""
    return by_name(name, ("mappings", [mapping]), ("custom.cellOptions", {"type": "color-text"}))


def hidden(name: str) -> Json:
    """A column that is needed by links only."""
    # Grafana 12 renamed it
    return by_name(name, ("custom.hidden", True), ("custom.hideFrom", {"viz": True}))


def graded(name: str, unit: str, limits: Json) -> Json:
    """A column of numbers in the colour of the limit that they reach."""
    return by_name(
        name, ("unit", unit), ("thresholds", limits), ("custom.cellOptions", {"type": "color-text"})
    )
