"""The health of a switch's ports: values in the words of switches, and which ports that are up have no known neighbour."""

from __future__ import annotations

import math
import re
from calendar import timegm
from dataclasses import replace
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import SWITCH_LINK_UP, SWITCH_NEIGHBOR_INFO
from roce_exporter.model.values import GARBAGE
from roce_exporter.switches.readings import SwitchFact, SwitchReading, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.switches.readings import SwitchReadings
    from roce_exporter.switches.targets import SwitchTarget

NEIGHBORS = "neighbors"
FILE = "file"
UP_NAMES = frozenset(name for spelling in SWITCH_LINK_UP.spellings for name in spelling.raw)
UP_DOWN = {"up": 1, "down": 0}
FRACTION = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?", re.ASCII)
NO_LIGHT = frozenset({"-inf", "-infinity"})
MOST = 1e15
"""No ratio and no time is as large."""
MOST_DBM = 60.0
"""A kilowatt: more is not a power that a module receives."""
SPEED = re.compile(r"([0-9]{1,4})([MGT])(?:bps)?", re.ASCII)
UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}
MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
TIME = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})", re.ASCII
)
ISO_TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})", re.ASCII)


def fraction(value: object) -> float | Unreadable:
    """A number that may be negative or have decimals: `61.75`, `5.3e-10`."""
    if isinstance(value, bool) or not FRACTION.fullmatch(str(value).strip()):
        return Unreadable(GARBAGE)
    return float(str(value))


def at_least_zero(value: object) -> float | Unreadable:
    """A number with decimals that cannot be negative: a ratio, or a Unix time."""
    found = fraction(value)
    return found if not isinstance(found, Unreadable) and 0 <= found < MOST else Unreadable(GARBAGE)


def watts(value: object) -> float | Unreadable:
    """An optical power in dBm as watts; no light is 0."""
    if str(value).strip().lower() in NO_LIGHT:
        return 0.0
    power = fraction(value)
    if isinstance(power, Unreadable) or power > MOST_DBM:
        return Unreadable(GARBAGE)
    return float(f"{0.001 * math.pow(10, power / 10):.12g}")


def bits_per_second(text: object) -> int | Unreadable:
    """A speed in words, such as `400G`."""
    found = SPEED.fullmatch(str(text).strip())
    return int(found[1]) * UNITS[found[2]] if found else Unreadable(GARBAGE)


def unix_time(text: object) -> int | Unreadable:
    """Seconds of a time in UTC: `Sat Jan 18 00:08:42 2025` or `2025-01-18T00:08:42`."""
    if found := ISO_TIME.match(str(text)):
        return timegm(tuple(int(part) for part in found.groups()))
    found = TIME.fullmatch(str(text).strip())
    month = MONTHS.find(found[1]) if found else -1
    if found is None or month < 0 or month % 3:
        return Unreadable(GARBAGE)
    day, hour, minute, second, year = (int(found[place]) for place in range(2, 7))
    return timegm((year, month // 3 + 1, day, hour, minute, second))


def with_links(readings: SwitchReadings, target: SwitchTarget) -> SwitchReadings:
    """The readings with a neighbour for each configured link. What LLDP reports for a port takes precedence."""
    reported = {fact.labels.get("port") for fact in readings.facts if fact.row is SWITCH_NEIGHBOR_INFO}
    facts = tuple(
        SwitchFact(
            SWITCH_NEIGHBOR_INFO,
            {
                "port": link.port,
                "neighbor": link.host,
                "neighbor_port": link.netdev,
                "port_id_kind": "name",
                "source": FILE,
            },
        )
        for link in target.links
        if link.port not in reported
    )
    return replace(readings, facts=(*readings.facts, *facts)) if facts else readings


def neighbor_readings(readings: SwitchReadings) -> Iterator[SwitchReading]:
    """Per port that is up whether its neighbour is known, and how many are not.

    Nothing if the states of the ports or their neighbours could not be read: unknown is not missing.
    """
    if any("lldp" in source for source in readings.faults) or not any(
        reading.values.keys() & UP_NAMES for reading in readings.readings
    ):
        return
    known = {fact.labels.get("port") for fact in readings.facts if fact.row is SWITCH_NEIGHBOR_INFO}
    missing = 0
    for reading in readings.readings:
        if any(reading.values.get(name) == 1 for name in UP_NAMES):
            is_known = dict(reading.labels).get("port") in known
            missing += not is_known
            yield SwitchReading(NEIGHBORS, reading.labels, {"neighbor_known": int(is_known)})
    yield SwitchReading(NEIGHBORS, (), {"ports_without_neighbor": missing})
