"""An alert whose condition must have held `throughout` a time starts, and lasts, as one with `for`."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import pytest
from alert_promtool import needed_rules, rule_of, run
from alert_starts import fired

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("promtool")

STEP = 30
LABELS = 'cluster="east",job="roce",instance="h1",device="mlx5_0",port="1",netdev="ens1f0np0",priority="3"'
LEAD, SICK = 20 * 60, 60 * 60
"""Seconds without pause, then with."""
FOR = {"RocePfcPauseHigh": 15 * 60, "RocePfcPauseElevated": 30 * 60}


def counted(calm: range) -> list[str]:
    """The seconds of pause of a port that is paused for 2 % of the time, except before `LEAD` and while it is calm."""

    def paused() -> Iterator[float]:
        for at in range(0, LEAD + SICK, STEP):
            yield 0.02 * STEP if at > LEAD and at not in calm else 0.0

    return [f"{value:.3f}" for value in accumulate(paused())]


def spans(folder: Path, alert: str, calm: range = range(0)) -> list[list[int]]:
    """When the alert fires."""
    series = {f"roce_pfc_receive_pause_seconds_total{{{LABELS}}}": counted(calm)}
    found = fired(folder, needed_rules({alert}), series, STEP, STEP)
    return next((times for name, times in found.items() if name.startswith(f"{alert}{{")), [])


@pytest.mark.parametrize("alert", FOR)
def test_it_starts_when_the_condition_has_held_for_all_that_time(tmp_path: Path, alert: str) -> None:
    """The share of five minutes exceeds 1 % two and a half minutes after the pause began, that of 30 minutes sooner."""
    ((begin, end),) = spans(tmp_path, alert)
    assert FOR[alert] < begin - LEAD <= FOR[alert] + 180
    assert end == LEAD + SICK - STEP


def test_what_is_kept_firing_does_not_wait_again(tmp_path: Path) -> None:
    """Four minutes of calm: the share is too small for about three, less than `keep_firing_for`."""
    calm = range(LEAD + 1800, LEAD + 2040)
    ((begin, end),) = spans(tmp_path, "RocePfcPauseHigh", calm)
    assert begin < calm.start
    assert end == LEAD + SICK - STEP


def test_what_is_interrupted_before_it_fires_starts_again(tmp_path: Path) -> None:
    calm = range(LEAD + 600, LEAD + 840)
    ((begin, _),) = spans(tmp_path, "RocePfcPauseHigh", calm)
    assert begin > calm.stop + FOR["RocePfcPauseHigh"]


def test_a_new_series_has_not_lasted(tmp_path: Path) -> None:
    """Its first share is high, and so is the lowest of all that it has."""
    paused = [str(0.9 * at) for at in range(0, SICK, STEP)]
    series = {f"roce_pfc_receive_pause_seconds_total{{{LABELS}}}": paused}
    found = fired(tmp_path, needed_rules({"RocePfcPauseHigh"}), series, STEP, STEP)
    ((begin, _),) = next(iter(found.values()))
    assert begin >= FOR["RocePfcPauseHigh"]


@pytest.mark.parametrize("more", ["", ',alertgroup="roce-pause-slow"'], ids=["Prometheus", "vmalert"])
def test_an_alert_that_fires_is_recognised_whatever_the_evaluator_adds(tmp_path: Path, more: str) -> None:
    place = f'{LABELS},direction="receive"'
    ratio = f"netdev_priority_direction:roce_pfc_pause:ratio_rate5m{{{place}}}"
    fires = f'ALERTS{{alertname="RocePfcPauseHigh",alertstate="firing",severity="ticket",scope="host",{place}{more}}}'
    expected = {
        "expr": rule_of("RocePfcPauseHigh")["expr"],
        "eval_time": "1m",
        "exp_samples": [{"labels": ratio, "value": 0.02}],
    }
    series = [{"series": ratio, "values": "0.02x2"}, {"series": fires, "values": "1x2"}]
    test = {"input_series": series, "alert_rule_test": [], "promql_expr_test": [expected]}
    assert run(tmp_path, test) == ""
