"""One attempt to read a source, its outcome, and the state of each source of one device."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from roce_exporter.host.kernel import Absent
from roce_exporter.model import Reading, SourceState
from roce_exporter.model.values import DERIVED, NOT_ERRORS, QUARANTINED, reason_of
from roce_exporter.words import few

LOG = logging.getLogger(__name__)

NO_ANSWER = "no answer"
NOT_REACHED = "not reached in time"
TOO_MANY_STUCK = "not read while other reads do not return"


class ReadKey(NamedTuple):
    """One source of one device in one incarnation: at most one read of it is in flight. `device` is "" for the host."""

    device: str
    incarnation: int
    source: str
    netdev: str = ""
    """The network device, for a source that reads each network device separately."""


thing_of = itemgetter(0, 1, 3)
"""What a read of this key can hang with: a network device, or the RDMA device, which answers while its network device does not.

A hang of ethtool or DCB holds the RTNL, the kernel's lock of all network configuration; RDMA counters need no RTNL.
"""


class Outcome(NamedTuple):
    """The outcome of one read."""

    up: bool | None
    """None: the interface is absent, which is not a failure."""
    error: str = ""
    seconds: float = 0.0
    readings: tuple[Reading, ...] = ()
    quarantined: int = 0
    found: object = None
    """What the inventory found; it has no readings."""
    begun: float = 0.0
    """Monotonic seconds."""


# A call of the class itself takes twice as long; it is made for every read.
outcome_of: Callable[[tuple[object, ...]], Outcome] = partial(tuple.__new__, Outcome)
"""The outcome with these fields, all of them in order."""
_state_of: Callable[[tuple[object, ...]], SourceState] = partial(tuple.__new__, SourceState)


class Task(NamedTuple):
    """One read of one source. `run` may raise, and may return follow-up tasks."""

    key: ReadKey
    run: Callable[[], Finished]


class Finished(NamedTuple):
    """The outcome of a read, and follow-up reads, which are done next in its chain."""

    result: Outcome
    more: tuple[Task, ...] = ()


def attempt(clock: Callable[[], float], task: Task) -> Finished:
    """Do one read. Never raises: a fault of the exporter becomes an outcome in the same way as an error of the kernel."""
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
    up, why, _, readings, quarantined, found, _ = outcome
    return Finished(outcome_of((up, why, clock() - begun, readings, quarantined, found, begun)), more)


class Account:
    """The state of every source of one device, or of the host, as of its last read."""

    def __init__(self) -> None:
        self._states: dict[ReadKey, SourceState] = {}

    @property
    def states(self) -> tuple[SourceState, ...]:
        """The state of every source that has been read."""
        return tuple(self._states.values())

    def states_of(self, keys: Collection[ReadKey]) -> tuple[SourceState, ...]:
        """The states of those of these sources that have been read."""
        return tuple(state for key, state in self._states.items() if key in keys)

    def settle(self, outcomes: Mapping[ReadKey, Outcome]) -> list[Outcome]:
        """Enter the outcomes of one collection; returns those that failed or have losses."""
        broken, states = [], self._states
        for key, outcome in outcomes.items():
            before = states.get(key)
            whole = is_whole(outcome)
            after = states[key] = (_whole if whole else _broken)(key, outcome, before)
            if not whole:
                broken.append(outcome)
            if after.error != (before.error if before else ""):
                log_change(after)
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


def source_text(state: SourceState) -> str:
    """The source, with its network device and its device."""
    return " of ".join(part for part in (state.source, state.netdev, state.device) if part)


def log_change(state: SourceState) -> None:
    """Log that a source fails now, or for another reason, or answers again."""
    level = logging.WARNING if state.error else logging.INFO
    LOG.log(level, "source %s: %s", source_text(state), state.error or "answers again")


def _whole(key: ReadKey, outcome: Outcome, before: SourceState | None) -> SourceState:
    device, _, source, netdev = key
    up, _, seconds, _, quarantined, _, _ = outcome
    total = before.errors_total if before else 0
    return _state_of((source, device, netdev, up, seconds, "", total, 0, quarantined))


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
    """Whether the read has neither an error nor a loss, as almost every read."""
    return not (outcome.error or any([reading.losses for reading in outcome.readings]))  # noqa: C419 - a generator takes thrice as long


def judge(outcome: Outcome) -> tuple[int, str]:
    """The number of errors in an outcome, and a description of the first one."""
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
    return len(lost), few([f"{where}: {loss.reason}", *lost[1:]], 1)


def _is_up(outcome: Outcome, error: str) -> bool | None:
    """Whether the source responded. A source with all files in quarantine did not."""
    losses = [loss for reading in outcome.readings for loss in reading.losses]
    # A loss without a name is that of a whole port.
    has_values = all(loss.name for loss in losses) and any(
        value is not None for reading in outcome.readings for value in reading.values
    )
    if outcome.up is None or has_values:
        return outcome.up
    return not error and all(loss.reason != QUARANTINED for loss in losses)
