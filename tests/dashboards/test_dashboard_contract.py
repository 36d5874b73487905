"""Contracts of every dashboard: names that exist, limits of the alerts, links with a target."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from boards.colours import GOOD, SEVERITY
from boards.link import BOARD as LINK
from boards.link_switch import SETTINGS
from boards.model import WIDTH
from boards.scopes import OF_PORT
from boards.written import BOARDS, files
from dashboard_contents import (
    DASHBOARDS,
    FOLDER,
    OF_PROCESS,
    ROOT,
    ROWS,
    RULES,
    SUFFIXES,
    TARGET,
    Json,
    names,
    panels,
    queries,
    read,
    row_of,
    selected,
    selector,
    selectors,
)

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import HISTOGRAM, MetricSet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from roce_exporter.catalog.row import Row

UNTIL_BUILT: set[str] = set()
"""Planned metrics. A test fails as soon as one of them exists, so that it is removed from this list."""
ALL = pytest.mark.parametrize("place", DASHBOARDS, ids=lambda place: place.stem)


def _recorded() -> dict[str, str]:
    found = {}
    for place in RULES:
        for group in yaml.safe_load(place.read_text(encoding="utf-8"))["groups"]:
            found |= {rule["record"]: rule["expr"] for rule in group["rules"] if "record" in rule}
    return found


RECORDED = _recorded()
SERIES = {
    f"{row.name}{suffix}" for row in CATALOG for suffix in (SUFFIXES[1:] if row.kind == HISTOGRAM else ("",))
}


def test_committed_files_are_those_that_the_generator_writes() -> None:
    """The files are not edited by hand; after a change of the catalogue or of the thresholds run `python dashboards/generate.py`."""
    stale = [name for name, text in files() if (FOLDER / name).read_text(encoding="utf-8") != text]
    assert stale == []


def test_every_dashboard_is_one_of_the_boards() -> None:
    assert {place.stem for place in DASHBOARDS} == {board.uid for board in BOARDS}


# ---- names


@ALL
def test_every_metric_exists(place: Path) -> None:
    """Metrics of the catalogue, or of a recording rule of this project."""
    used = {name for query in queries(read(place)) for name in names(query)}
    assert used - SERIES - set(RECORDED) - OF_PROCESS - UNTIL_BUILT == set()


def test_every_metric_of_the_recording_rules_exists() -> None:
    used = {name for expression in RECORDED.values() for name in names(expression)}
    assert used - SERIES - set(RECORDED) - UNTIL_BUILT == set()


def test_existing_metrics_are_not_listed_as_planned() -> None:
    assert UNTIL_BUILT & set(ROWS) == set()


@ALL
def test_every_label_of_a_selector_is_one_of_its_metric(place: Path) -> None:
    for query in queries(read(place)):
        for name, matchers in selectors(query):
            if metric := row_of(name):
                used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
                assert used - TARGET - set(metric.labels) == set(), query


@ALL
def test_every_label_of_groupings_legends_and_columns_exists(place: Path) -> None:
    known = {label for row in CATALOG for label in row.labels} | TARGET
    known |= {
        "alertname",
        "severity",
        "setting",
        "value",
        "version",
        "python",
        "what",
        "operation",
        "why",
        "fix",
    }
    known |= {"end", "toward", "host", "switch", "switch_port"}  # of the rules that join both ends of a link
    known |= {"alertstate", "__name__"}
    known |= {"workload", "uid", "namespace", "pod"}  # of the rule on workloads, and of kube-state-metrics
    for panel in panels(read(place)):
        text = json.dumps(panel.get("targets", []))
        used = set(re.findall(r"\{\{(\w+)\}\}", text))
        for listed in re.findall(r"(?:by|on|ignoring|without|group_right|group_left) \(([^)]*)\)", text):
            used |= {label for label in re.split(r"[ ,]+", listed) if label}
        for change in panel.get("transformations", ()):
            used |= {
                name for name in change["options"].get("include", {}).get("names", ()) if "Value" not in name
            }
        assert used - known == set(), panel["title"]


# ---- structure


def test_uids_are_stable() -> None:
    """Links and bookmarks contain them."""
    assert [board.uid for board in BOARDS] == [
        "roce-fleet", "roce-host", "roce-port", "roce-link", "roce-jobs", "roce-configuration", "roce-exporter",
    ]  # fmt: skip


@ALL
def test_document(place: Path) -> None:
    found = read(place)
    assert (found["uid"], found["id"], found["graphTooltip"]) == (place.stem, None, 1)
    assert found["schemaVersion"] == 39
    assert "roce" in found["tags"]
    assert found["refresh"] == "1m"
    assert found["description"]


@ALL
def test_panels_have_numbers_and_titles_of_their_own(place: Path) -> None:
    found = read(place)
    numbers = [
        panel["id"]
        for panel in (*found["panels"], *(one for row in found["panels"] for one in row.get("panels", ())))
    ]
    titles = [panel["title"] for panel in panels(found) if panel["type"] != "text"]
    assert len(set(numbers)) == len(numbers)
    assert len(set(titles)) == len(titles)


@ALL
def test_panels_do_not_overlap_and_leave_no_holes(place: Path) -> None:
    """Also inside collapsed rows. Panels side by side have the same height."""
    found = read(place)
    groups = [found["panels"], *(row["panels"] for row in found["panels"] if row.get("panels"))]
    for group in groups:
        boxes = [panel["gridPos"] for panel in group]
        assert all(box["x"] + box["w"] <= WIDTH for box in boxes)
        assert not [pair for pair in combinations(boxes, 2) if _overlap(*pair)]
        assert all(one["h"] == other["h"] for one, other in combinations(boxes, 2) if one["y"] == other["y"])


def _overlap(one: Json, other: Json) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "w"), ("y", "h"))
    )


@ALL
def test_colours_are_names_of_the_palette(place: Path) -> None:
    """Names work in light and dark themes; numbers work in one."""
    written = json.dumps([panel.get("fieldConfig") for panel in panels(read(place))])
    assert re.findall(r'"#[0-9a-fA-F]{3,8}"|"rgba?\(', written) == []


@ALL
def test_every_panel_has_a_text_for_no_data(place: Path) -> None:
    """An empty panel means either health or a NIC that does not count the value, and the panel says which."""
    for panel in panels(read(place)):
        if panel["type"] not in {
            "state-timeline",
            "status-history",
        }:  # they ignore the text, and have a bar for an empty result instead
            said = panel["fieldConfig"]["defaults"].get("noValue", "")
            assert said, panel["title"]
            assert said != "No data"


# ---- metric sets


NOT_IN_LEAN = {("roce-host", "Throughput of each link"), ("roce-host", "Link utilisation")}
"""Panels of the boards for every metric set that need more than lean: bytes of other traffic than RDMA."""
CHOOSES_PRIORITIES = "roce_pfc_enabled"


def _own_rows(panel: Json) -> list[Row]:
    used = {name for target in panel["targets"] for name in names(target["expr"])}
    return [row for name in sorted(used) if (row := row_of(name))]


@ALL
def test_panels_that_need_more_than_lean_say_so(place: Path) -> None:
    """Otherwise an empty panel would blame the NIC."""
    for panel in panels(read(place)):
        text = panel["fieldConfig"]["defaults"].get("noValue", "")
        needs_more = any(row.metric_set is not MetricSet.LEAN for row in _own_rows(panel))
        # of the many settings of this panel some are in every set
        if text and panel["title"] != "What differs inside a cluster":
            assert ("metric set lean" in text) == needs_more, panel["title"]


def test_boards_need_the_metric_set_that_they_name() -> None:
    needed = {
        place.stem: {panel["title"] for panel in panels(read(place)) if any(row.metric_set is not MetricSet.LEAN for row in _own_rows(panel))}
        for place in DASHBOARDS
    }  # fmt: skip
    small = {place.stem for place in DASHBOARDS if ": lean, standard or full." in read(place)["description"]}
    large = {place.stem for place in DASHBOARDS if ": standard or full." in read(place)["description"]}
    assert small == {"roce-fleet", "roce-host", "roce-link", "roce-jobs"}
    assert large == {"roce-port", "roce-exporter", "roce-configuration"}
    assert {(uid, title) for uid in small for title in needed[uid]} == NOT_IN_LEAN
    assert all(needed[uid] for uid in large)


@ALL
def test_panels_of_rare_events_do_not_blame_the_nic(place: Path) -> None:
    """In the sets lean and standard a counter of faults has no series before the first fault."""
    for panel in panels(read(place)):
        rows = [row for row in _own_rows(panel) if row.name != CHOOSES_PRIORITIES]
        if rows and all(row.sparse for row in rows):
            text = panel["fieldConfig"]["defaults"].get("noValue", "")
            assert not text.startswith(("The NIC", "The driver", "The kernel")), panel["title"]


# ---- limits


THRESHOLDS = yaml.safe_load((ROOT / "alerts/thresholds.yml").read_text(encoding="utf-8"))["alerts"]
LIMITED = (
    ("roce-fleet", "Worst ports by pause sent", {"RocePfcPauseHigh": "ratio", "RocePfcTransmitPauseSaturated": "ratio"}),
    ("roce-fleet", "Worst ports by loss", {"RocePacketLossHigh": "ratio", "RocePacketLossCritical": "ratio"}),
    ("roce-host", "Time paused: received", {"RocePfcPauseHigh": "ratio", "RocePfcReceivePauseSaturated": "ratio"}),
    ("roce-host", "Time paused: sent", {"RocePfcPauseHigh": "ratio", "RocePfcTransmitPauseSaturated": "ratio"}),
    ("roce-host", "Longest single pause", {"RocePfcLongPause": "seconds"}),
    ("roce-host", "PCIe stalls", {"RocePcieBackpressure": "ratio"}),
    ("roce-host", "CNPs ignored by port", {"RoceCnpIgnored": "per_second"}),
    ("roce-host", "Retransmissions by pair", {"RoceWireRetransmissions": "ratio"}),
    ("roce-host", "Frames that captures dropped", {"RoceWireFramesDropped": "ratio"}),
    ("roce-port", "Marked packets", {"RoceEcnMarkRatioHigh": "ratio"}),
    ("roce-port", "Longest single pause", {"RocePfcLongPause": "seconds"}),
    ("roce-exporter", "Polls late or missed", {"RoceSamplerOverrun": "ratio"}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("uid", "title", "alerts"), LIMITED, ids=lambda one: one if isinstance(one, str) else ""
)
def test_limits_are_those_of_the_alerts(uid: str, title: str, alerts: dict[str, str]) -> None:
    """The value, and the colour of the severity."""
    panel = next(one for one in panels(read(FOLDER / f"{uid}.json")) if one["title"] == title)
    drawn = {
        (step["value"], step["color"])
        for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]
        if step["color"] != GOOD
    }
    assert drawn == {
        (float(THRESHOLDS[alert][key]), SEVERITY[THRESHOLDS[alert]["severity"]])
        for alert, key in alerts.items()
    }


def test_the_budget_is_that_of_the_alerts() -> None:
    panel = next(one for one in panels(read(FOLDER / "roce-fleet.json")) if one["title"] == "Clusters")
    (limits,) = [
        one["value"]
        for override in panel["fieldConfig"]["overrides"]
        for one in override["properties"]
        if (override["matcher"]["options"], one["id"]) == ("pause sent", "thresholds")
    ]
    drawn = [step["value"] for step in limits["steps"] if step["color"] in SEVERITY.values()]
    burning = [THRESHOLDS[f"RocePfcPauseBudgetBurn{speed}"] for speed in ("Slow", "Fast")]
    assert drawn == pytest.approx([one["burn_rate"] * (1 - one["objective"]) for one in burning])


# ---- variables, links, annotations


def test_variables_are_chained() -> None:
    """Cluster, job, instance, device, port, priority: each lists only values that fit the ones before it."""
    before: list[str] = []
    for variable in OF_PORT:
        assert re.findall(r"\$(\w+)", variable.query) == before
        before.append(variable.name)
    assert before == ["cluster", "job", "instance", "device", "port", "priority"]


@ALL
def test_links_lead_to_every_other_board_and_keep_the_time_the_source_and_the_variables(place: Path) -> None:
    found = read(place)
    own = {one["name"] for one in found["templating"]["list"]}
    assert {link["url"].split("/")[2] for link in found["links"]} == {board.uid for board in BOARDS} - {
        place.stem
    }
    for link in found["links"]:
        assert (link["type"], link["keepTime"], link["includeVars"]) == ("link", True, False)
        target, query = link["url"].removeprefix("/d/").split("/", 1)[0], link["url"].partition("?")[2]
        kept = re.findall(r"\$\{(\w+):queryparam\}", query)
        there = {one["name"] for one in read(FOLDER / f"{target}.json")["templating"]["list"]}
        assert {"datasource", "cluster", "job"} <= set(kept) <= own & there


@ALL
def test_data_links_lead_to_dashboards_and_variables_that_exist(place: Path) -> None:
    runbooks = yaml.safe_load((ROOT / "alerts/thresholds.yml").read_text(encoding="utf-8"))["shared"][
        "runbook_base_url"
    ]
    for url in [one for panel in panels(read(place)) for one in _urls(panel)]:
        match = re.match(r"/d/([a-z-]+)/", url)
        if url.startswith(runbooks):
            assert re.fullmatch(
                r"/(RoceConfigCheckFailed|\$\{__data\.fields\.alertname\})\.md", url.removeprefix(runbooks)
            )
            continue
        assert match
        target = read(FOLDER / f"{match[1]}.json")
        known = {one["name"] for one in target["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", url)) <= known
        assert "${__url_time_range}" in url


def _urls(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        if isinstance(found.get("url"), str) and found["url"]:
            yield found["url"]
        for value in found.values():
            yield from _urls(value)
    elif isinstance(found, list):
        for value in found:
            yield from _urls(value)


@ALL
def test_fields_that_links_are_made_of_are_in_the_table(place: Path) -> None:
    for panel in panels(read(place)):
        if panel["type"] == "table":
            (kept,) = [change for change in panel["transformations"] if change["id"] == "filterFieldsByName"]
            for url in _urls(panel):
                used = set(re.findall(r"__data\.fields\.(\w+)", url))
                assert used <= set(kept["options"]["include"]["names"]), panel["title"]


def test_alerts_are_annotated_everywhere_and_storms_where_ports_are() -> None:
    told = {
        place.stem: [one["name"] for one in read(place)["annotations"]["list"][1:]] for place in DASHBOARDS
    }
    assert all("Alerts" in found for found in told.values())
    assert {uid for uid, found in told.items() if "Storms" in found} == {"roce-host", "roce-port"}


# ---- scale


def test_no_panel_of_the_fleet_loads_every_series() -> None:
    """Each query is a sum, a count, or the worst few: the amount that reaches the browser does not grow with the fleet."""
    for query in queries(read(FOLDER / "roce-fleet.json")):
        if "_exporter_devices" not in query and "ALERTS{" not in query:
            assert (
                re.match(r"(topk|sum|count|max|label_replace\(sum)|.* and topk\(10", query)
                or "cluster" in query.split("{")[0]
            ), query


@ALL
def test_variables_list_the_ports_of_one_host_only(place: Path) -> None:
    """5,000 hosts with 8 ports and 8 priorities would be 320,000 series for one list."""
    listed = {one["name"]: one for one in read(place)["templating"]["list"] if one["type"] == "query"}
    if place.stem == "roce-link":
        return  # it begins with switches: the next test
    for name, one in listed.items():
        if name == "workload":
            # one series per owner, and there are several hosts of a job
            assert one["query"]["query"].startswith("label_values(owner:roce_workload:info{")
        elif name not in {"cluster", "job", "instance"}:
            assert 'instance=~"$instance"' in one["query"]["query"]
            assert not listed["instance"]["includeAll"]
        else:
            assert one["query"]["query"].startswith("label_values(roce_exporter_devices")


def test_the_variables_of_a_link_read_one_series_per_switch_port() -> None:
    """Host and interface narrow the switches; the host's end follows from the switch port and is not shown."""
    listed = {one.name: one for one in LINK.variables}
    chosen = ["cluster", "host", "netdev", "switch", "switch_port"]
    for place, name in enumerate(chosen[1:], start=1):
        one_per_host = "roce_exporter_devices" if name == "host" else "switch_port:roce_link_ends:info"
        assert listed[name].query.startswith(f"label_values({one_per_host}{{")
        assert re.findall(r"\$(\w+)", listed[name].query) == chosen[:place]
        assert listed[name].include_all == (name in {"host", "netdev"})
    for name in ("instance", "device", "port"):
        assert listed[name].hidden
        assert re.findall(r"\$(\w+)", listed[name].query) == ["cluster", "switch", "switch_port"]


