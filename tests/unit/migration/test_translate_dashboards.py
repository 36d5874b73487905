"""Dashboards: every place of a query, what depends on its labels, and what is listed as left.

The queries are those of public dashboards (grafana.com 24241 and 23823, spiderpool's chart), typed again into small dashboards.
"""

import json
from typing import Any

import pytest
from foreign_table import NAMES
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.migrate.dashboards import translate_dashboard
from roce_exporter.migrate.places import NotJsonError, read_json, strings_of
from roce_exporter.migrate.translation import FileReport, UnreadableError

DOWNED = "node_infiniband_link_downed_total"
OURS = "roce_port_link_downed_total"
PAUSE = "sum by (instance, device) (rate(node_ethtool_received_prio3_pause[$__rate_interval]))"
OUR_PAUSE = 'sum by (instance, netdev) (rate(roce_pfc_receive_frames_total{priority="3"}[$__rate_interval]))'


def translated(dashboard: Any) -> tuple[Any, FileReport]:
    report = FileReport("a.json", NAMES)
    return json.loads(translate_dashboard(json.dumps(dashboard), report)), report


def panel(expr: str, legend: str | None = None, **more: Any) -> dict[str, Any]:
    target = {"expr": expr, "refId": "A"} | ({"legendFormat": legend} if legend is not None else {})
    return {"title": "Errors", "targets": [target], **more}


def left(report: FileReport) -> dict[str, str]:
    return {one.path: one.text for one in report.left}


def test_panels_are_found_in_rows_of_old_and_new_dashboards() -> None:
    nested = {"type": "row", "panels": [panel(DOWNED)]}
    found, report = translated(
        {"panels": [panel(DOWNED), nested], "rows": [{"panels": [panel(DOWNED)]}], "title": "x"}
    )
    assert found["panels"][0]["targets"][0]["expr"] == OURS
    assert found["panels"][1]["panels"][0]["targets"][0]["expr"] == OURS
    assert found["rows"][0]["panels"][0]["targets"][0]["expr"] == OURS
    assert (report.translated, report.left) == (3, [])


def test_a_library_panel_is_translated_where_its_queries_are() -> None:
    shared = {"title": "a", "libraryPanel": {"uid": "here", "name": "a"}}
    absent = {"title": "b", "libraryPanel": {"uid": "elsewhere", "name": "b"}}
    elements = {"here": {"kind": 1, "model": panel(DOWNED)}}
    found, report = translated({"panels": [shared, absent], "__elements": elements})
    assert found["__elements"]["here"]["model"]["targets"][0]["expr"] == OURS
    (place,) = left(report)
    assert place.split(".") == ["panels[1]", "libraryPanel"]
    alone, _ = translated({"uid": "here", "model": panel(DOWNED)})
    assert alone["model"]["targets"][0]["expr"] == OURS


@pytest.mark.parametrize(
    ("query", "legend", "new"),
    [
        (PAUSE, "{{instance}} {{ device }}: {{other}} device", "{{instance}} {{ netdev }}: {{other}} device"),
        ('rdma_pause_total{direction="rx"}', "{{device}} {{direction}}", "{{device}} rx"),
    ],
)
def test_a_legend_follows_its_label_or_has_the_value_that_was_selected(query, legend, new) -> None:
    found, report = translated({"panels": [panel(query, legend)]})
    assert found["panels"][0]["targets"][0]["legendFormat"] == new
    assert report.left == []


def test_a_legend_without_an_equal_is_left() -> None:
    _, report = translated(
        {
            "panels": [
                panel('rdma_pause_total{direction="rx"} or rdma_pause_total{direction="tx"}', "{{direction}}")
            ]
        }
    )
    assert (
        "label `direction` of rdma_pause_total has no equal"
        in left(report)["panels[0].targets[0].legendFormat"]
    )


def test_parts_of_a_panel_that_name_a_renamed_label_or_metric_are_listed() -> None:
    more = {
        "transformations": [{"id": "organize", "options": {"renameByName": {"device": "NIC", "Value": "v"}}}],
        "fieldConfig": {
            "overrides": [
                {"matcher": {"id": "byName", "options": "device"}},
                {"matcher": {"id": "byRegexp", "options": "/node_ethtool_received_prio3_pause.*/"}},
            ],
            "defaults": {"unit": "decwbytes"},
        },
        "links": [{"url": "/d/x?var-nic=${__field.labels.device}"}],
        "options": {"legend": {"calcs": ["max"], "text": "every device"}},
    }
    found, report = translated({"panels": [panel(PAUSE, **more)]})
    assert sorted(left(report)) == [
        "panels[0].fieldConfig.overrides[0].matcher.options",
        "panels[0].fieldConfig.overrides[1].matcher.options",
        "panels[0].links[0].url",
        "panels[0].transformations[0].options.renameByName.device",
    ]
    assert found["panels"][0]["transformations"] == more["transformations"]


