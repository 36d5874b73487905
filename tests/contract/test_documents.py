"""The documents are right: the metrics, flags and files that they name exist."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

from roce_exporter.catalog import CATALOG, DIALECTS
from roce_exporter.catalog.windows_settings import WINDOWS_SETTINGS
from roce_exporter.cli import simulation_flags
from roce_exporter.cli.options import COMMANDS, OptionError, make_parser, parse_options
from roce_exporter.introspection.reference import reference
from roce_exporter.simulation import SCENARIOS, VENDORS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
RAW = {raw for row in CATALOG for spelling in row.spellings for raw in spelling.raw} | {
    setting.name for setting in WINDOWS_SETTINGS
}
METRICS = {row.name for row in CATALOG} | {
    "roce_exporter_build_info",
    "roce_exporter_kernel_info",
    "roce_exporter_http_requests_total",
}


def test_the_reference_is_drawn_from_the_catalogue() -> None:
    """Rewrite it with `make generate`."""
    assert (ROOT / "docs/metrics.md").read_text() == reference()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_every_metric_named_exists(document: Path) -> None:
    named = set(re.findall(r"\broce_[a-z0-9_]+\b(?!\*)", document.read_text())) - {
        "roce_exporter",
        "roce_packets",
        "roce_mode",
    }  # a JSON key, a registry key of Windows
    assert not {name for name in named - METRICS - RAW if not name.endswith("_")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_every_flag_named_exists(document: Path) -> None:
    text = re.sub(
        r"^(prometheus|prometheus-alertmanager|amtool) .*", "", document.read_text(), flags=re.MULTILINE
    )
    flags = set(re.findall(r"(?<![\w-])--[a-z]+\.[a-z.-]+[a-z]", text))
    helps = "".join(
        action.choices[command].format_help()
        for action in make_parser()._actions
        if action.choices and "serve" in action.choices
        for command in COMMANDS
    )
    assert not {flag for flag in flags if flag not in helps}


def words(command: str) -> list[str]:
    """The words of a shell command up to its end, a redirection or a comment."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: word[0] not in "|&;<>()", lexer))


def commands(document: Path) -> list[list[str]]:
    return [
        words(line.split("roce-exporter", 1)[1])
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
        except SystemExit:
            if argv != ["--version"]:
                raise


def test_the_readme_shows_commands() -> None:
    assert len(commands(ROOT / "README.md")) >= 4


def test_the_flags_name_the_existing_scenarios_and_vendors() -> None:
    assert tuple(SCENARIOS) == simulation_flags.SCENARIOS
    assert simulation_flags.VENDORS == VENDORS


WITHOUT_COUNTERS = {"siw"}
NUMBERS = ("Nine", "Ten", "Eleven", "Twelve", "Thirteen")


def test_the_readme_counts_drivers_and_vendors_right() -> None:
    """Soft-RoCE is named apart: no vendor makes it."""
    found = re.search(
        r"\* \*\*(\w+) driver families of (\w+) vendors, and Soft-RoCE\*\*: (.*?)\n\* ", README, re.DOTALL
    )
    assert found
    families, vendors, listed = found.groups()
    spelt = {spelling.dialect for row in CATALOG for spelling in row.spellings} & set(
        DIALECTS
    ) - WITHOUT_COUNTERS
    assert not {dialect for dialect in spelt if not re.search(rf"\b{dialect}\b", listed)}
    assert families == NUMBERS[len(spelt - {"rxe"}) - 9]
    assert vendors.capitalize() == NUMBERS[len(re.findall(r"\(([A-Z]\w+)", listed)) - 9]


def test_the_first_screen_shows_what_it_is_a_picture_and_the_demo() -> None:
    first = "\n".join(README.splitlines()[:20])
    assert "Prometheus exporter" in first
    assert "![" in first
    assert "roce-exporter demo" in first


def test_commands_that_install_packages_read_the_package_lists_first() -> None:
    commands = [
        line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()
    ]
    assert not [line for line in commands if "apt-get install" in line and "apt-get update" not in line]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_nothing_is_said_to_be_in_a_registry(document: Path) -> None:
    assert not re.search(r"pip install (-\S+ )*'?roce[-_]exporter", document.read_text())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_every_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(((?!http|#)[^)#]+)", document.read_text())
    assert not {link for link in links if not (document.parent / link).exists()}


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_file_in_backquotes_is_there(document: str) -> None:
    """Below the repository or below `roce_exporter/`; AREA, HOST, NAME, NETDEV and FILE stand for any."""
    named = re.findall(r"`([\w.*-]*[/.][\w./*-]+)`", (ROOT / document).read_text())
    places = {
        re.sub(r"\b(AREA|HOST|NAME|NETDEV)\b", "*", name.rstrip("/"))
        for name in named
        if re.search(r"/|\.(py|md|toml)$", name)
    }
    folders = (ROOT, ROOT / "roce_exporter", *(ROOT / "roce_exporter").iterdir())
    known = {
        place
        for place in places
        if any(next(folder.glob(place), None) for folder in folders if folder.is_dir())
    }
    assert len(places) > 10
    assert not places - known
