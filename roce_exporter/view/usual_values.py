"""What missing series mean in the history of an exporter that serves the set lean or standard (`--metrics.set`).

Its sparse series begin with their first unusual value, so a series had its usual value before it began. Of one that never began this
is known only where the device would report it: the driver has a name for it, and the source of that name works. All other
missing series stay missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.drivers import dialect_of
from roce_exporter.catalog.named import METRIC_SET_INFO, SOURCE_LABELS, SOURCE_UP
from roce_exporter.catalog.row import (
    COUNTER,
    FULL,
    HISTOGRAM,
    HW_COUNTERS,
    NETDEV_LABELS,
    PORT_LABELS,
    PRIORITY_LABELS,
    MetricSet,
)
from roce_exporter.collect.device_work import INVENTORY
from roce_exporter.host.sources import NAMES
from roce_exporter.host.sources.hw_counters import STATISTICS
from roce_exporter.view.history import TimedSamples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.catalog.row import Row
    from roce_exporter.view.history import History, LabelValues

DEVICE_INFO, PORT_UP, LINK_UP = "roce_device_info", "roce_port_up", "roce_link_up"
DEVICE_LABELS = ("device",)
DEVICE_SOURCES = (*NAMES, INVENTORY, "owners")
"""Sources that every device has for itself, if it has them."""

Values = dict[str, dict["LabelValues", float]]


class SparseRow(NamedTuple):
    """A row whose missing series have a value in lean and standard."""

    row: Row
    usual: int


class HostPlaces(NamedTuple):
    """What a host has at one moment."""

    dialects: Mapping[str, str]
    """By device."""
    places: Mapping[tuple[str, ...], tuple[LabelValues, ...]]
    """By the labels of a row: devices, ports, network devices."""
    working: frozenset[tuple[str, str]]
    """Sources and devices."""


def _is_of_priority(row: Row) -> bool:
    return row.kind == COUNTER and row.labels[: len(PRIORITY_LABELS)] == PRIORITY_LABELS


SPARSE = tuple(
    SparseRow(row, row.usual or 0)
    for row in CATALOG
    if row.kind != HISTOGRAM and row.metric_set != FULL and (row.sparse or _is_of_priority(row))
)


def with_usual_values(history: History) -> History:
    """The history with the values of series that had not begun; the same if the exporter served everything."""
    if not any(_set_of(moment) for moment in history):
        return history
    begun = {
        sparse.row.name: {
            labels: None for moment in history for labels in moment.values.get(sparse.row.name, ())
        }
        for sparse in SPARSE
    }
    return tuple(_completed(moment, begun) for moment in history)


def _set_of(moment: TimedSamples) -> MetricSet | None:
    """The set that leaves something out; None: everything was served, or by an exporter that has no sets."""
    for labels in moment.values.get(METRIC_SET_INFO.name, ()):
        if labels[0] in tuple(MetricSet) and labels[0] != FULL:
            return MetricSet(labels[0])
    return None


def _completed(moment: TimedSamples, begun: Mapping[str, Mapping[LabelValues, None]]) -> TimedSamples:
    metric_set = _set_of(moment)
    if metric_set is None:
        return moment
    host = _places(moment)
    states = dict.fromkeys(_states(moment, host), 1.0)
    values: Values = {name: dict(found) for name, found in moment.values.items()}
    for row, usual in SPARSE:
        if not metric_set.includes(row.metric_set):
            continue
        found = values.setdefault(row.name, {})
        known = states if row.labels == SOURCE_LABELS else _known(row, host)
        for labels in (*begun[row.name], *known):
            if _is_there(row, labels, host):
                found.setdefault(labels, usual)
    return TimedSamples(moment.time, values)


def _is_there(row: Row, labels: LabelValues, host: HostPlaces) -> bool:
    return "device" not in row.labels or labels[row.labels.index("device")] in host.dialects


def _known(row: Row, host: HostPlaces) -> Iterator[LabelValues]:
    """The series that a row without labels of its own has on this host."""
    for labels in host.places.get(row.labels, ()):
        if any(
            INDEX.speaks(host.dialects.get(labels[0], ""), spelling)
            and (spelling.source, labels[0]) in host.working
            for spelling in row.spellings
        ):
            yield labels


def _places(moment: TimedSamples) -> HostPlaces:
    values = moment.values
    dialects = {labels[0]: dialect_of(labels[1]) for labels in values.get(DEVICE_INFO, ())}
    places = {
        DEVICE_LABELS: tuple((device,) for device in dialects),
        PORT_LABELS: tuple(values.get(PORT_UP, ())),
        NETDEV_LABELS: tuple(values.get(LINK_UP, ())),
    }
    broken = {labels[:2] for labels, value in values.get(SOURCE_UP.name, {}).items() if not value}
    named = {labels[0] for labels in values.get(SOURCE_UP.name, ())}
    working = {(source, device) for source in named for device in dialects if (source, device) not in broken}
    # Both sources report the same counters.
    working |= {(HW_COUNTERS, device) for source, device in working if source == STATISTICS}
    return HostPlaces(dialects, places, frozenset(working))


def _states(moment: TimedSamples, host: HostPlaces) -> Iterator[LabelValues]:
    """The labels of sources: those that have series of their own, and those that one series of all devices stands for."""
    found = moment.values.get(SOURCE_UP.name, {})
    own = {labels[:2] for labels in found}
    yield from found
    for source, _device, _netdev in [labels for labels in found if not labels[1]]:
        if source in DEVICE_SOURCES:
            yield from ((source, name, "") for name in host.dialects if (source, name) not in own)
