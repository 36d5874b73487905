"""The exporter's samples at several times: the only input of the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LabelValues = tuple[str, ...]
"""The values of a row's labels, in the order of `Row.labels`."""


class TimedSamples(NamedTuple):
    """The samples of one host at one time. Absent series are missing, never 0."""

    time: float
    """Seconds since 1970."""
    values: Mapping[str, Mapping[LabelValues, float]]
    """By name of the metric, then by label values. Histograms are left out."""


History = tuple[TimedSamples, ...]
"""From oldest to newest. Counters are cumulative and may start again at a reset."""
