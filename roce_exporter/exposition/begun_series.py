"""What the sets lean and standard remember: which series and priorities have begun, and which devices these belong to.

A series that has begun is served as long as its device is there, and again when the device comes back within `MEMORY`. After
that its entries are dropped, so devices that come and go under ever new names need no more memory than those that are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.exposition.served_rules import (
    PriorityPlace,
    SeriesKey,
    begins,
    device_of,
    is_activity,
    key_of,
    place_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from roce_exporter.normalise.series import Samples

MEMORY = 3600.0
"""Seconds for which a device that has left is remembered: longer than a reset, a firmware update or a reboot of the card takes."""


class BegunSeries:
    """Which series and priorities of a host have begun."""

    def __init__(self) -> None:
        self.series: dict[SeriesKey, str] = {}
        """Each series that has begun, with its device; empty for those of the host."""
        self.priorities: set[PriorityPlace] = set()
        """The priorities that have PFC or had pause."""
        self._left: dict[str, float] = {}
        """Since when a device with entries is not there."""

    def note(self, parts: Iterable[Samples]) -> bool:
        """Remember what begins with these samples; whether anything did."""
        before = len(self.series), len(self.priorities)
        for part in parts:
            for series, value in zip(part.series, part.values, strict=True):
                if value and is_activity(series) and (place := place_of(series)):
                    self.priorities.add(place)
                if begins(series, value):
                    self.series[key_of(series)] = device_of(series)
        return before != (len(self.series), len(self.priorities))

    def forget(self, present: Collection[str], now: float) -> bool:
        """Drop the entries of devices that are not there for `MEMORY` seconds; whether there were any.

        A device is missing from the first call on without it, not from its last sample: between them it may have been there.
        """
        missing = {*self.series.values(), *(place[0] for place in self.priorities)} - {"", *present}
        self._left = {device: self._left.get(device, now) for device in missing}
        gone = {device for device, since in self._left.items() if now - since >= MEMORY}
        if gone:
            self.series = {key: device for key, device in self.series.items() if device not in gone}
            self.priorities = {place for place in self.priorities if place[0] not in gone}
            self._left = {device: since for device, since in self._left.items() if device not in gone}
        return bool(gone)
