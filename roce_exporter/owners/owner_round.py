"""The order of the steps of one round, what each failure means, and the pauses that keep the driver's load low."""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources.values import reason_of
from roce_exporter.model.owner import FROM_MEMORY, ObjectKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from roce_exporter.owners.owner_survey import Survey

T = TypeVar("T")

PART_BY_PART = (ObjectKind.CONNECTION, ObjectKind.QUEUE_PAIR)
"""Kinds that are listed in parts, with pauses: a driver may query its firmware for each object. Connections come first,
because they name the kernel modules behind the queue pairs of the connection manager."""


class Caller(Protocol):
    """Calls a step in a worker thread."""

    def __call__(self, step: Callable[[], T]) -> Awaitable[T]:
        """The result of the step.

        Raises:
            TimeoutError: it has not returned in time.
        """


class OwnerRound:
    """One round. Used by the event loop."""

    def __init__(
        self, survey: Survey, call: Caller, sleep: Callable[[float], Awaitable[None]], pause: float
    ) -> None:
        """After a part that took t seconds, the round waits `pause` times t."""
        self.errors: list[str] = []
        """What could not be read, with the reason."""
        self._survey = survey
        self._call = call
        self._sleep = sleep
        self._pause = pause

    async def take(self, ports: Iterable[int]) -> None:
        """Take all steps. What fails alone is entered in `errors`, and the next step follows.

        Raises:
            TimeoutError: the device does not respond, so further steps would not get an answer either.
            OSError: ENODEV, the device was removed.
        """
        survey = self._survey
        await self._attempt("summary", self._call(survey.compare))
        for kind in FROM_MEMORY:
            await self._attempt(kind.value, self._call(partial(survey.whole_list, kind)))
        await self._attempt("summary", self._call(survey.compare))
        for kind in PART_BY_PART:
            await self._attempt(kind.value, self._parts(kind))
        await self._attempt("summary", self._call(survey.compare))
        for port in ports:
            await self._attempt(f"counter sets of port {port}", self._sets(port))

    async def _parts(self, kind: ObjectKind) -> None:
        ended = False
        while not ended:
            seconds, ended = await self._call(partial(self._survey.part, kind))
            await self._sleep(seconds * self._pause)

    async def _sets(self, port: int) -> None:
        seconds = await self._call(partial(self._survey.counter_sets, port))
        await self._sleep(seconds * self._pause)

    async def _attempt(self, what: str, step: Awaitable[None]) -> None:
        try:
            await step
        except (Absent, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                raise
        except OSError as error:
            if error.errno == errno.ENODEV:
                raise
            self.errors.append(f"{what}: {reason_of(error)}: {error}")
