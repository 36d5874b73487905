"""How often a network device is looked at, and what that may cost it."""

from __future__ import annotations

from dataclasses import dataclass

ADAPTIVE, FIXED, OFF = "adaptive", "fixed", "off"
MODES = (ADAPTIVE, FIXED, OFF)


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds."""

    mode: str = ADAPTIVE
    interval: float = 0.1
    """Between two looks, where it matters; half of the shortest storm at the most."""
    idle: float = 1.0
    """Between two looks at a device without pause, when adaptive."""
    linger: float = 60.0
    """For how long after any pause it is looked at more often, when adaptive."""
    rest: float = 50.0
    """So many times what its reads take a device is left alone: no NIC spends more than 2 % of its time on us."""

    def seconds(self, now: float, paused_at: float, cost: float) -> float:
        """Until the next look at a device that last paused at `paused_at` and whose reads take `cost`."""
        fast = self.mode == FIXED or now - paused_at < self.linger
        return max(self.interval if fast else self.idle, self.rest * cost)


WEIGHT = 0.2


@dataclass(slots=True)
class Cost:
    """What a read takes: a running mean, so that one hiccup does not slow the loop down for long."""

    seconds: float = 0.0

    def note(self, seconds: float) -> None:
        """A read took this long."""
        self.seconds = seconds if not self.seconds else self.seconds + WEIGHT * (seconds - self.seconds)
