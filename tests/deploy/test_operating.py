"""Checks of the statements in docs/operating.md and SECURITY.md."""

import re
from typing import Any

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT, ran
from tools import need

from roce_exporter.cli.options import flags_of
from roce_exporter.web import ClientLimits

TEXT = (ROOT / "docs/operating.md").read_text()
DOCUMENTS = {"operating.md": TEXT, "SECURITY.md": (ROOT / "SECURITY.md").read_text()}
PLACES = re.compile(r"\b(?:deploy|alerts|dashboards|tests)/[\w./@-]*\w")
FLAG = re.compile(r"(?<![\w-])--[a-z]+\.[a-z.-]+[a-z]")
CHART: dict[str, Any] = yaml.safe_load((DEPLOY / "helm/roce-exporter/values.yaml").read_text())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_named_file_exists(name) -> None:
    named = set(PLACES.findall(DOCUMENTS[name]))
    assert named
    assert not {place for place in named if not (ROOT / place).exists()}


def test_the_bounds_that_the_threat_model_names_are_those_of_the_server() -> None:
    bounds = ClientLimits()
    line = next(
        line for line in DOCUMENTS["SECURITY.md"].splitlines() if line.startswith("| slow, half-sent")
    )
    assert (
        f"{bounds.request_seconds:g} s, {bounds.head_bytes // 1024} KiB, {bounds.connections} connections"
        in line
    )


def test_every_flag_that_the_threat_model_names_exists() -> None:
    known = {flag.name for flag in flags_of("serve")}
    named = set(FLAG.findall(DOCUMENTS["SECURITY.md"]))
    assert named
    assert named <= known


@pytest.mark.ci
def test_the_documented_exposure_is_the_units(tmp_path) -> None:
    unit = tmp_path / "roce-exporter.service"
    unit.write_text((DEPLOY / "systemd" / unit.name).read_text())
    said = ran(need("systemd-analyze"), "security", "--offline=true", "--no-pager", unit).stdout
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert f"rates the unit {exposure} " in TEXT


def test_every_value_that_the_helm_command_sets_exists() -> None:
    keys = re.findall(r"--set (\S+?)=", (ROOT / "docs/kubernetes.md").read_text())
    assert len(keys) >= 4
    for key in keys:
        value: Any = CHART
        for part in key.split("."):
            value = value[part]
