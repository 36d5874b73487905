"""Contracts of every dashboard: names that exist, limits of the alerts, links with a target, and the rules of grafana's dashboard-linter."""

import json
import re
import subprocess
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import yaml
from boards.colours import GOOD, SEVERITY
from boards.document import document
from boards.fleet_where import BOARDS as TARGETS
from boards.link import BOARD as LINK
from boards.link_switch import SETTINGS
from boards.model import WIDTH
from boards.scopes import OF_PORT
from boards.written import BOARDS, files
from dashboard_contents import (
    DASHBOARDS,
    FOLDER,
    ROOT,
    ROWS,
    RULES,
    SUFFIXES,
    Json,
    names,
    panels,
    parsed,
    queries,
    read,
    row_of,
    selector,
)
from promql_uses import joined_into_themselves, of_grafana, of_template
from tools import need

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, MetricSet, Row

FILES = {place.stem: read(place) for place in DASHBOARDS}
PANELS = [(uid, panel) for uid, board in FILES.items() for panel in panels(board)]
QUERIES = [(uid, query) for uid, board in FILES.items() for query in queries(board)]
VARIABLES = {uid: {one["name"]: one for one in board["templating"]["list"]} for uid, board in FILES.items()}
RECORDED = {
    rule["record"]: rule["expr"]
    for place in RULES
    for group in yaml.safe_load(place.read_text())["groups"]
    for rule in group["rules"]
    if "record" in rule
}
SERIES = {
    f"{row.name}{suffix}" for row in CATALOG for suffix in (SUFFIXES[1:] if row.kind == HISTOGRAM else ("",))
}
TARGET = {"cluster", "job", "instance"}
OF_PROCESS = {
    "roce_exporter_build_info",
    "roce_exporter_tls",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
}
OF_PROMETHEUS = {"ALERTS", "ALERTS_FOR_STATE", "up", "scrape_duration_seconds", "scrape_samples_scraped"}


def test_committed_files_are_those_that_the_generator_writes() -> None:
    """The files are not edited by hand; after a change of the catalogue or of the thresholds run `python dashboards/generate.py`."""
    assert [name for name, text in files() if (FOLDER / name).read_text(encoding="utf-8") != text] == []
    assert [*FILES] == sorted(board.uid for board in BOARDS)


def test_every_panel_of_the_boards_is_in_the_documents() -> None:
    """Then a test of the boards' queries is a test of the documents' queries."""
    for board in BOARDS:
        written = [
            target["expr"] for panel in panels(document(board, BOARDS)) for target in panel.get("targets", ())
        ]
        assert written == [
            query.expr for row in board.rows for panel in row.panels for query in panel.queries
        ]


def test_uids_are_stable() -> None:
    """Links and bookmarks contain them."""
    uids = "fleet host port link jobs configuration exporter"
    assert [board.uid for board in BOARDS] == [f"roce-{one}" for one in uids.split()]


# ---- names


def test_every_metric_exists() -> None:
    """Of the catalogue, or of a recording rule of this project; that every query is PromQL is tested by the way."""
    known = SERIES | RECORDED.keys() | OF_PROCESS | OF_PROMETHEUS | {"kube_pod_info", "kube_pod_owner"}
    known |= {"x"}  # a setting that the reader chooses
    assert len(QUERIES) > 400
    assert {(uid, name) for uid, query in QUERIES for name in names(query) - known} == set()
    assert {(record, name) for record, expr in RECORDED.items() for name in names(expr) - known} == set()


def test_every_label_exists() -> None:
    """Those of a selector are of its metric; those of groupings, legends and columns of any."""
    known = TARGET | {label for row in CATALOG for label in row.labels}
    known |= {
        "alertname",
        "severity",
        "alertstate",
        "__name__",
        "setting",
        "value",
        "version",
        "python",
        "what",
        "operation",
        *("why", "acts", "likely", "first_step"),
        "fix",
    }
    known |= {"end", "toward", "host", "switch", "switch_port"}  # of the rules that join both ends of a link
    known |= {
        "reasons",
        "second",
        "board",
        "scope",
        "named",
        "peer",
        "peer_port",
    }  # of recorded series, and of links
    known |= {"workload", "uid", "namespace", "pod"}  # of the rule on workloads, and of kube-state-metrics
    for uid, query in QUERIES:
        for use in parsed(query):
            if row := row_of(use.name):
                assert use.matched <= TARGET | {*row.labels}, (uid, query)
            assert use.around <= known, (uid, query)
    texts = json.dumps(
        [board["annotations"] for board in FILES.values()] + [panel.get("targets") for _, panel in PANELS]
    )
    assert set(re.findall(r"\{\{(\w+)\}\}", texts)) <= known
    for uid, panel in PANELS:
        columns = {
            name
            for change in panel["transformations"]
            for name in change["options"].get("include", {}).get("names", ())
        }
        assert {name for name in columns if "Value" not in name} <= known, (uid, panel["title"])


