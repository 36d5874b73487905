"""Rounds over what is around the devices. See the package's docstring."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from roce_exporter.collect.exporter_part import ExporterPart
from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.values import reason_of
from roce_exporter.model import SourceState
from roce_exporter.normalise.series import Samples

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from roce_exporter.model import DeviceReadings
    from roce_exporter.normalise.series import Series, Value

LOG = logging.getLogger(__name__)

NOTHING = Samples((), ())


class Neighbour(Protocol):
    """One source that belongs to no device."""

    @property
    def source(self) -> str:
        """The source's name."""

    async def read(self) -> Mapping[Series, Value]:
        """What it reports now. Blocks the event loop at no time.

        Raises:
            Absent: the host does not have it.
            OSError: it is broken; the message names it and says what to do.
        """


class Follower(Neighbour, Protocol):
    """A source that is read every second, because what it reports is lost later."""

    def follow(self, found: Sequence[DeviceReadings]) -> None:
        """The devices that there are now."""

    def unread(self) -> Mapping[Series, Value]:
        """What there is to show when `read` has failed."""

    def close(self) -> None:
        """Release what it has opened."""


@dataclass(slots=True, eq=False)
class _Place:
    neighbour: Neighbour
    samples: Samples
    state: SourceState
    unread: Callable[[], Mapping[Series, Value]] = dict
    """What there is to show when a read has failed."""


FOLLOW_SECONDS = 1.0
"""Seconds between two reads of a follower: the kernel log of a small buffer holds some thousand messages."""


class Surroundings(ExporterPart):
    """Reads every neighbour once per `interval` seconds and every follower once per second.

    A read is given up after `patience` seconds.
    """

    def __init__(
        self,
        neighbours: Iterable[Neighbour],
        clock: Callable[[], float],
        interval: float = 60.0,
        patience: float = 5.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        followers: Iterable[Follower] = (),
    ) -> None:
        """`clock` returns monotonic seconds."""
        self._slow = [_place(one) for one in neighbours]
        self._followers = tuple(followers)
        self._quick = [_place(one, one.unread) for one in self._followers]
        self._places = [*self._slow, *self._quick]
        self._clock = clock
        self._interval = interval
        self._patience = patience
        self._sleep = sleep

    async def run(self) -> None:
        """Read again and again. Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self._slow, self._interval))
            group.create_task(self._repeat(self._quick, FOLLOW_SECONDS))

    async def read_once(self) -> None:
        """Read every neighbour and follower once."""
        await asyncio.gather(*map(self._read, self._places))

    def follow(self, found: Sequence[DeviceReadings]) -> None:
        """The devices that there are now."""
        for follower in self._followers:
            follower.follow(found)

    def close(self) -> None:
        """Release what followers have opened."""
        for follower in self._followers:
            follower.close()

    def samples(self) -> tuple[Samples, ...]:
        """The samples of the last reads."""
        return tuple(place.samples for place in self._places)

    def states(self) -> tuple[SourceState, ...]:
        """The state of each source as of its last read."""
        return tuple(place.state for place in self._places)

    async def _repeat(self, places: Sequence[_Place], interval: float) -> None:
        while places:
            await asyncio.gather(*map(self._read, places))
            await self._sleep(interval)

    async def _read(self, place: _Place) -> None:
        begun = self._clock()
        found: Mapping[Series, Value] | None = None
        up: bool | None = True
        error = ""
        try:
            async with asyncio.timeout(self._patience):
                found = await place.neighbour.read()
        except Absent:
            up = None
        except TimeoutError:
            up, error = False, f"no answer in {self._patience:g} s"
        except OSError as failure:
            up, error = False, f"{reason_of(failure)}: {failure.strerror or failure}"
        except Exception as fault:  # a fault at one source must not cost the others; it is logged and counted
            LOG.exception("fault in source %s", place.state.source)
            up, error = False, f"fault in the exporter: {fault!r}"
        if found is None:
            found = place.unread()
        series = tuple(found)
        if series == place.samples.series:
            series = place.samples.series
        place.samples = Samples(series, tuple(found.values()))
        self._settle(place, up, self._clock() - begun, error)

    def _settle(self, place: _Place, up: bool | None, seconds: float, error: str) -> None:
        before = place.state
        if error != before.error:
            level = logging.WARNING if error else logging.INFO
            LOG.log(level, "source %s: %s", before.source, error or "answers again")
        place.state = SourceState(
            before.source, "", "", up, seconds, error, before.errors_total + bool(error)
        )


def _place(one: Neighbour, unread: Callable[[], Mapping[Series, Value]] = dict) -> _Place:
    return _Place(one, NOTHING, SourceState(one.source, "", "", None, 0.0), unread)
