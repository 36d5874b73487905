"""An alert whose condition must have held `throughout` a time starts, and lasts, as one with `for`."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import pytest
from alert_promtool import complaints, delivered, fired, history, needed
from alert_scenario import labels_written

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("promtool")

PLACE = labels_written('job="roce",instance="h1",PRIORITY')
LEAD, END, STEP = 20 * 60, 80 * 60, 30
"""Seconds without pause, then until the end with; a scrape."""
FOR, KEPT = 15 * 60, 5 * 60


def counted(begin: int, calm: range = range(0)) -> str:
    """The seconds of pause of a port that is paused for 2 % of the time from `begin` on, and while it is calm for 0.6 %."""
    steps = (0 if at <= begin else 0.006 * STEP if at in calm else 0.02 * STEP for at in range(0, END, STEP))
    return " ".join(f"{value:.3f}" for value in accumulate(steps))


CALM = range(LEAD + 600, LEAD + 840), range(LEAD + 1800, LEAD + 2040)
"""Four minutes: the share is too small for about three. Before the alert fires, and after."""
PORTS = {
    "interrupted before it fires": counted(LEAD, CALM[0]),
    "interrupted while it fires": counted(LEAD, CALM[1]),
    "new": counted(-1),
}


def test_it_starts_when_its_condition_has_held_for_all_that_time(tmp_path: Path) -> None:
    """The share of five minutes exceeds 1 % two and a half minutes after the pause began."""
    series = [
        {"series": f'roce_pfc_receive_pause_seconds_total{{cluster="{name}",{PLACE}}}', "values": values}
        for name, values in PORTS.items()
    ]
    found = fired(tmp_path, needed({"RocePfcPauseHigh"}, delivered()), history(series, END // 60)).of(
        "RocePfcPauseHigh"
    )
    spans = {dict(labels)["cluster"]: times for labels, times in found.items()}
    ((begin, end),) = spans["interrupted before it fires"]
    assert CALM[0].stop + FOR < begin <= CALM[0].stop + FOR + 240
    ((begin, end),) = spans["interrupted while it fires"]
    assert begin < CALM[1].start
    assert end == END - 60, "what is kept firing does not have to wait again"
    ((begin, _),) = spans["new"]
    assert begin >= FOR, "a new series has not lasted"


@pytest.mark.parametrize(
    ("alert", "state", "more", "fires"),
    [
        ("RocePfcPauseHigh", "firing", "", True),
        ("RocePfcPauseHigh", "firing", ',alertgroup="roce-pause-slow"', True),  # vmalert
        ("RocePfcPauseHigh", "pending", "", False),
        ("RocePfcPauseElevated", "firing", "", False),
    ],
)
def test_it_knows_whether_it_fires(tmp_path: Path, alert: str, state: str, more: str, fires: bool) -> None:
    """Whatever the evaluator adds."""
    place = f'{PLACE},direction="receive"'
    ratio = f"netdev_priority_direction:roce_pfc_pause:ratio_rate5m{{{place}}}"
    already = (
        f'ALERTS{{alertname="{alert}",alertstate="{state}",severity="ticket",scope="host",{place}{more}}}'
    )
    (rule,) = [
        rule for group in delivered() for rule in group["rules"] if rule.get("alert") == "RocePfcPauseHigh"
    ]
    samples = [{"labels": ratio, "value": 0.02}] if fires else []
    test = {
        "input_series": [{"series": ratio, "values": "0.02x2"}, {"series": already, "values": "1x2"}],
        "promql_expr_test": [{"expr": rule["expr"], "eval_time": "1m", "exp_samples": samples}],
    }
    assert not complaints(tmp_path, [], [test])
