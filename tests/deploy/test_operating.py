"""Checks of the statements in docs/operating.md and SECURITY.md."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_tools import COMMAND, DEPLOY, ROOT, need

from roce_exporter.web import ClientLimits

if TYPE_CHECKING:
    from pathlib import Path

TEXT = (ROOT / "docs/operating.md").read_text()
DOCUMENTS = {"operating.md": TEXT, "SECURITY.md": (ROOT / "SECURITY.md").read_text()}
PLACES = re.compile(r"\b(?:deploy|alerts|dashboards|tests)/[\w./@-]*\w")
SIZES = re.findall(r"^\| (mlx5|bnxt|ionic|ice) \| (\d+) \|", TEXT, re.MULTILINE)
FLAG = re.compile(r"(?<![\w-])--[a-z]+\.[a-z.-]+[a-z]")
CHART: dict[str, Any] = yaml.safe_load((DEPLOY / "helm/roce-exporter/values.yaml").read_text())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_named_file_exists(name: str) -> None:
    named = set(PLACES.findall(DOCUMENTS[name]))
    assert named
    assert not {place for place in named if not (ROOT / place).exists()}


@pytest.mark.parametrize(("driver", "documented"), SIZES)
def test_series_per_port_are_as_documented_within_a_tenth(driver: str, documented: str) -> None:
    """Otherwise update it from `python deploy/prometheus/measure.py`."""
    ports = ",".join([driver] * 8)
    found = samples_of("--source.disable=owners", f"--host.simulate-ports={ports}")
    assert found / 8 == pytest.approx(int(documented), rel=0.1)


def test_series_of_owners_are_as_documented_within_a_tenth() -> None:
    (documented,) = re.findall(r"four owners of a simulated mlx5 device have (\d+) series", TEXT)
    with_owners, without = samples_of(), samples_of("--source.disable=owners")
    assert (with_owners - without) / 4 == pytest.approx(int(documented), rel=0.1)


def samples_of(*flags: str) -> int:
    """Samples of one exposition of a simulated host."""
    command = [COMMAND, "once", "--host.simulate=incast", *flags]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return sum(not line.startswith("#") for line in text.splitlines())


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
    known = set(
        FLAG.findall(
            subprocess.run([COMMAND, "serve", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        )
    )
    assert set(FLAG.findall(DOCUMENTS["SECURITY.md"])) <= known


def test_the_documented_exposure_is_the_units(tmp_path: Path) -> None:
    unit = tmp_path / "roce-exporter.service"
    unit.write_text((DEPLOY / "systemd" / unit.name).read_text())
    command = [need("systemd-analyze", "systemd"), "security", "--offline=true", "--no-pager", unit]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert f"rates the unit {exposure} " in TEXT


def test_every_driver_has_its_size() -> None:
    assert len(SIZES) == 4


def test_every_value_that_the_helm_command_sets_exists() -> None:
    keys = re.findall(r"--set (\S+?)=", TEXT)
    assert len(keys) >= 4
    for key in keys:
        value: Any = CHART
        for part in key.split("."):
            value = value[part]
