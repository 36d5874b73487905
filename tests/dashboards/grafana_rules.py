"""How a real Grafana 12.2 treats a dashboard's JSON, as checks: functions from a dashboard to its faults, one sentence each.

`grafana_faults` has the behaviour for each, and a small board that it rejects. They run without Grafana.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from dashboard_contents import FOLDER, Json, panels, read

if TYPE_CHECKING:
    from collections.abc import Iterator

MENU, PADDING, GAP, ROW, COLUMNS = 300, 16, 8, 30, 24
"""Pixels of Grafana's page: the docked menu, the padding of page and panel, the gap and the height of a grid cell."""
NARROW, WIDE = 1366, 1920
CHARACTER, LINE, HEADER = 7.2, 22, 40
"""Pixels of 14 px Inter: the mean character, a line of text, and a panel's header with its icon."""
BAR = 26
"""The minimum height of one bar of a bar gauge in pixels, with the space to the next."""
NAME = 12
"""The height of a row's name beside a status history in pixels; Grafana draws every name."""
CELL = 14
"""Padding of a table's cell, both sides."""
ICON = 52
"""The width that the description's icon and the menu take from a title."""
LEAST = 150
"""The minimum width in pixels of a column without a width, unless `custom.minWidth` of the whole panel is less."""
JUDGING = ("red", "orange", "yellow", "green")
"""Hues that mean good or bad; their shades begin with `light-`, `dark-` and so on."""
CONTENTS = {"alertname": 30, "check": 26, "hint": 20, "instance": 13, "verdict": 27}
"""Letters of the usual content of columns, if longer than their heading."""
SI_RATES = {"pps", "cps"}


def width_of(panel: Json, screen: int = NARROW) -> float:
    """The inner width of a panel in pixels with the menu docked."""
    wide = screen - MENU - 2 * PADDING
    columns = panel["gridPos"]["w"]
    return (wide - GAP * (COLUMNS - 1)) / COLUMNS * columns + GAP * (columns - 1) - PADDING


def height_of(panel: Json) -> int:
    """Pixels of a panel."""
    rows = panel["gridPos"]["h"]
    return int(rows * (ROW + GAP) - GAP)


def _kind(board: Json, *kinds: str) -> Iterator[Json]:
    return (panel for panel in panels(board) if panel["type"] in kinds)


def _defaults(panel: Json) -> Json:
    found: Json = panel["fieldConfig"]["defaults"]
    return found


def _properties(panel: Json, name: str) -> Iterator[tuple[str, object]]:
    """The overrides of one property: the field that each is for, and the value."""
    for override in panel["fieldConfig"]["overrides"]:
        for one in override["properties"]:
            if one["id"] == name:
                yield override["matcher"]["options"], one["value"]


def _expressions(panel: Json) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def timelines_show_their_mappings(board: Json) -> Iterator[str]:
    for panel in _kind(board, "state-timeline"):
        if _defaults(panel)["color"]["mode"] != "fixed":
            yield f"{panel['title']}: colour mode {_defaults(panel)['color']['mode']}"


def annotations_mark_onsets(board: Json) -> Iterator[str]:
    for one in board["annotations"]["list"]:
        if "expr" in one and not one.get("useValueForTime"):
            yield f"{one['name']}: samples in a row become one shaded region"


def _column_widths(panel: Json) -> Iterator[tuple[str, float | None]]:
    """Visible columns by their displayed names, and their fixed widths."""
    fixed = dict(_properties(panel, "custom.width"))
    hidden = {name for name, value in _properties(panel, "custom.hidden") if value}
    (order,) = [change["options"] for change in panel["transformations"] if change["id"] == "organize"]
    for name in order["indexByName"]:
        shown = order["renameByName"].get(name, name)
        if shown not in hidden:
            width = fixed.get(shown)
            yield shown, float(str(width)) if width is not None else None


def columns_fit(board: Json) -> Iterator[str]:
    for panel in _kind(board, "table"):
        if list(_properties(panel, "custom.minWidth")):
            yield f"{panel['title']}: custom.minWidth on a column"
        columns = list(_column_widths(panel))
        flexible = [name for name, width in columns if width is None]
        least = _defaults(panel)["custom"].get("minWidth", LEAST)
        needed = sum(
            width or max(least, CONTENTS.get(name, len(name)) * CHARACTER + CELL) for name, width in columns
        )
        if len(flexible) != 1:
            yield f"{panel['title']}: {flexible} share what the others leave"
        if needed > width_of(panel):
            yield f"{panel['title']}: {needed:.0f} px of columns in {width_of(panel):.0f}"


