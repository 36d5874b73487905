"""The rules of grafana's dashboard-linter, by their names there, because the linter itself is not always available."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from dashboard_contents import (
    DASHBOARDS,
    OF_PROCESS,
    ROWS,
    names,
    panels,
    queries,
    read,
    row_of,
    selector,
    selectors,
)

from roce_exporter.catalog.row import COUNTER

if TYPE_CHECKING:
    from pathlib import Path

UNITS = {
    "none", "percentunit", "bytes", "bps", "Bps", "pps", "cps", "s", "celsius", "dBm", "amp", "dateTimeFromNow",
}  # fmt: skip
"""The units that the linter accepts and the boards use."""

OF_ALL_SWITCHES = {name: {"device"} for name in ("roce_switch_source_up", "roce_switch_probe_success")}
"""Metrics with few series per switch, for a table of the switches whose probe fails."""
ALL = pytest.mark.parametrize("place", DASHBOARDS, ids=lambda place: place.stem)


@ALL
def test_template_datasource(place: Path) -> None:
    found = [one for one in read(place)["templating"]["list"] if one["type"] == "datasource"]
    assert [(one["name"], one["label"], one["query"]) for one in found] == [
        ("datasource", "Data source", "prometheus")
    ]


@ALL
def test_template_job_and_instance(place: Path) -> None:
    """The fleet has no `instance`: a list of 5,000 is too long to choose from, and its panels are per cluster."""
    variables = {one["name"]: one for one in read(place)["templating"]["list"]}
    one_host = {"roce-fleet", "roce-host", "roce-port", "roce-link"}
    wanted = ("job",) if place.stem in one_host else ("job", "instance")
    for name in wanted:
        one = variables[name]
        assert (one["label"], one["datasource"]["uid"], one["multi"], one["allValue"], one["type"]) == (
            name.capitalize(), "${datasource}", True, ".+", "query",
        )  # fmt: skip


@ALL
def test_one_host_is_one_host(place: Path) -> None:
    """The linter requires several values. Lines of two hosts have the same names, and `allValue` would load all hosts."""
    if place.stem in {"roce-host", "roce-port", "roce-link"}:
        (one,) = [one for one in read(place)["templating"]["list"] if one["name"] == "instance"]
        assert (one["multi"], one["includeAll"], one["allValue"]) == (False, False, None)


@ALL
def test_template_on_time_change_reload(place: Path) -> None:
    assert {one["refresh"] for one in read(place)["templating"]["list"] if one["type"] == "query"} == {2}


@ALL
def test_panel_datasource(place: Path) -> None:
    """No panel names a data source of ours, only the variable."""
    for panel in panels(read(place)):
        if panel["type"] != "text":
            sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
            assert sources == [{"type": "prometheus", "uid": "${datasource}"}] * len(sources)


@ALL
def test_panel_title_description_units_and_targets(place: Path) -> None:
    for panel in panels(read(place)):
        assert panel["title"]
        assert len(panel["description"]) > 10
        if panel["type"] != "text":
            assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
            assert all(target["expr"] for target in panel["targets"])
            assert panel["targets"], panel["title"]


@ALL
def test_target_rate_interval(place: Path) -> None:
    """Rates follow the resolution of the graph and the scrape interval; tables of the ports of a host or switch sum over the displayed range."""
    for query in queries(read(place)):
        for window in re.findall(r"i?rate\([^()]*\[([^\]]*)\]", query):
            in_a_table = window == "$__range" and place.stem in {"roce-host", "roce-link"}
            assert window == "$__rate_interval" or in_a_table, query


@ALL
def test_target_counter_agg(place: Path) -> None:
    """The absolute value of a counter has no meaning."""
    for query in queries(read(place)):
        for counter in names(query) & {name for name, row in ROWS.items() if row.kind == COUNTER}:
            shown = re.findall(rf"(\w+)\({counter}\{{", query)
            # a variable only lists the labels of a counter
            assert "__name__" in query or set(shown) <= {"rate", "increase"}, query
            assert "__name__" in query or len(shown) == query.count(counter), query


@ALL
def test_target_job_and_instance(place: Path) -> None:
    """Variables narrow every selector of the exporter's own series; those of recording rules by the labels that they keep."""
    fleet = {"cluster", "job"} if place.stem == "roce-fleet" else {"cluster", "job", "instance"}
    for query in queries(read(place)):
        for name, matchers in selectors(query):
            if row_of(name) or name in OF_PROCESS or name in {"up", "scrape_duration_seconds"}:
                chained = set(re.findall(r'(\w+)=~"\$\1"', matchers))
                missing = (fleet if "label_values" not in query else set()) - chained
                if name.startswith("roce_switch_"):
                    # one switch is chosen by its own name; its target has another job than the hosts
                    missing = {"cluster"} - chained
                    missing |= (
                        set()
                        if 'device=~"$switch"' in matchers
                        else {"device"} - OF_ALL_SWITCHES.get(name, set())
                    )
                if name.startswith("roce_wire_"):
                    # captures are other targets than the host: its addresses choose the pairs
                    missing = {"cluster"} - chained
                assert not missing or _is_a_variable(place, query), (query, missing)


def _is_a_variable(place: Path, query: str) -> bool:
    """A variable is narrowed by those before it only, which `test_variables_are_chained` checks."""
    found = read(place)["templating"]["list"]
    return query in [selector(one) for one in found if one["type"] == "query"]


@ALL
def test_editable(place: Path) -> None:
    """The linter requires locked boards; grafana.com and people who import them need to edit. Grafana resets provisioned ones."""
    assert read(place)["editable"] is True
