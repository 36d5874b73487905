"""The driver table: one row per driver family.

A row has the kernel drivers, the ways in which the family differs from the others, and the facts that a healthy port must report.
A family shares one set of raw names, its dialect, which the raw names of the catalogue refer to. `docs/adding-a-driver.md`
describes how a family is added. An essential fact that is missing means that the driver renamed or dropped it. It is judged only
where its interface can be read: one that fails is reported by `roce_exporter_source_up`, and one that the device does not have
is not drift.
"""

from __future__ import annotations

from typing import NamedTuple

from roce_exporter.catalog.row import COUNTERS, ETHTOOL, HW_COUNTERS
from roce_exporter.words import word_map

ANY_FUNCTION = "any"
"""Every function of the driver reports it."""
PHYSICAL = "pf"
"""A physical function reports it; a virtual function need not. A function of unknown kind, as in a virtual machine, is
judged as for `RENAMED`."""
RENAMED = "renamed"
"""Old firmware or an old kernel may lack it, so it counts as missing only where the interface has names without a row."""

METRICS = {
    fact: tuple(f"roce_{metric}_total" for metric in metrics.split(","))
    for fact, metrics in word_map(
        """
        cnp_sent=cnp_sent cnp_handled=cnp_handled ecn_marked=ecn_marked_packets ack_timeouts=transport_ack_timeouts
        out_of_sequence=transport_out_of_sequence sequence_errors=transport_packet_sequence_errors
        retries_exceeded=transport_retries_exceeded retransmits=transport_retransmitted_packets
        operations=read_requests_received,write_requests_received out_of_buffer=out_of_buffer
        port_bytes=port_receive_bytes port_packets=port_receive_packets
        pfc_frames=pfc_receive_frames,pfc_receive_xoff_frames,pfc_receive_all_frames
        pfc_pause_time=pfc_receive_pause_seconds link_bytes=phy_receive_bytes crc_errors=phy_receive_crc_errors
        """
    ).items()
}
"""The essential facts: any one of the metrics is sufficient."""


class Facts(NamedTuple):
    """Essential facts of one driver in one interface."""

    source: str
    names: str
    """Keys of `METRICS`, with spaces between them."""
    required: str = ANY_FUNCTION
    where_pfc_is_on: bool = False
    """mlx5 and mlx4 list the names of PFC counters only for the priorities that have PFC enabled."""


class DriverFamily(NamedTuple):
    """One driver family. A column that a row leaves out has the value that most drivers have."""

    dialect: str
    """The name under which the catalogue lists its raw names: that of the RDMA driver."""
    kernel_drivers: tuple[str, ...] = ()
    """The drivers of the PCI function (`class/infiniband/DEVICE/device/driver`), and what `ethtool -i` prints where it
    differs. Empty for a driver without hardware."""
    essential: tuple[Facts, ...] = ()
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


