"""Which counters SONiC polls, how often, and which ones the ASIC does not have: FLEX_COUNTER_TABLE and STATE_DB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roce_exporter.switches.numbers import number
from roce_exporter.switches.systems.sonic.wanted import CAPABILITIES, FLEX_GROUPS, flex_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roce_exporter.switches.systems.sonic.rows import SonicRows
    from roce_exporter.switches.systems.sonic.tables import Fields


@dataclass(frozen=True, slots=True)
class Polling:
    """How SONiC polls the ASIC."""

    disabled: frozenset[str]
    """Groups of counters that are off: their numbers are those of the day when they were turned off."""
    enabled: frozenset[str]
    intervals: Mapping[str, float]
    """Seconds between two polls of a group, where CONFIG_DB has them."""
    lacking: frozenset[str]
    """Fields of queues that the ASIC cannot count."""

    def fresh(self, names: Iterable[str]) -> tuple[str, ...]:
        """The fields of queues that are polled and that the ASIC has."""
        return tuple(
            name for name in names if flex_group(name) not in self.disabled and name not in self.lacking
        )


def polling_of(rows: SonicRows, state: Mapping[str, Fields]) -> Polling:
    """What the two databases say; a group that they do not mention is neither enabled nor disabled."""
    groups = {group: rows.get(f"FLEX_COUNTER_TABLE|{group}") for group in FLEX_GROUPS}
    states = {group: fields.get("FLEX_COUNTER_STATUS") for group, fields in groups.items()}
    intervals = {group: number(fields.get("POLL_INTERVAL")) for group, fields in groups.items()}
    return Polling(
        disabled=frozenset(group for group, text in states.items() if text == "disable"),
        enabled=frozenset(group for group, text in states.items() if text == "enable"),
        intervals={group: value / 1000 for group, value in intervals.items() if value},
        lacking=frozenset(
            name for name, key in CAPABILITIES.items() if state.get(key, {}).get("isSupported") == "false"
        ),
    )


def renewals_of(parts: Iterable[Polling]) -> dict[str, float]:
    """Per source the longest interval of its groups that are polled, in seconds."""
    found: dict[str, float] = {}
    for part in parts:
        for group, seconds in part.intervals.items():
            if group not in part.disabled:
                source = FLEX_GROUPS[group]
                found[source] = max(found.get(source, 0.0), seconds)
    return found
