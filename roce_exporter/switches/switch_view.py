"""The last answers of one switch, normalised: the input of the pause tree and of the audit of switches."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from roce_exporter.net.login import hide
from roce_exporter.normalise.series import NO_SAMPLES, Samples, Series
from roce_exporter.switches.interpretation import Earlier, SeriesTable
from roce_exporter.switches.readings import REACH

if TYPE_CHECKING:
    from roce_exporter.switches.probe import ProbeResult

RowValues = dict[tuple[str, ...], float]
"""The values of one row by its labels without `device`."""

DIGITS = re.compile(r"(\d+)", re.ASCII)

NOT_PROBED = "was not probed yet: no Prometheus has requested /probe for it"


@dataclass(frozen=True, slots=True)
class SwitchView:
    """What one switch answered last, and before that."""

    device: str
    """The switch's own name, as in the label `device`; the name of the target if it never answered."""
    samples: Samples = NO_SAMPLES
    """The last answer; empty if there is none."""
    before: Earlier | None = None
    """The answer before, from which rates follow; None: there is none."""
    seconds: float = 0.0
    """Seconds between the two answers."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Per source that failed in the last answer, why: one line. The key "" is the whole switch."""
    age: float = 0.0
    """Seconds since the last answer."""
    lossless: tuple[int, ...] | None = None
    """The priorities on which the site means to have PFC, by the switches file; None: it does not say."""


RowPlaces = dict[str, dict[tuple[str, ...], int]]
"""Where the series of some rows are, by row name and labels without `device`."""


def places_by_row(series: Sequence[Series], rows: Iterable[str]) -> RowPlaces:
    """Where the series of these rows are."""
    found: RowPlaces = {row: {} for row in rows}
    plain = ((one.row, one.labels[1:]) for one in series)
    for place, (row, labels) in enumerate(series.short() if isinstance(series, SeriesTable) else plain):
        if row.name in found:
            found[row.name][labels] = place
    return found


class ViewValues(dict[str, RowValues]):
    """The values of a view by row name; a row that the switch does not have is empty."""

    def __missing__(self, row: str) -> RowValues:
        return {}

    def value(self, row: str, *labels: str) -> float | None:
        """One value; None if it was not read."""
        return self[row].get(labels)

    def flag(self, row: str, *labels: str) -> bool | None:
        """One value of a row with the unit `bool`."""
        found = self.value(row, *labels)
        return None if found is None else bool(found)


def view_values(view: SwitchView) -> ViewValues:
    """The values of a view. Series without a value now are left out."""
    found = ViewValues()
    for one, value in zip(*view.samples, strict=True):
        if value is not None:
            found.setdefault(one.row.name, {})[one.labels[1:]] = value
    return found


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
            before,
            last.ended - before.ended if before else 0.0,
            {
                "" if source == REACH else source: hide(line, last.login)
                for source, line in last.readings.faults.items()
            },
            max(0.0, now - last.ended),
            last.target.lossless,
        )
    away = (SwitchView(name, faults={"": NOT_PROBED}) for name in targets if name not in probed)
    return (*found.values(), *(view for view in away if view.device not in found))