# ---- structure


def test_documents_can_be_imported_and_reload_with_the_time() -> None:
    """The linter requires locked boards; grafana.com and people who import them need to edit. Grafana resets provisioned ones."""
    for uid, board in FILES.items():
        assert (board["uid"], board["id"], board["schemaVersion"], board["graphTooltip"]) == (
            uid,
            None,
            39,
            1,
        )
        assert (board["refresh"], board["editable"], "roce" in board["tags"]) == ("1m", True, True)
        sources = [one for one in VARIABLES[uid].values() if one["type"] == "datasource"]
        assert [(one["name"], one["query"]) for one in sources] == [("datasource", "prometheus")]
        assert {one["refresh"] for one in VARIABLES[uid].values() if one["type"] == "query"} == {2}


def test_panels_do_not_overlap_and_say_what_they_show() -> None:
    """Also inside collapsed rows: each cell of the grid is in one panel. No panel names a data source of ours."""
    for uid, board in FILES.items():
        numbers = [panel["id"] for panel in (*board["panels"], *panels(board))]
        titles = [panel["title"] for panel in panels(board) if panel["type"] != "text"]
        assert len(set(titles)) == len(titles)
        assert len(set(numbers)) == len({panel["title"] for panel in board["panels"]} | {*titles}), uid
        for group in (board["panels"], *(row["panels"] for row in board["panels"] if row.get("panels"))):
            boxes = [panel["gridPos"] for panel in group]
            cells = [
                cell
                for box in boxes
                for cell in product(
                    range(box["x"], box["x"] + box["w"]), range(box["y"], box["y"] + box["h"])
                )
            ]
            assert len(set(cells)) == len(cells), uid
            assert {x for x, _ in cells} == {*range(WIDTH)}, uid
    units = {
        "none",
        "percentunit",
        "bytes",
        "bps",
        "Bps",
        "pps",
        "cps",
        "s",
        "celsius",
        "dBm",
        "amp",
        "dateTimeFromNow",
    }
    for uid, panel in PANELS:
        assert panel["title"], uid
        assert len(panel["description"]) > 10, panel["title"]
        if panel["type"] != "text":
            assert panel["fieldConfig"]["defaults"]["unit"] in units, panel["title"]
            sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
            assert sources[1:], panel["title"]
            assert sources == [{"type": "prometheus", "uid": "${datasource}"}] * len(sources)


# ---- texts for no data, and metric sets

NOT_IN_LEAN = {"What differs inside a cluster"}
"""A panel of many settings, of which some are in every set."""
IGNORING = {"state-timeline", "status-history"}
"""Panels that ignore the text for no data, and have a bar for an empty result instead."""


def rows_of(panel: Json) -> list[Row]:
    used = {name for target in panel["targets"] for name in names(target["expr"])}
    return [row for name in sorted(used) if (row := row_of(name))]


def test_every_panel_says_why_it_is_empty() -> None:
    """It means either health or a NIC that does not count the value, or a metric set without it: otherwise it would blame the NIC."""
    for _, panel in PANELS:
        text, rows = panel["fieldConfig"]["defaults"].get("noValue", ""), rows_of(panel)
        assert bool(text) != (panel["type"] in IGNORING), panel["title"]
        assert text != "No data"
        needs_more = any(row.metric_set is not MetricSet.LEAN for row in rows)
        assert not text or panel["title"] in NOT_IN_LEAN or ("the metric set " in text) == needs_more, panel[
            "title"
        ]


# ---- limits

THRESHOLDS = yaml.safe_load((ROOT / "alerts/thresholds.yml").read_text(encoding="utf-8"))
LIMITS = THRESHOLDS["limits"]


def panel_of(uid: str, title: str) -> Json:
    return next(panel for board, panel in PANELS if (board, panel["title"]) == (uid, title))