@pytest.mark.parametrize(
    ("query", "new"),
    [
        (f"label_values({DOWNED}, device)", f"label_values({OURS}, device)"),
        ('label_values( node_ethtool_received_prio3_pause{cluster=~"$b"},device )', 'label_values( roce_pfc_receive_frames_total{cluster=~"$b",priority="3"},netdev )'),
        ("label_values(rdma_port_rcv_data_total, port)", "label_values(roce_port_receive_bytes_total, port)"),
        ("label_values(device)", "label_values(device)"),
        ("label_values(" + " " * 50_000, "label_values(" + " " * 50_000),  # took hours
        ("query_result(topk(5, rdma_port_rcv_data_total))", "query_result(topk(5, roce_port_receive_bytes_total) / 4)"),
        (f'{DOWNED}{{device="a"}}', f'{OURS}{{device="a"}}'),
        ("label_names()", "label_names()"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["text", "object"])
def test_a_variable_is_translated(query, new, form) -> None:
    variable = {
        "type": "query",
        "name": "x",
        "definition": query,
        "query": query if form == "text" else {"query": query, "refId": "A"},
    }
    found, report = translated({"templating": {"list": [variable]}})
    after = found["templating"]["list"][0]
    assert (after["query"] if form == "text" else after["query"]["query"]) == new
    assert after["definition"] == new
    assert report.left == []


@pytest.mark.parametrize(
    ("variable", "path"),
    [
        ({"type": "query", "query": "metrics(node_infiniband_.*)"}, "query"),
        ({"type": "query", "query": 'label_values({__name__=~"node_infiniband_.*"}, device)'}, "query"),
        ({"type": "query", "query": 'label_values(rdma_pause_total{direction="rx"}, direction)'}, "query"),
        ({"type": "query", "query": f"query_result({DOWNED})", "regex": f"/{DOWNED}.(.*)/"}, "regex"),
        ({"type": "query", "query": "metrics((x+)+y)"}, "query"),
        ({"type": "custom", "query": f"{DOWNED},up"}, "query"),
        ({"type": "adhoc", "filters": [{"key": "device", "value": "eth0"}]}, "filters[0].key"),
    ],
)
def test_a_variable_that_cannot_be_translated_is_listed(variable, path) -> None:
    _, report = translated({"panels": [panel(PAUSE)], "templating": {"list": [{"name": "x", **variable}]}})
    assert list(left(report)) == [f"templating.list[0].{path}"]


def test_annotations_are_translated() -> None:
    old = {"name": "a", "expr": PAUSE + " > 0", "titleFormat": "{{device}}", "tagKeys": "instance, device"}
    new = {"name": "b", "target": {"expr": DOWNED}}
    found, report = translated({"annotations": {"list": [old, new]}})
    first, second = found["annotations"]["list"]
    assert first["expr"] == OUR_PAUSE + " > 0"
    assert (first["titleFormat"], first["tagKeys"]) == ("{{netdev}}", "instance, netdev")
    assert second["target"]["expr"] == OURS
    assert report.left == []


def test_a_query_of_another_data_source_is_not_promql() -> None:
    loki = panel(DOWNED, datasource={"type": "loki", "uid": "x"})
    found, report = translated(
        {"panels": [loki, panel(DOWNED, datasource={"type": "prometheus"}), panel(DOWNED, datasource="$ds")]}
    )
    assert [one["targets"][0]["expr"] for one in found["panels"]] == [DOWNED, OURS, OURS]
    assert list(left(report)) == ["panels[0].targets[0].expr"]


def test_prose_that_names_a_metric_is_a_note() -> None:
    _, report = translated({"panels": [], "description": f"of {DOWNED}; job rdma_exporter"})
    assert (report.left, [one.path for one in report.notes]) == ([], ["description"])


def test_all_else_stays_byte_for_byte() -> None:
    text = '{ "title" : "\\u00e9 \\/ é",\n\t"x": [1e3, 1.0, null],"panels":[{"targets":[{"expr":"rate(%s[5m]) \\u003e 0"}]}] , "x":{}}\n'
    report = FileReport("a", NAMES)
    assert translate_dashboard(text % DOWNED, report) == (text % OURS).replace("\\u003e", ">")
    untouched = text % "up"
    assert translate_dashboard(untouched, FileReport("a", NAMES)) == untouched


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON: Expecting property name"),
        ("[]", "not an object"),
        ('{"a": 1}', "is not a Grafana dashboard"),
        ("[" * 5000, "nested more than 100 levels"),
        ('{"panels": ' + "[" * 99 + "]" * 99 + "}", ""),
        (
            '{"apiVersion": "dashboard.grafana.app/v2beta1", "spec": {"elements": {}, "layout": {}}}',
            "schema v2",
        ),
        ('{"panels": [' + "9" * 5000 + "]}", "is not JSON"),
    ],
)
def test_what_is_no_dashboard_is_refused_in_one_line(text, why) -> None:
    if not why:
        assert translate_dashboard(text, FileReport("a", NAMES)) == text
        return
    with pytest.raises(UnreadableError, match=why) as refused:
        translate_dashboard(text, FileReport("a", NAMES))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong", [1, None, "x", [], [1, None], {"a": 1}, {"list": 1}, {"list": [1, {"type": "query"}]}]
)
def test_values_of_a_wrong_type_are_passed_over(wrong) -> None:
    dashboard = {"panels": [{"targets": wrong, "title": wrong, "fieldConfig": wrong, "libraryPanel": wrong}], "rows": wrong, "templating": wrong, "annotations": wrong, "__elements": wrong}  # fmt: skip
    assert translated(dashboard)[0] == dashboard


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON_VALUES, st.booleans())
def test_the_place_of_every_string_is_found(value, ascii_only) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    document = read_json(text)
    places = dict(strings_of(value))
    assert {place: json.loads(text[start:end]) for place, (start, end) in document.strings.items()} == places
    assert json.loads(document.replaced(places)) == value
    changed = document.replaced(dict.fromkeys(places, '"é\n'))
    assert dict(strings_of(json.loads(changed))) == dict.fromkeys(places, '"é\n')


def test_a_key_given_twice_counts_once() -> None:
    assert read_json('{"a": "x", "a": "y"}').replaced({("a",): "z"}) == '{"a": "x", "a": "z"}'
    with pytest.raises(NotJsonError):
        read_json("\ufeff{}")
