"""Priority flow control (IEEE 802.1Qbb), global pause (802.3 annex 31B) and the NIC's own watchdogs.

Received pause stops this host: the fabric is full, or another host holds it up. Transmitted pause stops others: this
host does not take what it is sent. Frames are no measure of time: one frame holds for up to 65,535 quanta, and again
when it is repeated. Where a driver tells seconds, believe those.
"""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.drivers import DRIVERS
from roce_exporter.catalog.row import ANY, PRIORITY_LABELS, Spelling, netdev_counter, spelt
from roce_exporter.catalog.spellings import (
    eth_bng,
    eth_bnxt,
    eth_hns,
    eth_intel,
    eth_ionic,
    eth_mana,
    eth_mlx4,
    eth_mlx5,
    eth_ocrdma,
    eth_qedr,
)

MICROSECONDS = 1_000_000

ENABLED_ONLY = " mlx5 and mlx4 tell only the priorities for which PFC is on: missing means off."
PER_CLASS = " mana counts per traffic class, which is what `priority` names there."


def pause(name: str, bits: int = 64) -> Spelling:
    """What ethtool netlink tells of global pause, whichever driver answers."""
    return spelt(ANY, "pause", name, bits=bits)


FRAMES_BY_DCB = tuple(family.dialect for family in DRIVERS if family.dcb_counts_pfc)
"""Dialects whose DCB answer counts PFC frames in its own right. mlx5 and mlx4 fill it for priorities without PFC too,
of which nothing is to be shown."""


def told_by_dcb(dialect: str, name: str) -> Spelling:
    """What DCB netlink tells: the fall-back where `ethtool -S` has no such name."""
    return spelt(dialect, "dcb", name)


by_priority = partial(netdev_counter, labels=PRIORITY_LABELS)

