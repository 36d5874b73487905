"""How the collection went becomes samples of the exporter's own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.exporter import (
    COLLECTION_DURATION,
    DEVICES,
    DEVICES_EXCLUDED,
    PORTS_WITHOUT_NETDEV,
    QUARANTINED,
    READ_ERRORS,
    SOURCE_DURATION,
    SOURCE_UP,
    UNMAPPED,
    UNREADABLE,
)
from roce_exporter.normalise import Samples, Series

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.model import Snapshot, SourceState
    from roce_exporter.normalise import Value


PER_SOURCE = (SOURCE_UP, SOURCE_DURATION, READ_ERRORS, UNREADABLE, QUARANTINED)
"""The rows that `_values` fills, in this order."""


class SelfSamples:
    """Makes the samples and keeps their series from one collection to the next."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._series: tuple[Series, ...] = ()

    def samples(self, snapshot: Snapshot, unmapped: Mapping[str, int]) -> Samples:
        """The samples of one collection. `unmapped` counts the raw names without a row, per device."""
        states = snapshot.states
        key = (tuple((state.source, state.device, state.netdev) for state in states), tuple(unmapped))
        if key != self._key:
            self._key, self._series = key, _series(states, tuple(unmapped))
        devices = [found.device for found in snapshot.devices]
        blind = sum(
            port.link_layer == "Ethernet" and not port.netdevs for device in devices for port in device.ports
        )
        values: list[Value] = [len(devices), snapshot.excluded, blind, snapshot.seconds, *unmapped.values()]
        for state in states:
            values.extend(_values(state))
        return Samples(self._series, tuple(values))


def _series(states: tuple[SourceState, ...], unmapped: tuple[str, ...]) -> tuple[Series, ...]:
    return (
        Series(DEVICES, ()),
        Series(DEVICES_EXCLUDED, ()),
        Series(PORTS_WITHOUT_NETDEV, ()),
        Series(COLLECTION_DURATION, ()),
        *(Series(UNMAPPED, (device,)) for device in unmapped),
        *(Series(row, (state.source, state.device, state.netdev)) for state in states for row in PER_SOURCE),
    )


def _values(state: SourceState) -> tuple[Value, ...]:
    # An interface that the device does not have is neither up nor down, and had no read that could fail.
    if state.up is None:
        return (None,) * len(PER_SOURCE)
    return (int(state.up), state.seconds, state.errors_total, state.unreadable, state.quarantined)