DRIVERS = (
    DriverFamily(
        "mlx5",
        ("mlx5_core",),
        (
            Facts(HW_COUNTERS, "ack_timeouts out_of_sequence sequence_errors out_of_buffer operations"),
            Facts(HW_COUNTERS, "cnp_sent cnp_handled ecn_marked", PHYSICAL),
            Facts(COUNTERS, "port_bytes port_packets"),
            Facts(ETHTOOL, "link_bytes crc_errors", PHYSICAL),
            Facts(ETHTOOL, "pfc_frames pfc_pause_time", PHYSICAL, where_pfc_is_on=True),
        ),
        dscp_by_precedence=True,
        trust_by_mappings=True,
        # mlx5_ib_counter_update_stats fills the Q counters of a set and, where they are bound, the optional counters; the
        # congestion counters exist per port only.
        uncounted=("np_", "rp_", "rx_icrc_encapsulated"),
    ),
    DriverFamily(
        "mlx4",
        ("mlx4_core", "mlx4_en"),
        (
            Facts(HW_COUNTERS, "ack_timeouts out_of_sequence sequence_errors", RENAMED),
            Facts(COUNTERS, "port_bytes port_packets"),
            Facts(ETHTOOL, "pfc_frames", PHYSICAL, where_pfc_is_on=True),
        ),
    ),
    DriverFamily(
        "bnxt_re",
        ("bnxt_en",),
        (
            Facts(HW_COUNTERS, "port_bytes port_packets retries_exceeded ack_timeouts"),
            Facts(HW_COUNTERS, "sequence_errors out_of_sequence"),
            Facts(HW_COUNTERS, "cnp_sent cnp_handled ecn_marked operations", RENAMED),
            Facts(ETHTOOL, "link_bytes crc_errors pfc_frames", PHYSICAL),
        ),
        json_name="bnxt",
    ),
    DriverFamily("bng_re", ("bng_en",)),
    DriverFamily(
        "irdma",
        ("ice", "i40e", "idpf", "irdma"),
        (
            Facts(HW_COUNTERS, "port_bytes port_packets cnp_sent cnp_handled ecn_marked operations"),
            Facts(HW_COUNTERS, "sequence_errors out_of_sequence ack_timeouts", RENAMED),
            Facts(ETHTOOL, "pfc_frames link_bytes crc_errors", RENAMED),
        ),
    ),
    DriverFamily(
        "ionic",
        ("ionic",),
        (
            Facts(HW_COUNTERS, "port_bytes port_packets cnp_sent cnp_handled ecn_marked"),
            Facts(HW_COUNTERS, "out_of_sequence sequence_errors retries_exceeded"),
            Facts(HW_COUNTERS, "ack_timeouts retransmits", RENAMED),
            Facts(ETHTOOL, "pfc_frames link_bytes crc_errors", PHYSICAL),
        ),
        sums_on_read=True,  # ionic_counter_update_stats
    ),
    DriverFamily(
        "hns",
        ("hns3", "hns_roce_hw_v2"),
        (
            Facts(HW_COUNTERS, "port_packets cnp_sent cnp_handled"),
            Facts(ETHTOOL, "pfc_frames link_bytes crc_errors", PHYSICAL),
        ),
    ),
    DriverFamily(
        "qedr",
        ("qede",),
        (Facts(ETHTOOL, "pfc_frames crc_errors", PHYSICAL),),
        stub_port_counters=True,  # qedr_process_mad returns success without a reply, which the RDMA core turns into EINVAL.
    ),
    DriverFamily(
        "mana",
        ("mana",),
        (
            Facts(HW_COUNTERS, "ack_timeouts out_of_sequence sequence_errors"),
            Facts(HW_COUNTERS, "port_bytes cnp_sent cnp_handled ecn_marked", RENAMED),
        ),
    ),
    DriverFamily(
        "efa",
        ("efa", "ena"),
        (
            Facts(HW_COUNTERS, "port_bytes port_packets"),
            Facts(HW_COUNTERS, "retransmits ack_timeouts", RENAMED),
        ),
    ),
    DriverFamily("erdma", ("erdma",), (Facts(HW_COUNTERS, "port_bytes port_packets"),)),
    DriverFamily(
        "ocrdma",
        ("be2net",),
        (Facts(COUNTERS, "port_packets"), Facts(ETHTOOL, "pfc_frames crc_errors", PHYSICAL)),
    ),
    DriverFamily("rxe", (), (Facts(HW_COUNTERS, "port_packets out_of_sequence sequence_errors"),)),
    DriverFamily("siw"),
)

DIALECTS = tuple(family.dialect for family in DRIVERS)


class Essential(NamedTuple):
    """One essential fact of one dialect."""

    dialect: str
    source: str
    fact: str
    metrics: tuple[str, ...]
    required: str
    where_pfc_is_on: bool


ESSENTIALS = tuple(
    Essential(family.dialect, facts.source, fact, METRICS[fact], facts.required, facts.where_pfc_is_on)
    for family in DRIVERS
    for facts in family.essential
    for fact in facts.names.split()
)

_FAMILIES = {family.dialect: family for family in DRIVERS}
_BY_KERNEL_DRIVER = {driver: family.dialect for family in DRIVERS for driver in family.kernel_drivers}


def dialect_of(driver: str) -> str:
    """The dialect of a kernel driver; empty for a driver that is not in the table."""
    return _BY_KERNEL_DRIVER.get(driver, "")


def family_of(dialect: str) -> DriverFamily:
    """The row of a dialect; a row of defaults for a driver that is not in the table."""
    return _FAMILIES.get(dialect, DriverFamily(dialect))