PFC = (
    by_priority(
        "roce_pfc_receive_frames_total",
        "frames",
        "PFC pause frames received for the priority: this host was told to stop sending."
        + ENABLED_ONLY
        + PER_CLASS,
        eth_mlx5("rx_prio{priority}_pause"),
        eth_mlx4("rx_pause_prio_{priority}"),
        eth_bnxt("rx_pfc_ena_frames_pri{priority}"),
        eth_bng("rxp_pfc_ena_frames_pri{priority}"),
        eth_hns("mac_rx_pfc_pri{priority}_pkt_num"),
        eth_mana("hc_tc{priority}_rx_pause_phy"),
        *(told_by_dcb(dialect, "pfc_indications_{priority}") for dialect in FRAMES_BY_DCB),
    ),
    by_priority(
        "roce_pfc_transmit_frames_total",
        "frames",
        "PFC pause frames sent for the priority: this host told its switch to stop."
        + ENABLED_ONLY
        + PER_CLASS,
        eth_mlx5("tx_prio{priority}_pause"),
        eth_mlx4("tx_pause_prio_{priority}"),
        eth_bnxt("tx_pfc_ena_frames_pri{priority}"),
        eth_bng("txp_pfc_ena_frames_pri{priority}"),
        eth_hns("mac_tx_pfc_pri{priority}_pkt_num"),
        eth_mana("hc_tc{priority}_tx_pause_phy"),
        *(told_by_dcb(dialect, "pfc_requests_{priority}") for dialect in FRAMES_BY_DCB),
    ),
    by_priority(
        "roce_pfc_receive_xoff_frames_total",
        "frames",
        "PFC frames received that stop the priority. Intel counts per traffic class: priorities of one class rise "
        "together, so do not add them up.",
        eth_intel("rx_priority_{priority}_xoff.nic"),
        eth_intel("port-rx-xoff_prio-{priority}_events"),
        eth_intel("port.rx_priority_{priority}_xoff", bits=32),
        eth_intel("port.rx_priority_{priority}_xoff_rx", bits=32),
    ),
    by_priority(
        "roce_pfc_receive_xon_frames_total",
        "frames",
        "PFC frames received that let the priority go on. Intel counts per traffic class; do not add priorities up.",
        eth_intel("rx_priority_{priority}_xon.nic"),
        eth_intel("port-rx-xon_prio-{priority}_events"),
        eth_intel("port.rx_priority_{priority}_xon", bits=32),
        eth_intel("port.rx_priority_{priority}_xon_rx", bits=32),
    ),
    by_priority(
        "roce_pfc_transmit_xoff_frames_total",
        "frames",
        "PFC frames sent that stop the priority. Intel counts per traffic class; do not add priorities up.",
        eth_intel("tx_priority_{priority}_xoff.nic"),
        eth_intel("port-tx-xoff_prio-{priority}_events"),
        eth_intel("port.tx_priority_{priority}_xoff", bits=32),
        eth_intel("port.tx_priority_{priority}_xoff_tx", bits=32),
    ),
    by_priority(
        "roce_pfc_transmit_xon_frames_total",
        "frames",
        "PFC frames sent that let the priority go on. Intel counts per traffic class; do not add priorities up.",
        eth_intel("tx_priority_{priority}_xon.nic"),
        eth_intel("port-tx-xon_prio-{priority}_events"),
        eth_intel("port.tx_priority_{priority}_xon", bits=32),
        eth_intel("port.tx_priority_{priority}_xon_tx", bits=32),
    ),
    by_priority(
        "roce_pfc_receive_pause_seconds_total",
        "seconds",
        "Time for which received PFC kept this host from sending on the priority." + ENABLED_ONLY,
        eth_mlx5("rx_prio{priority}_pause_duration", per=MICROSECONDS),
        eth_mlx4("rx_pause_duration_prio_{priority}", per=MICROSECONDS),
        eth_bnxt("pfc_pri{priority}_rx_duration_us", per=MICROSECONDS),
        eth_bng("pfc_pri{priority}_rx_duration_us", per=MICROSECONDS),
        eth_ionic("rx_pripause_{priority}_1us_count", per=MICROSECONDS),
    ),
    by_priority(
        "roce_pfc_transmit_pause_seconds_total",
        "seconds",
        "Time for which this host kept its switch from sending on the priority." + ENABLED_ONLY,
        eth_mlx5("tx_prio{priority}_pause_duration", per=MICROSECONDS),
        eth_mlx4("tx_pause_duration_prio_{priority}", per=MICROSECONDS),
        eth_bnxt("pfc_pri{priority}_tx_duration_us", per=MICROSECONDS),
        eth_bng("pfc_pri{priority}_tx_duration_us", per=MICROSECONDS),
        eth_ionic("tx_pripause_{priority}_1us_count", per=MICROSECONDS),
    ),
    by_priority(
        "roce_pfc_receive_pause_cycles_total",
        "cycles",
        "Device cycles for which received PFC kept this host from sending; hns does not say how long a cycle is.",
        eth_hns("mac_rx_pfc_pri{priority}_xoff_time"),
    ),
    by_priority(
        "roce_pfc_transmit_pause_cycles_total",
        "cycles",
        "Device cycles for which this host kept its switch from sending; hns does not say how long a cycle is.",
        eth_hns("mac_tx_pfc_pri{priority}_xoff_time"),
    ),
    by_priority(
        "roce_pfc_receive_transitions_total",
        "events",
        "Times received PFC stopped the priority and let it go again. bnxt counts both halves: halved here.",
        eth_mlx5("rx_prio{priority}_pause_transition"),
        eth_mlx4("rx_pause_transition_prio_{priority}"),
        eth_bnxt("pfc_pri{priority}_rx_transitions", per=2),
        eth_bng("pfc_pri{priority}_rx_transitions", per=2),
        eth_intel("port.rx_priority_{priority}_xon_2_xoff", bits=32),
    ),
    by_priority(
        "roce_pfc_transmit_transitions_total",
        "events",
        "Times this host stopped the priority and let it go again. bnxt counts both halves: halved here.",
        eth_mlx4("tx_pause_transition_prio_{priority}"),
        eth_bnxt("pfc_pri{priority}_tx_transitions", per=2),
        eth_bng("pfc_pri{priority}_tx_transitions", per=2),
    ),
    netdev_counter(
        "roce_pfc_receive_all_frames_total",
        "frames",
        "PFC pause frames received, all priorities together.",
        eth_bnxt("rx_pfc_frames"),
        eth_ionic("frames_rx_pripause"),
        eth_qedr("rx_pfc_frames"),
        eth_hns("mac_rx_pfc_pkt_num"),
        eth_ocrdma("rx_priority_pause_frames"),
    ),
    netdev_counter(
        "roce_pfc_transmit_all_frames_total",
        "frames",
        "PFC pause frames sent, all priorities together.",
        eth_bnxt("tx_pfc_frames"),
        eth_ionic("frames_tx_pripause"),
        eth_qedr("tx_pfc_frames"),
        eth_hns("mac_tx_pfc_pkt_num"),
        eth_ocrdma("tx_priority_pauseframes"),
    ),
)

WATCHDOG = (
    netdev_counter(
        "roce_pfc_watchdog_warnings_total",
        "events",
        "Times the NIC sent pause for longer than its minor stall watermark. mlx5 tells its count of priority 0 only: "
        "no warning here does not mean that there was no storm on the lossless priority.",
        eth_mlx5("tx_pause_storm_warning_events"),
    ),
    netdev_counter(
        "roce_pfc_watchdog_trips_total",
        "events",
        "Times the NIC's own watchdog stopped its pause frames because they had lasted too long; packets are dropped "
        "from then on. mlx5 before Linux 7 tells its count of priority 0 only: 0 is no all-clear.",
        pause("transmit_storm_events"),
        eth_mlx5("tx_pause_storm_error_events"),
        eth_bnxt("continuous_roce_pause_events"),
        eth_bng("continuous_roce_pause_events"),
    ),
    netdev_counter(
        "roce_pfc_watchdog_resumes_total",
        "events",
        "Times the NIC's own watchdog let PFC work again.",
        eth_bnxt("resume_roce_pause_events"),
        eth_bng("resume_roce_pause_events"),
    ),
    netdev_counter(
        "roce_pause_watchdog_trips_total",
        "events",
        "Times the NIC found idle rings that still asserted pause.",
        eth_bnxt("continuous_pause_events"),
        eth_bng("continuous_pause_events"),
    ),
    netdev_counter(
        "roce_pause_watchdog_resumes_total",
        "events",
        "Times such rings resumed.",
        eth_bnxt("resume_pause_events"),
        eth_bng("resume_pause_events"),
    ),
)

