"""The last answers of one switch, normalised: the input of the pause tree and of the audit of switches."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from roce_exporter.net.login import hide
from roce_exporter.normalise.series import NO_SAMPLES, Samples
from roce_exporter.switches.interpretation import SeriesTable, places_by_row
from roce_exporter.switches.readings import REACH

if TYPE_CHECKING:
    from roce_exporter.switches.interpretation import Earlier
    from roce_exporter.switches.probe import ProbeResult

RowValues = dict[tuple[str, ...], float]
"""The values of one row by its labels without `device`."""

NOTHING: RowValues = {}
DIGITS = re.compile(r"(\d+)", re.ASCII)

NOT_PROBED = "was not probed yet: no Prometheus has requested /probe for it"


@dataclass(frozen=True, slots=True)
class SwitchView:
    """What one switch answered last, and before that."""

    device: str
    """The switch's own name, as in the label `device`; the name of the target if it never answered."""
    samples: Samples = NO_SAMPLES
    """The last answer; empty if there is none."""
    before: Samples | None = None
    """The answer before, from which rates follow; None: there is none."""
    seconds: float = 0.0
    """Seconds between the two answers."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Per source that failed in the last answer, why: one line. The key "" is the whole switch."""
    age: float = 0.0
    """Seconds since the last answer."""


@dataclass(frozen=True, slots=True)
class ViewValues:
    """The values of a view by row name: now, and their increase per second."""

    now: Mapping[str, RowValues]
    earlier: Mapping[str, RowValues]
    seconds: float

    def of(self, row: str) -> RowValues:
        """The values of a row now; empty if the switch has none."""
        return self.now.get(row, {})

    def value(self, row: str, *labels: str) -> float | None:
        """One value now; None if it was not read."""
        return self.now.get(row, NOTHING).get(labels)

    def flag(self, row: str, *labels: str) -> bool | None:
        """One value of a row with the unit `bool`."""
        found = self.value(row, *labels)
        return None if found is None else bool(found)

    def rate(self, row: str, *labels: str) -> float | None:
        """The increase of a counter per second; None with one answer only, or if the counter started again between the two."""
        after, before = self.now.get(row, NOTHING).get(labels), self.earlier.get(row, NOTHING).get(labels)
        if after is None or before is None or self.seconds <= 0:
            return None
        # Of the answer before, floats are kept: a large counter that stands still would seem to fall.
        rise = float(after) - float(before)
        return None if rise < 0 else rise / self.seconds

    def labels(self, row: str) -> tuple[tuple[str, ...], ...]:
        """The labels of all series of a row, for rows that say something by their labels."""
        return tuple(self.of(row))


def view_values(view: SwitchView, rows: frozenset[str] = frozenset()) -> ViewValues:
    """The values of a view, of these rows or of all. Series without a value now are left out."""
    earlier = {} if view.before is None else _by_row(view.before, rows)
    return ViewValues(_by_row(view.samples, rows), earlier, view.seconds)


def _by_row(samples: Samples, rows: frozenset[str]) -> dict[str, RowValues]:
    series, values = samples
    places = series.places(rows) if isinstance(series, SeriesTable) else places_by_row(series, rows)
    return {
        row: {labels: value for labels, place in found if (value := values[place]) is not None}
        for row, found in places.items()
    }


@lru_cache(16384)
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts `Ethernet8` before `Ethernet12`."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in DIGITS.split(name))


def answer_views(
    answers: Iterable[tuple[ProbeResult, Earlier | None]], targets: Collection[str], now: float
) -> tuple[SwitchView, ...]:
    """The view of every target of the configuration file, and of those from service discovery that were probed.

    `now` is by the clock of the event loop.
    """
    found: dict[str, SwitchView] = {}
    probed = set()
    for last, before in answers:
        probed.add(last.target.name)
        # Two switches with one name would otherwise be taken for one.
        device = last.device if last.device not in found else f"{last.device} ({last.target.name})"
        found[device] = SwitchView(
            device,
            last.samples[0],
            before.samples if before else None,
            last.ended - before.ended if before else 0.0,
            {
                "" if source == REACH else source: hide(line, last.login)
                for source, line in last.readings.faults.items()
            },
            max(0.0, now - last.ended),
        )
    away = (SwitchView(name, faults={"": NOT_PROBED}) for name in targets if name not in probed)
    return (*found.values(), *(view for view in away if view.device not in found))