@pytest.mark.parametrize(
    ("uid", "title", "limits"),
    [
        (
            "roce-fleet",
            "Worst ports by pause sent",
            {"pause_high": "ratio", "pause_saturated_transmit": "ratio"},
        ),
        ("roce-fleet", "Worst ports by loss", {"packet_loss": "ratio", "packet_loss_severe": "ratio"}),
        ("roce-host", "Time paused: received", {"pause_high": "ratio", "pause_saturated_receive": "ratio"}),
        ("roce-host", "Time paused: sent", {"pause_high": "ratio", "pause_saturated_transmit": "ratio"}),
        ("roce-host", "Longest single pause", {"pause_long": "seconds"}),
        ("roce-host", "PCIe stalls", {"pcie_stalls": "ratio"}),
        ("roce-host", "CNPs ignored by port", {"cnps_ignored": "per_second"}),
        ("roce-host", "Retransmissions by pair", {"wire_retransmissions": "ratio"}),
        ("roce-host", "Frames that captures dropped", {"wire_frames_dropped": "ratio"}),
        ("roce-port", "Marked packets", {"marked_packets": "ratio"}),
        ("roce-port", "Longest single pause", {"pause_long": "seconds"}),
        ("roce-exporter", "Polls late or missed", {"sampler_ticks": "ratio"}),
    ],
)
def test_limits_are_those_of_the_alerts(uid, title, limits) -> None:
    """The value, and the colour of the severity."""
    steps = panel_of(uid, title)["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]
    drawn = {(step["value"], step["color"]) for step in steps if step["color"] != GOOD}
    assert drawn == {
        (float(LIMITS[one][key]), SEVERITY[LIMITS[one]["severity"]]) for one, key in limits.items()
    }


def test_the_budget_is_that_of_the_alerts() -> None:
    (limits,) = [
        one["value"]
        for override in panel_of("roce-fleet", "Clusters")["fieldConfig"]["overrides"]
        for one in override["properties"]
        if (override["matcher"]["options"], one["id"]) == ("pause sent", "thresholds")
    ]
    drawn = [step["value"] for step in limits["steps"] if step["color"] in SEVERITY.values()]
    burning = [LIMITS[f"pause_budget_{span}"] for span in ("days", "hours")]
    assert drawn == pytest.approx([one["burn_rate"] * (1 - one["objective"]) for one in burning])


# ---- variables, links, annotations


def test_variables_are_chained_and_list_the_ports_of_one_host_only() -> None:
    """Each lists only values that fit those before it; 5,000 hosts with 8 ports and 8 priorities would be 320,000 series for one list.

    The link board begins with switches: host and interface narrow them; the host's end follows from the switch port and is not shown.
    """
    link = {one.name: one for one in LINK.variables}
    chosen = ["cluster", "host", "netdev", "switch", "switch_port"]
    chains = [[(one.name, one.query) for one in OF_PORT], [(name, link[name].query) for name in chosen]]
    for chain in chains:
        for place, (_, query) in enumerate(chain):
            assert re.findall(r"\$(\w+)", query) == [name for name, _ in chain[:place]]
    assert [name for name, _ in chains[0]] == ["cluster", "job", "instance", "device", "port", "priority"]
    assert [name for name in ("host", "netdev", "switch", "switch_port") if link[name].include_all] == [
        "host",
        "netdev",
    ]
    for name in ("instance", "device", "port"):
        assert link[name].hidden
        assert re.findall(r"\$(\w+)", link[name].query) == ["cluster", "switch", "switch_port"]
    # one series per host, per owner (there are several hosts of a job) or per switch port
    few = {
        "roce_exporter_devices",
        "owner:roce_workload:info",
        "switch_port:roce_link_ends:info",
        "link:roce_switch_port:info",
        "source:roce_runbooks:info",
    }
    for uid, found in VARIABLES.items():
        for name, one in found.items():
            recorded = selector(one).startswith("cluster_") if one["type"] == "query" else True
            if not recorded and not names(selector(one)) <= few:
                assert 'instance=~"$instance"' in one["query"]["query"], (uid, name)
                assert not found["instance"]["includeAll"]


def test_links_lead_to_every_other_board_and_keep_the_time_the_source_and_the_variables() -> None:
    """The host is called `instance` on boards of one host; All of several hosts is not a host of the link board."""
    for uid, board in FILES.items():
        assert {link["url"].split("/")[2] for link in board["links"]} == FILES.keys() - {uid}
        for link in board["links"]:
            assert (link["type"], link["keepTime"], link["includeVars"]) == ("link", True, False)
            target, kept = link["url"].split("/")[2], re.findall(r"\$\{(\w+):queryparam\}", link["url"])
            assert (
                {"datasource", "cluster", "job"}
                <= set(kept)
                <= VARIABLES[uid].keys() & VARIABLES[target].keys()
            )
            passed = "var-host=${instance:percentencode}" in link["url"]
            assert passed == (
                target == "roce-link" and uid in {"roce-host", "roce-port", "roce-exporter", "roce-jobs"}
            )


def test_data_links_lead_to_dashboards_variables_and_columns_that_exist() -> None:
    """One link leads from an alert to the board that its scope names; a board ignores variables that it does not have."""
    found = [(panel, url) for _, panel in PANELS for url in urls(panel)]
    assert len(found) > 20
    for panel, url in found:
        if panel["type"] == "table":
            (kept,) = [change for change in panel["transformations"] if change["id"] == "filterFieldsByName"]
            assert {*re.findall(r"__data\.fields\.(\w+)", url)} <= {*kept["options"]["include"]["names"]}, (
                panel["title"]
            )
        if not re.fullmatch(
            r"\$\{runbooks\}/(RoceConfigCheckFailed|\$\{__data\.fields\.alertname\})\.md", url
        ):
            if url.startswith("${switches}/debug/pause-tree?"):
                continue
            boards = [url.split("/")[2]]
            boards = [*TARGETS.values()] if boards == ["${__data.fields.board}"] else boards
            known = {name for board in boards for name in VARIABLES[board]}
            assert {*re.findall(r"var-(\w+)=", url)} <= known
            assert "${__url_time_range}" in url


def test_no_label_is_joined_into_itself() -> None:
    """In queries, rules and the texts of alerts."""
    rules = [
        rule
        for place in RULES
        for group in yaml.safe_load(place.read_text())["groups"]
        for rule in group["rules"]
    ]
    texts = [text for rule in rules for text in rule.get("annotations", {}).values()]
    expressions = (
        [query for _, query in QUERIES]
        + [rule["expr"] for rule in rules]
        + [query for text in texts for query in of_template(text)]
    )
    assert sum("label_join" in one for one in expressions) > 20
    assert {one for one in expressions if joined_into_themselves(of_grafana(one))} == set()
    assert joined_into_themselves('sum(label_join(up, "a", "=", "b", "a")) > 0') == ["a"]


def urls(found: Any) -> Iterator[str]:
    if isinstance(found, dict) and isinstance(found.get("url"), str) and found["url"]:
        yield found["url"]
    for one in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from urls(one)


def test_alerts_are_annotated_everywhere_and_storms_where_ports_are() -> None:
    marked = {uid: [one["name"] for one in board["annotations"]["list"]] for uid, board in FILES.items()}
    assert {uid for uid, found in marked.items() if "Alerts" in found} == FILES.keys()
    assert {uid for uid, found in marked.items() if "Storms" in found} == {"roce-host", "roce-port"}


# ---- queries


def test_rates_follow_the_resolution_and_counters_are_only_shown_as_rates() -> None:
    """Tables show the last five minutes, and the worst five of the range: a mean over it would hide a short fault. A variable only lists the labels of a counter."""
    rates = 0
    for _, query in QUERIES:
        for window in re.findall(r"i?rate\([^()]*\[([^\]]*)\]", query):
            rates += 1
            assert window in {"$__rate_interval", "5m"}, query
        for use in parsed(query):
            if use.name in ROWS and ROWS[use.name].kind == COUNTER:
                assert {*use.calls} & {"rate", "increase"}, query
    assert rates > 100


def test_queries_over_time_read_one_host_or_one_series_per_host() -> None:
    """With thousands of hosts, what is of ports is read over time for one host only, or recorded; current values are narrowed by cluster and job.

    One switch is chosen by its own name, a capture by the addresses of its pairs, a prober by its host.
    """
    of_all_switches = {
        "roce_switch_source_up",
        "roce_switch_probe_success",
    }  # for a table of the switches whose probe fails
    for uid, board in FILES.items():
        for target in (one for panel in panels(board) for one in panel["targets"]):
            query = target["expr"]
            for name, matchers in re.findall(r"(\w[\w:]*)\{([^}]*)\}", re.sub(r"\$\{(\w+)\}", r"\1", query)):
                row = row_of(name)
                per_host = row and not {"device", "port", "netdev"} & {*row.labels}
                needed = {"cluster", "job"} | (set() if target["instant"] or per_host else {"instance"})
                if name.startswith("roce_switch_"):
                    one = name in of_all_switches or 'device=~"$switch"' in matchers
                    needed = {"cluster"} if one else {"cluster", "device"}
                elif name.startswith("roce_probe_"):  # the job of a host's prober is another one
                    needed = {"cluster", "instance"}
                elif name.startswith("roce_wire_") or (uid == "roce-fleet" and not row):
                    needed = {"cluster"}
                elif not row:
                    needed = {"cluster", "job"} if name in OF_PROCESS | {"up"} else set()
                assert needed <= set(re.findall(r'(\w+)=~"\$\1"', matchers)), (uid, query)


def test_the_fleet_reads_only_recorded_series_over_time() -> None:
    """A graph of six hours has a thousand steps: a series per host in it would be too slow with thousands of hosts.

    What is of a host or a port, and not recorded, is read by tables of current values only: one sample per series. Each of these is a sum,
    a count, or the worst few: the amount that reaches the browser does not grow with the fleet.
    """
    board = FILES["roce-fleet"]
    targets = [target for panel in panels(board) for target in panel["targets"]]
    over_time = [one["expr"] for one in board["annotations"]["list"] if "expr" in one]
    over_time += [one["expr"] for one in targets if not one["instant"]]
    assert {name for query in over_time for name in names(query)} - RECORDED.keys() == set()
    raw = {"ALERTS", "ALERTS_FOR_STATE", "roce_pfc_storm_last_start_timestamp_seconds", "up"}
    assert {name for one in targets for name in names(one["expr"])} - RECORDED.keys() == raw
    for one in targets:
        few = re.match(r"(topk|sum|count|max)|.* and topk\(10|.*bottomk\(50, bottomk by", one["expr"])
        assert few or "cluster" in one["expr"].split("{")[0] or "ALERTS{" in one["expr"], one["expr"]


SYSTEMS = {"sonic": "SONiC", "nxos": "NX-OS", "eos": "EOS", "cumulus": "Cumulus", "openconfig": "OpenConfig"}
MODELS = ("eos", "openconfig")


def test_panels_of_the_link_board_list_the_switch_systems_of_each_metric() -> None:
    """An empty panel is understandable only if it says which switches report the value."""
    checked = 0
    for panel in panels(FILES["roce-link"]):
        for row in rows_of(panel):
            if row.name.startswith("roce_switch_"):
                spelled = [spelling.dialect for spelling in row.spellings]
                reporting = {one for each in spelled for one in (MODELS if each == "*" else [each])}
                lines = [line for line in panel["description"].splitlines() if f"`{row.name}`" in line]
                lines += [panel["description"]] * (row.name in SETTINGS or not reporting)
                assert lines, (panel["title"], row.name)
                assert {one for one in reporting if SYSTEMS[one] not in lines[0]} == set(), (
                    panel["title"],
                    row.name,
                )
                checked += 1
    assert checked > 30


# ---- delivery


def test_the_kustomization_makes_a_config_map_of_each_dashboard() -> None:
    """For the sidecar of Grafana's chart. `kubectl apply` keeps what it applied as JSON in an annotation, of at most 256 KiB."""
    made = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
    assert made["generatorOptions"]["labels"] == {"grafana_dashboard": "1"}
    maps = made["configMapGenerator"]
    assert [one["files"] for one in maps] == [[f"{board.uid}.json"] for board in BOARDS]
    assert [one["name"] for one in maps] == [f"{board.uid}-dashboard" for board in BOARDS]
    texts = {place.name: place.read_text(encoding="utf-8") for place in DASHBOARDS}
    assert {name for name, text in texts.items() if len(json.dumps(text)) > 255 * 1024} == set()


def test_a_dashboard_has_one_line_per_panel_variable_and_mark() -> None:
    for place in DASHBOARDS:
        lines = {line.removesuffix(",") for line in place.read_text(encoding="utf-8").splitlines()}
        board = read(place)
        parts = (*panels(board), *board["templating"]["list"], *board["annotations"]["list"])
        missing = [one for one in parts if json.dumps(one, ensure_ascii=False, sort_keys=True) not in lines]
        assert missing == []


def test_recording_rules_pass_promtool() -> None:
    command = [need("promtool"), "check", "rules", "--lint=all", "--lint-fatal", RULES[1]]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