def headings_of_columns_fit(board: Json) -> Iterator[str]:
    for panel in _kind(board, "table"):
        for name, width in _column_widths(panel):
            if width is not None and width < len(name) * CHARACTER + CELL:
                yield f"{panel['title']}: column {name} is {width:.0f} px wide"


def _passed(board: Json) -> Iterator[tuple[str, str]]:
    """Dashboard and variable of every link that passes a variable on."""
    own = [one["name"] for one in board["templating"]["list"]]
    for link in board["links"]:
        known = re.match(r"/d/([a-z-]+)/", link["url"])
        targets = [known[1]] if known else [place.stem for place in FOLDER.glob("roce-*.json")]
        sent = own if link["includeVars"] else re.findall(r"\$\{(\w+):queryparam\}", link["url"])
        yield from ((target, name) for target in targets for name in sent)


def links_pass_all_only_to_all(board: Json) -> Iterator[str]:
    every = {one["name"] for one in board["templating"]["list"] if one.get("includeAll")}
    for target, name in _passed(board):
        there = {one["name"]: one for one in read(FOLDER / f"{target}.json")["templating"]["list"]}
        if name in every and name in there and not there[name]["includeAll"]:
            yield f"All of {name} goes to {target}, which has none"


def variables_without_all_have_no_value_for_all(board: Json) -> Iterator[str]:
    for one in board["templating"]["list"]:
        if not one["includeAll"] and one.get("allValue"):
            yield f"{one['name']}: $__all in an address would load everything"


def the_default_data_source_is_chosen(board: Json) -> Iterator[str]:
    for one in board["templating"]["list"]:
        if one["type"] == "datasource" and one["current"] != {"text": "default", "value": "default"}:
            yield f"{one['name']}: {one['current']}"


def panels_that_ignore_no_value_always_get_something(board: Json) -> Iterator[str]:
    for panel in _kind(board, "state-timeline", "status-history", "heatmap"):
        if not any("vector(" in expression for expression in _expressions(panel)):
            yield panel["title"]
        if "noValue" in _defaults(panel):
            yield f"{panel['title']}: noValue has no effect"


def nothing_is_not_green(board: Json) -> Iterator[str]:
    for panel in _kind(board, "stat", "bargauge", "table"):
        limits = [_defaults(panel)["thresholds"], *(value for _, value in _properties(panel, "thresholds"))]
        if any(one["steps"][0]["color"].endswith(JUDGING) for one in limits):
            yield panel["title"]


def what_a_number_says_without_data_can_be_read(board: Json) -> Iterator[str]:
    for panel in _kind(board, "stat"):
        text = _defaults(panel)["noValue"]
        if width_of(panel) / (len(text) * 0.62) < CELL:
            yield f"{panel['title']}: {text!r} in {width_of(panel):.0f} px"


def merged_tables_are_never_without_a_row(board: Json) -> Iterator[str]:
    for panel in _kind(board, "table"):
        merged = any(change["id"] == "merge" for change in panel["transformations"])
        if merged and "vector(" not in "".join(_expressions(panel)):
            yield panel["title"]


def heatmaps_leave_out_what_is_idle(board: Json) -> Iterator[str]:
    for panel in _kind(board, "heatmap"):
        if not all("le!~" in expression for expression in _expressions(panel)):
            yield panel["title"]


def cells_can_be_drawn(board: Json) -> Iterator[str]:
    for panel in _kind(board, "status-history"):
        points = panel.get("maxDataPoints", math.inf)
        if points > width_of(panel) / 2:
            yield f"{panel['title']}: {points} points in {width_of(panel):.0f} px"


def cells_have_no_texts(board: Json) -> Iterator[str]:
    for panel in _kind(board, "status-history"):
        if panel["options"].get("showValue") != "never":
            yield panel["title"]


def rows_of_cells_have_room(board: Json) -> Iterator[str]:
    for panel in _kind(board, "status-history"):
        most = [int(number) for one in _expressions(panel) for number in re.findall(r"topk\((\d+)", one)]
        left = height_of(panel) - HEADER - 24 - 24
        if not most or left / max(most) < NAME:
            yield f"{panel['title']}: {most or 'any number of'} rows in {left} px"


def lines_are_not_cut(board: Json) -> Iterator[str]:
    for panel in _kind(board, "timeseries"):
        drawn = _defaults(panel)["custom"]["drawStyle"]
        for expression in _expressions(panel):
            if drawn == "line" and _cuts(expression):
                yield f"{panel['title']}: {expression[-60:]}"


