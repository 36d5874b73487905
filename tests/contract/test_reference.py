"""The reference: one section per area of the catalogue, every row in it once, short enough to read."""

import re
from pathlib import Path

import pytest
from catalog_rows import counter, spelt
from reference import areas, reference

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import HW_COUNTERS

NEW = counter(
    "roce_new_total", "events", "New | and odd.", spelt("mlx5", HW_COUNTERS, "a", "b", bits=32, times=4)
)


@pytest.fixture(scope="module")
def text() -> str:
    return reference()


def test_the_document_is_current(text) -> None:
    """Rewrite it with `make generate`."""
    assert (Path(__file__).parents[2] / "docs/metrics.md").read_text() == text


def test_every_metric_has_one_line_and_one_line_of_raw_names_at_most(text) -> None:
    metrics = text.partition("## Windows settings")[0]
    named = re.findall(r"^\| `(\w+)` \|", metrics, re.MULTILINE)
    assert sorted(named) == sorted(
        [*(row.name for row in CATALOG), *(row.name for row in CATALOG if row.spellings)]
    )


def test_a_new_row_is_in_it() -> None:
    text = reference((*CATALOG, NEW))
    assert "| `roce_new_total` | counter | events | full | device, port | New \\| and odd. |" in text
    assert "| `roce_new_total` | mlx5, hw_counters: `a` + `b` x 4 (32 bits) |" in text
    assert areas((NEW,)) == [("other", "", (NEW,))]
