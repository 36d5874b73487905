"""Pages that end and begin again within minutes are one page: what `keep_firing_for` of each is for, and how far it reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alert_promtool import needed_rules
from alert_scenario import NETDEV, PRIORITY
from alert_starts import Series, fired

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("promtool")

STEP = 30
HOST = 'cluster="east",job="roce",instance="h1"'
MINUTE = 60 // STEP
"""Scrapes."""


def pages(folder: Path, alert: str, series: Series) -> list[int]:
    """The minutes in which the alert began to fire."""
    (spans,) = fired(folder, needed_rules({alert}), series, STEP, STEP).values()
    return [begin // 60 for begin, _ in spans]


def trips(*minutes: int, lost: int = -1) -> Series:
    """The NIC's watchdog trips in these minutes; one scrape may be lost."""
    counts = [sum(at >= minute * MINUTE for minute in minutes) for at in range(100 * MINUTE)]
    values = ["_" if at == lost else str(count) for at, count in enumerate(counts)]
    return {f"roce_pfc_watchdog_trips_total{{{HOST},{NETDEV}}}": values}


def bursts(pause: int, apart: int) -> Series:
    """After an hour of calm, bursts of pause of 10 minutes with `apart` minutes between them, for two hours."""
    total, values = 0.0, []
    for at in range(180 * MINUTE):
        paused = at >= 60 * MINUTE and (at - 60 * MINUTE) % ((10 + apart) * MINUTE) < 10 * MINUTE
        total += pause / 100 * STEP * paused
        values.append(f"{total:.1f}")
    enabled = ["1"] * len(values)
    return {
        f"roce_pfc_receive_pause_seconds_total{{{HOST},{PRIORITY}}}": values,
        f"roce_pfc_enabled{{{HOST},{PRIORITY}}}": enabled,
    }


@pytest.mark.parametrize("lost", [-1, 30 * MINUTE, 35 * MINUTE])
def test_trips_of_a_watchdog_within_twenty_minutes_are_one_page(tmp_path: Path, lost: int) -> None:
    """A NIC that is not reset trips again. A lost scrape changes nothing, whether during the event's window or after it."""
    assert pages(tmp_path, "RoceNicPauseWatchdogTripped", trips(20, 40, lost=lost)) == [20]


def test_a_trip_after_half_an_hour_is_another_page(tmp_path: Path) -> None:
    assert pages(tmp_path, "RoceNicPauseWatchdogTripped", trips(20, 50)) == [20, 50]


def test_pause_in_bursts_is_one_page_per_cluster(tmp_path: Path) -> None:
    """The average over an hour stays high, the current one falls between two bursts."""
    assert len(pages(tmp_path, "RocePfcPauseBudgetBurnFast", bursts(20, 10))) == 1


def test_bursts_half_an_hour_apart_are_two_pages(tmp_path: Path) -> None:
    assert len(pages(tmp_path, "RocePfcPauseBudgetBurnFast", bursts(40, 30))) > 1
