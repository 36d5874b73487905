"""The driver table: one row per driver family, with its kernel drivers and the ways in which it differs from the others.

A family shares one set of raw names, its dialect, which the spellings of the catalogue refer to. `docs/adding-a-driver.md`
describes how a family is added.
"""

from __future__ import annotations

from typing import NamedTuple


class DriverFamily(NamedTuple):
    """One driver family. A column that a row leaves out has the value that most drivers have."""

    dialect: str
    """The name under which the catalogue lists its raw names: that of the RDMA driver."""
    kernel_drivers: tuple[str, ...] = ()
    """The drivers of the PCI function (`class/infiniband/DEVICE/device/driver`), and what `ethtool -i` prints where it
    differs. Empty for a driver without hardware."""
    json_name: str = ""
    """Its key in `roce-exporter audit --format=json`, where that is not the dialect."""
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


DRIVERS = (
    # mlx5_ib_counter_update_stats fills the Q counters of a set and, where they are bound, the optional counters; the congestion
    # counters exist per port only.
    DriverFamily(
        "mlx5",
        ("mlx5_core",),
        dscp_by_precedence=True,
        trust_by_mappings=True,
        uncounted=("np_", "rp_", "rx_icrc_encapsulated"),
    ),
    DriverFamily("mlx4", ("mlx4_core", "mlx4_en")),
    DriverFamily("bnxt_re", ("bnxt_en",), json_name="bnxt"),
    DriverFamily("bng_re", ("bng_en",)),
    DriverFamily("irdma", ("ice", "i40e", "idpf", "irdma")),
    DriverFamily("ionic", ("ionic",), sums_on_read=True),  # ionic_counter_update_stats
    DriverFamily("hns", ("hns3", "hns_roce_hw_v2")),
    # qedr_process_mad returns success without a reply, which the RDMA core turns into EINVAL.
    DriverFamily("qedr", ("qede",), stub_port_counters=True),
    DriverFamily("mana", ("mana",)),
    DriverFamily("efa", ("efa", "ena")),
    DriverFamily("erdma", ("erdma",)),
    DriverFamily("ocrdma", ("be2net",)),
    DriverFamily("rxe"),
    DriverFamily("siw"),
)

DIALECTS = tuple(family.dialect for family in DRIVERS)

_FAMILIES = {family.dialect: family for family in DRIVERS}
_BY_KERNEL_DRIVER = {driver: family.dialect for family in DRIVERS for driver in family.kernel_drivers}


def dialect_of(driver: str) -> str:
    """The dialect of a kernel driver; empty for a driver that is not in the table."""
    return _BY_KERNEL_DRIVER.get(driver, "")


def family_of(dialect: str) -> DriverFamily:
    """The row of a dialect; a row of defaults for a driver that is not in the table."""
    return _FAMILIES.get(dialect, DriverFamily(dialect))
