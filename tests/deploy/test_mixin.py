"""The mixin renders what the generators of alerts and dashboards write, also for other thresholds."""

import functools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from _gojsonnet import evaluate_snippet
from deploy_tools import DEPLOY, ROOT, built

THRESHOLDS = yaml.safe_load((ROOT / "alerts/thresholds.yml").read_text())
NEXT_SEVERITY = {"critical": "warning", "warning": "info", "info": "critical"}
Values = dict[str, Any]


@functools.cache
def mixin() -> Path:
    """The folder that `make dist` builds."""

    def make(folder: Path) -> None:
        subprocess.run([sys.executable, DEPLOY / "mixin/generate.py", folder], check=True)

    return built("mixin", make)


def rendered(expression: str, changed: Values | None = None) -> Any:
    """The value of an expression in which `mixin` is ours with this `_config`."""
    config = f"{{ _config+:: {merged(changed or {})} }}"
    snippet = f"local mixin = (import 'mixin.libsonnet') + {config}; {expression}"
    return json.loads(evaluate_snippet("test", snippet, jpathdir=[str(mixin())]))


def merged(values: Values) -> str:
    """An object of Jsonnet that changes these fields and keeps others."""
    fields = (
        f"{json.dumps(name)}{f'+: {merged(value)}' if isinstance(value, dict) else f': {json.dumps(value)}'}"
        for name, value in values.items()
    )
    return f"{{ {', '.join(fields)} }}"


def files_of(root: Path) -> Values:
    """What the mixin must render, as the generators have written it below this folder."""
    names = [path.name for path in (ROOT / "dashboards").glob("roce-*.json")]
    read = {name: (root / "dashboards" / name).read_text() for name in names}
    return {
        "prometheusAlerts": yaml.safe_load((root / "alerts/roce.rules.yml").read_text()),
        "prometheusRules": yaml.safe_load((root / "dashboards/roce-dashboards.rules.yml").read_text()),
        "grafanaDashboards": {name: json.loads(text) for name, text in read.items()},
    }


ALL = "{ [name]: mixin[name] for name in ['prometheusAlerts', 'prometheusRules', 'grafanaDashboards'] }"


@pytest.mark.release("mixin", "install")
def test_the_defaults_render_the_files() -> None:
    assert rendered("mixin._config") == THRESHOLDS
    assert rendered(ALL) == files_of(ROOT)


def every_value(name: str, value: Any) -> Any:
    """Limits of zero remain below what a colour begins at, ratios change their order, and great numbers get decimals."""
    if isinstance(value, int | float):
        return (1 - value if name == "ratio" else value) * 0.9 + 0.0003
    if name == "severity":
        return NEXT_SEVERITY[value]
    if name in {"runbook_base_url", "grafana_url"}:
        return value
    number = re.fullmatch(r"(\d+)([smhd])", value)
    return f"{int(number[1]) + 1}{number[2]}1s" if number else f"{value}|other"


def no_durations(name: str, value: Any) -> Any:
    """What waits does not, and what does not wait, waits: an alert with another pace, with and without `for`."""
    return {"0s": "15m"}.get(value, "0s") if name in ("for", "keep_firing_for") else value


@pytest.mark.ci
@pytest.mark.parametrize("change", [every_value, no_durations])
def test_other_thresholds_render_what_the_generators_write(change, tmp_path) -> None:
    """In a copy of the generators, because they read their thresholds from the file next to them."""
    alerts, limits = (
        {
            one: {name: change(name, value) for name, value in values.items()}
            for one, values in THRESHOLDS[section].items()
        }
        for section in ("alerts", "limits")
    )
    shared = {name: change(name, value) for name, value in THRESHOLDS["shared"].items()}
    changed = {"shared": shared, "limits": limits, "alerts": alerts}
    for folder in ("alerts/rules", "dashboards/boards"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "alerts/thresholds.yml").write_text(yaml.safe_dump(changed))
    for script in ("alerts/generate.py", "dashboards/generate.py"):
        shutil.copy(ROOT / script, tmp_path / script)
        subprocess.run([sys.executable, tmp_path / script], check=True)
    written = files_of(tmp_path)
    assert written != files_of(ROOT)
    assert rendered(ALL, changed) == written


def alerts_of(changed: Values) -> dict[str, Values]:
    groups = rendered("mixin.prometheusAlerts.groups", {"alerts": changed})
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


@pytest.mark.ci
def test_an_alert_is_left_out_and_another_kept_firing() -> None:
    found = alerts_of({"RocePortDown": {"enabled": False}, "RocePortFaulty": {"keep_firing_for": "9m"}})
    assert set(THRESHOLDS["alerts"]) - set(found) == {"RocePortDown"}
    assert found["RocePortFaulty"]["keep_firing_for"] == "9m"


MISTAKES: dict[str, Values] = {
    "no such alert: RocePortDwon": {"alerts": {"RocePortDwon": {"for": "1m"}}},
    "RocePortDown: ratio has no effect": {"alerts": {"RocePortDown": {"ratio": 1}}},
    "severity page is now critical": {"alerts": {"RocePortDown": {"severity": "page"}}},
    "RocePortDown: severity must be one of": {"alerts": {"RocePortDown": {"severity": "high"}}},
    "RocePortDown: for must be a duration": {"alerts": {"RocePortDown": {"for": "1 min"}}},
    "medium must be a duration": {"shared": {"medium": 300}},
}


@pytest.mark.ci
def test_a_mistake_is_one_message() -> None:
    for message, changed in MISTAKES.items():
        with pytest.raises(RuntimeError, match=message):
            rendered("mixin.prometheusAlerts", changed)


@pytest.mark.ci
def test_fields_are_hidden_and_add_up_with_those_of_other_mixins() -> None:
    """As the convention has it: `{}` is what a manifest of the mixin itself would show."""
    assert rendered("mixin") == {}
    other = "{ prometheusAlerts+:: { groups+: [{ name: 'other', rules: [] }] } }"
    both = "both.prometheusAlerts.groups + both.prometheusRules.groups"
    names = rendered(f"local both = {other} + mixin; [group.name for group in {both}]")
    assert names[0] == "other"
    assert len(names) > 1
    assert len(set(names)) == len(names), "kube-prometheus puts all groups into one PrometheusRule"


def test_the_bundler_needs_nothing_else() -> None:
    """A bundler copies this folder alone: an import of anything outside it would fail."""
    assert json.loads((mixin() / "jsonnetfile.json").read_text())["dependencies"] == []
    imported = {
        (path.parent / name).resolve()
        for path in mixin().rglob("*.libsonnet")
        for name in re.findall(r"import '([^']+)'", path.read_text())
    }
    assert imported
    assert all(path.is_file() and path.is_relative_to(mixin()) for path in imported)
