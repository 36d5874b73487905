"""The list of causes: complete, with names and runbooks that exist, and with the limits of the alerts."""

import ast
import re
from pathlib import Path

import pytest
from health_history import DEFAULTS, history

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.kernel_events import EVENTS, FAILED_EVENTS, Severity
from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.causes import CAUSES, NAMED
from roce_exporter.checks.health.counter_rules import KINDS, OF_DEVICES, OF_PORTS, ROWS_OF_COUNTERS
from roce_exporter.checks.health.coverage import AREAS
from roce_exporter.checks.health.device_rules import DEVICE_EVENTS
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import KEPT
from roce_exporter.checks.health.link_rules import ENDS_LINK
from roce_exporter.checks.health.port_health import UNKNOWN_REASONS, judge
from roce_exporter.checks.health.settings_rules import IP_CHECKS
from roce_exporter.checks.report import ACTS
from roce_exporter.view import host_view
from roce_exporter.view.host_view import TimedSamples

ROOT = Path(__file__).parents[3]


def test_rules_name_causes_and_every_cause_has_a_rule() -> None:
    """What is a word of a rule's code or the head of a row of its table, and every name of the list."""
    said = {
        node.value
        for place in (ROOT / "roce_exporter/checks/health").glob("*_rules.py")
        for call in ast.walk(ast.parse(place.read_text()))
        if isinstance(call, ast.Call | ast.Dict | ast.Assign | ast.IfExp | ast.Tuple)
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    signs = {
        call.args[0].value
        for place in (ROOT / "roce_exporter/checks/health").glob("*_rules.py")
        for call in ast.walk(ast.parse(place.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Symptom"
        if isinstance(call.args[0], ast.Constant)
    }
    tables = {one.cause for one in (*OF_PORTS, *OF_DEVICES, *KINDS)} | {
        *DEVICE_EVENTS.values(),
        *ENDS_LINK.values(),
        *IP_CHECKS.values(),
    }
    assert len(NAMED) == len(CAUSES)
    assert signs | tables <= NAMED.keys() <= said | tables
    assert not NAMED.keys() & UNKNOWN_REASONS.keys()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_a_cause_says_what_to_do(cause) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", cause.name)
    assert (ROOT / "alerts/runbooks" / f"{cause.runbook}.md").is_file()
    assert cause.health in (Status.OK, Status.DEGRADED, Status.FAILED)
    assert not cause.title.endswith(".")
    assert cause.likely.endswith(".")
    assert cause.wrong_if
    assert not cause.wrong_if.endswith(".")
    assert cause.areas <= {area.what for area in AREAS}
    assert cause.acts in {"", *ACTS}
    filled = [step.format_map({"device": "mlx5_0", "port": "1", "netdev": "eth0"}) for step in cause.next]
    assert filled
    assert not any("{device}" in step or "{netdev}" in step for step in filled)


def test_explanations_name_causes_and_have_no_circle() -> None:
    for cause in CAUSES:
        seconds = [NAMED[one.partition("/")[0]] for one in cause.explains]
        assert {one.partition("/")[2] for one in cause.explains} <= {
            "",
            "receive",
            "transmit",
            "lossy",
            "inferred",
            "unsure",
            *Side,
        }
        assert not any(cause.is_explained_by(one, "receive") for one in seconds), cause.name


def test_every_serious_event_of_the_kernel_log_has_a_cause() -> None:
    serious = {event.name for event in EVENTS if event.severity is not Severity.INFORMATION}
    of_requests = {event.name for event in EVENTS if event.name.startswith("completion_")}
    assert (
        set(DEVICE_EVENTS)
        == serious - {"pcie_aer_correctable"} | {"unknown_error", "driver_warning"} | of_requests
    )
    failed = {event.name for event in EVENTS if event.severity is Severity.FAILED}
    notes = {name for name, cause in DEVICE_EVENTS.items() if NAMED[cause].health == Status.OK}
    assert notes == {"unknown_error"} | of_requests - {"completion_unanswered"}
    assert {name for name, cause in DEVICE_EVENTS.items() if NAMED[cause].health == Status.FAILED} <= failed


def test_the_daemon_keeps_the_rows_that_rules_read_and_no_others(monkeypatch) -> None:
    """Every row has a series that rises fast, slowly or not at all, or is missing, so that every branch reads its rows."""
    asked: set[str] = set()
    tracks = host_view.View.tracks

    def noting(host: host_view.View, name: str) -> tuple[host_view.SeriesTrack, ...]:
        asked.add(name)
        return tracks(host, name)

    monkeypatch.setattr(host_view.View, "tracks", noting)
    known = {row.name for row in CATALOG}
    for rate in (0.0, 1.0, 1e9):
        for level in (0.0, 1.0, 100.0):
            moments = moments_of_all_rows(rate, level)
            judge({}, moments, diagnose(moments))
    for direction in ("receive", "transmit"):
        moments = moments_of_all_rows(1e9, 1.0, f"roce_pfc_{direction}_pause_seconds_total")
        diagnose(moments)
    assert (asked & known) | ROWS_OF_COUNTERS == KEPT


def moments_of_all_rows(rate: float, level: float, missing: str = "") -> tuple[TimedSamples, ...]:
    given = {**DEFAULTS, "source": "10.0.0.1", "destination": "10.0.0.2", "address": "10.0.0.1"}
    rows = [row for row in CATALOG if row.kind != "histogram" and row.name != missing]
    return tuple(
        TimedSamples(
            60.0 * number,
            {
                row.name: {
                    tuple(given.get(label, "x") for label in row.labels): rate * number
                    if row.kind == "counter"
                    else level
                }
                for row in rows
            },
        )
        for number in range(20)
    )


def test_fine_is_what_every_port_shows_and_nothing_is_wrong_with() -> None:
    series = {"roce_transceiver_temperature_celsius": 40, "roce_pcie_link_width_lanes": 16}
    assert diagnose(history(series)).fine == ("driver", "PCIe", "link", "optics")
    narrow = {**series, "roce_pcie_link_width_max_lanes": 32}
    assert diagnose(history(narrow)).fine == ("driver", "link", "optics")
    assert diagnose(history(series, moments=1)).fine == ()
    checked = {**series, "roce_config_check_ok{check=trust}": 1}
    assert diagnose(history(checked)).fine[-1] == "settings"
    assert "addresses" not in diagnose(history(checked)).fine
    drops = {"roce_phy_receive_discards_total": [0, 0], "roce_pfc_enabled": 1}
    assert "drops" in diagnose(history(drops)).fine
    for amount in (1, 50):  # a note speaks of it as well
        report = diagnose(history({**drops, "roce_buffer_discards_total": [0, amount]}))
        assert [one.check for one in report.findings] == ["lossless_drops"]
        assert not {"drops", "pause"} & {*report.fine}


def test_every_failure_in_the_kernel_log_is_a_cause() -> None:
    names = {event.name for event in EVENTS}
    assert set(FAILED_EVENTS) <= set(DEVICE_EVENTS) <= names
