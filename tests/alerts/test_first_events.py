"""Counters that are served only above zero, as in the metric sets lean and standard: their first event fires the alert, an old count never."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alert_cases import CASES
from alert_histories import USUAL, in_clusters_of
from alert_promtool import needed_rules
from alert_scenario import LARGE, Case, Level, input_series, metric
from alert_starts import Series, Spans, fired

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("promtool")

SPARSE = frozenset(
    f"roce_{name}_total"
    for name in (
        *("cnp_ignored", "exporter_sampler_late_ticks", "exporter_sampler_missed_ticks", "kernel_log_events"),
        *("global_pause_receive_frames", "global_pause_receive_xoff_frames", "global_pause_transmit_frames"),
        *("global_pause_transmit_xoff_frames", "link_down_events", "mac_control_frames_unsupported"),
        *("mac_frame_check_sequence_errors", "netdev_carrier_changes", "pause_watchdog_trips"),
        *("pcie_buffer_overflows", "pcie_fatal_errors", "pcie_nonfatal_errors", "pcie_read_stalled_seconds"),
        *("pcie_write_stalled_seconds", "pfc_detector_faults", "pfc_receive_frames", "pfc_storm_near_misses"),
        *(
            "pfc_watchdog_warnings",
            "phy_fec_uncorrectable_blocks",
            "phy_receive_crc_errors",
            "phy_symbol_errors",
        ),
        *("transport_ack_timeouts", "transport_icrc_errors", "transport_rnr_naks_received"),
    )
)
"""Counters of alerts that lean serves only above zero, and that a host counts from zero. Frames of pause: of priorities without PFC."""
DEVICES = {"roce_exporter_devices": Level(sick=1, healthy=1)}
COUNTED = {
    # a host is new for as long as the longest window of an alert
    case.title: replace(case, lead=75, background={**DEVICES, **case.background})
    for case in CASES
    if any(metric(series) in SPARSE for series in case.series)
}
APART = 2
"""Evaluations by which an alert on a sparse counter may start later: a rate needs a second sample."""


def sparse(case: Case) -> Series:
    """The history of a case from counters that began at zero, in which a sparse counter is served from its first event on."""
    found = {}
    for one in input_series(case):
        values = one["values"].split()
        if metric(one["series"]) in SPARSE:
            from_zero = [value if value in {"_", "stale"} else _less(value) for value in values]
            values = ["_" if value == "0" else value for value in from_zero]
        found[one["series"]] = values
    return found


def _less(value: str) -> str:
    return f"{float(value) - LARGE:.12f}".rstrip("0").rstrip(".")


def lasting(case: Case, begin: int = 0, gap: range = range(0)) -> Series:
    """All counters of a host far above zero and constant, scraped from `begin` on, except during a gap."""
    scrapes = 3 * 60 * 60 // case.step
    found = {}
    for one in input_series(replace(case, sick_hosts=())):
        value = str(LARGE) if metric(one["series"]).endswith("_total") else one["values"].split()[0]
        found[one["series"]] = [
            value if number >= begin and number not in gap else "_" for number in range(scrapes)
        ]
    return found


def returned(case: Case) -> Series:
    """The host is scraped all the time; meanwhile it has one device less."""
    series = lasting(case, gap=GAP)
    for name, values in series.items():
        if metric(name) == "roce_exporter_devices":
            series[name] = ["0" if number in GAP else "1" for number in range(len(values))]
    return series


GAP = range(120, 140)
"""Ten minutes: longer than Prometheus remembers a sample."""
HISTORIES: dict[str, Callable[[Case], Series]] = {
    "full": lambda case: {one["series"]: one["values"].split() for one in input_series(case)},
    "sparse": sparse,
    "a new host": lambda case: lasting(case, begin=60),
    "a restart of the exporter": lambda case: lasting(case, gap=GAP),
    "a device that returns": returned,
}


@cache
def spans(kind: str) -> Spans:
    """When the alerts of the cases fire, all in one history."""
    series = {
        name: values
        for case in COUNTED.values()
        for name, values in in_clusters_of(case, HISTORIES[kind](case)).items()
    }
    rules = needed_rules({case.alert for case in COUNTED.values()})
    with tempfile.TemporaryDirectory() as folder:
        return fired(Path(folder), rules, series, USUAL.step, USUAL.step)


def of_case(kind: str, case: Case) -> Spans:
    """The times of the case's own alert."""
    return {
        name: times
        for name, times in spans(kind).items()
        if name.startswith(f"{case.alert}{{cluster={case.title} (")
    }


@pytest.mark.parametrize("case", COUNTED.values(), ids=COUNTED)
def test_the_first_event_fires_as_a_later_one_does(case: Case) -> None:
    """The same alerts, and they start at the same time, as with a counter that was there before."""
    expected, found = of_case("full", case), of_case("sparse", case)
    assert expected
    assert found.keys() == expected.keys()
    for name, times in expected.items():
        assert abs(found[name][0][0] - times[0][0]) <= APART * case.step, name


@pytest.mark.parametrize("kind", list(HISTORIES)[2:])
def test_an_old_count_in_a_new_series_is_no_event(kind: str) -> None:
    """Counts of NICs begin when the NIC was reset, not when the exporter began."""
    assert not spans(kind)
