"""What an exporter has besides the collection: parts that read or judge between two scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.model import DeviceReadings, SourceState
    from roce_exporter.normalise.series import Samples


class ExporterPart:
    """One part of an exporter, used from one event loop. By default it does nothing and shows nothing."""

    def follow(self, devices: Sequence[DeviceReadings]) -> None:
        """The devices of a complete collection."""

    def samples(self) -> tuple[Samples, ...]:
        """The current samples. Called by every scrape, so nothing is read here."""
        return ()

    def states(self) -> tuple[SourceState, ...]:
        """The state of each source that this part reads."""
        return ()

    def note(self, samples: tuple[Samples, ...]) -> None:
        """The samples of a complete collection, of all parts. Called by every scrape: they are judged later."""

    async def read_once(self) -> None:
        """Read everything once, for an exposition without `run`."""

    async def run(self) -> None:
        """Read again and again until cancelled."""

    def close(self) -> None:
        """Release threads and descriptors."""