def test_links_to_the_link_board_pass_the_host() -> None:
    """It is called `instance` on boards of one host; All of several hosts is not a host."""
    passed = {
        place.stem: "var-host=${instance:percentencode}" in link["url"]
        for place in DASHBOARDS
        for link in read(place)["links"]
        if link["url"].startswith("/d/roce-link/")
    }
    assert passed == {
        "roce-fleet": False, "roce-host": True, "roce-port": True, "roce-jobs": False, "roce-configuration": False, "roce-exporter": False,
    }  # fmt: skip


SYSTEMS = {"sonic": "SONiC", "nxos": "NX-OS", "eos": "EOS", "cumulus": "Cumulus"}


def test_panels_of_the_link_board_list_the_switch_systems_of_each_metric() -> None:
    """An empty panel is understandable only if it says which switches report the value."""
    for panel in panels(read(FOLDER / "roce-link.json")):
        used = {name for target in panel["targets"] for name in names(target["expr"])}
        for name in sorted(one for one in used if one in ROWS and one.startswith("roce_switch_")):
            reporting = {spelling.dialect for spelling in ROWS[name].spellings}
            told = [line for line in panel["description"].splitlines() if f"`{name}`" in line]
            told = told or [panel["description"]] * (name in SETTINGS or not reporting)
            assert told, (panel["title"], name)
            missing = {SYSTEMS[one] for one in reporting if SYSTEMS[one] not in told[0]}
            assert missing == set(), (panel["title"], name)


