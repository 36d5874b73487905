"""`docs/adding-a-driver.md` lists the places that a driver takes, at most three, and the last driver took no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from roce_exporter.catalog import CATALOG, DIALECTS
from roce_exporter.catalog.drivers import family_of
from roce_exporter.catalog.left_out import LEFT_OUT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/adding-a-driver.md").read_text()
PLACES = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)

EXAMPLE = "ocrdma"
FOLLOWING = (
    "docs/",
    "alerts/compat/",
    "tests/golden/",
    "tests/contract/test_adding_a_driver.py",
    "CHANGELOG.md",
    "README.md",
)
"""Generated files and documents, and this test."""


def mentioning(words: tuple[str, ...]) -> list[str]:
    """The text files of the repository that contain one of these words in their content or path."""
    files = [
        place
        for folder in ("roce_exporter", "tests", "dashboards", "alerts", "deploy", "bench", "docs")
        for place in (ROOT / folder).rglob("*")
        if place.is_file() and "__pycache__" not in place.parts
    ]
    pattern = re.compile("|".join(words))
    return sorted(
        relative
        for place in files
        if pattern.search(relative := place.relative_to(ROOT).as_posix())
        or pattern.search(place.read_text(errors="replace"))
    )


def test_there_are_three_places_and_they_exist() -> None:
    assert len(PLACES) == 3
    assert [place for place in PLACES if not (ROOT / place).exists()] == []


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:roce_exporter|tests|docs)/[\w./-]+)`", PAGE)
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []
    names = re.findall(r"`(\w+\.py)`", PAGE)
    modules = {
        place.name
        for folder in ("roce_exporter/catalog", "tests/unit")
        for place in (ROOT / folder).glob("*.py")
    }
    assert [name for name in names if name not in modules] == []


def test_the_example_is_in_these_places_and_in_no_other() -> None:
    found = mentioning((EXAMPLE, *family_of(EXAMPLE).kernel_drivers))
    assert all(any(file.startswith(place) for file in found) for place in PLACES)
    assert [file for file in found if not file.startswith((*PLACES, *FOLLOWING))] == []


def test_a_driver_of_another_place_would_be_found() -> None:
    assert "roce_exporter/audit/marking_checks.py" in mentioning(("bnxt_re",))


def test_the_figures_of_the_example_are_right() -> None:
    lines = [one for row in CATALOG for one in row.spellings if one.dialect == EXAMPLE]
    entries = [one for one in LEFT_OUT if one.dialect == EXAMPLE]
    assert f"{len(lines)} lines in rows" in PAGE
    assert f"{len(entries)} entries in `left_out.py`" in PAGE


@pytest.mark.parametrize("word", [EXAMPLE, "NAME"])
def test_the_page_shows_a_recording_of_it(word: str) -> None:
    assert f"--host.recording=tests/recordings/{word}" in PAGE
    assert EXAMPLE in DIALECTS