def _cuts(expression: str) -> bool:
    """Whether an expression removes samples by value: a comparison at the end of a part, outside brackets and set operators."""
    outside = expression
    while (inner := re.sub(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]", "", outside)) != outside:
        outside = inner
    parts = re.split(r"\bor\b", outside)
    return any(re.search(r"[<>]=? *[\d.]+\s*$", part) and "and" not in part for part in parts)


def divisors_are_not_zero(board: Json) -> Iterator[str]:
    for panel in _kind(board, "timeseries"):
        for expression in _expressions(panel):
            if re.search(r"/ (sum|max)\b", expression):
                yield f"{panel['title']}: {expression[:60]}"


def axes_are_not_symlog(board: Json) -> Iterator[str]:
    for panel in _kind(board, "timeseries"):
        if _defaults(panel)["custom"]["scaleDistribution"]["type"] == "symlog":
            yield panel["title"]


def axes_of_rates_do_not_count_in_thousandths(board: Json) -> Iterator[str]:
    for panel in _kind(board, "timeseries"):
        soft = _defaults(panel)["custom"].get("axisSoftMax")
        if _defaults(panel)["unit"] in SI_RATES and (soft is None or soft < 10):
            yield f"{panel['title']}: axisSoftMax {soft}"


CODED = {
    "roce_config_trust_dscp": {"0", "1"},
    "roce_config_ets_algorithm": {"0", "1", "2", "255"},
    "roce_config_ets_peer_algorithm": {"0", "1", "2", "255"},
    "roce_config_dcbx_mode": {"0", "4", "5", "6", "8", "9", "10"},
    "roce_config_cm_roce_version": {"1", "2"},
    "roce_config_global_pause_transmit_enabled": {"0", "1"},
    "roce_config_global_pause_receive_enabled": {"0", "1"},
    "roce_config_notification_point_enabled": {"0", "1"},
    "roce_config_reaction_point_enabled": {"0", "1"},
    "roce_config_pfc_peer_enabled": {"0", "1"},
    "roce_pfc_storm_detector_state": {"0", "1", "2", "3", "4"},
    "roce_port_up": {"0", "1"},
    "roce_port_state": {"1", "2", "3", "4", "5"},
    "roce_port_physical_state": {"1", "2", "3", "4", "5", "6", "7"},
    "roce_link_extended_state": {str(code) for code in range(11)},
    "roce_config_tcp_ecn": {"0", "1", "2"},
}
"""Metrics whose values are codes, as their HELP in the catalogue lists them."""


def codes_have_names(board: Json) -> Iterator[str]:
    for panel in _kind(board, "table", "state-timeline"):
        mappings = [_defaults(panel)["mappings"], *(value for _, value in _properties(panel, "mappings"))]
        known = {key for listed in mappings for one in listed for key in one["options"]}
        for metric, codes in CODED.items():
            shown = [one for one in _expressions(panel) if re.search(rf"\b{metric}\{{", one)]
            as_they_are = [one for one in shown if not one.startswith(("count by", "count(", "sum"))]
            if as_they_are and (missing := codes - known):
                yield f"{panel['title']}: {sorted(missing)} of {metric}"


def units_are_on_numbers(board: Json) -> Iterator[str]:
    for panel in _kind(board, "table"):
        converted = {
            one["targetField"]
            for change in panel["transformations"]
            if change["id"] == "convertFieldType"
            for one in change["options"]["conversions"]
        }
        labels = {
            name
            for expression in _expressions(panel)
            for name in re.findall(r'count_values(?: by \([^)]*\))? ?\("(\w+)"', expression)
        }
        for name, _ in _properties(panel, "unit"):
            if name in labels - converted:
                yield f"{panel['title']}: column {name} is text"


MIXED = "roce_dcqcn_parameter"
"""A metric whose values have the unit that a label names."""


def values_of_mixed_units_have_their_own(board: Json) -> Iterator[str]:
    for panel in _kind(board, "table"):
        (order,) = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
        if "value" in order["indexByName"] and MIXED in _expressions(panel)[0]:
            mappings = dict(_properties(panel, "mappings")).get("value", [])
            if not any(one["type"] == "regex" for one in mappings):
                yield panel["title"]


def fingerprints_are_not_shown(board: Json) -> Iterator[str]:
    for panel in _kind(board, "table"):
        if any("count_values" in one and "fingerprint" in one for one in _expressions(panel)):
            yield panel["title"]


def a_count_is_not_graded(board: Json) -> Iterator[str]:
    for panel in _kind(board, "table"):
        if "count_values" in _expressions(panel)[0]:
            for name, _ in _properties(panel, "thresholds"):
                if name != "value":
                    yield f"{panel['title']}: {name} is a count and has a colour"


def plots_have_room(board: Json) -> Iterator[str]:
    for panel in _kind(board, "timeseries", "state-timeline"):
        legend = 24 if panel["options"]["legend"]["showLegend"] else 0
        if panel["options"]["legend"]["displayMode"] == "table":
            legend = 84 if panel["options"]["legend"]["placement"] == "bottom" else 0
        left = height_of(panel) - HEADER - 24 - legend
        if left < 90:
            yield f"{panel['title']}: {left} px"


def sparklines_do_not_cross_numbers(board: Json) -> Iterator[str]:
    for panel in _kind(board, "stat"):
        if panel["options"]["graphMode"] != "none":
            yield panel["title"]


def titles_fit(board: Json) -> Iterator[str]:
    for panel in panels(board):
        icon = ICON if panel["description"] else 0
        if len(panel["title"]) * CHARACTER + icon > width_of(panel):
            yield f"{panel['title']} in {width_of(panel):.0f} px"


def headings_of_rows_fit(board: Json) -> Iterator[str]:
    for panel in board["panels"]:
        if panel["type"] == "row" and len(panel["title"]) * 8.5 > NARROW - MENU - 2 * PADDING:
            yield panel["title"]


def controls_take_two_lines(board: Json) -> Iterator[str]:
    shown = [one for one in board["templating"]["list"] if one["hide"] == 0]
    toggles = [one for one in board["annotations"]["list"] if not one["hide"]]
    links = [link["title"] for link in board["links"] if link["type"] == "link"] or [
        "RoCE / Configuration"
    ] * 5
    pixels = 190 * len(shown) + 90 * len(toggles) + sum(len(title) * CHARACTER + 44 for title in links)
    lines = math.ceil(pixels / (NARROW - MENU - 2 * PADDING))
    if lines > 3 or any(one["multi"] and not one["includeAll"] for one in shown if one["type"] == "query"):
        yield f"{lines} lines of controls"


def bars_fit(board: Json) -> Iterator[str]:
    for panel in _kind(board, "bargauge"):
        for expression in _expressions(panel):
            most = [int(number) for number in re.findall(r"topk\((\d+)", expression)]
            if not most or sum(most) * BAR > height_of(panel) - HEADER:
                yield f"{panel['title']}: {most or 'any number of'} bars"


def colours_are_not_shades(board: Json) -> Iterator[str]:
    for panel in _kind(board, "timeseries"):
        if any(value["mode"] == "shades" for _, value in _properties(panel, "color")):
            yield panel["title"]


def texts_fill_their_panels(board: Json) -> Iterator[str]:
    for panel in _kind(board, "text"):
        header = HEADER if panel["title"] else 0
        text = re.sub(r"[*`]|\]\([^)]*\)", "", panel["options"]["content"])
        for screen, least in ((NARROW, 0.0), (WIDE, 0.6)):
            lines = sum(
                math.ceil(len(one) * CHARACTER / width_of(panel, screen)) or 1 for one in text.splitlines()
            )
            filled = lines * LINE / (height_of(panel) - header - PADDING)
            if not least <= filled <= 1:
                yield f"{panel['title']}: {filled:.0%} of the height at {screen}"


PER_SERIES = re.compile(r"\{\{(instance|device|netdev|priority|lane|source|queue|priority_group|pool)\}\}")


def legends_of_many_series_are_tables(board: Json) -> Iterator[str]:
    for panel in _kind(board, "timeseries"):
        legend = panel["options"]["legend"]
        many = any(PER_SERIES.search(target["legendFormat"]) for target in panel["targets"])
        if many and (legend["displayMode"] != "table" or set(legend["calcs"]) != {"max", "lastNotNull"}):
            yield panel["title"]


def legends_leave_out_what_never_happened(board: Json) -> Iterator[str]:
    for panel in _kind(board, "timeseries"):
        for target in panel["targets"]:
            single = target["expr"].startswith(
                ("sum(", "max(", "round(sum(", "8 * sum(", "sum by (direction)")
            )
            counted = re.search(r"(pfc|discards|transport|ecn|cnp|errors|carrier)\w*_total", target["expr"])
            if counted and not single and "$__range" not in target["expr"]:
                yield f"{panel['title']}: {target['legendFormat']}"
