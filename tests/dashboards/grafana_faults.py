"""The Grafana behaviours that the boards must respect: the check of each, and a small board that violates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import grafana_rules as check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dashboard_contents import Json


@dataclass(frozen=True, slots=True)
class Rule:
    """A behaviour of Grafana, the check for it, and a board that the check must reject."""

    mechanism: str
    check: Callable[[Json], Iterator[str]]
    fault: Json

    @property
    def name(self) -> str:
        return self.check.__name__


def _panel(kind: str, title: str = "One", **changes: object) -> Json:
    """A panel as in earlier versions of the boards, for the faults below."""
    defaults: Json = {"color": {"mode": "thresholds"}, "unit": "none", "mappings": [], "noValue": "Not measured",
                      "thresholds": {"mode": "absolute", "steps": [{"color": "green", "value": None}]},
                      "custom": {"drawStyle": "line", "scaleDistribution": {"type": "linear"}}}  # fmt: skip
    defaults |= changes.pop("defaults", {})
    legend = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []}
    return {
        "id": 2, "type": kind, "title": title, "description": "Something to read.",
        "gridPos": {"h": changes.pop("h", 8), "w": changes.pop("w", 8), "x": 0, "y": 0},
        "options": {"legend": legend, "graphMode": "area", "content": changes.pop("content", "")},
        "targets": [{"expr": changes.pop("expr", "up"), "legendFormat": changes.pop("legend", "")}],
        "transformations": [{"id": name, "options": options} for name, options in changes.pop("steps", ())],
        "fieldConfig": {"defaults": defaults, "overrides": [
            {"matcher": {"id": "byName", "options": field}, "properties": [{"id": name, "value": value}]}
            for field, name, value in changes.pop("overrides", ())]},
    }  # fmt: skip


def _board(*found: Json, **changes: object) -> Json:
    return {
        "panels": list(found),
        "annotations": {"list": []},
        "templating": {"list": []},
        "links": [],
    } | changes


def _variable(name: str, **changes: object) -> Json:
    return {
        "name": name,
        "type": "query",
        "includeAll": False,
        "multi": False,
        "hide": 0,
        "current": {},
    } | changes


ORDER = ("organize", {"indexByName": {"instance": 0, "hint": 1}, "renameByName": {}})
COUNTED = 'count_values by (cluster) ("value", roce_config_trust_dscp{cluster=~"$cluster"})'
DASHBOARDS = {"type": "dashboards", "title": "RoCE", "url": "", "includeVars": True}
RULES = (
    Rule(
        "with `color.mode: thresholds` and `mergeValues` a state timeline replaces values with the names of threshold steps, and never uses mappings",
        check.timelines_show_their_mappings,
        _board(_panel("state-timeline")),
    ),
    Rule(
        "samples in a row become one region, shaded with a tenth of the colour over the whole panel, and shades add up",
        check.annotations_mark_onsets,
        _board(annotations={"list": [{"name": "Alerts", "expr": 'ALERTS{alertstate="firing"}', "useValueForTime": False}]}),
    ),
    Rule(
        "`custom.minWidth` above the even share widens a table past its panel; one column without a width takes what the others leave",
        check.columns_fit,
        _board(_panel("table", steps=[ORDER], overrides=[("instance", "custom.minWidth", 140)])),
    ),
    Rule(
        "text that does not fit a cell is cut without an ellipsis",
        check.headings_of_columns_fit,
        _board(_panel("table", steps=[ORDER], overrides=[("instance", "custom.width", 40)])),
    ),
    Rule(
        "`includeVars` passes `$__all`, also where the variable has no All, and every host is loaded",
        check.links_pass_all_only_to_all,
        _board(links=[DASHBOARDS], templating={"list": [_variable("instance", includeAll=True)]}),
    ),
    Rule(
        "`allValue` is used for `$__all` from an address even where the variable offers no All",
        check.variables_without_all_have_no_value_for_all,
        _board(templating={"list": [_variable("instance", allValue=".+")]}),
    ),
    Rule(
        "a data source variable without `current` takes the first by name, not the default",
        check.the_default_data_source_is_chosen,
        _board(templating={"list": [_variable("datasource", type="datasource")]}),
    ),
    Rule(
        "state timelines and heatmaps ignore `noValue` and print `Data does not have a time field` or `No data`",
        check.panels_that_ignore_no_value_always_get_something,
        _board(_panel("state-timeline")),
    ),
    Rule(
        "the text for no value has the colour of the first threshold step",
        check.nothing_is_not_green,
        _board(_panel("stat")),
    ),
    Rule(
        "a number's text shrinks until it fits its tile, down to 5 px",
        check.what_a_number_says_without_data_can_be_read,
        _board(_panel("stat", w=3, defaults={"noValue": "No recording rules: load alerts/roce.rules.yml"})),
    ),
    Rule(
        "a merge of empty frames is an empty frame: the table shows neither rows nor `noValue`",
        check.merged_tables_are_never_without_a_row,
        _board(_panel("table", steps=[("merge", {})])),
    ),
    Rule(
        "a heatmap's scale reaches to its fullest cell, so the bucket of idle hides all others",
        check.heatmaps_leave_out_what_is_idle,
        _board(_panel("heatmap", expr="sum by (le) (increase(roce_pfc_pause_ratio_bucket[1m]))")),
    ),
    Rule(
        "a status history with more points than half of its pixels is replaced by a text",
        check.cells_can_be_drawn,
        _board(_panel("status-history")),
    ),
    Rule(
        "a status history cuts the text of a cell to the letters that fit: 12 % may be 1",
        check.cells_have_no_texts,
        _board(_panel("status-history")),
    ),
    Rule(
        "a status history draws the name of every row, one over the other if there are too many",
        check.rows_of_cells_have_room,
        _board(_panel("status-history", expr="topk(64, a)", h=14)),
    ),
    Rule(
        "a comparison removes samples, which leaves gaps in a line",
        check.lines_are_not_cut,
        _board(_panel("timeseries", expr="sum by (priority) (rate(a_total[1m])) > 0")),
    ),
    Rule(
        "one NaN, which a division by zero makes, leaves a graph without a scale and without lines",
        check.divisors_are_not_zero,
        _board(_panel("timeseries", expr="sum(rate(a_total[1m])) / sum(rate(b_total[1m]))")),
    ),
    Rule(
        "a symlog axis has a tick at -1 and one grid line per digit",
        check.axes_are_not_symlog,
        _board(_panel("timeseries", defaults={"custom": {"scaleDistribution": {"type": "symlog"}}})),
    ),
    Rule(
        "an axis that ends at 1 has ticks at tenths, which pps and cps write as hundreds of `m`",
        check.axes_of_rates_do_not_count_in_thousandths,
        _board(_panel("timeseries", defaults={"unit": "pps", "custom": {"axisSoftMax": 1}})),
    ),
    Rule("a code without a value mapping appears as a number", check.codes_have_names, _board(_panel("table", expr=COUNTED))),
    Rule(
        "a unit has no effect on a column that `count_values` made, for labels are text",
        check.units_are_on_numbers,
        _board(_panel("table", expr=COUNTED, overrides=[("value", "unit", "s")])),
    ),
    Rule(
        "a number without a unit is written with as many zeros as it takes: 4 microseconds are 0.00000400",
        check.values_of_mixed_units_have_their_own,
        _board(
            _panel(
                "table",
                expr='count_values by (parameter) ("value", roce_dcqcn_parameter{})',
                steps=[("organize", {"indexByName": {"parameter": 0, "value": 1}, "renameByName": {}})],
            )
        ),
    ),
    Rule(
        "Grafana shows a hash as a number, which means nothing to a reader",
        check.fingerprints_are_not_shown,
        _board(_panel("table", expr='count_values ("value", roce_config_fingerprint{})')),
    ),
    Rule(
        "thresholds colour their own field, here a count, which is neither good nor bad",
        check.a_count_is_not_graded,
        _board(_panel("table", expr=COUNTED, overrides=[("devices", "thresholds", {"steps": [{"color": "text"}]})])),
    ),
    Rule(
        "header, legend and axis take their height first; the plot gets the rest",
        check.plots_have_room,
        _board(_panel("timeseries", h=4)),
    ),
    Rule("the graph of a stat is drawn behind its number", check.sparklines_do_not_cross_numbers, _board(_panel("stat"))),
    Rule("a title that does not fit is cut", check.titles_fit, _board(_panel("stat", "A title of twenty-nine letters", w=3))),
    Rule(
        "the heading of a row is one line",
        check.headings_of_rows_fit,
        _board({"type": "row", "title": "long " * 40, "panels": []}),
    ),
    Rule(
        "variables, switches of annotations and links share lines above the panels; a variable of several values grows with them",
        check.controls_take_two_lines,
        _board(links=[DASHBOARDS], templating={"list": [_variable(name, multi=True) for name in "abcdefgh"]}),
    ),
    Rule(
        "a bar gauge cuts the bars that do not fit its height",
        check.bars_fit,
        _board(_panel("bargauge", expr="topk(20, a)")),
    ),
    Rule(
        "`shades` differ by a few per cent of brightness from series to series",
        check.colours_are_not_shades,
        _board(_panel("timeseries", overrides=[("A", "color", {"mode": "shades"})])),
    ),
    Rule(
        "a text panel has a fixed height, whatever its text",
        check.texts_fill_their_panels,
        _board(_panel("text", content="One line.", h=5, w=24)),
    ),
    Rule(
        "a legend that is a list shows names only, in as many lines as they need",
        check.legends_of_many_series_are_tables,
        _board(_panel("timeseries", legend="{{device}}")),
    ),
    Rule(
        "a legend lists every series that the query returns, also those that are zero throughout",
        check.legends_leave_out_what_never_happened,
        _board(_panel("timeseries", expr="rate(roce_transport_rnr_naks_received_total[1m])", legend="{{device}}")),
    ),
)  # fmt: skip
