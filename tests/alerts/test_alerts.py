"""Every alert: it fires with these texts, is silent just below the threshold, ends, and ignores resets and gaps of counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from alert_cases import CASES
from alert_promtool import (
    ANNOTATIONS,
    Expectation,
    annotations_got,
    at,
    expected,
    rule_of,
    run,
    silent,
    when_fired,
)
from alert_promtool import (
    test_of as one_test,
)
from alert_scenario import PORT, SICK, Case, Jump, Level, Rate, Turn, metric

if TYPE_CHECKING:
    from pathlib import Path

    from alert_scenario import Shape

pytestmark = pytest.mark.usefixtures("promtool")

TEXTS = yaml.safe_load(ANNOTATIONS.read_text())

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)


def alert_of(case: Case) -> Expectation:
    return expected(case, TEXTS[case.title])


def seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


@every_case
def test_it_fires_for_the_faulty_host_alone_with_these_texts_and_ends(case: Case, tmp_path: Path) -> None:
    """One alert, with exactly this text. None before, none after half of `for`, none when the fault is over."""
    wait = seconds(rule_of(case.alert).get("for", "0s"))
    early = [at(case, case.lead + wait // 120)] if wait else []
    end = case.lead + case.sick + case.tail - 1
    fired = at(case, when_fired(case), alert_of(case))
    assert not run(tmp_path, one_test(case, SICK, [at(case, case.lead - 1), *early, fired, at(case, end)]))


BELOW = [
    pytest.param(case, series, id=f"{case.title}: {metric(series)}")
    for case in CASES
    for series, shape in case.series.items()
    if shape.below is not None
]


@pytest.mark.parametrize(("case", "series"), BELOW)
def test_it_is_silent_just_below(case: Case, series: str, tmp_path: Path) -> None:
    """One series is just below the threshold, or healthy if it has no threshold; all others are as when the alert fires."""
    assert not run(tmp_path, one_test(case, Turn(states={series: "below"}), silent(case)))


def test_every_case_has_something_just_below() -> None:
    fabric = {"RocePfcStormFabricWide"}  # the number of hosts is too small instead, see below
    assert {case.alert for case in CASES} - fabric == {param.values[0].alert for param in BELOW}


@every_case
def test_a_restart_of_all_exporters_is_no_alert(case: Case, tmp_path: Path) -> None:
    """A minute without scrapes, then all counters start from zero."""
    healthy = replace(case, sick_hosts=())
    assert not run(tmp_path, one_test(healthy, Turn(restart=case.lead + 5), silent(healthy)))


LASTING = [
    # RoceExporterAbsent would have nothing to restart; RocePortDown is checked before its window ends
    case
    for case in CASES
    if not case.look
    and case.alert != "RoceExporterAbsent"
    and not any(isinstance(shape, Jump) for shape in case.series.values())
]


@pytest.mark.parametrize("case", LASTING, ids=lambda case: case.title)
def test_it_survives_a_restart_of_the_exporter(case: Case, tmp_path: Path) -> None:
    """While the fault lasts the alert is present again after `for`, with the same labels."""
    turn = Turn(restart=case.lead + case.sick // 4)
    assert not run(tmp_path, one_test(case, turn, [at(case, when_fired(case), alert_of(case))]))


LACKING = [
    pytest.param(case, name, id=f"{case.title}: {name}")
    for case in CASES
    for name in sorted({metric(series) for series in case.series} - case.spare)
]


@pytest.mark.parametrize(("case", "name"), LACKING)
def test_a_counter_that_the_nic_lacks_is_no_alert(case: Case, name: str, tmp_path: Path) -> None:
    assert not run(tmp_path, one_test(case, Turn(without=name), silent(case)))


ALONE = [
    # a single host in a cluster has no peers
    case
    for case in CASES
    if rule_of(case.alert)["labels"]["scope"] != "fabric" and case.alert != "RoceLinkSpeedBelowPeers"
]


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.title)
def test_two_sick_hosts_of_one_name_in_two_clusters_are_two_alerts(case: Case, tmp_path: Path) -> None:
    east = alert_of(case)
    texts = {
        key: text.replace("cluster east", "cluster west") for key, text in east["exp_annotations"].items()
    }
    west = {"exp_labels": east["exp_labels"] | {"cluster": "west"}, "exp_annotations": texts}
    both = at(case, when_fired(case), east, west)
    assert not run(tmp_path, one_test(case, Turn(both_clusters=True), [both]))


@every_case
def test_no_label_cluster_is_needed(case: Case, tmp_path: Path) -> None:
    """The text then refers to the fleet."""
    alert = alert_of(case)
    labels = {key: value for key, value in alert["exp_labels"].items() if key != "cluster"}
    texts = {key: text.replace("cluster east", "the fleet") for key, text in alert["exp_annotations"].items()}
    fired = at(case, when_fired(case), {"exp_labels": labels, "exp_annotations": texts})
    assert not run(tmp_path, one_test(case, Turn(unnamed=True), [fired]))


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.alert == "RocePfcStormFabricWide"], ids=lambda case: case.title
)
def test_two_hosts_are_no_fabric_wide_storm(case: Case, tmp_path: Path) -> None:
    few = replace(case, sick_hosts=("h1", "h2"))
    assert not run(tmp_path, one_test(few, SICK, silent(few)))


CNPS = next(case for case in CASES if case.alert == "RoceCnpDeliveryDeficit")
SENDER = 'device="bnxt_re0",port="1"'


def mixed(**more: Rate) -> Case:
    """mlx5 ports that send 500 CNPs per second to bnxt ports, with what the bnxt ports report."""
    series: dict[str, Shape] = {
        f"roce_cnp_sent_total{{{PORT}}}": Rate(sick=500),
        f"roce_cnp_handled_total{{{PORT}}}": Rate(sick=10),
        **{f"roce_{name}_total{{{SENDER}}}": shape for name, shape in more.items()},
    }
    return replace(CNPS, series=series)


def test_a_mixed_cluster_whose_senders_report_their_cnps_has_no_deficit(tmp_path: Path) -> None:
    """bnxt_re of Linux 6.18 does, since its new names have a row."""
    case = mixed(port_transmit_packets=Rate(sick=50_000), cnp_handled=Rate(sick=480))
    assert not run(tmp_path, one_test(case, SICK, silent(case)))


def test_senders_that_do_not_count_cnps_are_no_deficit(tmp_path: Path) -> None:
    """As when their driver renamed the counter: how many of the CNPs they received is unknown."""
    case = mixed(port_transmit_packets=Rate(sick=50_000))
    assert not run(tmp_path, one_test(case, SICK, silent(case)))


@pytest.mark.parametrize(
    "more",
    [
        {"port_transmit_packets": Rate(sick=50_000), "cnp_handled": Rate(sick=10)},
        {"port_transmit_packets": Rate(sick=999)},
    ],
    ids=["senders that count and see none", "a port that hardly sends"],
)
def test_a_deficit_in_a_mixed_cluster_is_still_found(more: dict[str, Rate], tmp_path: Path) -> None:
    case = mixed(**more)
    complaint = run(tmp_path, one_test(case, SICK, [at(case, when_fired(case))]))
    assert "Senders of cluster east receive only" in annotations_got(complaint)["summary"]


HIDDEN = next(case for case in CASES if case.alert == "RoceOwnersHidden")


def test_hidden_owners_are_no_alert_unless_they_are_required(tmp_path: Path) -> None:
    """An exporter without the privileges for owners is the default; the rules as delivered never fire for it."""
    test = one_test(HIDDEN, SICK, [])
    minute = f"{when_fired(HIDDEN)}m"
    test["promql_expr_test"] = [
        {"expr": 'ALERTS{alertname="RoceOwnersHidden"}', "eval_time": minute, "exp_samples": []},
        {
            "expr": "count(roce_owner_hidden_processes > 0)",
            "eval_time": minute,
            "exp_samples": [{"value": 1}],
        },
    ]
    assert not run(tmp_path, test)


def test_texts_have_no_holes() -> None:
    """No text has a malformed number or an unfilled template."""
    for title, texts in TEXTS.items():
        for text in texts.values():
            assert not any(
                hole in text for hole in ("NaN", "Inf", "{{", "<<", "<no value>", "%!", " 0 ", "  ")
            ), title


def test_the_written_texts_are_those_of_the_cases() -> None:
    assert list(TEXTS) == [case.title for case in CASES]


def test_a_quiet_fleet_is_silent_for_a_day(tmp_path: Path) -> None:
    """All series of the cases, all healthy, and all rules at once."""
    series = {
        name: shape for case in reversed(CASES) for name, shape in {**case.series, **case.background}.items()
    }
    series |= {
        name: Level(0, healthy=0) for name in series if name.startswith("roce_pfc_storm_detector_state")
    }
    day = Case("any", series, sick_hosts=(), lead=24 * 60, sick=0, tail=0, step=60)
    test = one_test(day, SICK, [])
    test["promql_expr_test"] = [
        {"expr": "ALERTS", "eval_time": f"{minute}m", "exp_samples": []} for minute in range(5, 24 * 60, 15)
    ]
    assert not run(tmp_path, test, every="2m")
