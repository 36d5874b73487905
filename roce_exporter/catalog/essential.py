"""The facts that a healthy port must report, per driver: when one is missing, the driver renamed it or dropped it.

A fact is judged only where its interface answers. An interface that fails is `roce_exporter_source_up`'s subject, and one
that the device does not have is no drift.
"""

from __future__ import annotations

from typing import NamedTuple

from roce_exporter.catalog.row import COUNTERS, ETHTOOL, HW_COUNTERS

ANY_FUNCTION = "any"
"""Every function of the driver reports it."""
PHYSICAL = "pf"
"""A physical function reports it and a virtual function need not; one whose kind is unknown, as in a virtual machine, is
judged as for `RENAMED`."""
RENAMED = "renamed"
"""Old firmware or an old kernel may lack it, so it is missing only where the interface has names that no row knows."""


class Essential(NamedTuple):
    """One fact of one dialect: any of the metrics will do."""

    dialect: str
    source: str
    fact: str
    metrics: tuple[str, ...]
    required: str = ANY_FUNCTION
    where_pfc_is_on: bool = False
    """mlx5 and mlx4 list the names of PFC only for the priorities that have it."""


CNP_SENT = ("cnp_sent", ("roce_cnp_sent_total",))
CNP_HANDLED = ("cnp_handled", ("roce_cnp_handled_total",))
ECN_MARKED = ("ecn_marked", ("roce_ecn_marked_packets_total",))
ACK_TIMEOUTS = ("ack_timeouts", ("roce_transport_ack_timeouts_total",))
OUT_OF_SEQUENCE = ("out_of_sequence", ("roce_transport_out_of_sequence_total",))
SEQUENCE_ERRORS = ("sequence_errors", ("roce_transport_packet_sequence_errors_total",))
RETRIES_EXCEEDED = ("retries_exceeded", ("roce_transport_retries_exceeded_total",))
RETRANSMITS = ("retransmits", ("roce_transport_retransmitted_packets_total",))
OPERATIONS = ("operations", ("roce_read_requests_received_total", "roce_write_requests_received_total"))
OUT_OF_BUFFER = ("out_of_buffer", ("roce_out_of_buffer_total",))
PORT_BYTES = ("port_bytes", ("roce_port_receive_bytes_total",))
PORT_PACKETS = ("port_packets", ("roce_port_receive_packets_total",))
PFC_FRAMES = (
    "pfc_frames",
    (
        "roce_pfc_receive_frames_total",
        "roce_pfc_receive_xoff_frames_total",
        "roce_pfc_receive_all_frames_total",
    ),
)
PFC_PAUSE = ("pfc_pause_time", ("roce_pfc_receive_pause_seconds_total",))
LINK_BYTES = ("link_bytes", ("roce_phy_receive_bytes_total",))
CRC_ERRORS = ("crc_errors", ("roce_phy_receive_crc_errors_total",))


def _facts(
    dialect: str,
    source: str,
    *facts: tuple[str, tuple[str, ...]],
    required: str = ANY_FUNCTION,
    where_pfc_is_on: bool = False,
) -> tuple[Essential, ...]:
    return tuple(
        Essential(dialect, source, fact, metrics, required, where_pfc_is_on) for fact, metrics in facts
    )


ESSENTIALS = (
    *_facts("mlx5", HW_COUNTERS, ACK_TIMEOUTS, OUT_OF_SEQUENCE, SEQUENCE_ERRORS, OUT_OF_BUFFER, OPERATIONS),
    *_facts("mlx5", HW_COUNTERS, CNP_SENT, CNP_HANDLED, ECN_MARKED, required=PHYSICAL),
    *_facts("mlx5", COUNTERS, PORT_BYTES, PORT_PACKETS),
    *_facts("mlx5", ETHTOOL, LINK_BYTES, CRC_ERRORS, required=PHYSICAL),
    *_facts("mlx5", ETHTOOL, PFC_FRAMES, PFC_PAUSE, required=PHYSICAL, where_pfc_is_on=True),
    *_facts("mlx4", HW_COUNTERS, ACK_TIMEOUTS, OUT_OF_SEQUENCE, SEQUENCE_ERRORS, required=RENAMED),
    *_facts("mlx4", COUNTERS, PORT_BYTES, PORT_PACKETS),
    *_facts("mlx4", ETHTOOL, PFC_FRAMES, required=PHYSICAL, where_pfc_is_on=True),
    *_facts("bnxt_re", HW_COUNTERS, PORT_BYTES, PORT_PACKETS, RETRIES_EXCEEDED, ACK_TIMEOUTS),
    *_facts("bnxt_re", HW_COUNTERS, SEQUENCE_ERRORS, OUT_OF_SEQUENCE),
    *_facts("bnxt_re", HW_COUNTERS, CNP_SENT, CNP_HANDLED, ECN_MARKED, OPERATIONS, required=RENAMED),
    *_facts("bnxt_re", ETHTOOL, LINK_BYTES, CRC_ERRORS, PFC_FRAMES, required=PHYSICAL),
    *_facts("irdma", HW_COUNTERS, PORT_BYTES, PORT_PACKETS, CNP_SENT, CNP_HANDLED, ECN_MARKED, OPERATIONS),
    *_facts("irdma", HW_COUNTERS, SEQUENCE_ERRORS, OUT_OF_SEQUENCE, ACK_TIMEOUTS, required=RENAMED),
    *_facts("irdma", ETHTOOL, PFC_FRAMES, LINK_BYTES, CRC_ERRORS, required=RENAMED),
    *_facts("ionic", HW_COUNTERS, PORT_BYTES, PORT_PACKETS, CNP_SENT, CNP_HANDLED, ECN_MARKED),
    *_facts("ionic", HW_COUNTERS, OUT_OF_SEQUENCE, SEQUENCE_ERRORS, RETRIES_EXCEEDED),
    *_facts("ionic", HW_COUNTERS, ACK_TIMEOUTS, RETRANSMITS, required=RENAMED),
    *_facts("ionic", ETHTOOL, PFC_FRAMES, LINK_BYTES, CRC_ERRORS, required=PHYSICAL),
    *_facts("hns", HW_COUNTERS, PORT_PACKETS, CNP_SENT, CNP_HANDLED),
    *_facts("hns", ETHTOOL, PFC_FRAMES, LINK_BYTES, CRC_ERRORS, required=PHYSICAL),
    *_facts("qedr", ETHTOOL, PFC_FRAMES, CRC_ERRORS, required=PHYSICAL),
    *_facts("mana", HW_COUNTERS, ACK_TIMEOUTS, OUT_OF_SEQUENCE, SEQUENCE_ERRORS),
    *_facts("mana", HW_COUNTERS, PORT_BYTES, CNP_SENT, CNP_HANDLED, ECN_MARKED, required=RENAMED),
    *_facts("efa", HW_COUNTERS, PORT_BYTES, PORT_PACKETS),
    *_facts("efa", HW_COUNTERS, RETRANSMITS, ACK_TIMEOUTS, required=RENAMED),
    *_facts("erdma", HW_COUNTERS, PORT_BYTES, PORT_PACKETS),
    *_facts("ocrdma", COUNTERS, PORT_PACKETS),
    *_facts("ocrdma", ETHTOOL, PFC_FRAMES, CRC_ERRORS, required=PHYSICAL),
    *_facts("rxe", HW_COUNTERS, PORT_PACKETS, OUT_OF_SEQUENCE, SEQUENCE_ERRORS),
)

FACTS = tuple(dict.fromkeys(essential.fact for essential in ESSENTIALS))
"""The values of the label `fact`."""
