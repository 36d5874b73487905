"""The kinds of panels, each with the looks that its kind has on every dashboard. Tables are in `tables`."""

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
"""How drivers name devices before the number, and the first one's place among the colours."""
SOFT_TOP = {"percentunit": 0.02, "none": 10, "pps": 10, "cps": 10, "s": 0.001}
"""How far an axis reaches at least, so that nothing but zeros does not look like 100 %, and ticks are whole numbers."""

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
PER_SERIES = re.compile(r"\{\{(instance|device|netdev|priority|lane|source)\}\}")
"""Labels with many values: a panel with such a legend has many lines."""
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
    """Values over time. `limits` are drawn as dashed lines. Many lines have a table of their largest and latest values."""
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
    """Limits only: from where on it is good would be drawn as a line, too."""
    return limits | {"steps": [one for one in limits["steps"] if one["color"] != GOOD]}


def by_port() -> list[Json]:
    """The same colour for a device in all panels of a host: for panels with one line per port.

    By the number in the kernel's names, else by the whole name, whose palette holds colours that are hard to distinguish.
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
    """Received above the axis, sent below it. Series that are `named_alike` have one colour, and the legend names them once."""
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
    """One number, or a few; its colour says whether it is good. Without limits it has none."""
    defaults: Json = {
        "color": {"mode": "thresholds"},
        "thresholds": limits or steps(base=NOTHING),
    }
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": False,
    }
    # names of several values would shrink with the longest value
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

    `ever` finds something where the range shown has any state. Where it finds nothing a bar says so: its name, its text and
    its colour are `nothing`, for the panel ignores `noValue`.
    """
    name, *shown = nothing
    absent = Query(f"vector(-1) unless on () ({ever})", name, instead=True)
    defaults: Json = {
        # with thresholds as its mode, Grafana would name the steps instead of using the mappings
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


def named(texts: Mapping[Any, tuple[str, str]]) -> Json:
    """Grafana's mapping of values, or of labels, to a text and a colour. Without a colour the text is neutral."""
    return {
        "type": "value",
        "options": {
            (value if isinstance(value, str) else f"{value:g}"): {"text": text, "index": position}
            | ({"color": colour} if colour else {})
            for position, (value, (text, colour)) in enumerate(texts.items())
        },
    }


def by_query(letter: str, *properties: tuple[str, Any]) -> Json:
    """An override of everything that a query returns."""
    return override("byFrameRefID", letter, properties)


def by_name(name: str, *properties: tuple[str, Any]) -> Json:
    """An override of one field."""
    return override("byName", name, properties)


def all_series(*properties: tuple[str, object]) -> Json:
    """An override of everything."""
    return override("byRegexp", "/.*/", properties)


def fixed(colour: str) -> Json:
    """Grafana's colour mode for one colour."""
    return {"mode": "fixed", "fixedColor": colour}


def coloured(name: str, colour: str) -> Json:
    """A series that always has this colour."""
    return by_name(name, ("color", fixed(colour)))


def override(kind: str, what: str, properties: Sequence[tuple[str, Any]]) -> Json:
    """Grafana's override of the fields that a matcher finds."""
    return {
        "matcher": {"id": kind, "options": what},
        "properties": [{"id": name, "value": value} for name, value in properties],
    }
