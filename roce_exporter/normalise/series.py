"""What normalisation produces: series, and their values now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from roce_exporter.catalog.row import Row

Value = int | float | None


PlanKey = tuple[tuple[str, int, str, tuple[str, ...]], ...]
"""Source, port, network device and names of each reading of a device: the input of a plan."""


class Series(NamedTuple):
    """The identity of one time series: `labels[i]` is the value of the row's label `row.labels[i]`."""

    row: Row
    labels: tuple[str, ...]
    suffix: str = ""
    """The suffix of the sample's name after the row's: `_bucket`, `_sum` or `_count` of a histogram."""


class Samples(NamedTuple):
    """Series and their values now, position by position; None: no sample now.

    `series` is the same object as long as the set of series has not changed.
    """

    series: tuple[Series, ...]
    values: tuple[Value, ...]
