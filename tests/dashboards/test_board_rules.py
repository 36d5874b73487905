"""The boards checked against the behaviour of a real Grafana 12.2, which makes a panel show something that is not so, and for what misleads at 3 a.m.

Each rule has its reason, and small boards that it rejects. What depends on pixels is shown by `make pictures`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import yaml
from boards.fleet_where import BOARDS as TARGETS
from boards.written import seen_sum
from dashboard_contents import DASHBOARDS, FOLDER, ROOT, ROWS, Json, panels, read

JUDGING = ("red", "orange", "yellow", "green")
"""Hues that mean good or bad; their shades begin with `light-`, `dark-` and so on."""
YES_OR_NO = """roce_config_trust_dscp roce_config_global_pause_transmit_enabled roce_config_global_pause_receive_enabled roce_port_up
    roce_config_notification_point_enabled roce_config_reaction_point_enabled roce_config_pfc_peer_enabled"""
CODED = {
    **dict.fromkeys(YES_OR_NO.split(), "0 1"),
    "roce_config_ets_algorithm": "0 1 2 255",
    "roce_config_ets_peer_algorithm": "0 1 2 255",
    "roce_config_dcbx_mode": "0 4 5 6 8 9 10",
    "roce_config_cm_roce_version": "1 2",
    "roce_pfc_storm_detector_state": "0 1 2 3 4",
    "roce_port_state": "1 2 3 4 5",
    "roce_port_physical_state": "1 2 3 4 5 6 7",
    "roce_link_extended_state": "0 1 2 3 4 5 6 7 8 9 10",
    "roce_config_tcp_ecn": "0 1 2",
}
"""Metrics whose values are codes, as their HELP in the catalogue lists them."""


Check = Any
"""A function of a board that yields its faults."""


class Rule(NamedTuple):
    """Why, the check of a board, and boards that the check must reject."""

    mechanism: str
    check: Check
    faults: tuple[Json, ...]


RULES: list[Rule] = []


def rule(mechanism: str, *faults: Json) -> Callable[[Check], Check]:
    """Add a rule; its check yields the faults of a board."""

    def added(check: Check) -> Check:
        RULES.append(Rule(mechanism, check, faults))
        return check

    return added


def a_panel(
    kind: str,
    expr: str = "up",
    overrides: tuple[tuple[str, Any], ...] = (),
    steps: tuple[str, ...] = (),
    legend: str = "",
) -> Json:
    defaults = {"color": {"mode": "thresholds"}, "mappings": [], "noValue": "Not measured", "custom": {"drawStyle": "line"},
                "thresholds": {"mode": "absolute", "steps": [{"color": "green", "value": None}]}}  # fmt: skip
    changes = [
        {"matcher": {"options": "value"}, "properties": [{"id": name, "value": value}]}
        for name, value in overrides
    ]
    return {
        "type": kind, "title": "One", "targets": [{"expr": expr, "legendFormat": legend}],
        "transformations": [{"id": name, "options": {}} for name in steps],
        "fieldConfig": {"defaults": defaults, "overrides": changes},
    }  # fmt: skip


def a_board(
    *found: Json, annotation: Json | None = None, link: Json | None = None, **variable: object
) -> Json:
    variables = [{"name": "instance", "type": "query", "includeAll": False} | variable] if variable else []
    return {"panels": list(found), "annotations": {"list": [annotation] if annotation else []},
            "templating": {"list": variables}, "links": [link] if link else []}  # fmt: skip


def of_kind(board: Json, *kinds: str) -> Iterator[tuple[Json, Json, list[str]]]:
    """Panels of these kinds: the panel, the defaults of its fields, and its expressions."""
    for panel in panels(board):
        if panel["type"] in kinds:
            yield panel, panel["fieldConfig"]["defaults"], [target["expr"] for target in panel["targets"]]


def changed(panel: Json, name: str) -> Iterator[tuple[str, Any]]:
    """The overrides of one property: the field that each is for, and the value."""
    for override in panel["fieldConfig"]["overrides"]:
        for one in override["properties"]:
            if one["id"] == name:
                yield override["matcher"]["options"], one["value"]


COUNTED = 'count_values by (cluster) ("value", roce_config_trust_dscp{cluster=~"$cluster"})'


@rule(
    "with `color.mode: thresholds` and `mergeValues` a state timeline replaces values with the names of threshold steps, and never uses mappings",
    a_board(a_panel("state-timeline")),
)
def timelines_show_their_mappings(board: Json) -> Iterator[str]:
    for panel, defaults, _ in of_kind(board, "state-timeline"):
        if defaults["color"]["mode"] != "fixed":
            yield panel["title"]


@rule(
    "samples in a row become one region, shaded with a tenth of the colour over the whole panel, and shades add up",
    a_board(annotation={"name": "Alerts", "expr": 'ALERTS{alertstate="firing"}', "useValueForTime": False}),
)
def annotations_mark_onsets(board: Json) -> Iterator[str]:
    for one in board["annotations"]["list"]:
        if "expr" in one and not one.get("useValueForTime"):
            yield one["name"]


@rule(
    "`includeVars` passes `$__all`, also where the variable has no All, and every host is loaded",
    a_board(link={"url": "/d/roce-host/", "includeVars": True}, includeAll=True),
)
def links_pass_all_only_to_all(board: Json) -> Iterator[str]:
    every = {one["name"] for one in board["templating"]["list"] if one.get("includeAll")}
    for link in board["links"]:
        target = read(FOLDER / f"{link['url'].split('/')[2]}.json")["templating"]["list"]
        sent = every if link["includeVars"] else {*re.findall(r"\$\{(\w+):queryparam\}", link["url"])}
        yield from (one["name"] for one in target if one["name"] in every & sent and not one["includeAll"])


@rule(
    "`allValue` is used for `$__all` from an address even where the variable offers no All",
    a_board(allValue=".+"),
)
def variables_without_all_have_no_value_for_all(board: Json) -> Iterator[str]:
    for one in board["templating"]["list"]:
        if not one["includeAll"] and one.get("allValue"):
            yield one["name"]


@rule(
    "a data source variable without `current` takes the first by name, not the default",
    a_board(type="datasource", current={}),
)
def the_default_data_source_is_chosen(board: Json) -> Iterator[str]:
    for one in board["templating"]["list"]:
        if one["type"] == "datasource" and one["current"] != {"text": "default", "value": "default"}:
            yield one["name"]


@rule(
    "state timelines ignore `noValue` and print `Data does not have a time field`",
    a_board(a_panel("state-timeline")),
)
def panels_that_ignore_no_value_always_get_something(board: Json) -> Iterator[str]:
    for panel, defaults, expressions in of_kind(board, "state-timeline", "status-history"):
        if not any("vector(" in one for one in expressions) or "noValue" in defaults:
            yield panel["title"]


@rule("the text for no value has the colour of the first threshold step", a_board(a_panel("stat")))
def nothing_is_not_green(board: Json) -> Iterator[str]:
    for panel, defaults, _ in of_kind(board, "stat", "bargauge", "table"):
        limits = [defaults["thresholds"], *(value for _, value in changed(panel, "thresholds"))]
        if any(one["steps"][0]["color"].endswith(JUDGING) for one in limits):
            yield panel["title"]


@rule(
    "a merge of empty frames is an empty frame: the table shows neither rows nor `noValue`",
    a_board(a_panel("table", steps=("merge",))),
)
def merged_tables_are_never_without_a_row(board: Json) -> Iterator[str]:
    for panel, _, expressions in of_kind(board, "table"):
        merged = any(change["id"] == "merge" for change in panel["transformations"])
        if merged and "vector(" not in "".join(expressions):
            yield panel["title"]


@rule(
    "a comparison removes samples, which leaves gaps in a line",
    a_board(a_panel("timeseries", "sum by (priority) (rate(a_total[1m])) > 0")),
)
def lines_are_not_cut(board: Json) -> Iterator[str]:
    for panel, defaults, expressions in of_kind(board, "timeseries"):
        if defaults["custom"]["drawStyle"] == "line" and any(map(_cuts, expressions)):
            yield panel["title"]


def _cuts(expression: str) -> bool:
    """Whether an expression removes samples by value: a comparison at the end of a part, outside brackets and set operators."""
    outside = expression
    while (inner := re.sub(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]", "", outside)) != outside:
        outside = inner
    parts = re.split(r"\bor\b", outside)
    return any(re.search(r"[<>]=? *[\d.]+\s*$", part) and "and" not in part for part in parts)


@rule(
    "one NaN, which a division by zero makes, leaves a graph without a scale and without lines",
    a_board(a_panel("timeseries", "sum(rate(a_total[1m])) / sum(rate(b_total[1m]))")),
)
def divisors_are_not_zero(board: Json) -> Iterator[str]:
    for _, _, expressions in of_kind(board, "timeseries"):
        yield from (one for one in expressions if re.search(r"/ (sum|max)\b", one))


@rule("a code without a value mapping appears as a number", a_board(a_panel("table", COUNTED)))
def codes_have_names(board: Json) -> Iterator[str]:
    for panel, defaults, expressions in of_kind(board, "table", "state-timeline"):
        mappings = [defaults["mappings"], *(value for _, value in changed(panel, "mappings"))]
        known = {key for listed in mappings for one in listed for key in one["options"]}
        for metric, codes in CODED.items():
            shown = [one for one in expressions if re.search(rf'\b{metric}\{{|setting="{metric}"', one)]
            as_they_are = [
                one for one in shown if "setting=" in one or not one.startswith(("count by", "count(", "sum"))
            ]
            if as_they_are and (missing := {*codes.split()} - known):
                yield f"{panel['title']}: {sorted(missing)} of {metric}"


@rule(
    "a unit has no effect on a column that `count_values` made, for labels are text",
    a_board(a_panel("table", COUNTED, (("unit", "s"),))),
)
def units_are_on_numbers(board: Json) -> Iterator[str]:
    for panel, _, expressions in of_kind(board, "table"):
        steps = [
            change["options"] for change in panel["transformations"] if change["id"] == "convertFieldType"
        ]
        converted = {one["targetField"] for options in steps for one in options["conversions"]}
        labels = set(re.findall(r'count_values(?: by \([^)]*\))? ?\("(\w+)"', " ".join(expressions)))
        yield from (
            f"{panel['title']}: {name}" for name, _ in changed(panel, "unit") if name in labels - converted
        )


@rule(
    "a legend lists every series that the query returns, also those that are zero throughout",
    a_board(a_panel("timeseries", "rate(roce_transport_rnr_naks_received_total[1m])", legend="{{device}}")),
)
def legends_leave_out_what_never_happened(board: Json) -> Iterator[str]:
    for panel, _, expressions in of_kind(board, "timeseries"):
        for one in expressions:
            single = one.startswith(("sum(", "max(", "round(sum(", "8 * sum(", "sum by (direction)"))
            counted = re.search(r"(pfc|discards|transport|ecn|cnp|errors|carrier)\w*_total", one)
            if counted and not single and "$__range" not in one:
                yield f"{panel['title']}: {one}"


# ---- what misleads

BOARDS = {place.stem: read(place) for place in DASHBOARDS}


def shown(panel: Json) -> set[str]:
    """The columns of a table; none of other panels."""
    for change in panel.get("transformations", []):
        if change["id"] == "filterFieldsByName":
            return {*change["options"]["include"]["names"]}
    return set()


def links(panel: Json) -> Iterator[str]:
    """Where a panel's fields lead."""
    for override in panel["fieldConfig"]["overrides"]:
        for one in override["properties"]:
            if one["id"] == "links":
                yield from (link["url"] for link in one["value"])


