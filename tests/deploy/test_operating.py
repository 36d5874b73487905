"""Checks of the statements in docs/operating.md and SECURITY.md."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT, ran
from tools import need

from roce_exporter.cli.options import flags_of
from roce_exporter.introspection.fleet_factors import RIVALS
from roce_exporter.introspection.fleet_table import fleet_table
from roce_exporter.web import ClientLimits

if TYPE_CHECKING:
    from pathlib import Path

TEXT = (ROOT / "docs/operating.md").read_text()
DOCUMENTS = {"operating.md": TEXT, "SECURITY.md": (ROOT / "SECURITY.md").read_text()}
PLACES = re.compile(r"\b(?:deploy|alerts|dashboards|tests)/[\w./@-]*\w")
TABLE = re.compile(r"<!-- plan --table -->\n(.*?)<!-- end -->", re.DOTALL)
AMOUNT = re.compile(r"(?<![\w.])(\d[\d.,]*)(?: ([kMGT])(?![a-z]))?")
PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
FLAG = re.compile(r"(?<![\w-])--[a-z]+\.[a-z.-]+[a-z]")
CHART: dict[str, Any] = yaml.safe_load((DEPLOY / "helm/roce-exporter/values.yaml").read_text())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_named_file_exists(name: str) -> None:
    named = set(PLACES.findall(DOCUMENTS[name]))
    assert named
    assert not {place for place in named if not (ROOT / place).exists()}


def test_the_table_of_fleets_is_that_of_plan() -> None:
    """Within a twentieth, because bytes of a scrape vary. `make generate` writes it."""
    (documented,) = TABLE.findall(TEXT)
    lines = asyncio.run(fleet_table()).splitlines()
    assert len(lines) == 14
    for ours, theirs in zip(documented.splitlines(), lines, strict=True):
        assert are_alike(ours, theirs), (ours, theirs)


def are_alike(one: str, other: str) -> bool:
    """Whether two lines have the same words, and numbers within a twentieth of each other."""
    (numbers, words), (others, other_words) = amounts(one), amounts(other)
    return words == other_words and numbers == pytest.approx(others, rel=0.05, abs=0.02)


def amounts(line: str) -> tuple[list[float], str]:
    """The numbers of a line with their prefixes (`5.5 kB/s`: 5,500), and the rest of the line."""
    found = [float(number.replace(",", "")) * PREFIX[prefix] for number, prefix in AMOUNT.findall(line)]
    return found, AMOUNT.sub("N", line)


def test_the_series_of_other_exporters_are_those_of_plan() -> None:
    rows = [f"| {one.name} | {one.series} | {one.contents} |" for one in RIVALS]
    assert [row for row in rows if row not in TEXT] == []


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
def test_the_documented_exposure_is_the_units(tmp_path: Path) -> None:
    unit = tmp_path / "roce-exporter.service"
    unit.write_text((DEPLOY / "systemd" / unit.name).read_text())
    said = ran(need("systemd-analyze"), "security", "--offline=true", "--no-pager", unit).stdout
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert f"rates the unit {exposure} " in TEXT


def test_every_value_that_the_helm_command_sets_exists() -> None:
    keys = re.findall(r"--set (\S+?)=", TEXT)
    assert len(keys) >= 4
    for key in keys:
        value: Any = CHART
        for part in key.split("."):
            value = value[part]
