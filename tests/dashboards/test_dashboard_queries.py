"""Every query of every panel, variable and annotation, run on a real Prometheus that holds the scenarios' histories."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from boards.document import document
from boards.written import BOARDS
from dashboard_contents import DASHBOARDS, FOLDER, Json, panels, read, selector
from dashboard_history import END, HOSTS, SECONDS
from dashboard_queries import INTERVAL, escaped, interpolate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boards.model import Panel
    from dashboard_past import Prometheus


OF_PORTS = ("job", "instance", "device", "port", "priority", "workload")
OF_LINKS = {"host": ".*", "netdev": ".*", "switch": ".+", "switch_port": ".+"}
EVERYTHING = {"cluster": ".*"} | dict.fromkeys(OF_PORTS, ".+") | OF_LINKS
CLUSTERS = sorted({host.cluster for host in HOSTS})
QUERIES = [
    pytest.param(panel, position, id=f"{board.uid}-{panel.title}-{chr(ord('A') + position)}")
    for board in BOARDS
    for row in board.rows
    for panel in row.panels
    for position in range(len(panel.queries))
]
WITH_SOMETHING_INSTEAD = [
    panel
    for board in BOARDS
    for row in board.rows
    for panel in row.panels
    if any(query.instead for query in panel.queries)
]
NEVER = {
    ("CNPs ignored by port", "{{device}}/{{port}}"),
    ("Timeouts and retries exceeded", "{{device}}/{{port}} retries exceeded"),
    ("Drops at the link", "{{device}}/{{port}} {{netdev}} sent"),
    ("PCIe errors", "{{device}} corrected"),
    ("PCIe errors", "{{device}} nonfatal"),
    ("PCIe errors", "{{device}} fatal"),
    ("Marks by the NIC itself", "p{{priority}} {{netdev}}"),
}
"""Queries for events that no simulated or recorded host has had: the tests only prove that Prometheus accepts them."""
VARIABLES = [
    pytest.param(one, id=f"{place.stem}-{one['name']}")
    for place in DASHBOARDS
    for one in read(place)["templating"]["list"]
    if one["type"] == "query" and (place.stem != "roce-link" or one["name"] in {"cluster", "job"})
]
ANNOTATIONS = [
    pytest.param(one["expr"], id=f"{place.stem}-{one['name']}")
    for place in DASHBOARDS
    for one in read(place)["annotations"]["list"]
    if "expr" in one
]


FLEET = next(board for board in BOARDS if board.uid == "roce-fleet")
EXPORTER = next(board for board in BOARDS if board.uid == "roce-exporter")
OF_ALL_SETS = {"roce-fleet", "roce-host", "roce-link", "roce-jobs"}


def answer(past: Prometheus, panel: Panel, position: int, values: Mapping[str, str]) -> list[Any]:
    """The reply that Grafana would get for one query of a panel."""
    query = panel.queries[position]
    expression = interpolate(query.expr, values, SECONDS)
    if query.instant:
        return past.instant(expression, END)
    return past.over(expression, END - SECONDS, END, INTERVAL)


@pytest.mark.parametrize(("panel", "position"), QUERIES)
def test_query_finds_something_in_its_scenario(past: Prometheus, panel: Panel, position: int) -> None:
    query = panel.queries[position]
    if not query.instead and (panel.title, query.legend) not in NEVER:
        assert answer(past, panel, position, EVERYTHING | {"cluster": query.proof or panel.proof})


@pytest.mark.parametrize("panel", WITH_SOMETHING_INSTEAD, ids=lambda panel: panel.title)
@pytest.mark.parametrize("cluster", ["quiet", "pfc-storm", "no-such-cluster"])
def test_a_panel_for_rare_events_reports_that_nothing_happened(
    past: Prometheus, panel: Panel, cluster: str
) -> None:
    """Zeros of every port would fill its legend. Without any series there is no such text, unless the panel ignores `noValue`."""
    values = EVERYTHING | {"cluster": cluster}
    found = [bool(answer(past, panel, position, values)) for position in range(len(panel.queries))]
    assert any(found) == (cluster != "no-such-cluster" or "vector(" in panel.queries[-1].expr)


@pytest.mark.parametrize(("panel", "position"), QUERIES)
def test_query_is_no_error_with_all_clusters_and_hosts(past: Prometheus, panel: Panel, position: int) -> None:
    """Joins that are right for one host may be ambiguous for two. Here every kind of NIC and of fault is selected at once."""
    answer(past, panel, position, EVERYTHING)


@pytest.mark.parametrize(("panel", "position"), QUERIES)
def test_query_takes_a_host_by_its_name(past: Prometheus, panel: Panel, position: int) -> None:
    """Grafana escapes a value of a multi-value variable, such as the dots of an address."""
    chosen = {
        "cluster": "incast",
        "job": "roce",
        "instance": escaped("node11:10099"),
        "device": "mlx5_0",
        "port": "1",
        "priority": "3",
        "host": "node11:10099",
        "netdev": "eth0",
        "switch": "leaf1",
        "switch_port": "Ethernet0",
        "workload": "slurm/4711",
    }
    answer(past, panel, position, chosen)


@pytest.mark.parametrize("variable", VARIABLES)
def test_variable_lists_something_and_only_what_fits(past: Prometheus, variable: Json) -> None:
    values = {
        "cluster": "quiet",
        "job": "roce",
        "instance": escaped("node01:10099"),
        "device": "mlx5_1",
        "port": "1",
    }
    label = variable["query"]["query"].rpartition(", ")[2].rstrip(")")
    found = past.ask(
        f"label/{label}/values",
        **{"match[]": interpolate(selector(variable), values, SECONDS), "start": END - SECONDS, "end": END},
    )
    expected = {
        "cluster": CLUSTERS,
        "job": ["roce"],
        "instance": ["node01:10099", "node02:10099"],
        "device": [f"mlx5_{number}" for number in range(4)],
        "port": ["1"],
        "priority": [str(number) for number in range(8)],
        "workload": [
            "kernel/ib_core",
            "kernel/nvme_rdma",
            "serving/StatefulSet/server",
            "slurm/4711",
            "unit/nfs-ganesha.service",
        ],
    }
    assert found == expected[variable["name"]]


LINK_VARIABLES = [
    pytest.param(one, id=one["name"])
    for one in read(FOLDER / "roce-link.json")["templating"]["list"]
    if one["name"] not in {"datasource", "cluster", "job"}
]


@pytest.mark.parametrize("variable", LINK_VARIABLES)
def test_variable_of_a_link_lists_what_fits(past: Prometheus, variable: Json) -> None:
    """A host and its interface lead to their switch port, and the switch port to its host."""
    chosen = {"host": "node01:10099", "netdev": "eth1", "switch": "leaf1", "switch_port": "Ethernet4"}
    label = variable["query"]["query"].rpartition(", ")[2].rstrip(")")
    query = interpolate(selector(variable), {"cluster": "quiet"} | chosen, SECONDS)
    found = past.ask(f"label/{label}/values", **{"match[]": query, "start": END - SECONDS, "end": END})
    expected = {
        "host": ["node01:10099", "node02:10099"],
        "netdev": ["eth0", "eth1", "eth2", "eth3"],
        "switch": ["leaf1"],
        "switch_port": ["Ethernet4"],
        "instance": ["node01:10099"],
        "device": ["mlx5_1"],
        "port": ["1"],
    }
    assert found == expected[variable["name"]]


def test_every_port_of_a_switch_can_be_chosen(past: Prometheus) -> None:
    """Also those without a known host."""
    query = 'count(switch_port:roce_link_ends:info{cluster="quiet",instance=""})'
    assert past.instant(query, END)[0]["value"][1] == "1"
    assert len(past.instant('switch_port:roce_link_ends:info{cluster="quiet"}', END)) == 9


@pytest.mark.parametrize("expression", ANNOTATIONS)
def test_annotation_marks_a_storm(past: Prometheus, expression: str) -> None:
    values = EVERYTHING | {"cluster": "pfc-storm"}
    assert past.over(interpolate(expression, values, SECONDS), END - SECONDS, END, INTERVAL)


def test_annotations_of_storms_are_at_the_start_of_storms(past: Prometheus) -> None:
    """The value is the time in milliseconds, and lies within the history."""
    (expression,) = [
        one["expr"]
        for one in read(FOLDER / "roce-host.json")["annotations"]["list"]
        if one["name"] == "Storms"
    ]
    asked = interpolate(expression, EVERYTHING | {"cluster": "pfc-storm"}, SECONDS)
    times = {
        value / 1000 for _, samples in past.over(asked, END - SECONDS, END, INTERVAL) for _, value in samples
    }
    assert len(times) > 1
    assert all(END - SECONDS <= time <= END for time in times)


@pytest.mark.parametrize("cluster", ["quiet", "lean"])
def test_a_quiet_fleet_is_reported_as_healthy(past: Prometheus, cluster: str) -> None:
    """No panel shows "No data": each one that is empty in a quiet cluster has its own text for that. Also with the metric set lean."""
    silent = [
        (board.uid, panel.title)
        for board in BOARDS
        for row in board.rows
        for panel in row.panels
        if not panel.empty
        and (cluster == "quiet" or board.uid in OF_ALL_SETS)
        and not (any if any(query.instead for query in panel.queries) else all)(
            answer(past, panel, place, EVERYTHING | {"cluster": cluster})
            for place in range(len(panel.queries))
        )
    ]
    assert silent == []


@pytest.mark.parametrize("cluster", ["quiet", "lean"])
@pytest.mark.parametrize("title", ["Exporters down", "Sources broken", "Values missing", "Stuck polls"])
def test_an_exporter_without_faults_has_zeros_in_every_metric_set(
    past: Prometheus, title: str, cluster: str
) -> None:
    """Counts of faults have no series in lean before the first fault, which is not the same as no response."""
    panel = next(one for row in EXPORTER.rows for one in row.panels if one.title == title)
    ((_, samples),) = answer(past, panel, 0, EVERYTHING | {"cluster": cluster})
    assert {value for _, value in samples} == {0}


@pytest.mark.parametrize("title", ["Polls late or missed", "Sources broken"])
def test_an_exporter_that_does_not_respond_has_no_zeros(past: Prometheus, title: str) -> None:
    panel = next(one for row in EXPORTER.rows for one in row.panels if one.title == title)
    assert answer(past, panel, 0, EVERYTHING | {"cluster": "no-such-cluster"}) == []


def test_checks_that_ran_are_counted_alike_in_every_metric_set(past: Prometheus) -> None:
    """In lean, checks that pass have one series per port. Both hosts have the same NICs, the first one twice as many."""
    query = 'sum by (cluster) (cluster_job:roce_config_checks:count{cluster=~"quiet|lean"})'
    found = {one["metric"]["cluster"]: float(one["value"][1]) for one in past.instant(query, END)}
    assert found["lean"] > 20
    assert found["quiet"] == 4 * found["lean"]


VFS = next(
    panel
    for board in BOARDS
    for row in board.rows
    for panel in row.panels
    if panel.title == "VFs and their pods"
)


def _number(past: Prometheus, title: str, cluster: str, position: int = 0) -> float:
    panel = next(one for row in FLEET.rows for one in row.panels if one.title == title)
    found = answer(past, panel, position, EVERYTHING | {"cluster": cluster})
    assert len(found) == 1, "one number"
    return float(found[0]["value"][1]) if panel.queries[position].instant else found[0][1][-1][1]


def test_the_fleet_distinguishes_faulty_from_healthy_hosts(past: Prometheus) -> None:
    """The numbers at the top, compared with the scenarios."""
    assert _number(past, "Storms, 24 h", "quiet") == 0
    assert _number(past, "Storms, 24 h", "pfc-storm") > 2
    assert _number(past, "Pages", "quiet") == 0
    assert _number(past, "PFC drops/s", "quiet") == 0
    assert _number(past, "Silent hosts", "quiet") == 0
    assert _number(past, "Silent hosts", "silent") == 1


def test_without_recording_rules_the_fleet_does_not_show_zero(past: Prometheus) -> None:
    """A cluster without recording rules is unobserved, not healthy."""
    for title in ("Pages", "Tickets", "Storm hosts", "Storms, 24 h", "PFC drops/s"):
        panel = next(one for row in FLEET.rows for one in row.panels if one.title == title)
        assert answer(past, panel, 0, EVERYTHING | {"cluster": "no-such-cluster"}) == []
        assert panel.empty == "No rules"


def test_the_worst_ports_are_ten_at_the_most_whatever_the_range(past: Prometheus) -> None:
    for title in ("Worst ports by pause sent", "Worst ports by pause received", "Worst ports by loss"):
        panel = next(one for row in FLEET.rows for one in row.panels if one.title == title)
        assert 0 < len(answer(past, panel, 0, EVERYTHING)) <= 10


def test_a_vf_has_the_pod_that_the_kubelet_gave_it_to_and_others_are_listed_without(past: Prometheus) -> None:
    found = {
        (one["metric"]["instance"], one["metric"]["vf"]): one["metric"].get("pod", "")
        for one in answer(past, VFS, 0, EVERYTHING | {"cluster": "pfc-storm"})
    }
    assert found
    assert all(bool(pod) == (vf == "0") for (_, vf), pod in found.items())
    assert answer(past, VFS, 1, EVERYTHING | {"cluster": "pfc-storm"}), "traffic"


def test_recording_rules_pass_promtool(past: Prometheus) -> None:
    """The fixture has checked that promtool is installed."""
    found = subprocess.run(
        [shutil.which("promtool") or "promtool", "check", "rules", "--lint=all", "--lint-fatal", FOLDER / "roce-dashboards.rules.yml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_panel_of_the_boards_is_in_the_documents() -> None:
    """Then a test of the boards' queries is a test of the documents' queries."""
    for board in BOARDS:
        written = [
            target["expr"] for panel in panels(document(board, BOARDS)) for target in panel.get("targets", ())
        ]
        assert written == [
            query.expr for row in board.rows for panel in row.panels for query in panel.queries
        ]
        assert re.fullmatch(r"[a-z-]{1,40}", board.uid)