def alerts(panel: Json) -> bool:
    """Whether it is a table of alerts."""
    return panel["type"] == "table" and any("ALERTS" in one["expr"] for one in panel["targets"])


def a_screen(kind: str, *exprs: str, columns: tuple[str, ...] = (), url: str = "") -> Json:
    """A board with one panel."""
    override: Json = {
        "matcher": {"options": "instance"},
        "properties": [{"id": "links", "value": [{"url": url}]}],
    }
    return {
        "templating": {"list": []},
        "panels": [
            {
                "type": kind,
                "title": "One",
                "targets": [{"expr": one, "instant": kind == "table"} for one in exprs],
                "transformations": [{"id": "filterFieldsByName", "options": {"include": {"names": columns}}}],
                "fieldConfig": {"overrides": [override] if url else []},
            }
        ],
    }


FIRING = 'topk(25, ALERTS_FOR_STATE{scope="host"})'


@rule(
    "State is a mean over the range: five minutes at 50 % are a seventieth of six hours, and look clear",
    a_screen("table", "max(rate(roce_pfc_receive_pause_seconds_total{}[$__range]))"),
)
def dilutes(board: Json) -> Iterator[str]:
    for panel in panels(board):
        if re.search(
            r"\b(rate|avg_over_time)\([\w:]+(?:\{[^{}]*\})?\[\$\{?__range", json.dumps(panel["targets"])
        ):
            yield panel["title"]


