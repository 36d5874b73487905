"""The reference: one section per area of the catalogue, every row in it once, short enough to read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from catalog_rows import counter, spelt
from reference import areas, reference

from roce_exporter.catalog import AREAS, CATALOG
from roce_exporter.catalog.row import ANY, ETHTOOL, HW_COUNTERS

NEW = counter(
    "roce_new_total", "events", "New | and odd.", spelt("mlx5", HW_COUNTERS, "a", "b", bits=32, times=4)
)


@pytest.fixture(scope="module")
def text() -> str:
    return reference()


def test_the_document_is_current(text: str) -> None:
    """Rewrite it with `make generate`."""
    assert (Path(__file__).parents[2] / "docs/metrics.md").read_text() == text


def test_every_area_of_the_catalogue_is_a_section_with_its_introduction(text: str) -> None:
    assert {area.name for area in areas(CATALOG)} == {area.name for area in AREAS}
    for area in AREAS:
        assert f"## {area.name}\n\n{area.introduction}" in text


def test_the_contents_link_to_every_section(text: str) -> None:
    sections = [title.lower().replace(" ", "-") for title in re.findall(r"^## (.*)", text, re.MULTILINE)]
    assert re.findall(r"^\| \[[^\]]*\]\(#([^)]*)\)", text, re.MULTILINE) == sections


def test_every_metric_has_one_line_and_one_line_of_raw_names_at_most(text: str) -> None:
    metrics = text.partition("## Windows settings")[0]
    named = re.findall(r"^\| `(\w+)` \|", metrics, re.MULTILINE)
    assert sorted(named) == sorted(
        [
            *(row.name for row in CATALOG),
            *(row.name for row in CATALOG if row.spellings),
        ]
    )


def test_a_new_row_is_in_it() -> None:
    text = reference((*CATALOG, NEW))
    assert "| `roce_new_total` | counter | events | full | device, port | New \\| and odd. |" in text
    assert "| `roce_new_total` | mlx5, hw_counters: `a` + `b` x 4 (32 bits) |" in text
    assert areas((NEW,)) == [("other", "", (NEW,))]


def test_alternatives_of_one_driver_are_next_to_each_other() -> None:
    row = replace(
        NEW,
        spellings=(
            spelt("mlx5", HW_COUNTERS, "new"),
            spelt("mlx5", HW_COUNTERS, "old"),
            spelt("hns", ETHTOOL, "begun", "ended", difference=True),
            spelt(ANY, ETHTOOL, "any", per=1000),
        ),
    )
    cell = "mlx5, hw_counters: `new`, or `old`<br>hns, ethtool: `begun` - `ended`<br>any driver, ethtool: `any` / 1000"
    assert f"| `roce_new_total` | {cell} |" in reference((row,))


def test_an_experimental_row_says_so() -> None:
    assert "New. (experimental) |" in reference((replace(NEW, help="New.", stability="experimental"),))