RAW_OF_FLEET = {
    "ALERTS",
    "ALERTS_FOR_STATE",
    "roce_pfc_storm_last_start_timestamp_seconds",
    "roce_port_health_reason",
    "up",
}
"""Of a host or a port, and not recorded: read by tables of current values only, one sample per series."""


def test_the_fleet_reads_only_recorded_series_over_time() -> None:
    """A graph of six hours has a thousand steps: a series per host in it would be too slow with thousands of hosts."""
    board = read(FOLDER / "roce-fleet.json")
    now = {target["expr"] for panel in panels(board) for target in panel["targets"] if target["instant"]}
    marks = [one["expr"] for one in board["annotations"]["list"] if "expr" in one]
    over_time = [one["expr"] for panel in panels(board) for one in panel["targets"] if not one["instant"]]
    assert {name for query in (*marks, *over_time) for name in selected(query)} - set(RECORDED) == set()
    assert {name for query in now for name in selected(query)} - set(RECORDED) == RAW_OF_FLEET


def test_the_choices_of_the_fleet_read_one_series_per_host() -> None:
    listed = [one for one in read(FOLDER / "roce-fleet.json")["templating"]["list"] if one["type"] == "query"]
    assert {name for one in listed for name in selected(selector(one))} == {"roce_exporter_devices"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('sum by (a, b) (rate(x_total{c="d{e}"}[5m])) > bool 0', {"x_total"}),
        ("0 * count(up) or l:x:rate5m @ end() unless on (a) group_left () {}", {"up", "l:x:rate5m"}),
        ('topk(10, max_over_time((y_seconds)[1d:5m] @ end())) + 1e3 or label_replace(z, "a", "$1", "b", "(.*)")', {"y_seconds", "z"}),
        ('n{a=~"$b"}[$__range] and -inf', {"n"}),
    ],
)  # fmt: skip
def test_names_of_selected_series(query: str, found: set[str]) -> None:
    """Of the two tests above."""
    assert selected(query) == found


