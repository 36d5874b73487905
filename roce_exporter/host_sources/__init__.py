"""Sources of the host that belong to no RDMA device: which pod has one, the kernel log, the RDMA namespaces that hide some.

Each is read between scrapes with a deadline, and a scrape shows its last result. If a read fails, its series are missing until
one succeeds, and `roce_exporter_source_up` says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from roce_exporter.collect.rounds import ExporterPart, Rounds, every
from roce_exporter.model import DeviceReadings, SourceState
from roce_exporter.normalise.series import Samples, Series, Value


class HostSource:
    """One source that belongs to no device."""

    source: str
    interval = 60.0
    """Seconds between two reads."""

    async def read(self) -> Mapping[Series, Value]:
        """What it reports now. Blocks the event loop at no time.

        Raises:
            Absent: the host does not have it.
            OSError: it is broken; the message names it and says what to do.
        """
        raise NotImplementedError

    def unread(self) -> Mapping[Series, Value]:
        """What there is to show when `read` has failed."""
        return {}

    def follow(self, found: Sequence[DeviceReadings]) -> None:
        """The devices that there are now."""

    def close(self) -> None:
        """Release what it has opened."""


class HostSources(ExporterPart):
    """Reads each source of a host once per its interval. A read is given up after `timeout` seconds."""

    name = "host_sources"

    def __init__(
        self,
        sources: Iterable[HostSource],
        clock: Callable[[], float],
        timeout: float = 5.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`clock` returns monotonic seconds."""
        self._sources = {one: Rounds(one.source, clock) for one in sources}
        self._clock = clock
        self._timeout = timeout
        self._sleep = sleep

    async def run(self) -> None:
        """Read again and again. Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self._sources:
                group.create_task(every(one.interval, partial(self._read, one), self._clock, self._sleep))

    async def read_once(self) -> None:
        """Read every source once."""
        await asyncio.gather(*map(self._read, self._sources))

    def follow(self, found: Sequence[DeviceReadings]) -> None:
        """The devices that there are now."""
        for one in self._sources:
            one.follow(found)

    def close(self) -> None:
        """Release what sources have opened."""
        for one in self._sources:
            one.close()

    def samples(self) -> tuple[Samples, ...]:
        """The samples of the last reads."""
        return tuple([rounds.samples for rounds in self._sources.values()])

    def states(self) -> tuple[SourceState, ...]:
        """The state of each source as of its last read."""
        return tuple([rounds.state for rounds in self._sources.values()])

    async def _read(self, one: HostSource) -> None:
        rounds = self._sources[one]
        found = await rounds.read(one.read(), self._timeout)
        rounds.samples = rounds.samples.replace((one.unread() if found is None else found).items())
