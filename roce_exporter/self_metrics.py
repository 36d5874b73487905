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
    UNFINISHED,
    UNMAPPED,
    UNREADABLE,
)
from roce_exporter.normalise import Samples, Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roce_exporter.model import Snapshot, SourceState
    from roce_exporter.normalise import Value


PER_SOURCE = (SOURCE_UP, SOURCE_DURATION, READ_ERRORS, UNREADABLE, QUARANTINED)
"""The rows that `_values` fills, in this order."""

State = tuple[str, str, str]
"""Source, device and network device."""


class SelfSamples:
    """Makes the samples and keeps their series from one collection to the next."""

    def __init__(self) -> None:
        self._key: tuple[tuple[State, ...], tuple[str, ...]] = ((), ())
        self._series: tuple[Series, ...] = ()

    def samples(self, snapshot: Snapshot, unmapped: Mapping[str, int]) -> Samples:
        """The samples of one collection. `unmapped` counts the raw names without a row, per device."""
        # An interface that the device does not have is neither up nor down, and had no read that could fail.
        states = [state for state in snapshot.states if state.up is not None]
        key = (tuple([(state.source, state.device, state.netdev) for state in states]), tuple(unmapped))
        if key != self._key:
            self._key, self._series = key, _series(*key)
        devices = [found.device for found in snapshot.devices]
        blind = sum(
            port.link_layer == "Ethernet" and not port.netdevs for device in devices for port in device.ports
        )
        host = (len(devices), snapshot.excluded, blind, snapshot.seconds, snapshot.unfinished)
        return Samples(self._series, (*host, *unmapped.values(), *_values(states)))


def _series(states: tuple[State, ...], unmapped: tuple[str, ...]) -> tuple[Series, ...]:
    return (
        Series(DEVICES, ()),
        Series(DEVICES_EXCLUDED, ()),
        Series(PORTS_WITHOUT_NETDEV, ()),
        Series(COLLECTION_DURATION, ()),
        Series(UNFINISHED, ()),
        *(Series(UNMAPPED, (device,)) for device in unmapped),
        *(Series(row, state) for row in PER_SOURCE for state in states),
    )


def _values(states: Sequence[SourceState]) -> list[Value]:
    return [
        *[int(state.up is True) for state in states],
        *[state.seconds for state in states],
        *[state.errors_total for state in states],
        *[state.unreadable for state in states],
        *[state.quarantined for state in states],
    ]
