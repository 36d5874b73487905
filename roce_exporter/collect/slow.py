"""The slow chain: sources that are due once a minute, read after a pass and waited for by no client.

Reading a transceiver takes tens of milliseconds over a slow bus, and the kernel holds the lock of all network
configuration for that time. A driver's settings cost a firmware command each and hardly ever change. MAC addresses are read
through a library whose import takes a tenth of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.collect.batch import Batch
from roce_exporter.collect.workers import Crew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from roce_exporter.collect.batch import Finished
    from roce_exporter.collect.reads import Outcome, ReadKey, Task
    from roce_exporter.collect.workers import InFlight


class SlowChain:
    """One chain per device, one batch at a time. Used by the event loop."""

    def __init__(
        self,
        attempt: Callable[[Task], Finished[Task, Outcome]],
        in_flight: InFlight[ReadKey],
        clock: Callable[[], float],
        timeout: float,
    ) -> None:
        """`timeout` is the time in seconds after which a read is given up."""
        self._attempt = attempt
        self._in_flight = in_flight
        self._clock = clock
        self._timeout = timeout
        self._crew = Crew("roce-slow")
        self._batch: Batch[Task, ReadKey, Outcome] | None = None

    def take(self) -> dict[ReadKey, Outcome]:
        """The outcomes since the last call of this method."""
        return self._batch.take() if self._batch else {}

    def start(self, chains: Iterable[tuple[Task, ...]]) -> None:
        """Begin these reads; if earlier ones are unfinished, continue with those that wait behind a stuck read instead."""
        if self._batch is not None and not self._batch.is_over:
            self._crew.replace_dead(self._batch.run)
            if helpers := self._batch.overtake(self._clock() - self._timeout):
                self._crew.start(self._batch.run, helpers)
            return
        self._crew.settle(stuck=bool(self._in_flight))
        self._batch = Batch(chains, self._attempt, self._in_flight)
        if not self._batch.is_over:
            self._crew.start(self._batch.run, 1)

    def retire(self) -> None:
        """Begin no further reads."""
        if self._batch is not None:
            self._batch.close()
        self._crew.retire()