@rule(
    "A table of alerts keeps the newest, but the cause began first; or it has no device and port",
    a_screen("table", FIRING, columns=("device", "port")),
    a_screen("table", "bottomk(25, ALERTS_FOR_STATE{})", columns=("instance",)),
)
def hides_the_cause(board: Json) -> Iterator[str]:
    for panel in panels(board):
        if alerts(panel):
            newest = any(
                re.search(r"topk\(\s*\d+\s*,\s*\(?\s*ALERTS", one["expr"]) for one in panel["targets"]
            )
            if newest or not {"device", "port"} <= shown(panel):
                yield panel["title"]


@rule(
    "A link to an address that nobody serves",
    a_screen("table", "up", url="https://runbooks.example.com/roce/One.md"),
)
def leads_to_an_example(board: Json) -> Iterator[str]:
    yield from (panel["title"] for panel in panels(board) for url in links(panel) if "example.com" in url)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_all_boards_keep_the_rule_and_its_fault_is_found(rule) -> None:
    assert {place.stem: found for place in DASHBOARDS if (found := list(rule.check(read(place))))} == {}, (
        rule.mechanism
    )
    assert all(list(rule.check(fault)) for fault in rule.faults), rule.mechanism


def test_every_scope_of_an_alert_has_a_board() -> None:
    """The link of the fleet's table reads the scope."""
    rules = yaml.safe_load((ROOT / "alerts/roce.rules.yml").read_text())["groups"]
    scopes = {rule["labels"]["scope"] for group in rules for rule in group["rules"] if "alert" in rule}
    assert {one for scope in TARGETS for one in scope.split("|")} == scopes
    assert {*TARGETS.values()} <= BOARDS.keys()
    assert "scope" not in ROWS


