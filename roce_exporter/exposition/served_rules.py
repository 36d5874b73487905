"""The rules of the sets lean and standard, in addition to the set of each row.

1. A series of a row with a `usual` value begins when its value is another one; a histogram begins with its sum.
2. Series of a priority begin when PFC is on for it or pause of it is counted. Before, only its counters above 0 have series.
3. A source has one `roce_exporter_source_up` for all devices on which it has always worked, without `device` and `netdev`, and one
   duration, that of the slowest device. Sources that belong to no device always have a series of their own.
4. In its lowest set, a row with `only` has series for these values of the label only, and for the bucket `+Inf`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.named import SOURCE_LABELS, SOURCE_UP
from roce_exporter.catalog.row import COUNTER, HISTOGRAM, PRIORITY_LABELS
from roce_exporter.catalog.storm import STORMS

if TYPE_CHECKING:
    from collections.abc import Container

    from roce_exporter.normalise.series import Series, Value

PFC_ENABLED = "roce_pfc_enabled"
PFC = "roce_pfc_"
"""How the names of counters of pause begin."""

PriorityPlace = tuple[str, ...]
"""Device, port, network device and priority."""

SeriesKey = tuple[str, tuple[str, ...]]
"""Name of the row and labels, of a histogram without `le`: its series begin together."""


def key_of(series: Series) -> SeriesKey:
    """What is remembered of a series that has begun."""
    row, labels, _ = series
    return row.name, labels[:-1] if row.kind == HISTOGRAM else labels


def place_of(series: Series) -> PriorityPlace | None:
    """The priority that a series belongs to; None if it belongs to none.

    Storms are not hidden with their priority: where a driver does not report PFC, the first pause can be a storm, and a page
    needs the 0 before it.
    """
    if series.row is STORMS:
        return None
    size = len(PRIORITY_LABELS)
    return series.labels[:size] if series.row.labels[:size] == PRIORITY_LABELS else None


def is_activity(series: Series) -> bool:
    """Whether a value above 0 means that the priority of the series has PFC."""
    name = series.row.name
    return place_of(series) is not None and (
        name == PFC_ENABLED or (series.row.kind == COUNTER and name.startswith(PFC))
    )


def is_of_device(series: Series) -> bool:
    """Whether a series about a source belongs to a device."""
    return series.row.labels == SOURCE_LABELS and bool(series.labels[1])


def device_of(series: Series) -> str:
    """The device that a series belongs to; empty for those of the host."""
    row = series.row
    return series.labels[row.labels.index("device")] if "device" in row.labels else ""


def is_begun(series: Series, begun: Container[SeriesKey]) -> bool:
    """Whether a series is not hidden because of its usual value."""
    if series.row.usual is None or (series.row is SOURCE_UP and not is_of_device(series)):
        return True
    return key_of(series) in begun


def can_begin(series: Series) -> bool:
    """Whether the value of a hidden series decides when it begins."""
    if series.row.kind == HISTOGRAM:
        return series.row.usual is not None and series.suffix == "_sum"
    return series.row.usual is not None or (series.row.kind == COUNTER and place_of(series) is not None)


def begins(series: Series, value: Value) -> bool:
    """Whether a series begins with this value."""
    return value is not None and can_begin(series) and value != (series.row.usual or 0)


def is_listed(series: Series) -> bool:
    """Whether the row has series in its lowest set for the labels of this one."""
    label, *values = series.row.only or ("",)
    if not label:
        return True
    value = series.labels[series.row.labels.index(label)]
    return value in values or (series.row.kind == HISTOGRAM and value in ("", "+Inf"))
