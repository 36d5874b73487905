"""Observations of the exporter become the owners of a scene: whose queue pairs fail, get CNPs or retry."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roce_exporter.catalog import owners
from roce_exporter.demo.figures import TimedValues, rate, wanted_values
from roce_exporter.demo.scene import ShownOwner

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.normalise.series import Samples

QUEUE_PAIRS, IN_ERROR = owners.QUEUE_PAIRS, owners.QUEUE_PAIRS_IN_ERROR
INFO = owners.OWNER_INFO
CNPS = ("roce_owner_flow_cnp_received_total", "roce_owner_cnp_handled_total")
"""CNPs for the owner's sender, as one driver or the other counts them."""
RETRIES = (
    "roce_owner_transport_ack_timeouts_total",
    "roce_owner_transport_packet_sequence_errors_total",
    "roce_owner_transport_implied_naks_total",
)
"""Reasons for which a sender transmits again."""
OWNER_WANTED = frozenset({QUEUE_PAIRS.name, IN_ERROR.name, INFO.name, *CNPS, *RETRIES})

SURVEY_SECONDS = 2.0
"""Between two surveys of the demo. The default is a minute; a simulated driver is cheap to query."""

RATE_SECONDS = 3 * SURVEY_SECONDS
"""Window of a rate: the counters change with each survey."""

KEPT_MOMENTS = 32
"""At two a second they cover the window."""


def owner_values(samples: Iterable[Samples], time: float) -> TimedValues:
    """The values that the demo shows of owners."""
    return wanted_values(samples, time, OWNER_WANTED)


@dataclass(slots=True)
class OwnerFigures:
    """Keeps the last moments, from which `owners` computes rates."""

    _moments: deque[TimedValues] = field(default_factory=lambda: deque(maxlen=KEPT_MOMENTS))

    def owners(self, now: TimedValues) -> tuple[ShownOwner, ...]:
        """Every owner of the host's devices together, those that suffer most first. One call per moment."""
        self._moments.append(now)
        commands = _commands(now)
        names = dict.fromkeys(labels[1] for name, labels in now.values if name == IN_ERROR.name)
        shown = [
            ShownOwner(
                owner,
                commands.get(owner, ""),
                int(_total(now, QUEUE_PAIRS.name, owner)),
                int(_total(now, IN_ERROR.name, owner)),
                # A driver that counts CNPs for whole ports only has 0 under the second name.
                max(
                    (found for one in CNPS if (found := self._rate(now, one, owner)) is not None),
                    default=None,
                ),
                self._retries(now, owner),
            )
            for owner in names
        ]
        return tuple(sorted(shown, key=suffering))

    def _retries(self, now: TimedValues, owner: str) -> float | None:
        found = [one for name in RETRIES if (one := self._rate(now, name, owner)) is not None]
        return sum(found) if found else None

    def _rate(self, now: TimedValues, name: str, owner: str) -> float | None:
        """The increase per second on all devices; None if no device has the counter at both moments."""
        before = self._before(now)
        found = [
            one
            for counter, labels in now.values
            if counter == name and labels[1] == owner
            if (one := rate(before, now, name, labels)) is not None
        ]
        return sum(found) if found else None

    def _before(self, now: TimedValues) -> TimedValues:
        """The newest moment that is at least `RATE_SECONDS` older, or the oldest."""
        old = [moment for moment in self._moments if moment.time <= now.time - RATE_SECONDS]
        return old[-1] if old else self._moments[0]


def suffering(owner: ShownOwner) -> tuple[float, float, float, str]:
    """A key that sorts owners: by queue pairs in error, retries, CNPs, and then by name."""
    return -owner.in_error, -(owner.retries or 0.0), -(owner.cnps or 0.0), owner.owner


def _total(now: TimedValues, metric: str, owner: str) -> float:
    return sum(value for (name, labels), value in now.values.items() if name == metric and labels[1] == owner)


def _commands(now: TimedValues) -> dict[str, str]:
    """The command of each owner."""
    found = {}
    for name, labels in now.values:
        if name == INFO.name:
            known = dict(zip(INFO.labels, labels, strict=True))
            found[known["owner"]] = known["command"]
    return found
