"""Every query of every panel, variable and annotation, run on a real Prometheus that holds the scenarios' histories."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from boards.model import Panel, Query
from boards.rules import SETTINGS
from boards.written import BOARDS
from dashboard_contents import FOLDER, Json, read, selector
from dashboard_history import END, HOSTS
from past import past
from promql_uses import INTERVAL, escaped, interpolate
from servers import Running

pytestmark = pytest.mark.ci

SECONDS = 300
"""The length of every history."""
EVERYTHING = {
    "setting": "roce_pfc_enabled",
    "switches": "http://localhost:10123",
    **dict.fromkeys(("cluster", "host", "netdev"), ".*"),
    **dict.fromkeys(
        ("job", "instance", "device", "port", "priority", "workload", "switch", "switch_port"), ".+"
    ),
}
PANELS = [(board.uid, panel) for board in BOARDS for row in board.rows for panel in row.panels]
QUERIES = [(uid, panel, query) for uid, panel in PANELS for query in panel.queries]
NEVER = {
    ("CNPs ignored by port", "{{device}}/{{port}}"),
    ("Timeouts and retries exceeded", "{{device}}/{{port}} retries exceeded"),
    ("Drops at the link", "{{device}}/{{port}} {{netdev}} sent"),
    ("PCIe errors", "{{device}} corrected"),
    ("PCIe errors", "{{device}} nonfatal"),
    ("PCIe errors", "{{device}} fatal"),
    ("Marks by the NIC itself", "p{{priority}} {{netdev}}"),
    ("Workloads by host", "odd"),
}
"""Queries for events that no simulated or recorded host has had: the tests only prove that Prometheus accepts them."""
OF_ALL_SETS = {"roce-fleet", "roce-host", "roce-link", "roce-jobs"}
ALONE = {
    cluster: next(host.instance for host in HOSTS if host.cluster == cluster)
    for cluster, number in Counter(host.cluster for host in HOSTS).items()
    if number == 1
}
"""The host of each cluster that has one."""


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> Iterator[Running]:
    with past(tmp_path_factory.mktemp("past") / "data", SECONDS) as running:
        yield running


def answer(history: Running, query: Query, **values: str) -> list[Any]:
    """The reply that Grafana would get; what is not chosen is All."""
    expression = interpolate(query.expr, EVERYTHING | values, SECONDS)
    if query.instant:
        found = history.ask("query", query=expression, time=END)
    else:
        found = history.ask("query_range", query=expression, start=END - SECONDS, end=END, step=INTERVAL)
    return [found["result"]] if found["resultType"] == "scalar" else found["result"]


def panel_of(uid: str, title: str) -> Panel:
    return next(panel for board, panel in PANELS if (board, panel.title) == (uid, title))


def number(history: Running, title: str, cluster: str) -> float:
    """The last value of the one series of a panel of the fleet."""
    panel = panel_of("roce-fleet", title)
    (found,) = answer(history, panel.queries[0], cluster=cluster)
    return float((found["value"] if "value" in found else found["values"][-1])[1])


@pytest.mark.parametrize("uid", [board.uid for board in BOARDS])
def test_a_query_finds_something_in_its_scenario(history, uid) -> None:
    wrong = [
        (panel.title, query.legend, query.expr)
        for board, panel, query in QUERIES
        if board == uid and not query.instead
        if bool(answer(history, query, cluster=query.proof or panel.proof))
        == ((panel.title, query.legend) in NEVER)
    ]
    assert wrong == []


def test_a_panel_for_rare_events_reports_that_nothing_happened(history) -> None:
    """Zeros of every port would fill its legend. Without any series there is no such text, unless the panel ignores `noValue`."""
    panels = [panel for _, panel in PANELS if any(query.instead for query in panel.queries)]
    assert len(panels) > 20
    for panel in panels:
        found = {
            cluster: {query.instead for query in panel.queries if answer(history, query, cluster=cluster)}
            for cluster in (*LISTED["cluster"], "no-such-cluster")
        }
        assert found["quiet"], panel.title
        assert found["pfc-storm"], panel.title
        assert any(True in forms for forms in found.values()), panel.title
        assert bool(found["no-such-cluster"]) == ("vector(" in panel.queries[-1].expr), panel.title


def test_a_host_that_is_chosen_by_its_name_is_found(history) -> None:
    """Grafana escapes a value of a multi-value variable, such as the dots of an address. A cluster with one host shows the same without a choice."""
    compared = 0
    for uid, panel, query in QUERIES:
        cluster = query.proof or panel.proof
        if cluster in ALONE:
            own = {"job": "roce", "instance": escaped(ALONE[cluster]), "host": ALONE[cluster]}
            every, chosen = (len(answer(history, query, cluster=cluster, **more)) for more in ({}, own))
            assert every == chosen, (uid, panel.title, query.expr)
            compared += bool(every)
    assert compared > 250


def test_a_port_and_a_priority_that_are_chosen_are_found(history) -> None:
    """All ports of the quiet host have the same counters."""
    own = {
        "device": "mlx5_1",
        "port": "1",
        "priority": "3",
        "netdev": "eth1",
        "switch": "leaf1",
        "switch_port": "Ethernet4",
    }
    narrowed = 0
    for uid, panel, query in QUERIES:
        if (query.proof or panel.proof) == "quiet":
            every, chosen = (len(answer(history, query, cluster="quiet", **more)) for more in ({}, own))
            assert 0 < chosen <= every or every == 0, (uid, panel.title, query.expr)
            narrowed += chosen < every
    assert narrowed > 30


def test_no_query_is_an_error_with_all_clusters_and_hosts(history) -> None:
    """Joins that are right for one host may be ambiguous for two. Here every kind of NIC and of fault is selected at once."""
    assert sum(bool(answer(history, query)) for _, _, query in QUERIES) > 300


CHOSEN = {
    "workload": ".+",
    "cluster": "quiet",
    "job": "roce",
    "instance": escaped("node01:10099"),
    "device": "mlx5_1",
    "port": "1",
}
LISTED: dict[str, list[str]] = {
    "cluster": sorted({host.cluster for host in HOSTS}),
    "job": ["roce"],
    "instance": ["node01:10099"],
    "device": ["mlx5_0", "mlx5_1"],
    "port": ["1"],
    "priority": [str(number) for number in range(8)],
    "workload": ["kernel/nvme_rdma", "serving/StatefulSet/server", "slurm/4711", "unit/nfs-ganesha.service"],
}  # fmt: skip
LINK = {
    "cluster": "quiet",
    "host": "node01:10099",
    "netdev": "eth1",
    "switch": "leaf1",
    "switch_port": "Ethernet4",
}
LISTED_FOR_A_LINK = LISTED | {
    "host": ["node01:10099"],
    "netdev": ["eth0", "eth1"],
    "switch": ["leaf1"],
    "switch_port": ["Ethernet4"],
    "device": ["mlx5_1"],
}
"""A host and its interface lead to their switch port, and the switch port to its host."""


@pytest.mark.parametrize("uid", [board.uid for board in BOARDS])
def test_a_variable_lists_what_fits(history, uid) -> None:
    of_link = uid == "roce-link"
    variables = [one for one in read(FOLDER / f"{uid}.json")["templating"]["list"] if one["type"] == "query"]
    for variable in variables:
        label = variable["query"]["query"].rpartition(", ")[2].rstrip(")")
        query = interpolate(selector(variable), LINK if of_link else CHOSEN, SECONDS)
        found = history.ask(f"label/{label}/values", **{"match[]": query}, start=END - SECONDS, end=END)
        if variable["name"] == "runbooks":
            assert {one for one in found if not one.endswith(":10099/runbooks")} == set()
            assert found
            continue
        if variable["name"] == "setting":
            assert {"roce_pfc_enabled"} < {*found} <= SETTINGS.keys()
            continue
        assert found == (LISTED_FOR_A_LINK if of_link else LISTED)[variable["name"]], variable["name"]


def test_every_port_of_a_switch_can_be_chosen(history) -> None:
    """Also one without a known host."""
    ends = history.query('switch_port:roce_link_ends:info{cluster="quiet"}', time=END)
    assert sorted(one["metric"].get("instance", "") for one in ends) == ["", "node01:10099", "node01:10099"]


def test_annotations_are_at_the_start_of_what_they_mark(history) -> None:
    """The value is the time in milliseconds, and lies within the history."""
    found: list[Json] = [
        one
        for board in BOARDS
        for one in read(FOLDER / f"{board.uid}.json")["annotations"]["list"]
        if "expr" in one
    ]
    assert len(found) > 5
    for one in found:
        expression = interpolate(one["expr"], EVERYTHING | {"cluster": "pfc-storm"}, SECONDS)
        marked = history.ask("query_range", query=expression, start=END - SECONDS, end=END, step=INTERVAL)[
            "result"
        ]
        times = {float(value) / 1000 for series in marked for _, value in series["values"]}
        assert times, one["name"]
        assert all(END - SECONDS <= time <= END for time in times)


@pytest.mark.parametrize("cluster", ["quiet", "lean"])
def test_a_quiet_fleet_is_reported_as_healthy(history, cluster) -> None:
    """No panel shows "No data": each one that is empty in a quiet cluster has its own text for that. Also with the metric set lean."""
    for uid, panel in PANELS:
        if not panel.empty and (cluster == "quiet" or uid in OF_ALL_SETS):
            found = [bool(answer(history, query, cluster=cluster)) for query in panel.queries]
            assert (any if any(query.instead for query in panel.queries) else all)(found), (uid, panel.title)


@pytest.mark.parametrize("title", ["Exporters down", "Hosts not measured completely"])
def test_an_exporter_without_faults_has_zeros_in_every_metric_set(history, title) -> None:
    """Counts of faults have no series in lean before the first fault, which is not the same as no response."""
    query = panel_of("roce-exporter", title).queries[0]
    for cluster in ("quiet", "lean"):
        (found,) = answer(history, query, cluster=cluster)
        assert float(found["values"][-1][1]) == 0
    assert answer(history, query, cluster="no-such-cluster") == []


def test_checks_that_ran_are_counted_alike_in_every_metric_set(history) -> None:
    """In lean, checks that pass have one series per port. Both hosts have the same NICs."""
    query = 'sum by (cluster) (cluster_job:roce_config_checks:count{cluster=~"quiet|lean"})'
    found = {one["metric"]["cluster"]: float(one["value"][1]) for one in history.query(query, time=END)}
    assert found["lean"] == found["quiet"] > 20


def test_the_fleet_distinguishes_faulty_from_healthy_hosts(history) -> None:
    """The numbers at the top, compared with the scenarios; a cluster without recording rules is unobserved, not healthy."""
    titles = ("Critical", "Storm hosts", "Silent hosts")
    assert {title: number(history, title, "quiet") for title in titles} == dict.fromkeys(titles, 0)
    assert number(history, "Critical", "pfc-storm") > 0
    assert number(history, "Silent hosts", "silent") == 1
    for title in ("Critical", "Warnings", "Storm hosts", "Silent hosts"):
        panel = panel_of("roce-fleet", title)
        assert answer(history, panel.queries[0], cluster="no-such-cluster") == []
        assert panel.empty == "No rules"


def test_the_worst_ports_are_ten_at_the_most_whatever_the_range(history) -> None:
    for title in ("Worst ports by pause sent", "Worst ports by pause received", "Worst ports by loss"):
        assert 0 < len(answer(history, panel_of("roce-fleet", title).queries[0])) <= 10


def test_a_vf_has_the_pod_that_the_kubelet_gave_it_to_and_others_are_listed_without(history) -> None:
    (_, panel) = next(one for one in PANELS if one[1].title == "VFs and their pods")
    found, traffic = (answer(history, query, cluster="pfc-storm") for query in panel.queries[:2])
    assert {(one["metric"]["vf"] == "0", bool(one["metric"].get("pod"))) for one in found} == {
        (True, True),
        (False, False),
    }
    assert traffic
