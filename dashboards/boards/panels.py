"""The kinds of panels, each with the same style on every dashboard. Tables are in `tables`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from boards.colours import GOOD, IDENTITY, NOTHING
from boards.limits import steps
from boards.model import Json, Panel, Query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PALETTE = {"mode": "palette-classic"}
NUMBERED = (("mlx5_|mlx5_bond_", 0), ("bnxt_re|bnxt_re_bond|ionic_|irdma|hns_", 4))
"""Device names without the number, by driver, and the index of the colour for the first device."""
SOFT_TOP = {"percentunit": 0.02, "none": 10, "pps": 10, "cps": 10, "s": 0.001}
"""Minimum upper end of an axis, so that zeros do not look like 100 %, and ticks are whole numbers."""

CELLS = 100
"""The most cells of a row of a status history, which shows a text instead of cells narrower than two pixels."""

LINE: Json = {
    "drawStyle": "line",
    "lineInterpolation": "linear",
    "lineWidth": 1,
    "fillOpacity": 0,
    "gradientMode": "none",
    "showPoints": "never",
    "spanNulls": False,
    "axisPlacement": "auto",
    "axisLabel": "",
    "scaleDistribution": {"type": "linear"},
    "stacking": {"mode": "none", "group": "A"},
    "thresholdsStyle": {"mode": "off"},
}
BARS: Json = {"drawStyle": "bars", "fillOpacity": 60, "lineWidth": 0}
DASHED: Json = {"thresholdsStyle": {"mode": "dashed"}}
PER_SERIES = re.compile(r"\{\{(instance|device|netdev|priority|lane|source|queue|priority_group|pool)\}\}")
"""Labels with many values: a panel with one of them in its legend has many lines."""
LIST: Json = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []}
TABLE: Json = LIST | {
    "displayMode": "table",
    "calcs": ["max", "lastNotNull"],
    "sortBy": "Max",
    "sortDesc": True,
}


def lines(
    title: str,
    reading: str,
    unit: str,
    *queries: Query,
    limits: Json | None = None,
    custom: Json | None = None,
    overrides: Sequence[Json] = (),
    minimum: float | None = 0,
    maximum: float | None = None,
    **place: Any,
) -> Panel:
    """Values over time. `limits` are drawn as dashed lines. With many lines, the legend is a table of maximum and last values."""
    defaults: Json = {
        "color": PALETTE,
        "custom": LINE | _soft_top(unit) | (DASHED if limits else {}) | (custom or {}),
        "thresholds": _without_good(limits or steps(base=NOTHING)),
    }
    defaults |= {} if minimum is None else {"min": minimum}
    defaults |= {} if maximum is None else {"max": maximum}
    many = any(PER_SERIES.search(query.legend) for query in queries)
    options = {"legend": TABLE if many else LIST, "tooltip": {"mode": "multi", "sort": "desc"}}
    return Panel(
        "timeseries", title, reading, queries, unit, defaults=defaults,
        overrides=tuple(overrides), options=options, **place,
    )  # fmt: skip


def _soft_top(unit: str) -> Json:
    return {"axisSoftMax": SOFT_TOP[unit]} if unit in SOFT_TOP else {}


def _without_good(limits: Json) -> Json:
    """Limits only: otherwise Grafana would also draw a line where the good range begins."""
    return limits | {"steps": [one for one in limits["steps"] if one["color"] != GOOD]}


def by_port() -> list[Json]:
    """The same colour for a device in all panels of a host, for panels with one line per port.

    By the number in the kernel's names, otherwise by the full name, whose palette has colours that are hard to distinguish.
    """
    by_name = override("byRegexp", "/.*/", [("color", {"mode": "palette-classic-by-name"})])
    return [by_name, *(_numbered(names, first, n) for names, first in NUMBERED for n in range(len(IDENTITY)))]


def _numbered(names: str, first: int, number: int) -> Json:
    colour = IDENTITY[(first + number) % len(IDENTITY)]
    return override("byRegexp", rf"/^({names}){number}\//", [("color", fixed(colour))])


def by_priority() -> list[Json]:
    """The same colour for a priority in all panels of a port, for legends that begin with `p{{priority}}`."""
    return [
        override("byRegexp", rf"/^p{number}\b/", [("color", fixed(colour))])
        for number, colour in enumerate(IDENTITY)
    ]


def mirrored(
    title: str, reading: str, unit: str, above: Query, below: Query, *, overrides: Sequence[Json] = (),
    named_alike: bool = True, **place: Any,
) -> Panel:  # fmt: skip
    """Received above the axis, sent below it. With `named_alike`, both series have one colour and one legend entry."""
    hidden = [("custom.hideFrom", _hidden_in_legend())] if named_alike else []
    turned = by_query("B", ("custom.transform", "negative-Y"), *hidden)
    return lines(title, reading, unit, above, below, overrides=[*overrides, turned], minimum=None, **place)


def _hidden_in_legend() -> Json:
    return {"legend": True, "tooltip": False, "viz": False}


def number(
    title: str,
    reading: str,
    unit: str,
    *queries: Query,
    limits: Json | None = None,
    overrides: Sequence[Json] = (),
    **place: Any,
) -> Panel:
    """One number, or a few; the colour shows whether it is good. Without limits it has no colour."""
    defaults: Json = {"color": {"mode": "thresholds"}, "thresholds": limits or steps(base=NOTHING)}
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": False,
    }
    # otherwise the names of several values would shrink with the longest value
    options |= {"text": {"titleSize": 13, "valueSize": 26}} if len(queries) > 1 else {}
    place = {"width": 4, "height": 3} | place
    return Panel(
        "stat", title, reading, queries, unit, defaults=defaults,
        overrides=tuple(overrides), options=options, **place,
    )  # fmt: skip


def states(
    title: str,
    reading: str,
    mappings: Mapping[float, tuple[str, str]],
    *queries: Query,
    ever: str,
    nothing: tuple[str, str, str],
    **place: Any,
) -> Panel:
    """A state over time, one bar per series. `mappings`: the text and the colour of each value.

    `ever` returns a result if the range shown has any state. Otherwise a bar with the name, text and colour of `nothing` is
    shown, because this panel ignores `noValue`.
    """
    name, *shown = nothing
    absent = Query(f"vector(-1) unless on () ({ever})", name, instead=True)
    defaults: Json = {
        # with the colour mode "thresholds", Grafana would show the names of the steps instead of the mappings
        "color": {"mode": "fixed", "fixedColor": NOTHING},
        "custom": {"fillOpacity": 75, "lineWidth": 0},
        "mappings": [named({-1: (shown[0], shown[1])} | dict(mappings))],
        "thresholds": steps(base=NOTHING),
    }
    options = {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.85,
        "legend": {"showLegend": False, "displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return Panel(
        "state-timeline",
        title,
        reading,
        (*queries, absent),
        "none",
        defaults=defaults,
        options=options,
        **place,
    )


def history(
    title: str, reading: str, unit: str, *queries: Query, limits: Json, ever: str, nothing: str, **place: Any
) -> Panel:
    """Values over time as one row of coloured cells per series, for many series. `limits` are the colours.

    `ever` returns a result if the range shown has any value. Otherwise one row with the name `nothing` is shown, because
    this panel ignores `noValue`. Values are in the tooltip only: Grafana cuts texts that are wider than a cell.
    """
    absent = Query(f"vector(-1) unless on () ({ever})", nothing, instead=True)
    defaults: Json = {
        "color": {"mode": "thresholds"},
        "custom": {"fillOpacity": 80, "lineWidth": 0},
        "thresholds": limits,
    }
    options = {
        "showValue": "never",
        "rowHeight": 0.9,
        "colWidth": 1,
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return Panel(
        "status-history", title, reading, (*queries, absent), unit, defaults=defaults, options=options,
        points=CELLS, **place,
    )  # fmt: skip


def ranking(
    title: str, reading: str, unit: str, query: Query, limits: Json | None = None, **place: Any
) -> Panel:
    """One bar per series, coloured up to its value."""
    defaults: Json = {"color": {"mode": "thresholds"}, "min": 0, "thresholds": limits or steps(base=NOTHING)}
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "displayMode": "basic",
        "orientation": "horizontal",
        "showUnfilled": True,
        "valueMode": "color",
        "namePlacement": "auto",
        "minVizHeight": 16,
        "minVizWidth": 8,
        "sizing": "auto",
    }
    return Panel("bargauge", title, reading, (query,), unit, defaults=defaults, options=options, **place)


def named(texts: Mapping[Any, tuple[str, str]]) -> Json:
    """Grafana's mapping of values or labels to a text and a colour. Without a colour the text is neutral."""
    return {
        "type": "value",
        "options": {
            (value if isinstance(value, str) else f"{value:g}"): {"text": text, "index": position}
            | ({"color": colour} if colour else {})
            for position, (value, (text, colour)) in enumerate(texts.items())
        },
    }


def by_query(letter: str, *properties: tuple[str, Any]) -> Json:
    """An override for all fields of a query."""
    return override("byFrameRefID", letter, properties)


def by_name(name: str, *properties: tuple[str, Any]) -> Json:
    """An override for one field."""
    return override("byName", name, properties)


def all_series(*properties: tuple[str, object]) -> Json:
    """An override for all fields."""
    return override("byRegexp", "/.*/", properties)


def fixed(colour: str) -> Json:
    """Grafana's colour mode for one colour."""
    return {"mode": "fixed", "fixedColor": colour}


def coloured(name: str, colour: str) -> Json:
    """An override that gives a series this colour."""
    return by_name(name, ("color", fixed(colour)))


def override(kind: str, what: str, properties: Sequence[tuple[str, Any]]) -> Json:
    """Grafana's override for the fields that match."""
    return {
        "matcher": {"id": kind, "options": what},
        "properties": [{"id": name, "value": value} for name, value in properties],
    }
