"""The raw names of SONiC that the catalogue has, by source, and what decides whether their numbers are fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.switches.systems.sonic.tables import (
    GROUP_COUNTERS,
    PORT_COUNTERS,
    QUEUE_COUNTERS,
    WATERMARKS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

PRIORITY = "{priority}"
OVERRIDE = "BIG_RED_SWITCH_MODE"
"""A field of a queue that is present while the watchdog of the whole switch is overridden."""
WATCHDOG_STATUS = "PFC_WD_STATUS"
PAUSE_STATUS = "SAI_QUEUE_ATTR_PAUSE_STATUS"


def _raw(source: str) -> tuple[str, ...]:
    spellings = (spelling for row in CATALOG for spelling in row.spellings)
    names = (
        spelling.raw for spelling in spellings if spelling.dialect == SONIC and spelling.source == source
    )
    return tuple(dict.fromkeys(name for raw in names for name in raw))


PRIORITY_FIELDS = tuple(name for name in _raw(PORT_COUNTERS) if PRIORITY in name)
PORT_FIELDS = tuple(name for name in _raw(PORT_COUNTERS) if PRIORITY not in name)
QUEUE_FIELDS = _raw(QUEUE_COUNTERS)
GROUP_FIELDS = _raw(GROUP_COUNTERS)
QUEUE_WATERMARKS = tuple(name for name in _raw(WATERMARKS) if name.startswith("SAI_QUEUE_"))
GROUP_WATERMARKS = tuple(name for name in _raw(WATERMARKS) if name.startswith("SAI_INGRESS_PRIORITY_GROUP_"))
POOL_WATERMARKS = tuple(name for name in _raw(WATERMARKS) if name.startswith("SAI_BUFFER_POOL_"))

FLEX_GROUPS = {
    "PORT": PORT_COUNTERS,
    "QUEUE": QUEUE_COUNTERS,
    "WRED_ECN_QUEUE": QUEUE_COUNTERS,
    "PG_DROP": GROUP_COUNTERS,
    "QUEUE_WATERMARK": WATERMARKS,
    "PG_WATERMARK": WATERMARKS,
    "BUFFER_POOL_WATERMARK": WATERMARKS,
}
"""The groups of counters that SONiC polls together (FLEX_COUNTER_TABLE), each with the source that holds them."""

ECN_CAPABILITY = "QUEUE_COUNTER_CAPABILITIES|WRED_ECN_QUEUE_ECN_MARKED_PKT_COUNTER"
WRED_CAPABILITY = "QUEUE_COUNTER_CAPABILITIES|WRED_ECN_QUEUE_WRED_DROPPED_PKT_COUNTER"
CAPABILITIES = {
    "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": ECN_CAPABILITY,
    "SAI_QUEUE_STAT_WRED_DROPPED_PACKETS": WRED_CAPABILITY,
}
"""Rows of STATE_DB that say whether the ASIC has a counter: a 0 of a counter that it does not have is no zero."""


def flex_group(name: str) -> str:
    """The group of counters that a field of a queue belongs to; empty for those of the watchdog, which polls itself."""
    if name.startswith("SAI_QUEUE_STAT_WRED_"):
        return "WRED_ECN_QUEUE"
    if name == "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES" or not name.startswith("SAI_QUEUE_STAT_"):
        return ""
    return "QUEUE"


def port_fields(priorities: Iterable[int]) -> tuple[str, ...]:
    """The fields of a port for these priorities, as SONiC spells them."""
    numbers = sorted(priorities)
    return (
        *PORT_FIELDS,
        *(name.replace(PRIORITY, str(priority)) for priority in numbers for name in PRIORITY_FIELDS),
    )