def test_a_selector_without_a_name_is_not_accepted() -> None:
    with pytest.raises(AssertionError):
        selected('count({__name__=~"roce_.+"})')


# ---- delivery


def test_config_maps_hold_the_dashboards() -> None:
    """For the sidecar of Grafana's chart. Below the limit of 256 KiB for `kubectl apply`."""
    found = list(yaml.safe_load_all((FOLDER / "kubernetes/configmaps.yml").read_text(encoding="utf-8")))
    held = {}
    for one in found:
        assert (one["apiVersion"], one["kind"]) == ("v1", "ConfigMap")
        assert one["metadata"]["labels"] == {"grafana_dashboard": "1"}
        assert re.fullmatch(r"[a-z0-9-]+", one["metadata"]["name"])
        ((name, text),) = one["data"].items()
        assert len(text.encode()) < 256 * 1024
        held[name] = json.loads(text)
    assert held == {place.name: read(place) for place in DASHBOARDS}


def test_the_operator_gets_the_same_rules() -> None:
    made = yaml.safe_load((FOLDER / "kubernetes/prometheusrule.yml").read_text(encoding="utf-8"))
    assert (made["apiVersion"], made["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert made["spec"] == yaml.safe_load((FOLDER / "roce-dashboards.rules.yml").read_text(encoding="utf-8"))


def test_provisioning_files_fit_grafana() -> None:
    source = yaml.safe_load((FOLDER / "provisioning/datasources/prometheus.yml").read_text(encoding="utf-8"))
    provider = yaml.safe_load((FOLDER / "provisioning/dashboards/roce.yml").read_text(encoding="utf-8"))
    assert (source["apiVersion"], provider["apiVersion"]) == (1, 1)
    (one,) = source["datasources"]
    assert {"name", "type", "uid", "access", "url"} <= one.keys()
    assert one["jsonData"]["timeInterval"] == "15s"
    (folder,) = provider["providers"]
    assert (folder["type"], folder["folder"]) == ("file", "RoCE")
    assert folder["options"]["path"]
