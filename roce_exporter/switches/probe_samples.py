"""The samples of a probe itself: whether it succeeded, how long it took, and the state of each source."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import (
    PROBE_SECONDS,
    PROBE_SUCCESS,
    SOURCE_RENEWAL,
    SOURCE_UNREADABLE,
    SWITCH_SOURCE_UP,
)
from roce_exporter.normalise.series import Samples, Series

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.catalog.row import Row
    from roce_exporter.normalise.series import Value
    from roce_exporter.switches.readings import SwitchReadings


def probe_samples(device: str, readings: SwitchReadings, seconds: float) -> Samples:
    """The samples of one round of queries that took this long."""
    found = [*_probe(readings, seconds), *_sources(readings)]
    return Samples(
        tuple(Series(row, (device, *labels)) for row, labels, _ in found),
        tuple(value for _, _, value in found),
    )


def is_success(readings: SwitchReadings) -> bool:
    """Whether the switch answered and something of it could be used.

    Several ASICs share the names of their sources: one that is away makes them faults, and the others still have readings.
    """
    return bool(readings.readings or set(readings.sources) - set(readings.faults))


def _probe(readings: SwitchReadings, seconds: float) -> Iterator[tuple[Row, tuple[str, ...], Value]]:
    yield PROBE_SUCCESS, (), int(is_success(readings))
    yield PROBE_SECONDS, (), seconds


def _sources(readings: SwitchReadings) -> Iterator[tuple[Row, tuple[str, ...], Value]]:
    sources = sorted({*readings.sources, *readings.faults})
    unreadable = Counter(
        reading.source for reading in readings.readings for value in reading.values.values() if value is None
    )
    for source in sources:
        yield SWITCH_SOURCE_UP, (source,), int(source not in readings.faults)
    for source in sources:
        if source not in readings.faults:
            yield SOURCE_UNREADABLE, (source,), unreadable[source]
    for source, interval in sorted(readings.renewals.items()):
        yield SOURCE_RENEWAL, (source,), interval
