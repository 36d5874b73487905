"""The driver table, `tables/drivers.txt`: one row per driver family.

A row has the kernel drivers, the ways in which the family differs from the others, and the facts that a healthy port must report.
A family shares one set of raw names, its dialect, which the raw names of the catalogue refer to. `docs/adding-a-driver.md`
describes how a family is added. An essential fact that is missing means that the driver renamed or dropped it. It is judged only
where its interface can be read: one that fails is reported by `roce_exporter_source_up`, and one that the device does not have
is not drift.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from roce_exporter.catalog.table import CatalogError, sections

ANY_FUNCTION = "any"
"""Every function of the driver reports it."""
PHYSICAL = "pf"
"""A physical function reports it. A function of unknown kind, as in a virtual machine, is judged as for `RENAMED`."""
RENAMED = "renamed"
"""It counts as missing only where the interface has names without a row."""


class DriverFamily(NamedTuple):
    """One driver family. A column that a row leaves out has the value that most drivers have."""

    dialect: str
    """The name under which the catalogue lists its raw names: that of the RDMA driver."""
    kernel_drivers: tuple[str, ...] = ()
    """Empty for a driver without hardware."""
    json_name: str = ""
    """Its key in `roce-exporter check settings --format=json`, where that is not the dialect."""
    stub_port_counters: bool = False
    """The files in `counters/` exist, and every read of one fails with EINVAL."""
    dscp_by_precedence: bool = False
    """A DSCP without a mapping gets the priority of its upper three bits, the IP precedence. Elsewhere it gets priority 0."""
    trust_by_mappings: bool = False
    """DCB has no trust setting: the first mapping of a DSCP selects DSCP, the removal of the last one selects PCP."""
    uncounted: tuple[str, ...] = ()
    """Beginnings of names that a counter set of queue pairs lists with a 0 that is not a count."""
    sums_on_read: bool = False
    """A counter set is added up from the queue pairs that exist when it is read: a value falls when one is destroyed."""
    oversized_discards: bool = False
    """The RDMA packets that it discards on receipt (ionic: `rx_rdma_mtu_discard_pkts`) are those that are longer than the MTU."""
    undirected_naks: bool = False
    """Its counters of NAKs (mana: `nak_...`, drivers/infiniband/hw/mana/counters.c) do not say whether they were received or sent."""


class Essential(NamedTuple):
    """One essential fact of one dialect."""

    dialect: str
    source: str
    fact: str
    metrics: tuple[str, ...]
    """Any one of them is sufficient."""
    required: str
    where_pfc_is_on: bool


def _rows() -> Iterator[tuple[DriverFamily, list[Essential]]]:
    facts, drivers = (dict(sections("drivers.txt"))[heading] for heading in ("facts", "drivers"))
    metrics = {
        fact: tuple(f"roce_{name}_total" for name in names.split())
        for fact, _, names in (entry.head.partition(": ") for entry in facts)
    }
    for entry in drivers:
        dialect, _, kernel_drivers = entry.head.partition(" of ")
        columns: dict[str, Any] = {}
        essential = []
        for place, line in entry.more:
            head, _, names = line.strip().partition(": ")
            source, *words = head.split()
            if source in DriverFamily._fields:
                columns[source] = names if source == "json_name" else tuple(names.split()) or True
                continue
            if not metrics.keys() >= {*names.split()} or not {*words} <= {PHYSICAL, RENAMED, "pfc"}:
                raise CatalogError(f"{place}: {line.strip()!r} is not SOURCE [pf|renamed] [pfc]: FACTS")
            required = next((one for one in words if one != "pfc"), ANY_FUNCTION)
            essential += [
                Essential(dialect, source, fact, metrics[fact], required, "pfc" in words)
                for fact in names.split()
            ]
        yield DriverFamily(dialect, tuple(kernel_drivers.split()), **columns), essential


_ROWS = tuple(_rows())
DRIVERS = tuple(family for family, _ in _ROWS)
DIALECTS = tuple(family.dialect for family in DRIVERS)
ESSENTIALS = tuple(one for _, essential in _ROWS for one in essential)

_FAMILIES = {family.dialect: family for family in DRIVERS}
_BY_KERNEL_DRIVER = {driver: family.dialect for family in DRIVERS for driver in family.kernel_drivers}


def dialect_of(driver: str) -> str:
    """The dialect of a kernel driver; empty for a driver that is not in the table."""
    return _BY_KERNEL_DRIVER.get(driver, "")


def family_of(dialect: str) -> DriverFamily:
    """The row of a dialect; a row of defaults for a driver that is not in the table."""
    return _FAMILIES.get(dialect, DriverFamily(dialect))
