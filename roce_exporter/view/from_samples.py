"""The samples of one collection, as the verdict reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.view.history import LabelValues, TimedSamples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.normalise.series import Samples


def timed_samples(parts: Iterable[Samples], time: float) -> TimedSamples:
    """The samples of one collection at `time` (seconds since 1970), without histograms and without missing values."""
    values: dict[str, dict[LabelValues, float]] = {}
    for part in parts:
        for series, value in zip(part.series, part.values, strict=True):
            if value is not None and not series.suffix:
                values.setdefault(series.row.name, {})[series.labels] = value
    return TimedSamples(time, values)
