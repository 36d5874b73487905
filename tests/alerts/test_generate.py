"""The generator: the rules are those of the thresholds, and a mistake in the thresholds is one clear line."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from types import ModuleType

ALERTS = Path(__file__).parents[2] / "alerts"


def load() -> ModuleType:
    """Load the generator, which is a script outside any package."""
    specification = importlib.util.spec_from_file_location("alerts_generate", ALERTS / "generate.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


generate = load()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(ALERTS / "rules", tmp_path / "rules")
    shutil.copy(ALERTS / "thresholds.yml", tmp_path)
    return tmp_path


def edit(folder: Path, section: str, name: str, **values: Any) -> None:
    """Change values of the thresholds; None removes one."""
    place = folder / "thresholds.yml"
    content = yaml.safe_load(place.read_text())
    changed = {**content[section].get(name, {}), **values}
    content[section][name] = {key: value for key, value in changed.items() if value is not None}
    place.write_text(yaml.safe_dump(content))


def edit_shared(folder: Path, **values: Any) -> None:
    """Change shared values."""
    place = folder / "thresholds.yml"
    content = yaml.safe_load(place.read_text())
    content["shared"] |= values
    place.write_text(yaml.safe_dump(content))


def rules_of(folder: Path) -> dict[str, dict[str, Any]]:
    groups = generate.make_rules(folder)["groups"]
    return {rule.get("alert") or rule["record"]: rule for group in groups for rule in group["rules"]}


def test_the_rules_are_those_of_the_thresholds() -> None:
    """Rewrite them with `python alerts/generate.py`."""
    assert (ALERTS / "roce.rules.yml").read_text() == generate.generated()


def checked(place: Path) -> str:
    """What promtool finds wrong."""
    command = ["promtool", "check", "rules", "--lint=all", "--lint-fatal", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode or done.stderr.strip() else ""


@pytest.mark.usefixtures("promtool")
def test_promtool_finds_no_problem() -> None:
    assert not checked(ALERTS / "roce.rules.yml")


def test_a_threshold_reaches_expression_and_text(folder: Path) -> None:
    edit(folder, "alerts", "RocePfcLongPause", seconds=0.75)
    edit(folder, "alerts", "RoceSlowReceiver", **{"for": "20m"})
    edit(folder, "alerts", "RocePfcPauseHigh", throughout="25m")
    rules = rules_of(folder)
    assert rules["RocePfcLongPause"]["expr"].endswith("> 0.75")
    assert rules["RoceSlowReceiver"]["for"] == "20m"
    assert "ratio_rate5m[25m]" in rules["RocePfcPauseHigh"]["expr"]


def test_a_window_changes_the_name_of_what_is_recorded_and_its_users(folder: Path) -> None:
    edit_shared(folder, short="5m", medium="10m")
    rules = rules_of(folder)
    assert "rate5m" in rules["RocePfcReceivePauseSaturated"]["expr"]
    assert "[5m]" in rules["RocePfcTransmitPauseSaturated"]["expr"]
    assert "netdev_priority_direction:roce_pfc_pause:ratio_rate10m" in rules
    assert "rate2m" not in json.dumps(rules)


@pytest.mark.usefixtures("promtool")
def test_slower_scrapes_still_make_valid_rules(folder: Path) -> None:
    edit_shared(folder, short="5m", medium="10m", long="1h", clusters_without_ecn="east|west")
    made = folder / "made.yml"
    made.write_text(generate.generated(folder))
    assert not checked(made)


def test_an_alert_can_be_left_out_and_have_another_severity(folder: Path) -> None:
    edit(folder, "alerts", "RocePcieSpeedDegraded", enabled=False)
    edit(folder, "alerts", "RoceTransportRetriesExceeded", severity="page")
    rules = rules_of(folder)
    assert "RocePcieSpeedDegraded" not in rules
    assert "RocePcieWidthDegraded" in rules
    assert rules["RoceTransportRetriesExceeded"]["labels"]["severity"] == "page"


def group_of(folder: Path, alert: str) -> dict[str, Any]:
    return next(
        group
        for group in generate.make_rules(folder)["groups"]
        if any(rule.get("alert") == alert for rule in group["rules"])
    )


def test_what_can_wait_is_evaluated_less_often(folder: Path) -> None:
    """A ticket, until it becomes a page; less often info and a ticket that waits long; never a ticket that mutes others early."""
    edit_shared(folder, slow_interval="90s")
    slow = group_of(folder, "RoceCrcErrors")
    assert (slow["name"], slow["interval"]) == ("roce-link-slow", "90s")
    assert group_of(folder, "RocePfcStormNearMisses")["interval"] == "2m"
    assert "interval" not in group_of(folder, "RocePortDown")
    edit(folder, "alerts", "RoceCrcErrors", severity="page")
    assert "interval" not in group_of(folder, "RoceCrcErrors")
    edit(folder, "alerts", "RoceCrcErrors", severity="ticket", **{"for": "14m59s"})
    assert group_of(folder, "RoceCrcErrors")["interval"] == "90s"
    edit(folder, "alerts", "RoceCrcErrors", **{"for": "15m"})
    rare = group_of(folder, "RoceCrcErrors")
    assert (rare["name"], rare["interval"]) == ("roce-link-rare", "2m")
    edit(folder, "alerts", "RoceCrcErrors", severity="info", **{"for": "0s"})
    assert group_of(folder, "RoceCrcErrors")["interval"] == "2m"


@pytest.mark.parametrize("key", ["slow_interval", "rare_interval", "short"])
def test_a_shared_duration_that_is_none_is_a_mistake(folder: Path, key: str) -> None:
    edit_shared(folder, **{key: "often"})
    with pytest.raises(generate.RuleError, match=f"{key} must be a duration such as 5m, not 'often'"):
        generate.generated(folder)


def test_events_include_the_first_one_of_a_counter_that_is_served_above_zero(folder: Path) -> None:
    expression = rules_of(folder)["RoceIcrcErrors"]["expr"]
    counter = "roce_transport_icrc_errors_total"
    assert f"{counter} unless {counter} offset 15m" in expression
    assert f"or increase({counter}[15m])) > 0" in expression


MISTAKES = [
    ("RocePfcPauseHigh", {"severity": "critical"}, "severity must be one of page, ticket, info"),
    ("RocePfcPauseHigh", {"severity": None}, "RocePfcPauseHigh: severity must be one of"),
    ("RocePfcPauseHigh", {"for": "15 minutes"}, "for must be a duration such as 5m, not '15 minutes'"),
    ("RocePfcPauseHigh", {"keep_firing_for": 10}, "keep_firing_for must be a duration"),
    (
        "RocePfcPauseHigh",
        {"ratio": None},
        "RocePfcPauseHigh: <<ratio>> is not a threshold, shared value or phrase",
    ),
    ("RocePfcPauseHigh", {"ration": 0.1}, "thresholds.yml: RocePfcPauseHigh: ration has no effect"),
    ("RocePfcPauseHih", {"severity": "page"}, "thresholds.yml: no such alert: RocePfcPauseHih"),
]


@pytest.mark.parametrize(("alert", "values", "message"), MISTAKES)
def test_a_mistake_is_one_line_that_names_it(
    folder: Path, alert: str, values: dict[str, Any], message: str
) -> None:
    edit(folder, "alerts", alert, **values)
    with pytest.raises(generate.RuleError) as caught:
        generate.generated(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_alert_without_thresholds_is_a_mistake(folder: Path) -> None:
    content = yaml.safe_load((folder / "thresholds.yml").read_text())
    del content["alerts"]["RoceIcrcErrors"]
    (folder / "thresholds.yml").write_text(yaml.safe_dump(content))
    with pytest.raises(generate.RuleError, match=r"RoceIcrcErrors of rules/transport\.yml is missing"):
        generate.generated(folder)


@pytest.mark.parametrize("text", ["shared: [", "shared: {}\n", "[]\n"])
def test_malformed_thresholds_are_refused(folder: Path, text: str) -> None:
    (folder / "thresholds.yml").write_text(text)
    with pytest.raises(generate.RuleError, match=r"thresholds\.yml"):
        generate.generated(folder)


def test_small_numbers_are_written_out() -> None:
    """PromQL accepts 1e-05, but the thresholds file has 0.00001."""
    assert generate.number(0.00001) == "0.00001"
    assert generate.number(14.4) == "14.4"
    assert generate.number(3) == "3"


def test_the_command_writes_the_rules_or_reports_the_mistake(folder: Path) -> None:
    """As an operator runs it, in a copy of the folder."""
    shutil.copy(ALERTS / "generate.py", folder)
    command = [sys.executable, str(folder / "generate.py")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert (folder / "roce.rules.yml").read_text() == (ALERTS / "roce.rules.yml").read_text()
    edit(folder, "alerts", "RocePfcPauseHigh", severity="loud")
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert "severity must be one of" in failed.stderr
