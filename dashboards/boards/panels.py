"""The kinds of panels, each with the looks that its kind has on every dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boards.colours import GOOD, NOTHING, PORTS
from boards.limits import steps
from boards.model import Json, Panel, Query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PALETTE = {"mode": "palette-classic"}
NUMBERED = (("mlx5_|mlx5_bond_", 0), ("bnxt_re|bnxt_re_bond|ionic_|irdma|hns_", 4))
"""How drivers name devices before the number, and the first one's place among the colours."""
SOFT_TOP = {"percentunit": 0.02, "none": 1, "pps": 1, "cps": 1, "s": 0.001}
"""How far an axis reaches at least, so that nothing but zeros does not look like 100 %."""

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
LOGARITHMIC: Json = {"scaleDistribution": {"type": "symlog", "log": 10, "linearThreshold": 1}}
"""Also shows 0."""
DASHED: Json = {"thresholdsStyle": {"mode": "dashed"}}


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
    """Values over time. `limits` are drawn as dashed lines."""
    defaults: Json = {
        "color": PALETTE,
        "custom": LINE | _soft_top(unit) | (DASHED if limits else {}) | (custom or {}),
        "thresholds": limits or steps(),
    }
    defaults |= {} if minimum is None else {"min": minimum}
    defaults |= {} if maximum is None else {"max": maximum}
    options = {
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return Panel(
        "timeseries", title, reading, queries, unit, defaults=defaults,
        overrides=tuple(overrides), options=options, **place,
    )  # fmt: skip


def _soft_top(unit: str) -> Json:
    return {"axisSoftMax": SOFT_TOP[unit]} if unit in SOFT_TOP else {}


def by_port() -> list[Json]:
    """The same colour for a device in all panels of a host: for panels with one line per port.

    By the number in the kernel's names, else by the whole name, whose palette holds colours that are hard to tell apart.
    """
    by_name = _override("byRegexp", "/.*/", [("color", {"mode": "palette-classic-by-name"})])
    return [by_name, *(_numbered(names, first, n) for names, first in NUMBERED for n in range(len(PORTS)))]


def _numbered(names: str, first: int, number: int) -> Json:
    colour = PORTS[(first + number) % len(PORTS)]
    return _override(
        "byRegexp", rf"/^({names}){number}\//", [("color", {"mode": "fixed", "fixedColor": colour})]
    )


def mirrored(
    title: str,
    reading: str,
    unit: str,
    above: Query,
    below: Query,
    *,
    one_per_port: bool = True,
    **place: Any,
) -> Panel:
    """Received above the axis, sent below it; both have their port's colour, and the legend names it once."""
    turned = by_query("B", ("custom.transform", "negative-Y"), ("custom.hideFrom", _hidden_in_legend()))
    return lines(
        title,
        reading,
        unit,
        above,
        below,
        overrides=[*(by_port() if one_per_port else ()), turned],
        minimum=None,
        **place,
    )


def _hidden_in_legend() -> Json:
    return {"legend": True, "tooltip": False, "viz": False}


def number(
    title: str,
    reading: str,
    unit: str,
    *queries: Query,
    limits: Json | None = None,
    mappings: Sequence[Json] = (),
    graph: bool = True,
    links: Sequence[Json] = (),
    overrides: Sequence[Json] = (),
    **place: Any,
) -> Panel:
    """One number, or a few; its colour says whether it is good. Without limits it has none."""
    defaults: Json = {
        "color": {"mode": "thresholds"},
        "thresholds": limits or steps(base=NOTHING),
        "mappings": list(mappings),
        "links": list(links),
    }
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "area" if graph else "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": True,
    }
    place = {"width": 4, "height": 4} | place
    return Panel(
        "stat", title, reading, queries, unit, defaults=defaults,
        overrides=tuple(overrides), options=options, **place,
    )  # fmt: skip


def states(
    title: str, reading: str, mappings: Mapping[float, tuple[str, str]], *queries: Query, **place: Any
) -> Panel:
    """A state over time, one bar per series. `mappings`: the text and the colour of each value."""
    defaults: Json = {
        "color": {"mode": "thresholds"},
        "custom": {"fillOpacity": 75, "lineWidth": 0, "insertNulls": False, "spanNulls": False},
        "mappings": [named(mappings)],
        "thresholds": steps(base=GOOD),
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
        "state-timeline", title, reading, queries, "none", defaults=defaults, options=options, **place
    )


