"""What a row of the catalogue is.

Rule 1. No row, no metric: `exposition` refuses a name without a row.
Rule 2. One fact, one row, for all vendors. Every driver's raw name of the fact is a `Spelling` of the row.
Rule 3. Two facts are never one row: marks set by a switch and marks set by the NIC differ.
Rule 4. Base units. Values that a driver counts in other units are scaled in its spelling.
Rule 5. The order of spellings is the order of preference, chosen once per port.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

COUNTER = "counter"
GAUGE = "gauge"
HISTOGRAM = "histogram"
"""Its last label is `le`, which only the buckets have. Histograms from a driver have buckets only: the sum is not known."""

PORT_LABELS = ("device", "port")

ANY = "*"
"""The dialect of names that mean the same for every driver."""

NETDEV_LABELS = ("device", "port", "netdev")

HW_COUNTERS = "hw_counters"
"""RDMA hardware counters: RDMA netlink statistics or the sysfs `hw_counters` directories, which carry the same names."""
COUNTERS = "counters"
"""The InfiniBand port counters (PMA) of the sysfs `counters` directory."""
ETHTOOL = "ethtool"
"""The driver's private counters of a network device, `ethtool -S`."""


class MetricSet(StrEnum):
    """How much `/metrics` and `once` show. Every set has all of the one before it."""

    LEAN = "lean"
    """What alerts, the health of a port and the first screens of dashboards read: at most 80 series per mlx5 port."""
    STANDARD = "standard"
    """In addition what `check --prometheus` and the rest of the dashboards read: at most 200 series per mlx5 port."""
    FULL = "full"
    """Everything."""

    def includes(self, lowest: MetricSet) -> bool:
        """Whether a row whose lowest set is `lowest` is in this set."""
        return _SIZES[lowest] <= _SIZES[self]


_SIZES = {one: size for size, one in enumerate(MetricSet)}
LEAN, STANDARD, FULL = MetricSet


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
    metric_set: MetricSet = FULL
    """The lowest set that has the metric."""
    usual: int | None = None
    """The value while nothing is wrong: 0 of a counter of faults; None: the row is about no fault."""
    only: tuple[str, ...] = ()
    """A label, and those of its values that have series in the row's lowest set; empty: all. A histogram keeps its bucket `+Inf`."""

    def __hash__(self) -> int:
        """No two rows have the same name. The hash of all fields takes most of the time in which a plan is made."""
        return hash(self.name)
