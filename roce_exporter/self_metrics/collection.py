"""Convert the results of a collection to samples of the exporter's own rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from roce_exporter.catalog import named
from roce_exporter.model import Snapshot, SourceState
from roce_exporter.normalise.normaliser import Plan, missing_now
from roce_exporter.normalise.series import Samples, Series, Value

PER_SOURCE = (named.SOURCE_UP, named.SOURCE_DURATION, named.READ_ERRORS, named.UNREADABLE, named.QUARANTINED)
"""The rows that have a series per source, in the order of their values."""

NAMES_SHOWN = 20
"""Maximum number of unknown names of a device with a series each; `explain` and /debug list all."""

_NO_STATES: tuple[tuple[Any, ...], ...] = ((),) * len(SourceState._fields)

SourceLabels = tuple[str, str, str]
"""Source, device and network device."""


class Gaps(NamedTuple):
    """The names of one device that are not in the catalogue, and the facts that the device does not report."""

    device: str
    unmapped: int
    """Number of raw names without a row."""
    names: tuple[tuple[str, str], ...] = ()
    """Source and name of the first ones."""
    missing: tuple[tuple[str, str], ...] = ()
    """Port and fact."""


def gaps_of(plan: Plan, values: Sequence[Value]) -> Gaps:
    """The gaps of one device in one collection; `values` are the values of the plan's series."""
    missing = tuple(missing_now(plan.missing, values)) if plan.missing else ()
    return Gaps(plan.device.name, len(plan.unmapped), _first_names(plan.unmapped), missing)


@lru_cache(maxsize=256)
def _first_names(unmapped: tuple[tuple[str, int, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({(source, name) for source, _, name in unmapped})[:NAMES_SHOWN])


class SelfSamples:
    """Makes the samples and keeps their series from one collection to the next."""

    def __init__(self) -> None:
        self._key: tuple[tuple[tuple[Any, ...], ...], tuple[Gaps, ...]] = ((), ())
        self._series: tuple[Series, ...] = ()

    def samples(self, snapshot: Snapshot, gaps: Sequence[Gaps], more: Sequence[SourceState] = ()) -> Samples:
        """The samples of one collection, with the gaps of each device; `more` are sources read between collections."""
        # An absent interface is neither up nor down, and no read of it can fail.
        states = [state for state in (*snapshot.states, *more) if state.up is not None]
        columns = tuple(zip(*states, strict=True)) if states else _NO_STATES
        key = (columns[:3], tuple(gaps))
        if key != self._key:
            self._key, self._series = key, _series(tuple(zip(*key[0], strict=True)), key[1])
        devices = [found.device for found in snapshot.devices]
        without_netdev = sum(
            port.link_layer == "Ethernet" and not port.netdevs for device in devices for port in device.ports
        )
        host = (len(devices), snapshot.excluded, without_netdev, snapshot.seconds, snapshot.unfinished)
        ones = [1] * sum(len(one.names) + len(one.missing) for one in gaps)
        _, _, _, up, seconds, _, errors_total, unreadable, quarantined = columns
        sources = (*[int(one is True) for one in up], *seconds, *errors_total, *unreadable, *quarantined)
        return Samples(self._series, (*host, *[one.unmapped for one in gaps], *ones, *sources))


def _series(states: tuple[SourceLabels, ...], gaps: tuple[Gaps, ...]) -> tuple[Series, ...]:
    return (
        Series(named.DEVICES, ()),
        Series(named.DEVICES_EXCLUDED, ()),
        Series(named.PORTS_WITHOUT_NETDEV, ()),
        Series(named.COLLECTION_DURATION, ()),
        Series(named.UNFINISHED, ()),
        *(Series(named.UNMAPPED, (one.device,)) for one in gaps),
        *(Series(named.UNMAPPED_NAME, (one.device, *name)) for one in gaps for name in one.names),
        *(Series(named.MISSING, (one.device, *fact)) for one in gaps for fact in one.missing),
        *(Series(row, state) for row in PER_SOURCE for state in states),
    )
