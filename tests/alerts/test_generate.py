"""The generator: the rules are those of the thresholds, and a mistake in the thresholds is one clear line."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from roce_exporter.checks.thresholds import shipped_thresholds, sum_of

ALERTS = Path(__file__).parents[2] / "alerts"


def load() -> ModuleType:
    """Load the generator, which is a script outside any package."""
    specification = importlib.util.spec_from_file_location("alerts_generate", ALERTS / "generate.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


generate = load()


@pytest.fixture
def folder(tmp_path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(ALERTS / "rules", tmp_path / "rules")
    for name in ("thresholds.yml", "went.yml"):
        shutil.copy(ALERTS / name, tmp_path)
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


def test_the_sum_of_the_limits_is_that_of_the_exporters() -> None:
    """So that rules with other limits than the checks of a host are seen."""
    own = generate.read_thresholds(ALERTS / "thresholds.yml").values["limits_sum"]
    assert own == sum_of(shipped_thresholds())


def checked(place: Path) -> str:
    """What promtool finds wrong."""
    command = ["promtool", "check", "rules", "--lint=all", "--lint-fatal", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode or done.stderr.strip() else ""


@pytest.mark.usefixtures("promtool")
def test_promtool_finds_no_problem() -> None:
    assert not checked(ALERTS / "roce.rules.yml")


def test_a_threshold_reaches_expression_and_text(folder) -> None:
    edit(folder, "limits", "resources_used", ratio=0.75)
    edit(folder, "limits", "storms_ended", window="2h")
    edit(folder, "alerts", "RocePortFaulty", **{"for": "20m"})
    rules = rules_of(folder)
    assert "> 0.75" in rules["RoceResourcesNearlyExhausted"]["expr"]
    assert "within 2h" in rules["RocePfcStormEnded"]["annotations"]["summary"]
    assert rules["RocePortFaulty"]["for"] == "20m"


def test_a_window_changes_the_name_of_what_is_recorded_and_its_users(folder) -> None:
    edit_shared(folder, short="5m", medium="10m")
    rules = rules_of(folder)
    assert "ratio_rate10m" in rules["RocePortVictim"]["expr"]
    assert "[5m]" in rules["RoceSwitchBufferLoss"]["expr"]
    assert "netdev_priority_direction:roce_pfc_pause:ratio_rate10m" in rules
    assert "rate2m" not in json.dumps(rules)


@pytest.mark.usefixtures("promtool")
def test_slower_scrapes_still_make_valid_rules(folder) -> None:
    edit_shared(folder, short="5m", medium="10m", long="1h", clusters_without_ecn="east|west")
    made = folder / "made.yml"
    made.write_text(generate.generated(folder))
    assert not checked(made)


def test_an_alert_can_be_left_out_and_have_another_severity(folder) -> None:
    edit(folder, "alerts", "RoceIncast", enabled=False)
    edit(folder, "alerts", "RocePeerUnreachable", severity="critical")
    rules = rules_of(folder)
    assert "RoceIncast" not in rules
    assert "RocePortCause" in rules
    assert rules["RocePeerUnreachable"]["labels"]["severity"] == "critical"


def group_of(folder: Path, alert: str) -> dict[str, Any]:
    return next(
        group
        for group in generate.make_rules(folder)["groups"]
        if any(rule.get("alert") == alert for rule in group["rules"])
    )


def test_what_can_wait_is_evaluated_less_often(folder) -> None:
    """A warning, until it is critical; less often info and a warning that waits long; never a warning that mutes others early."""
    edit_shared(folder, slow_interval="90s")
    slow = group_of(folder, "RoceDeviceVanished")
    assert (slow["name"], slow["interval"]) == ("roce-port-slow", "90s")
    assert group_of(folder, "RocePfcStormNearMisses")["interval"] == "2m"
    assert "interval" not in group_of(folder, "RocePortDown")
    edit(folder, "alerts", "RoceDeviceVanished", severity="critical")
    assert "interval" not in group_of(folder, "RoceDeviceVanished")
    edit(folder, "alerts", "RoceDeviceVanished", severity="warning", **{"for": "14m59s"})
    assert group_of(folder, "RoceDeviceVanished")["interval"] == "90s"
    edit(folder, "alerts", "RoceDeviceVanished", **{"for": "15m"})
    rare = group_of(folder, "RoceDeviceVanished")
    assert (rare["name"], rare["interval"]) == ("roce-port-rare", "2m")
    edit(folder, "alerts", "RoceDeviceVanished", severity="info", **{"for": "0s"})
    assert group_of(folder, "RoceDeviceVanished")["interval"] == "2m"


@pytest.mark.parametrize("key", ["slow_interval", "rare_interval", "short"])
def test_a_shared_duration_that_is_none_is_a_mistake(folder, key) -> None:
    edit_shared(folder, **{key: "often"})
    with pytest.raises(generate.RuleError, match=f"{key} must be a duration such as 5m, not 'often'"):
        generate.generated(folder)


MISTAKES = [
    ("alerts", "RocePortFaulty", {"severity": "page"}, "RocePortFaulty: severity page is now critical"),
    ("alerts", "RocePortFaulty", {"severity": "ticket"}, "RocePortFaulty: severity ticket is now warning"),
    ("alerts", "RocePortFaulty", {"severity": "loud"}, "severity must be one of critical, warning, info"),
    ("alerts", "RocePortFaulty", {"severity": None}, "RocePortFaulty: severity must be one of"),
    (
        "alerts",
        "RocePortFaulty",
        {"for": "15 minutes"},
        "for must be a duration such as 5m, not '15 minutes'",
    ),
    ("alerts", "RocePortFaulty", {"keep_firing_for": 10}, "keep_firing_for must be a duration"),
    ("alerts", "RocePortFaulty", {"ratio": 0.1}, "RocePortFaulty: ratio has no effect"),
    ("alerts", "RocePortFalty", {"severity": "info"}, "thresholds.yml: no such alert: RocePortFalty"),
    ("alerts", "RoceCrcErrors", {"severity": "info"}, "RoceCrcErrors went: RocePortFaulty"),
    ("limits", "storms_ended", {"window": "1 hour"}, "storms_ended: window must be a duration"),
    (
        "limits",
        "pause_high",
        {"ratio": None},
        "RocePortVictim: <<pause_high.ratio>> is not a limit, shared value or phrase",
    ),
]


@pytest.mark.parametrize(("section", "name", "values", "message"), MISTAKES)
def test_a_mistake_is_one_line_that_names_it(folder, section, name, values, message) -> None:
    edit(folder, section, name, **values)
    with pytest.raises(generate.RuleError) as caught:
        generate.generated(folder)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_alert_without_thresholds_is_a_mistake(folder) -> None:
    content = yaml.safe_load((folder / "thresholds.yml").read_text())
    del content["alerts"]["RocePacketLoss"]
    (folder / "thresholds.yml").write_text(yaml.safe_dump(content))
    with pytest.raises(generate.RuleError, match=r"RocePacketLoss of rules/transport\.yml is missing"):
        generate.generated(folder)


@pytest.mark.parametrize("text", ["shared: [", "shared: {}\n", "[]\n"])
def test_malformed_thresholds_are_refused(folder, text) -> None:
    (folder / "thresholds.yml").write_text(text)
    with pytest.raises(generate.RuleError, match=r"thresholds\.yml"):
        generate.generated(folder)


def test_small_numbers_are_written_out() -> None:
    """PromQL accepts 1e-05, but the thresholds file has 0.00001."""
    assert generate.number(0.00001) == "0.00001"
    assert generate.number(14.4) == "14.4"
    assert generate.number(3) == "3"


def test_the_command_writes_the_rules_or_reports_the_mistake(folder) -> None:
    """As an operator runs it, in a copy of the folder."""
    shutil.copy(ALERTS / "generate.py", folder)
    command = [sys.executable, str(folder / "generate.py")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert (folder / "roce.rules.yml").read_text() == (ALERTS / "roce.rules.yml").read_text()
    edit(folder, "alerts", "RocePortFaulty", severity="loud")
    failed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert "severity must be one of" in failed.stderr
