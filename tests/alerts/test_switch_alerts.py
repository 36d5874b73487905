"""When alerts on switches and links yield, and that switches and hosts do not disturb each other's alerts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from alert_cases import CASES
from alert_promtool import at, run, silent, when_fired
from alert_promtool import test_of as one_test
from alert_scenario import PRIORITY, SICK, Case, Jump, Level, Rate
from alert_switch_cases import (
    GROUP,
    HOST_BEHIND,
    ON,
    QUEUE,
    QUEUE_OF_PFC,
    SWITCH,
    SWITCH_CASES,
    SWITCH_PRIORITY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from alert_scenario import Shape

pytestmark = pytest.mark.usefixtures("promtool")

DROPS = {f"roce_switch_queue_discards_total{{{QUEUE}}}": Rate(sick=2), **QUEUE_OF_PFC}
OVERRUN = {f"roce_switch_buffer_discards_total{{{GROUP}}}": Rate(sick=2), **QUEUE_OF_PFC}
TRIPPED = {f"roce_switch_pfc_watchdog_tripped{{{QUEUE}}}": Level(sick=1)}
FRAMES = f"roce_pfc_transmit_frames_total{{{PRIORITY}}}"
SWITCH_FRAMES = f"roce_switch_pfc_receive_frames_total{{{SWITCH_PRIORITY}}}"

YIELDS: dict[str, tuple[str, Mapping[str, Shape]]] = {
    "drops while the watchdog is tripped": ("RoceSwitchLosslessQueueDrops", DROPS | TRIPPED),
    "headroom while the watchdog is tripped": ("RoceSwitchHeadroomExhausted", OVERRUN | TRIPPED),
    "drops in a queue without PFC": (
        "RoceSwitchLosslessQueueDrops",
        {f"roce_switch_queue_discards_total{{{QUEUE}}}": Rate(sick=2)},
    ),
    "a group without PFC": (
        "RoceSwitchHeadroomExhausted",
        {f"roce_switch_buffer_discards_total{{{GROUP}}}": Rate(sick=2)},
    ),
    "no watchdog on a queue without PFC": (
        "RoceSwitchWatchdogMissing",
        {f"roce_switch_pfc_watchdog_enabled{{{QUEUE}}}": Level(sick=0, healthy=1)},
    ),
    "no ECN on a queue without PFC": (
        "RoceSwitchEcnOff",
        {f"roce_switch_config_ecn_enabled{{{QUEUE}}}": Level(sick=0, healthy=1)},
    ),
    "thresholds of a queue whose ECN is off": (
        "RoceSwitchEcnAfterPfc",
        {
            f"roce_switch_config_ecn_minimum_bytes{{{QUEUE}}}": Level(sick=9e6),
            f"roce_switch_buffer_pause_threshold_bytes{{{GROUP}}}": Level(sick=1e6),
            f"roce_switch_config_ecn_enabled{{{QUEUE}}}": Level(sick=0),
            **QUEUE_OF_PFC,
        },
    ),
    "pause from a host": (
        "RoceSwitchPausedBySwitch",
        {
            f"roce_switch_pfc_receive_pause_seconds_total{{{SWITCH_PRIORITY}}}": Rate(sick=0.5),
            **HOST_BEHIND,
        },
    ),
    "a NIC that counts nothing": (
        "RocePauseCountersDisagree",
        {FRAMES: Rate(sick=0), SWITCH_FRAMES: Rate(sick=100), **HOST_BEHIND},
    ),
    "a handful of frames": (
        "RocePauseCountersDisagree",
        {FRAMES: Jump(sick=9), SWITCH_FRAMES: Jump(sick=3), **HOST_BEHIND},
    ),
    "a host whose PFC is unknown": (
        "RocePfcMismatchOnLink",
        {f"roce_switch_pfc_enabled{{{SWITCH_PRIORITY}}}": ON, **HOST_BEHIND},
    ),
    "a switch whose PFC is unknown": (
        "RocePfcMismatchOnLink",
        {f"roce_pfc_enabled{{{PRIORITY}}}": ON, **HOST_BEHIND},
    ),
}


@pytest.mark.parametrize("what", YIELDS)
def test_what_is_no_alert(what: str, tmp_path: Path) -> None:
    name, series = YIELDS[what]
    case = Case(name, series, sick=100, tail=5)
    assert not run(tmp_path, one_test(case, SICK, silent(case)))


@pytest.mark.parametrize(
    ("name", "drops"),
    [("RoceSwitchLosslessQueueDrops", DROPS), ("RoceSwitchHeadroomExhausted", OVERRUN)],
)
def test_drops_of_a_trip_that_is_over_are_still_the_watchdogs(
    name: str, drops: Mapping[str, Shape], tmp_path: Path
) -> None:
    """The last drops are within the window of the alert for minutes after the queue was restored."""
    case = Case(name, {**drops, **TRIPPED}, sick=20, tail=40)
    after = [at(case, case.lead + case.sick + minute) for minute in range(20)]
    assert not run(tmp_path, one_test(case, SICK, after))


def series_of(names: Mapping[str, str], cluster: str = "east") -> list[dict[str, str]]:
    """Series of job and instance h1, as values by the name of the series."""
    return [
        {"series": name.replace("{", f'{{cluster="{cluster}",', 1).replace("<host>", "h1"), "values": values}
        for name, values in names.items()
    ]


def firing(folder: Path, series: list[dict[str, str]], *minutes_and_alerts: tuple[int, set[str]]) -> str:
    """What promtool finds wrong with the names of all alerts that fire at these minutes, with all rules."""
    queries = [
        {
            "expr": 'count by (alertname) (ALERTS{alertstate="firing"}) ^ 0',
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in alerts],
        }
        for minute, alerts in minutes_and_alerts
    ]
    test: dict[str, Any] = {
        "interval": "30s",
        "input_series": series,
        "alert_rule_test": [],
        "promql_expr_test": queries,
    }
    return run(folder, test, every="1m")


def test_a_host_that_stops_is_still_named_by_the_page(tmp_path: Path) -> None:
    """Its exporter and its LLDP agent stop when the storm begins; the labels of the page stay those of the host."""
    tripped = next(case for case in SWITCH_CASES if case.title == "RoceSwitchWatchdogTripped")
    lost = {name: Level(sick=None, healthy=1) for name in HOST_BEHIND}
    case = replace(tripped, background=lost, look=40)
    expected = {"exp_labels": {}, "exp_annotations": {}}
    complaint = run(tmp_path, one_test(case, SICK, [at(case, when_fired(case), expected)]))
    for label in ('host="gpu-h1.example.com"', 'instance="h1"', 'device="mlx5_0"', 'netdev="ens1f0np0"'):
        assert label in complaint.split("got:")[1]


@pytest.mark.parametrize("end", [FRAMES, SWITCH_FRAMES])
def test_an_end_that_was_not_scraped_for_a_while_does_not_disagree(end: str, tmp_path: Path) -> None:
    """Twenty minutes without scrapes in which the other end counted: what both counted since is alike, the averages are not."""
    target = 'job="roce",instance="h1",'
    burst = "0+300x20 12000+6000x29 186300+300x300"
    gap = "0+300x20 _x30 186300+300x300"
    names = {name.replace("{", "{" + target): "1x400" for name in HOST_BEHIND}
    names['up{job="roce",instance="h1"}'] = "1x400"
    for counter in (FRAMES, SWITCH_FRAMES):
        names[counter.replace("{", "{" + target)] = gap if counter == end else burst
    quiet = [(minute, set()) for minute in range(30, 90, 3)]
    assert not firing(tmp_path, series_of(names), *quiet)


@pytest.mark.parametrize("gone", ["the source", "the switch"])
def test_trips_of_the_past_that_are_read_again_are_no_page(gone: str, tmp_path: Path) -> None:
    """A source, or the whole switch, that could not be read for half an hour."""
    target = 'job="roce-switch",instance="h1",'
    counts, away = f"{{{target}{QUEUE}}}", "1x20 _x60 1x200"
    whole = away if gone == "the switch" else "1x300"
    names = {
        f"roce_switch_pfc_watchdog_trips_total{counts}": "7x20 stale _x59 7x200",
        f"roce_switch_probe_success{{{target}{SWITCH}}}": whole,
        f'roce_switch_source_up{{{target}{SWITCH},source="watchdog"}}': (
            away if gone == "the switch" else "1x20 0x59 1x200"
        ),
        'up{job="roce",instance="h1"}': "1x400",
    }
    fired = [(minute, set()) for minute in (*range(8, 12), *range(41, 60))]
    assert not firing(tmp_path, series_of(names), *fired)


def test_a_probe_that_fails_is_one_alert_not_one_per_source(tmp_path: Path) -> None:
    names = {
        f'roce_switch_probe_success{{job="roce-switch",instance="h1",{SWITCH}}}': "0x100",
        **{
            f'roce_switch_source_up{{job="roce-switch",instance="h1",{SWITCH},source="{source}"}}': "0x100"
            for source in ("watermarks", "queue_counters")
        },
    }
    test = {
        "interval": "30s",
        "input_series": series_of(names),
        "alert_rule_test": [],
        "promql_expr_test": [
            {
                "expr": 'sum(ALERTS{alertname="RoceSwitchProbeFailing",alertstate="firing"})',
                "eval_time": "30m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            }
        ],
    }
    assert not run(tmp_path, test, every="1m")


def test_a_switch_exporter_that_does_not_respond_is_no_host(tmp_path: Path) -> None:
    """Its job begins with roce too; the alerts on the exporters of hosts leave it out."""
    names = {
        'up{job="roce-switch",instance="leaf1"}': "0x100",
        'up{job="roce",instance="h1"}': "1x100",
    }
    assert not firing(tmp_path, series_of(names), (30, {"RoceSwitchProbeFailing"}))


def test_switches_alone_are_no_exporters_of_hosts(tmp_path: Path) -> None:
    """As in a Prometheus for switches only: it reports that no host is scraped, as before."""
    names = {'up{job="roce-switch",instance="leaf1"}': "1x100"}
    assert not firing(tmp_path, series_of(names), (30, {"RoceExporterAbsent"}))


def sick_series(cases: tuple[Case, ...], prefix: str) -> list[dict[str, str]]:
    """The series of these cases whose name has the prefix, in the faulty state of the first case that has them."""
    found: dict[str, str] = {}
    for case in cases:
        for name, shape in {**case.series, **case.background}.items():
            if name.startswith(prefix) and shape.sick is not None:
                labelled = name.replace("{", '{job="roce",instance="h1",', 1)
                grows = not isinstance(shape, Level)
                found.setdefault(labelled, f"0+{shape.sick * 30:g}x200" if grows else f"{shape.sick:g}x200")
    return series_of({**found, 'up{job="roce",instance="h1"}': "1x200"})


def names_firing(folder: Path, series: list[dict[str, str]]) -> set[str]:
    """The names of all alerts that fire at any time."""
    query = {
        "expr": 'count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[2h]))',
        "eval_time": "95m",
        "exp_samples": [],
    }
    test = {
        "interval": "30s",
        "input_series": series,
        "alert_rule_test": [],
        "promql_expr_test": [query],
    }
    complaint = run(folder, test, every="1m")
    assert "err:" not in complaint, complaint
    return {text.split('"')[0] for text in complaint.split('alertname="')[1:]}


def test_series_of_switches_fire_no_alert_on_hosts(tmp_path: Path) -> None:
    """Every fault of a switch at once, and no host."""
    fired = names_firing(tmp_path, sick_series(SWITCH_CASES, "roce_switch_"))
    assert len(fired) >= 6
    assert not {name for name in fired if not name.startswith("RoceSwitch")}


def test_series_of_hosts_fire_no_alert_on_switches_or_links(tmp_path: Path) -> None:
    """Every fault of a host at once, and no switch."""
    fired = names_firing(
        tmp_path, [one for one in sick_series(CASES, "roce_") if not one["series"].startswith("roce_switch_")]
    )
    assert len(fired) >= 30
    assert not fired & {case.alert for case in SWITCH_CASES}