GLOBAL = (
    netdev_counter(
        "roce_global_pause_receive_frames_total",
        "frames",
        "Global pause frames (802.3x) received: they stop all priorities at once. PFC is counted apart.",
        eth_mlx5("rx_pause_ctrl_phy"),
        eth_mlx5("rx_global_pause"),
        eth_mlx4("rx_pause"),
        eth_bnxt("rx_pause_frames"),
        eth_ionic("frames_rx_pause"),
        eth_qedr("rx_pause_frames"),
        eth_hns("mac_rx_mac_pause_num"),
        eth_ocrdma("rx_pause_frames"),
        pause("receive_frames"),
    ),
    netdev_counter(
        "roce_global_pause_transmit_frames_total",
        "frames",
        "Global pause frames (802.3x) sent: they stop all priorities at once. PFC is counted apart.",
        eth_mlx5("tx_pause_ctrl_phy"),
        eth_mlx5("tx_global_pause"),
        eth_mlx4("tx_pause"),
        eth_bnxt("tx_pause_frames"),
        eth_ionic("frames_tx_pause"),
        eth_qedr("tx_pause_frames"),
        eth_hns("mac_tx_mac_pause_num"),
        eth_ocrdma("tx_pauseframes"),
        pause("transmit_frames"),
    ),
    netdev_counter(
        "roce_global_pause_receive_xoff_frames_total",
        "frames",
        "Global pause frames received that stop the port.",
        eth_intel("link_xoff_rx.nic"),
        eth_intel("port-rx-xoff_events"),
        eth_intel("port.link_xoff_rx", bits=32),
    ),
    netdev_counter(
        "roce_global_pause_receive_xon_frames_total",
        "frames",
        "Global pause frames received that let the port go on.",
        eth_intel("link_xon_rx.nic"),
        eth_intel("port-rx-xon_events"),
        eth_intel("port.link_xon_rx", bits=32),
    ),
    netdev_counter(
        "roce_global_pause_transmit_xoff_frames_total",
        "frames",
        "Global pause frames sent that stop the port.",
        eth_intel("link_xoff_tx.nic"),
        eth_intel("port-tx-xoff_events"),
        eth_intel("port.link_xoff_tx", bits=32),
    ),
    netdev_counter(
        "roce_global_pause_transmit_xon_frames_total",
        "frames",
        "Global pause frames sent that let the port go on.",
        eth_intel("link_xon_tx.nic"),
        eth_intel("port-tx-xon_events"),
        eth_intel("port.link_xon_tx", bits=32),
    ),
    netdev_counter(
        "roce_global_pause_receive_seconds_total",
        "seconds",
        "Time for which received global pause kept this host from sending.",
        eth_mlx5("rx_global_pause_duration", per=MICROSECONDS),
        eth_mlx4("rx_pause_duration", per=MICROSECONDS),
        eth_ionic("rx_pause_1us_count", per=MICROSECONDS),
    ),
    netdev_counter(
        "roce_global_pause_transmit_seconds_total",
        "seconds",
        "Time for which this host kept its switch from sending by global pause.",
        eth_mlx5("tx_global_pause_duration", per=MICROSECONDS),
        eth_mlx4("tx_pause_duration", per=MICROSECONDS),
    ),
    netdev_counter(
        "roce_global_pause_receive_cycles_total",
        "cycles",
        "Device cycles for which received global pause kept this host from sending; hns does not say how long one is.",
        eth_hns("mac_rx_pause_xoff_time"),
    ),
    netdev_counter(
        "roce_global_pause_transmit_cycles_total",
        "cycles",
        "Device cycles for which this host kept its switch from sending; hns does not say how long one is.",
        eth_hns("mac_tx_pause_xoff_time"),
    ),
    netdev_counter(
        "roce_global_pause_receive_transitions_total",
        "events",
        "Times received global pause stopped the port and let it go again.",
        eth_mlx5("rx_global_pause_transition"),
        eth_mlx4("rx_pause_transition"),
    ),
    netdev_counter(
        "roce_global_pause_transmit_transitions_total",
        "events",
        "Times this host stopped its switch by global pause and let it go again.",
        eth_mlx4("tx_pause_transition"),
    ),
)

ROWS = (*PFC, *WATCHDOG, *GLOBAL)
