"""Which moments the daemon keeps: all of the last minutes, fewer of the last hour, so that memory stays small."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roce_exporter.view.history import History, TimedSamples

SPACINGS = ((0.0, 0.0), (330.0, 60.0), (960.0, 300.0))
"""From this age on, in seconds, moments are at least this far apart. Rules have windows of 5 minutes, 15 minutes and an hour."""
MOST_AGE = 3660.0
"""Seconds for which a moment is kept."""


def kept(history: History, newest: TimedSamples) -> History:
    """The history with its newest moment, thinned out.

    A clock that was set back makes every difference meaningless, so the history begins again.
    """
    if history and newest.time <= history[-1].time:
        return (newest,)
    result = [newest]
    for moment in reversed(history):
        age = newest.time - moment.time
        if age > MOST_AGE:
            break
        # Measured from a fixed origin, so that a moment that is kept once is kept until it enters the next spacing.
        spacing = max(apart for begin, apart in SPACINGS if age >= begin)
        if not spacing or moment.time // spacing != result[-1].time // spacing:
            result.append(moment)
    return tuple(reversed(result))