# ---- pictures

MANIFEST: dict[str, dict[str, str]] = json.loads(
    (FOLDER / "pictures/manifest.json").read_text(encoding="utf-8")
)


def test_every_picture_is_of_its_board_as_it_is() -> None:
    """Draw them again with `make pictures`."""
    assert {place.name for place in (FOLDER / "pictures").glob("*.png")} == MANIFEST.keys()
    of_boards = {name: entry for name, entry in MANIFEST.items() if "board" in entry}
    assert {entry["board"] for entry in of_boards.values()} == {f"{uid}.json" for uid in BOARDS}
    old = [
        name
        for name, entry in of_boards.items()
        if entry["seen"] != seen_sum((FOLDER / entry["board"]).read_text())
    ]
    assert old == []


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_a_picture_is_the_one_that_was_drawn(name) -> None:
    drawn = (FOLDER / "pictures" / name).read_bytes()
    assert hashlib.sha256(drawn).hexdigest() == MANIFEST[name]["picture"]


@pytest.mark.nightly
def test_the_texts_of_the_boards_are_those_of_the_manifest() -> None:
    """The file's sum, descriptions included."""
    sums = {
        name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        for name in (f"{uid}.json" for uid in BOARDS)
    }
    assert {entry["board"]: entry["sha256"] for entry in MANIFEST.values() if "board" in entry} == sums
