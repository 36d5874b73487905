"""What a row of the catalogue is.

Rule 1. No row, no metric: `exposition` refuses a name without a row.
Rule 2. One fact, one row, for all vendors. Every driver's raw name of the fact is a `Spelling` of the row.
Rule 3. Two facts are never one row: marks set by a switch and marks set by the NIC differ.
Rule 4. Base units. Values that a driver counts in other units are scaled in its spelling.
Rule 5. The order of spellings is the order of preference, chosen once per port.
"""

from __future__ import annotations

from dataclasses import dataclass

COUNTER = "counter"
GAUGE = "gauge"
HISTOGRAM = "histogram"
"""Its last label is `le`, which only the buckets have. Histograms from a driver have buckets only: the sum is not known."""

PORT_LABELS = ("device", "port")

ANY = "*"
"""The dialect of names that mean the same for every driver."""

NETDEV_LABELS = ("device", "port", "netdev")
PRIORITY_LABELS = ("device", "port", "netdev", "priority")
LANE_LABELS = ("device", "port", "netdev", "lane")

HW_COUNTERS = "hw_counters"
"""RDMA hardware counters: RDMA netlink statistics or the sysfs `hw_counters` directories, which carry the same names."""
COUNTERS = "counters"
"""The InfiniBand port counters (PMA) of the sysfs `counters` directory."""
ETHTOOL = "ethtool"
"""The driver's private counters of a network device, `ethtool -S`."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one driver names a row's fact.

    `raw` is the name, or several names to be added up (then all of them are needed). With `difference` the value is the
    first minus the second: the number begun minus the number ended. The value in base units is raw x `times` / `per`.
    `bits` is the width of the hardware counter, at which it wraps.
    """

    dialect: str
    source: str
    raw: tuple[str, ...]
    bits: int = 64
    times: int = 1
    per: int = 1
    difference: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One metric: its name, kind, unit, meaning, labels and spellings."""

    name: str
    kind: str
    unit: str
    """What is counted, in the plural: `packets`, `bytes`, `seconds`, `events`; `info` and `bool` for facts."""
    help: str
    spellings: tuple[Spelling, ...] = ()
    labels: tuple[str, ...] = PORT_LABELS
    stability: str = "stable"
    """`stable`, or `experimental`: the metric may be renamed in a minor release."""


def counter(name: str, unit: str, meaning: str, *spellings: Spelling, stability: str = "stable") -> Row:
    """A counter row with the labels of a port."""
    return Row(name, COUNTER, unit, meaning, spellings, stability=stability)


def gauge(name: str, unit: str, meaning: str, *spellings: Spelling, stability: str = "stable") -> Row:
    """A gauge row with the labels of a port."""
    return Row(name, GAUGE, unit, meaning, spellings, stability=stability)


def netdev_counter(
    name: str, unit: str, meaning: str, *spellings: Spelling, labels: tuple[str, ...] = NETDEV_LABELS
) -> Row:
    """A counter row of a network device, or of one priority, lane or queue of it."""
    return Row(name, COUNTER, unit, meaning, spellings, labels)


def netdev_gauge(
    name: str, unit: str, meaning: str, *spellings: Spelling, labels: tuple[str, ...] = NETDEV_LABELS
) -> Row:
    """A gauge row of a network device, or of one priority, traffic class or buffer of it."""
    return Row(name, GAUGE, unit, meaning, spellings, labels)


def spelt(
    dialect: str,
    source: str,
    *raw: str,
    bits: int = 64,
    times: int = 1,
    per: int = 1,
    difference: bool = False,
) -> Spelling:
    """A spelling; several raw names mean their sum, or their difference."""
    return Spelling(dialect, source, raw, bits, times, per, difference)
