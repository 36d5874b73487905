"""The largest value of the last minutes, without keeping every value."""

from __future__ import annotations

from collections import deque

WINDOW = 300.0
SLICE = 30.0


class Longest:
    """The largest value of the last `WINDOW` seconds, exact to one `SLICE`."""

    def __init__(self) -> None:
        self._slices: deque[tuple[float, float]] = deque()
        """Number of each slice of time and the largest value in it."""

    def note(self, now: float, value: float) -> None:
        """Enter a value observed at `now`. Zeros need no slice."""
        number = now // SLICE
        if self._slices and self._slices[-1][0] == number:
            if value > self._slices[-1][1]:
                self._slices[-1] = (number, value)
        elif value > 0:
            self._slices.append((number, value))
        self._forget(now)

    def value(self, now: float) -> float:
        """The largest value; 0 without any."""
        self._forget(now)
        return max((value for _, value in self._slices), default=0.0)

    def _forget(self, now: float) -> None:
        while self._slices and self._slices[0][0] <= (now - WINDOW) // SLICE:
            self._slices.popleft()