def table(
    title: str,
    reading: str,
    columns: Sequence[str],
    *queries: Query,
    unit: str = "none",
    names: Mapping[str, str] | None = None,
    overrides: Sequence[Json] = (),
    sort: str = "",
    rarest: bool = False,
    joined: bool = False,
    **place: Any,
) -> Panel:
    """Rows of labels and values. Only the `columns` stay, in this order; `names` renames values, never labels.

    Sorted by the largest of `sort`, or by the smallest when what is `rarest` matters.
    Labels keep their names, for links between dashboards are made of them.
    """
    renamed = dict(names or {})
    keep: Json = {"id": "filterFieldsByName", "options": {"include": {"names": list(columns)}}}
    order: Json = {
        "id": "organize",
        "options": {
            "excludeByName": {},
            "indexByName": {name: position for position, name in enumerate(columns)},
            "renameByName": renamed,
        },
    }
    merge: list[Json] = [{"id": "merge", "options": {}}] if joined else []
    options = {
        "showHeader": True,
        "cellHeight": "sm",
        "footer": {"show": False, "reducer": ["sum"], "countRows": False, "fields": ""},
        "sortBy": [{"displayName": renamed.get(sort, sort), "desc": not rarest}] if sort else [],
    }
    defaults: Json = {
        "color": {"mode": "thresholds"},
        "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "minWidth": 60},
        "thresholds": steps(base=NOTHING),
    }
    # an empty cell would say what the empty panel says; of some, links are made
    dash = _override("byRegexp", "/.*/", [("noValue", "-")])
    bare = _override("byRegexp", "/^(cluster|job|instance)$/", [("noValue", "")])
    return Panel(
        "table", title, reading, queries, unit, defaults=defaults, overrides=(dash, bare, *overrides),
        options=options, transformations=(*merge, keep, order), **place,
    )  # fmt: skip


def ranking(
    title: str, reading: str, unit: str, query: Query, limits: Json | None = None, **place: Any
) -> Panel:
    """One bar per series, the colour as far as the value goes."""
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


def heat(title: str, reading: str, unit: str, query: Query, **place: Any) -> Panel:
    """How observations spread over the buckets of a histogram, over time."""
    options: Json = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "fill": "dark-orange",
                  "scale": "exponential", "exponent": 0.5, "reverse": False},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": True},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit},
        "cellValues": {"unit": "short"},
    }  # fmt: skip
    defaults: Json = {
        "custom": {
            "hideFrom": {"legend": False, "tooltip": False, "viz": False},
            "scaleDistribution": {"type": "linear"},
        }
    }
    return Panel("heatmap", title, reading, (query,), unit, defaults=defaults, options=options, **place)


def named(texts: Mapping[float, tuple[str, str]]) -> Json:
    """Grafana's mapping of values to a text and a colour."""
    return {
        "type": "value",
        "options": {
            f"{value:g}": {"text": text, "color": colour, "index": position}
            for position, (value, (text, colour)) in enumerate(texts.items())
        },
    }


def by_query(letter: str, *properties: tuple[str, Any]) -> Json:
    """An override of everything that a query brings."""
    return _override("byFrameRefID", letter, properties)


def by_name(name: str, *properties: tuple[str, Any]) -> Json:
    """An override of one field."""
    return _override("byName", name, properties)


def coloured(name: str, colour: str) -> Json:
    """A series that always has this colour."""
    return by_name(name, ("color", {"mode": "fixed", "fixedColor": colour}))


def shades(letter: str, colour: str) -> Json:
    """Shades of one colour for all that a query brings."""
    return by_query(letter, ("color", {"mode": "shades", "fixedColor": colour}))


def hidden(name: str) -> Json:
    """A column that links need and readers do not."""
    # Grafana 12 renamed it
    return by_name(name, ("custom.hidden", True), ("custom.hideFrom", {"viz": True}))


def graded(name: str, unit: str, limits: Json) -> Json:
    """A column of numbers whose text takes the colour of the limit that it reaches."""
    return by_name(
        name,
        ("unit", unit),
        ("thresholds", limits),
        ("custom.cellOptions", {"type": "color-text"}),
    )


def _override(kind: str, what: str, properties: Sequence[tuple[str, Any]]) -> Json:
    return {
        "matcher": {"id": kind, "options": what},
        "properties": [{"id": name, "value": value} for name, value in properties],
    }
