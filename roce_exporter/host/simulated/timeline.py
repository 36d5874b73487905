"""Generators of spans: a quiet or busy background, and windows in which its conditions are changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.simulated.conditions import RECEIVE, Conditions, Pause, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random

QUIET = (2.0, 20.0)
"""Seconds from one burst of congestion to the next on a quiet fabric."""

BUSY = (0.02, 0.4)
"""The same with incast."""

BURST = (0.005, 0.06)
"""Duration of a burst in seconds."""

# The ratios to choose from at random: few different conditions, whose rates are computed once each.
TENTHS = tuple(tenths / 10 for tenths in range(1, 10))


class Window(NamedTuple):
    """An interval, in seconds from the start, in which the conditions are changed."""

    start: float
    end: float
    change: Callable[[Conditions], Conditions]


def bursts(
    random: Random, calm: Conditions, burst: Conditions, gap: tuple[float, float], priority: int | None = 3
) -> Iterator[Span]:
    """An endless alternation of calm and a burst with received pause of 10 to 90 %."""
    pauses = [()] if priority is None else [(Pause(priority, RECEIVE, ratio),) for ratio in TENTHS]
    paused_ones = [replace(burst, pauses=pause) for pause in pauses]
    while True:
        yield Span(random.uniform(*gap), calm)
        yield Span(random.uniform(*BURST), random.choice(paused_ones))


def repeat(
    random: Random,
    change: Callable[[Conditions], Conditions],
    *,
    first: tuple[float, float],
    lasting: tuple[float, float],
    every: tuple[float, float],
) -> Iterator[Window]:
    """Endless windows: the first begins after `first` seconds, each lasts `lasting`, the next begins `every` later."""
    start = random.uniform(*first)
    while True:
        yield Window(start, start + random.uniform(*lasting), change)
        start += random.uniform(*every)


def overlay(background: Iterable[Span], windows: Iterable[Window]) -> Iterator[Span]:
    """The background, changed in the windows, which are in order and do not overlap."""
    coming = iter(windows)
    window = next(coming, None)
    for start, end, conditions in _on_clock(background):
        here = start
        while here < end:
            while window and window.end <= here:
                window = next(coming, None)
            if window is None:
                until, held = end, conditions
            elif window.start <= here:
                until, held = min(end, window.end), window.change(conditions)
            else:
                until, held = min(end, window.start), conditions
            yield Span(until - here, held)
            here = until


def paused(*pauses: Pause) -> Callable[[Conditions], Conditions]:
    """A change that replaces the background's pauses of the same priority and direction by these."""
    replaced = {pause.where for pause in pauses}

    def change(conditions: Conditions) -> Conditions:
        kept = tuple(pause for pause in conditions.pauses if pause.where not in replaced)
        return replace(conditions, pauses=kept + pauses)

    return change


def _on_clock(spans: Iterable[Span]) -> Iterator[tuple[float, float, Conditions]]:
    start = 0.0
    for seconds, conditions in spans:
        yield start, start + seconds, conditions
        start += seconds
