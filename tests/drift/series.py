"""The lists of names in this folder, read back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
SERIES = sorted(
    (place.stem.removeprefix("names-") for place in HERE.glob("names-*.tsv")),
    key=lambda series: [int(part) for part in series.split(".")],
)

CORE = "ib_core"
"""The driver of the names that the RDMA core gives to the PMA."""


class Named(NamedTuple):
    """One line of a list."""

    driver: str
    source: str
    name: str

    @property
    def example(self) -> str:
        """The name as a host shows it: a number for every placeholder."""
        return re.sub(r"\{\w+\}", "3", self.name)


def names_of(series: str, kind: str = "names") -> list[Named]:
    """Every name of one kernel series."""
    return list(_lines(HERE / f"{kind}-{series}.tsv"))


def extra_names() -> list[Named]:
    """Names that no kernel list has: of out-of-tree drivers, of firmware, and of kernels between the series."""
    return list(_lines(HERE / "extra.tsv"))


def _lines(place: Path) -> Iterator[Named]:
    header, *lines = place.read_text().splitlines()
    assert header.split("\t") == ["driver", "source", "name"]
    for line in lines:
        yield Named(*line.split("\t"))
