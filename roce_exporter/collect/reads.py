"""One read attempted, its outcome, and the account of how the sources of one device fare."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.collect.batch import Finished
from roce_exporter.kernel import Absent
from roce_exporter.model import SourceState
from roce_exporter.sources.values import DERIVED, NOT_ERRORS, QUARANTINED, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from roce_exporter.model import Reading

LOG = logging.getLogger(__name__)

NO_ANSWER = "no answer"
NOT_REACHED = "not reached in time"


class ReadKey(NamedTuple):
    """What a read is one of at most: one source of one device in one incarnation. `device` is "" for the host itself."""

    device: str
    incarnation: int
    source: str
    netdev: str = ""
    """The network device, for a source that reads each network device by itself."""


class Outcome(NamedTuple):
    """What came of one read."""

    up: bool | None
    """None: there is no such interface, which is no failure."""
    error: str = ""
    seconds: float = 0.0
    readings: tuple[Reading, ...] = ()
    quarantined: int = 0
    found: object = None
    """What the inventory found, for it makes no readings."""
    begun: float = 0.0
    """Monotonic seconds."""


class Task(NamedTuple):
    """One read of one source. `run` may raise; what follows from it comes back as further tasks."""

    key: ReadKey
    run: Callable[[], Finished[Task, Outcome]]


def attempt(clock: Callable[[], float], task: Task) -> Finished[Task, Outcome]:
    """Do one read. Whatever goes wrong is its outcome: a fault of the exporter is reported as an error of the kernel is."""
    begun = clock()
    try:
        outcome, more = task.run()
    except Absent:
        outcome, more = Outcome(None), ()
    except OSError as error:
        outcome, more = Outcome(up=False, error=f"{reason_of(error)}: {error}"), ()
    except Exception as error:  # a fault of one source must not cost the others; it is logged and counted
        where = task.key.netdev or task.key.device or "the host"
        LOG.exception("fault in source %s of %s", task.key.source, where)
        outcome, more = Outcome(up=False, error=f"fault in the exporter: {error!r}"), ()
    # Not `_replace`, which takes several times as long.
    up, why, _, readings, quarantined, found, _ = outcome
    return Finished(Outcome(up, why, clock() - begun, readings, quarantined, found, begun), more)


class Account:
    """How every source of one device, or of the host, fared when it was last read."""

    def __init__(self) -> None:
        self._states: dict[ReadKey, SourceState] = {}

    @property
    def states(self) -> tuple[SourceState, ...]:
        """The state of every source that was ever read."""
        return tuple(self._states.values())

    def states_of(self, keys: Collection[ReadKey]) -> tuple[SourceState, ...]:
        """The states of these sources, of those that were ever read."""
        return tuple(state for key, state in self._states.items() if key in keys)

    def settle(self, outcomes: Mapping[ReadKey, Outcome]) -> list[Outcome]:
        """Enter the outcomes of one collection; returns those that failed or lost something."""
        broken = []
        for key, outcome in outcomes.items():
            before = self._states.get(key)
            whole = is_whole(outcome)
            after = self._states[key] = (_whole if whole else _broken)(key, outcome, before)
            if not whole:
                broken.append(outcome)
            if after.error != (before.error if before else ""):
                where = " of ".join(
                    part for part in (f"source {after.source}", after.netdev, after.device) if part
                )
                level = logging.WARNING if after.error else logging.INFO
                LOG.log(level, "%s: %s", where, after.error or "answers again")
        return broken

    def preview(self, outcomes: Mapping[ReadKey, Outcome]) -> tuple[SourceState, ...]:
        """The states that these outcomes would lead to, without entering them."""
        return tuple(
            (_whole if is_whole(outcome) else _broken)(key, outcome, self._states.get(key))
            for key, outcome in outcomes.items()
        )

    def keep(self, keys: Collection[ReadKey]) -> None:
        """Drop the state of sources that the device no longer has."""
        for key in self._states.keys() - set(keys):
            del self._states[key]


def _whole(key: ReadKey, outcome: Outcome, before: SourceState | None) -> SourceState:
    total = before.errors_total if before else 0
    return SourceState(
        key.source, key.device, key.netdev, outcome.up, outcome.seconds, "", total, 0, outcome.quarantined
    )


def _broken(key: ReadKey, outcome: Outcome, before: SourceState | None) -> SourceState:
    errors, error = judge(outcome)
    up = _is_up(outcome, error)
    if up is False and not error:
        error = before.error if before and before.error else QUARANTINED
    return SourceState(
        key.source,
        key.device,
        key.netdev,
        up,
        outcome.seconds,
        error,
        (before.errors_total if before else 0) + errors,
        sum(loss.reason != DERIVED for reading in outcome.readings for loss in reading.losses),
        outcome.quarantined,
    )


def is_whole(outcome: Outcome) -> bool:
    """Whether nothing was lost, as in almost every read."""
    return not (outcome.error or any([reading.losses for reading in outcome.readings]))  # noqa: C419 - a generator takes thrice as long


def judge(outcome: Outcome) -> tuple[int, str]:
    """How many errors an outcome counts, and the first of them in words."""
    if outcome.error:
        return 1, outcome.error
    lost = [
        (reading, loss)
        for reading in outcome.readings
        for loss in reading.losses
        if loss.reason not in NOT_ERRORS
    ]
    if not lost:
        return 0, ""
    reading, loss = lost[0]
    where = " ".join(filter(None, (f"port {reading.port}" if reading.port else "", loss.name)))
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return len(lost), f"{where}: {loss.reason}{more}"


def _is_up(outcome: Outcome, error: str) -> bool | None:
    """Whether the source answered. One whose files are all left alone because they kept failing did not."""
    if outcome.up is None or _has_values(outcome):
        return outcome.up
    left_alone = any(loss.reason == QUARANTINED for reading in outcome.readings for loss in reading.losses)
    return not error and not left_alone


def _has_values(outcome: Outcome) -> bool:
    """Whether a source with losses gave anything. A port that failed as a whole makes it down."""
    if any(not loss.name for reading in outcome.readings for loss in reading.losses):
        return False
    return any(value is not None for reading in outcome.readings for value in reading.values)
