"""The documents are right: the metrics, flags and files that they name exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from roce_exporter.catalog import CATALOG
from roce_exporter.cli import options
from roce_exporter.cli.options import COMMANDS, OptionError, make_parser, parse_options
from roce_exporter.introspection.reference import reference
from roce_exporter.simulation import SCENARIOS, VENDORS

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RAW = {raw for row in CATALOG for spelling in row.spellings for raw in spelling.raw}
METRICS = {row.name for row in CATALOG} | {
    "roce_exporter_build_info",
    "roce_exporter_kernel_info",
    "roce_exporter_http_requests_total",
}


def test_the_reference_is_drawn_from_the_catalogue() -> None:
    """Rewrite it with `python -m roce_exporter.introspection.reference > docs/metrics.md`."""
    assert (ROOT / "docs/metrics.md").read_text() == reference()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_every_metric_named_exists(document: Path) -> None:
    named = set(re.findall(r"\broce_[a-z0-9_]+\b(?!\*)", document.read_text())) - {"roce_exporter"}
    assert not {name for name in named - METRICS - RAW if not name.endswith("_")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_every_flag_named_exists(document: Path) -> None:
    flags = set(re.findall(r"(?<![\w-])--[a-z]+\.[a-z.-]+[a-z]", document.read_text()))
    helps = "".join(
        action.choices[command].format_help()
        for action in make_parser()._actions
        if action.choices and "serve" in action.choices
        for command in COMMANDS
    )
    assert not {flag for flag in flags if flag not in helps}


def commands(document: Path) -> list[list[str]]:
    return [
        shlex.split(line.split("roce-exporter", 1)[1], comments=True)
        for block in re.findall(r"```sh\n(.*?)```", document.read_text(), re.DOTALL)
        for line in block.splitlines()
        if re.search(r"(^|/)roce-exporter\b", line) and "pip install" not in line.split("&&")[-1]
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_every_command_shown_is_accepted(document: Path) -> None:
    for argv in commands(document):
        try:
            parse_options(argv)
        except OptionError as error:
            pytest.fail(f"{argv}: {error}")


def test_the_readme_shows_commands() -> None:
    assert len(commands(ROOT / "README.md")) >= 4


def test_the_flags_name_the_existing_scenarios_and_vendors() -> None:
    assert tuple(SCENARIOS) == options.SCENARIOS
    assert options.VENDORS == VENDORS
