"""Limits of rules: those of `alerts/thresholds.yml`, and of an operator's copy of it."""

import re
from pathlib import Path

import pytest
import yaml
from health_history import history

from roce_exporter.checks import health
from roce_exporter.checks.health.causes import LONG, MEDIUM, SHORT
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.thresholds import load_thresholds, shipped_thresholds
from roce_exporter.cli import main
from roce_exporter.errors import UserError

FILE = Path(__file__).parents[3] / "alerts/thresholds.yml"
MARKS = {"roce_ecn_marked_packets_total": [0, 600], "roce_cnp_sent_total": [0, 0]}


def test_the_limits_are_the_numbers_and_times_of_the_file() -> None:
    limits = shipped_thresholds()
    assert limits["pause_long"] == {"seconds": 0.4}
    assert limits["link_flaps"]["window"] == 3600
    assert set(limits) == set(yaml.safe_load(FILE.read_text())["limits"])


def test_the_file_has_every_limit_that_a_rule_reads() -> None:
    rules = "".join(place.read_text() for place in Path(health.__path__[0]).glob("*.py"))
    read = re.findall(r"\.limit\(\s*\"(\w+)\",\s*\"(\w+)\"\s*\)", rules)
    assert len(read) > 30
    assert [one for one in read if one[1] not in shipped_thresholds()[one[0]]] == []


def test_windows_are_those_of_the_alerts() -> None:
    shared = yaml.safe_load(FILE.read_text())["shared"]
    minutes = [f"{window / 60:g}m" for window in (SHORT, MEDIUM, LONG)]
    assert [shared[key] for key in ("short", "medium", "long")] == minutes


def test_an_edited_limit_reaches_the_rule(tmp_path) -> None:
    edited = tmp_path / "thresholds.yml"
    edited.write_text("limits:\n  marks_without_cnps: {marks_per_second: 20}\n")
    limits = load_thresholds(str(edited))
    assert limits["pause_long"] == {"seconds": 0.4}, "what is left out is as in the package"
    counted = history(MARKS, seconds=30)
    found = ({one.check for one in diagnose(counted, one).findings} for one in (None, limits))
    assert [("marks_without_cnps" in checks) for checks in found] == [True, False]


def test_the_file_of_the_package_is_valid_as_an_edited_one() -> None:
    assert load_thresholds(str(FILE)) == shipped_thresholds()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("limits:\n  pause_lnog: {seconds: 1}\n", ":2: limits.pause_lnog: is not a valid key"),
        ("limits:\n  pause_long:\n    second: 1\n", ":3: limits.pause_long.second: is not a valid"),
        ("shared: {medum: 5m}\n", ":1: shared.medum: is not a valid key"),
        ("alert: {}\n", ":1: alert: is not a valid key; known here: shared, limits, alerts"),
        ("[", ":1: is not YAML"),
        *(
            (f"limits: {{pause_long: {{seconds: {one}}}}}", "pause_long.seconds: is no number")
            for one in (".nan", -1, "no", "1.5h", "9" * 5000 + "s")
        ),
        (
            "limits: {storms_sent: {window: 0m}}",
            "storms_sent.window: is no number of 0 or more and no time such as 10m, or a window of 0",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_its_place(text, said, tmp_path, capsys) -> None:
    edited = tmp_path / "thresholds.yml"
    edited.write_text(text)
    with pytest.raises(UserError, match=re.escape(said)):
        load_thresholds(str(edited))
    for command in (("check", "health"), ("serve", "--web.listen-address=127.0.0.1:0")):
        assert main([*command, "--host.simulate=quiet", f"--thresholds.file={edited}"]) == 2
        error = capsys.readouterr().err
        assert (said in error, error.count("\n")) == (True, 1)
